//! The values of one type as those of another.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, StructArray};
use arrow::compute::{CastOptions, cast, cast_with_options, try_unary, unary};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use chrono::{DateTime, Offset, TimeZone};
use datafusion::common::{DataFusionError, Result};
use segue_formats::Column;
use segue_types::{SqlState, SqlType, UserError};

use super::super::text;
use super::super::value_error::{type_word, value_error};
use super::super::zone::{to_instant, to_local};
use super::is_whole;

/// What text stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    Value,
    /// A document of jsonb.
    Jsonb,
}

/// The values of `array` as `to`; times are those of `zone`, or of UTC.
pub(super) fn converted(
    array: &ArrayRef,
    to: &SqlType,
    origin: Origin,
    zone: Option<Tz>,
) -> Result<ArrayRef> {
    match (array.data_type(), to) {
        (DataType::Timestamp(_, Some(_)), SqlType::Text) if zone.is_some() => {
            shown_in(array, zone.expect("it is there"))
        }
        (_, SqlType::Text) => text::shown(array),
        (DataType::Utf8, _) => read(array.as_string(), to, origin, zone),
        (DataType::LargeUtf8 | DataType::Utf8View, _) => {
            converted(&cast(array, &DataType::Utf8)?, to, origin, zone)
        }
        (DataType::Null, _) => Ok(arrow::array::new_null_array(&to.arrow_type(), array.len())),
        (DataType::List(_), SqlType::Array(item)) => list(array, item, zone),
        (DataType::Struct(_), SqlType::Struct(members)) => row(array, members, zone),
        (DataType::Timestamp(..) | DataType::Date32, _) if zone.is_some() => {
            moved(array, to, zone.expect("it is there"))
        }
        (DataType::Time64(_), SqlType::Interval) => {
            let times = cast(array, &SqlType::Time.arrow_type())?;
            let times = times.as_primitive::<Time64MicrosecondType>();
            Ok(Arc::new(unary::<_, _, IntervalMonthDayNanoType>(times, |us| {
                IntervalMonthDayNano::new(0, 0, us * 1_000)
            })))
        }
        (DataType::Interval(_), SqlType::Time) => {
            const DAY_US: i64 = 86_400_000_000;
            let intervals = cast(array, &SqlType::Interval.arrow_type())?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            Ok(Arc::new(unary::<_, _, Time64MicrosecondType>(intervals, |interval| {
                (interval.nanoseconds / 1_000).rem_euclid(DAY_US)
            })))
        }
        (DataType::Float64, _) => {
            let floats = array.as_primitive::<Float64Type>();
            narrow(&floats.unary::<_, Float64Type>(f64::round_ties_even), to)
        }
        (DataType::Float32, _) => {
            let floats = array.as_primitive::<Float32Type>();
            narrow(&floats.unary::<_, Float32Type>(f32::round_ties_even), to)
        }
        (DataType::Decimal128(precision, scale), _) if *scale > 0 && is_whole(to) => {
            narrow(cast(array, &DataType::Decimal128(*precision, 0))?.as_ref(), to)
        }
        _ => narrow(array.as_ref(), to),
    }
}

fn list(array: &ArrayRef, item: &SqlType, zone: Option<Tz>) -> Result<ArrayRef> {
    let list = array.as_list::<i32>();
    let items = converted_part(list.values(), item, zone)?;
    let field = Arc::new(item.field("item", true));
    Ok(Arc::new(ListArray::new(field, list.offsets().clone(), items, list.nulls().cloned())))
}

/// Members are taken by their place, whatever they are called.
fn row(array: &ArrayRef, members: &[(String, SqlType)], zone: Option<Tz>) -> Result<ArrayRef> {
    let row = array.as_struct();
    if row.num_columns() != members.len() {
        let error = UserError::new(SqlState::CANNOT_COERCE, "cannot cast type record to struct")
            .with_detail("It has another number of members.");
        return Err(external(error));
    }
    let columns = row.columns().iter().zip(members);
    let columns = columns.map(|(column, (_, member))| converted_part(column, member, zone));
    let fields = members.iter().map(|(name, member)| member.field(name, true)).collect();
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(fields, columns, row.nulls().cloned())?))
}

fn converted_part(array: &ArrayRef, to: &SqlType, zone: Option<Tz>) -> Result<ArrayRef> {
    match array.data_type() == &to.arrow_type() {
        true => Ok(Arc::clone(array)),
        false => converted(array, to, Origin::Value, zone),
    }
}

fn read(texts: &StringArray, to: &SqlType, origin: Origin, zone: Option<Tz>) -> Result<ArrayRef> {
    let mut column = Column::of_type(to);
    let mut local = Vec::with_capacity(if zone.is_some() { texts.len() } else { 0 });
    for text in texts {
        let text = match (text, origin) {
            (None, _) => None,
            (Some(text), Origin::Value) => Some(Cow::Borrowed(text)),
            (Some(text), Origin::Jsonb) => Some(Cow::Owned(scalar_of(text, to)?)),
        };
        if zone.is_some() {
            local.push(text.as_deref().is_some_and(|text| !has_offset(text)));
        }
        match text {
            None => column.append_null(),
            Some(text) => segue_formats::append_literal(&mut column, &text)
                .map_err(|error| external(value_error(to, &text, &error)))?,
        }
    }
    let array = column.finish(&to.field("", true));
    match zone {
        Some(zone) if *to == SqlType::Timestamptz => {
            let moments = array.as_primitive::<TimestampMicrosecondType>().iter().zip(local);
            let moments = moments.map(|(moment, local)| match local {
                true => to_instant(moment?, zone),
                false => moment,
            });
            let moments = moments.collect::<arrow::array::TimestampMicrosecondArray>();
            Ok(Arc::new(moments.with_timezone("+00:00")))
        }
        _ => Ok(array),
    }
}

/// Whether the text of a time says how far from UTC it is.
pub(super) fn has_offset(text: &str) -> bool {
    text.split_once(':').is_some_and(|(_, rest)| {
        rest.contains(['+', '-']) || rest.contains(|c: char| c.is_ascii_alphabetic())
    })
}

/// The text of a scalar document as `to` reads it. Whole numbers are rounded.
fn scalar_of(document: &str, to: &SqlType) -> Result<String> {
    let kind = match document.as_bytes().first() {
        Some(b'n') => "null",
        Some(b'"') => "string",
        Some(b'[') => "array",
        Some(b'{') => "object",
        Some(b't' | b'f') if *to != SqlType::Boolean => "boolean",
        Some(b'0'..=b'9' | b'-') if *to == SqlType::Boolean => "numeric",
        _ => {
            let rounded = document.parse::<f64>().ok().filter(|number| number.fract() != 0.0);
            return Ok(match rounded {
                Some(number) if is_whole(to) => number.round_ties_even().to_string(),
                _ => document.to_owned(),
            });
        }
    };
    let is_scalar = matches!(to, SqlType::Boolean | SqlType::Real | SqlType::Double)
        || is_whole(to)
        || matches!(to, SqlType::Numeric { .. });
    if !is_scalar {
        return Ok(document.to_owned());
    }
    let message = format!("cannot cast jsonb {kind} to type {}", type_word(to));
    Err(external(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)))
}

fn moments(array: &ArrayRef) -> Result<ArrayRef> {
    let zone = match array.data_type() {
        DataType::Timestamp(_, Some(_)) => SqlType::Timestamptz,
        _ => SqlType::Timestamp,
    };
    Ok(cast(array, &zone.arrow_type())?)
}

/// From instants to what the clocks show, or back.
fn moved(array: &ArrayRef, to: &SqlType, zone: Tz) -> Result<ArrayRef> {
    let moments = moments(array)?;
    let is_instant = moments.data_type() == &SqlType::Timestamptz.arrow_type();
    let way = if is_instant { to_local } else { to_instant };
    let out_of_range = || {
        let error = UserError::new(SqlState::DATETIME_OVERFLOW, "timestamp out of range");
        arrow::error::ArrowError::ExternalError(Box::new(error))
    };
    let moved = try_unary::<_, _, TimestampMicrosecondType>(
        moments.as_primitive::<TimestampMicrosecondType>(),
        |moment| way(moment, zone).ok_or_else(out_of_range),
    )?;
    if !is_instant {
        return Ok(Arc::new(moved.with_timezone("+00:00")));
    }
    narrow(&moved, to)
}

/// Instants as the clocks of a zone show them.
fn shown_in(array: &ArrayRef, zone: Tz) -> Result<ArrayRef> {
    let moments = moments(array)?;
    let moments = moments.as_primitive::<TimestampMicrosecondType>();
    let local = moments.iter().map(|moment| to_local(moment?, zone));
    let local: ArrayRef = Arc::new(local.collect::<arrow::array::TimestampMicrosecondArray>());
    let texts = text::shown(&local)?;
    let shown = texts.as_string::<i32>().iter().zip(moments).map(|(text, moment)| {
        let moment = DateTime::from_timestamp_micros(moment?)?.naive_utc();
        let seconds = zone.offset_from_utc_datetime(&moment).fix().local_minus_utc();
        let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
        let (hours, minutes) = (minutes / 60, minutes % 60);
        Some(match minutes {
            0 => format!("{}{sign}{hours:02}", text?),
            _ => format!("{}{sign}{hours:02}:{minutes:02}", text?),
        })
    });
    Ok(Arc::new(shown.collect::<StringArray>()))
}

fn narrow(array: &dyn Array, to: &SqlType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &to.arrow_type(), &strict).map_err(|error| {
        if is_whole(to) {
            let message = format!("{to} out of range");
            external(UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
        } else {
            DataFusionError::from(error)
        }
    })
}

fn external(error: UserError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use segue_types::SqlType;

    use super::{has_offset, scalar_of};

    #[test]
    fn the_offset_of_a_time_stands_behind_its_clock() {
        assert!(has_offset("2022-10-01 12:00:00-08:00") && has_offset("2022-10-01T12:00Z"));
        assert!(!has_offset("2022-10-01 12:00:00.5") && !has_offset("2022-10-01"));
    }

    #[test]
    fn a_scalar_of_jsonb_is_read_as_what_it_is() {
        let read = |document, to| scalar_of(document, &to).map_err(|error| error.to_string());
        assert_eq!(read("2.5", SqlType::SmallInt).as_deref(), Ok("2"));
        assert_eq!(read("3.5", SqlType::Integer).as_deref(), Ok("4"));
        assert_eq!(read("2.5", SqlType::NUMERIC).as_deref(), Ok("2.5"));
        let error = read("null", SqlType::Boolean).expect_err("no boolean");
        assert!(error.contains("cannot cast jsonb null to type boolean"), "{error}");
        assert!(read("true", SqlType::Integer).is_err() && read("1", SqlType::Boolean).is_err());
    }
}
