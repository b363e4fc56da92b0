//! `date_trunc` of timestamps, instants and intervals, to any of PostgreSQL's units, which need not be constant.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike, NaiveDate};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use segue_types::{SqlState, SqlType};

use super::super::general::{self, failed};
use super::super::zone::{named, to_instant, to_local};
use super::{DAY_US, instant, timestamp};

/// The function.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let same: general::Returns = |fields| Ok(Arc::clone(&fields[1]));
    vec![general::function("date_trunc", unit_and_moment, same, |columns, fields| {
        match fields[1].data_type() {
            DataType::Interval(_) => intervals(columns),
            _ if columns.len() == 3 => in_zones(columns),
            _ => moments(columns, &fields[1]),
        }
    })]
}

fn unit_and_moment(given: &[DataType]) -> Option<Vec<DataType>> {
    let (unit, moment, zone) = match given {
        [unit, moment] => (unit, moment, None),
        [unit, moment, zone] => (unit, moment, Some(zone)),
        _ => return None,
    };
    let is_word = |ty: &DataType| general::is_text(ty) || ty.is_null();
    if let Some(zone) = zone {
        let of_instants = matches!(moment, DataType::Timestamp(_, Some(_)) | DataType::Null);
        let fits = is_word(unit) && is_word(zone) && (of_instants || general::is_text(moment));
        return fits.then(|| vec![DataType::Utf8, instant(), DataType::Utf8]);
    }
    let moment = match moment {
        DataType::Timestamp(_, Some(_)) => instant(),
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Null => timestamp(),
        ty if general::is_text(ty) => timestamp(),
        DataType::Interval(_) | DataType::Duration(_) | DataType::Time64(_) => {
            SqlType::Interval.arrow_type()
        }
        _ => return None,
    };
    is_word(unit).then(|| vec![DataType::Utf8, moment])
}

/// What is kept: whole multiples of microseconds, or of months; weeks begin on Mondays.
#[derive(Clone, Copy)]
enum Unit {
    Micros(i64),
    Week,
    Months(i32),
}

fn unit(name: &str, ty: &str) -> Result<Unit> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "microsecond" | "microseconds" => Unit::Micros(1),
        "millisecond" | "milliseconds" => Unit::Micros(1_000),
        "second" | "seconds" => Unit::Micros(1_000_000),
        "minute" | "minutes" => Unit::Micros(60_000_000),
        "hour" | "hours" => Unit::Micros(3_600_000_000),
        "day" | "days" => Unit::Micros(DAY_US),
        "week" | "weeks" => Unit::Week,
        "month" | "months" => Unit::Months(1),
        "quarter" | "quarters" => Unit::Months(3),
        "year" | "years" => Unit::Months(12),
        "decade" | "decades" => Unit::Months(120),
        "century" | "centuries" => Unit::Months(1_200),
        "millennium" | "millennia" => Unit::Months(12_000),
        _ => {
            let message = format!("unit \"{name}\" not recognized for type {ty}");
            return Err(failed(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    })
}

/// The unit of each row, looked up when the name is another one than that of the row before.
struct Units<'a> {
    known: Option<(&'a str, Unit)>,
    ty: &'static str,
}

impl<'a> Units<'a> {
    fn get(&mut self, name: &'a str) -> Result<Unit> {
        match self.known {
            Some((known, unit)) if known == name => Ok(unit),
            _ => Ok(self.known.insert((name, unit(name, self.ty)?)).1),
        }
    }
}

fn moments(columns: &[ArrayRef], field: &FieldRef) -> Result<ArrayRef> {
    let ty = match field.data_type() {
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        _ => "timestamp without time zone",
    };
    let mut units = Units { known: None, ty };
    let names = columns[0].as_string::<i32>();
    let moments = columns[1].as_primitive::<TimestampMicrosecondType>();
    let truncated = names.iter().zip(moments).map(|(name, moment)| match name.zip(moment) {
        None => Ok(None),
        Some((name, moment)) => truncated(moment, units.get(name)?).map(Some),
    });
    let truncated = truncated.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?;
    Ok(Arc::new(truncated.with_data_type(field.data_type().clone())))
}

/// Instants, truncated by the clocks of a zone. Up to an hour the clocks are not set meanwhile.
fn in_zones(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut units = Units { known: None, ty: "timestamp with time zone" };
    let mut known: Option<(&str, Tz)> = None;
    let (names, zones) = (columns[0].as_string::<i32>(), columns[2].as_string::<i32>());
    let moments = columns[1].as_primitive::<TimestampMicrosecondType>();
    let rows = names.iter().zip(moments).zip(zones);
    let truncated = rows.map(|((name, moment), zone)| {
        let Some(((name, moment), zone)) = name.zip(moment).zip(zone) else { return Ok(None) };
        let zone = match known {
            Some((name, found)) if name == zone => found,
            _ => known.insert((zone, named(zone)?)).1,
        };
        let unit = units.get(name)?;
        let Some(local) = to_local(moment, zone) else { return Ok(None) };
        let start = truncated(local, unit)?;
        Ok(match unit {
            Unit::Micros(size) if size < DAY_US => Some(moment - (local - start)),
            _ => to_instant(start, zone),
        })
    });
    let truncated = truncated.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?;
    Ok(Arc::new(truncated.with_timezone("+00:00")))
}

fn truncated(moment_us: i64, unit: Unit) -> Result<i64> {
    // 1970 began on a Thursday.
    const MONDAY_US: i64 = -3 * DAY_US;
    match unit {
        Unit::Micros(1) => Ok(moment_us),
        Unit::Micros(size) => Ok(moment_us - moment_us.rem_euclid(size)),
        Unit::Week => Ok(moment_us - (moment_us - MONDAY_US).rem_euclid(7 * DAY_US)),
        Unit::Months(months) => {
            let out_of_range = || failed(SqlState::DATETIME_OVERFLOW, "timestamp out of range");
            let date = DateTime::from_timestamp_micros(moment_us).ok_or_else(out_of_range)?;
            let first = first_day(date.date_naive(), months).ok_or_else(out_of_range)?;
            Ok(first.and_hms_opt(0, 0, 0).ok_or_else(out_of_range)?.and_utc().timestamp_micros())
        }
    }
}

/// The first day of the month, quarter, year, decade, …. The first century began with year 1, the first decade with 0.
fn first_day(date: NaiveDate, months: i32) -> Option<NaiveDate> {
    let years = months / 12;
    match months {
        1 | 3 => {
            let month = date.month0() / months.cast_unsigned() * months.cast_unsigned();
            NaiveDate::from_ymd_opt(date.year(), month + 1, 1)
        }
        12 | 120 => NaiveDate::from_ymd_opt(date.year().div_euclid(years) * years, 1, 1),
        _ => NaiveDate::from_ymd_opt((date.year() - 1).div_euclid(years) * years + 1, 1, 1),
    }
}

fn intervals(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut units = Units { known: None, ty: "interval" };
    let names = columns[0].as_string::<i32>();
    let intervals = cast(&columns[1], &SqlType::Interval.arrow_type())?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let truncated = names.iter().zip(intervals).map(|(name, interval)| match name.zip(interval) {
        None => Ok(None),
        Some((name, interval)) => kept(interval, units.get(name)?).map(Some),
    });
    let truncated = truncated.collect::<Result<PrimitiveArray<IntervalMonthDayNanoType>>>()?;
    Ok(Arc::new(truncated))
}

/// The greater parts of an interval, each towards zero.
fn kept(
    interval: IntervalMonthDayNano,
    unit: Unit,
) -> Result<IntervalMonthDayNano, DataFusionError> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    Ok(match unit {
        Unit::Micros(DAY_US) => IntervalMonthDayNano::new(months, days, 0),
        Unit::Micros(size) => {
            let rest = nanoseconds % (size * 1_000);
            IntervalMonthDayNano::new(months, days, nanoseconds - rest)
        }
        Unit::Months(size) => IntervalMonthDayNano::new(months - months % size, 0, 0),
        Unit::Week => {
            let message = "unit \"week\" not supported for type interval";
            return Err(failed(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;
    use chrono::{DateTime, NaiveDate};

    use super::{kept, truncated, unit};

    #[test]
    fn every_unit_begins_where_it_does_in_postgresql() {
        let moment = NaiveDate::from_ymd_opt(2202, 2, 16)
            .and_then(|date| date.and_hms_micro_opt(20, 38, 40, 123_456))
            .expect("a time");
        let cases = [
            ("microseconds", "2202-02-16 20:38:40.123456"),
            ("milliseconds", "2202-02-16 20:38:40.123"),
            ("minute", "2202-02-16 20:38:00"),
            ("day", "2202-02-16 00:00:00"),
            ("week", "2202-02-15 00:00:00"),
            ("quarter", "2202-01-01 00:00:00"),
            ("decade", "2200-01-01 00:00:00"),
            ("century", "2201-01-01 00:00:00"),
            ("millennium", "2001-01-01 00:00:00"),
        ];
        for (name, expected) in cases {
            let unit = unit(name, "timestamp").expect("a unit");
            let start = truncated(moment.and_utc().timestamp_micros(), unit).expect("in range");
            let start = DateTime::from_timestamp_micros(start).expect("in range").naive_utc();
            assert_eq!(start.to_string(), expected, "{name}");
        }
        assert!(unit("s", "timestamp").is_err());
    }

    #[test]
    fn intervals_lose_their_smaller_parts() {
        let interval = IntervalMonthDayNano::new(-28, 5, 3_661_000_000_000);
        let kept = |name| kept(interval, unit(name, "interval").expect("a unit")).ok();
        let of = |months, days, nanos| Some(IntervalMonthDayNano::new(months, days, nanos));
        assert_eq!(kept("hour"), of(-28, 5, 3_600_000_000_000));
        assert_eq!(kept("day"), of(-28, 5, 0));
        assert_eq!(kept("quarter"), of(-27, 0, 0));
        assert_eq!(kept("year"), of(-24, 0, 0));
        assert_eq!(kept("week"), None);
    }
}
