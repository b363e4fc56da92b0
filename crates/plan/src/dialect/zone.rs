//! `AT TIME ZONE`: an instant becomes what the clocks of a zone show, and the other way round. DataFusion keeps the
//! instant and changes only the zone in its type.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use chrono::{DateTime, Offset, TimeZone};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use segue_types::{SqlState, UserError};

/// The name under which rewritten queries call it.
pub(super) const AT_TIME_ZONE: &str = "at_time_zone";

/// The function.
pub(super) fn function() -> ScalarUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    ScalarUDF::new_from_impl(AtTimeZone { signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AtTimeZone {
    signature: Signature,
}

fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
}

fn local() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &str {
        AT_TIME_ZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [DataType::Timestamp(_, None), _] => Ok(vec![local(), DataType::Utf8]),
            [_, _] => Ok(vec![instant(), DataType::Utf8]),
            _ => Err(DataFusionError::Internal("AT TIME ZONE has two operands".to_owned())),
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match arguments.first() {
            Some(DataType::Timestamp(_, None)) => instant(),
            _ => local(),
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [moments, zones] = arrays.as_slice() else {
            return Err(DataFusionError::Internal("AT TIME ZONE has two operands".to_owned()));
        };
        let moved = convert(moments, zones)?;
        let scalar =
            arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&moved, 0)?));
        }
        Ok(ColumnarValue::Array(moved))
    }
}

fn convert(moments: &ArrayRef, zones: &ArrayRef) -> Result<ArrayRef> {
    let is_local = matches!(moments.data_type(), DataType::Timestamp(_, None));
    let held = if is_local { local() } else { instant() };
    let moments = cast(moments, &held)?;
    let moments = moments.as_primitive::<TimestampMicrosecondType>();
    let mut zone: Option<(&str, Tz)> = None;
    let mut moved = Vec::with_capacity(moments.len());
    for (moment, name) in moments.iter().zip(zones.as_string::<i32>()) {
        let (Some(moment), Some(name)) = (moment, name) else {
            moved.push(None);
            continue;
        };
        let zone = match zone {
            Some((known, zone)) if known == name => zone,
            _ => zone.insert((name, named(name)?)).1,
        };
        moved.push(if is_local { to_instant(moment, zone) } else { to_local(moment, zone) });
    }
    let moved = TimestampMicrosecondArray::from(moved);
    Ok(Arc::new(if is_local { moved.with_timezone("+00:00") } else { moved }))
}

/// The zone of this name, in any case, or of an offset; `None` when nobody knows it.
pub fn time_zone(name: &str) -> Option<Tz> {
    let known = chrono_tz::TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name));
    known.map_or(name, |zone| zone.name()).parse().ok()
}

/// The zone in which a session reads and shows times; `None` for UTC, where nothing is to be done.
pub(super) fn of_session(options: &ConfigOptions) -> Option<Tz> {
    let name = options.execution.time_zone.as_deref()?;
    let is_utc = ["+00:00", "utc", "etc/utc", "gmt", "z", "zulu"]
        .iter()
        .any(|utc| name.eq_ignore_ascii_case(utc));
    if is_utc { None } else { time_zone(name) }
}

/// The zone that a value names.
pub(super) fn named(name: &str) -> Result<Tz> {
    time_zone(name).ok_or_else(|| {
        let message = format!("time zone \"{name}\" not recognized");
        let error = UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .with_hint("Give a name such as Europe/Berlin, or an offset such as +02:00.");
        DataFusionError::External(Box::new(error))
    })
}

pub(super) fn to_local(moment_us: i64, zone: Tz) -> Option<i64> {
    let moment = DateTime::from_timestamp_micros(moment_us)?.naive_utc();
    let ahead_s = zone.offset_from_utc_datetime(&moment).fix().local_minus_utc();
    moment_us.checked_add(i64::from(ahead_s) * 1_000_000)
}

/// Of two instants with one local time the second; in a gap the clocks are those before it.
pub(super) fn to_instant(local_us: i64, zone: Tz) -> Option<i64> {
    let local = DateTime::from_timestamp_micros(local_us)?.naive_utc();
    let offset = match zone.offset_from_local_datetime(&local).latest() {
        Some(offset) => offset,
        None => zone.offset_from_utc_datetime(&(local - chrono::Duration::days(1))),
    };
    local_us.checked_sub(i64::from(offset.fix().local_minus_utc()) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::{named, to_instant, to_local};

    const HOUR_US: i64 = 3_600_000_000;

    #[test]
    fn berlin_is_ahead_by_an_hour_in_winter() {
        let berlin = named("Europe/Berlin").expect("a zone");
        assert_eq!(to_local(0, berlin), Some(HOUR_US));
        assert_eq!(to_instant(HOUR_US, berlin), Some(0));
    }

    #[test]
    fn a_local_time_in_the_gap_of_spring_is_read_with_the_clocks_before() {
        let berlin = named("Europe/Berlin").expect("a zone");
        // 2024-03-31 02:30, which no clock in Berlin has shown.
        let gap_us = 1_711_852_200_000_000;
        assert_eq!(to_instant(gap_us, berlin), Some(gap_us - HOUR_US));
    }
}
