//! `make_interval`, `make_date`, `make_time`, `make_timestamp`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, PrimitiveArray};
use arrow::datatypes::{
    DataType, Float64Type, Int32Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use chrono::{Datelike, NaiveDate};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use segue_types::{SqlState, SqlType, UserError};

use super::super::general::{self, failed};
use super::interval;

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let date: general::Returns = |_| Ok(general::typed(&SqlType::Date));
    let time: general::Returns = |_| Ok(general::typed(&SqlType::Time));
    let timestamp: general::Returns = |_| Ok(general::typed(&SqlType::Timestamp));
    vec![
        general::function("make_interval", parts::<0, 6>, interval, |c, _| intervals(c)),
        general::function("make_date", whole::<3>, date, |columns, _| {
            let [years, months, days] = [0, 1, 2].map(|at| columns[at].as_primitive::<Int32Type>());
            let dates = (0..years.len()).map(|row| {
                let known = columns.iter().all(|column| column.is_valid(row));
                let day = |_| date_of(years.value(row), months.value(row), days.value(row));
                known.then_some(()).map(day).transpose().map(|day| day.map(days_since_1970))
            });
            Ok(Arc::new(dates.collect::<Result<Date32Array>>()?))
        }),
        general::function("make_time", parts::<2, 2>, time, |columns, _| {
            let times = rows(columns).map(|row| match row {
                Some(row) => time_of(row[0], row[1], row[2]).map(Some),
                None => Ok(None),
            });
            Ok(Arc::new(times.collect::<Result<PrimitiveArray<Time64MicrosecondType>>>()?))
        }),
        general::function("make_timestamp", parts::<5, 5>, timestamp, |columns, _| {
            let moments = rows(columns).map(|row| match row {
                Some(row) => moment_of(&row).map(Some),
                None => Ok(None),
            });
            Ok(Arc::new(moments.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?))
        }),
    ]
}

/// Whole numbers.
fn whole<const COUNT: usize>(given: &[DataType]) -> Option<Vec<DataType>> {
    let fits = given.len() == COUNT && given.iter().all(|ty| ty.is_integer() || ty.is_null());
    fits.then(|| vec![DataType::Int32; COUNT])
}

/// Whole numbers, at least so many, and after the most of them seconds.
fn parts<const LEAST: usize, const WHOLE: usize>(given: &[DataType]) -> Option<Vec<DataType>> {
    let taken = |(place, ty): (usize, &DataType)| match ty {
        ty if ty.is_integer() || ty.is_null() => Some(()),
        ty if place == WHOLE && ty.is_numeric() => Some(()),
        _ => None,
    };
    let all = given.iter().enumerate().map(taken).collect::<Option<Vec<()>>>()?.len();
    let least = if LEAST == WHOLE { WHOLE + 1 } else { LEAST };
    let types = |place| if place == WHOLE { DataType::Float64 } else { DataType::Int32 };
    (least..=WHOLE + 1).contains(&all).then(|| (0..all).map(types).collect())
}

/// The arguments of each row as numbers; none when one is NULL.
fn rows(columns: &[ArrayRef]) -> impl Iterator<Item = Option<Vec<f64>>> {
    let value = |column: &ArrayRef, row| match column.data_type() {
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row),
        _ => f64::from(column.as_primitive::<Int32Type>().value(row)),
    };
    (0..columns.first().map_or(1, |column| column.len())).map(move |row| {
        let known = columns.iter().all(|column| column.is_valid(row));
        known.then(|| columns.iter().map(|column| value(column, row)).collect())
    })
}

fn intervals(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let intervals = rows(columns).map(|row| match row {
        Some(row) => interval_of(&row).map(Some),
        None => Ok(None),
    });
    Ok(Arc::new(intervals.collect::<Result<PrimitiveArray<IntervalMonthDayNanoType>>>()?))
}

/// Years, months, weeks, days, hours, minutes, seconds; those that are not given are none.
fn interval_of(parts: &[f64]) -> Result<IntervalMonthDayNano> {
    let part = |place: usize| parts.get(place).copied().unwrap_or(0.0);
    let months = part(0) * 12.0 + part(1);
    let days = part(2) * 7.0 + part(3);
    let micros = (part(4) * 3_600.0 + part(5) * 60.0) * 1e6 + (part(6) * 1e6).round();
    let fits = |value: f64| value.abs() <= f64::from(i32::MAX);
    // Intervals count nanoseconds where they are held.
    if !fits(months) || !fits(days) || !(micros * 1e3).is_finite() || micros.abs() > 9.2e15 {
        return Err(failed(SqlState::DATETIME_OVERFLOW, "interval out of range"));
    }
    Ok(IntervalMonthDayNano::new(months as i32, days as i32, micros as i64 * 1_000))
}

/// A negative year is one before Christ; there is no year 0.
fn date_of(year: i32, month: i32, day: i32) -> Result<NaiveDate> {
    let counted = if year < 0 { year + 1 } else { year };
    let positive = |number: i32| u32::try_from(number).unwrap_or(0);
    let date = NaiveDate::from_ymd_opt(counted, positive(month), positive(day));
    date.filter(|_| year != 0).ok_or_else(|| {
        let message = format!("date field value out of range: {year}-{month:02}-{day:02}");
        let detail =
            format!("Invalid parameter year, month, day: invalid date: {year}-{month}-{day}");
        out_of_range(message, detail)
    })
}

fn time_of(hour: f64, minute: f64, second: f64) -> Result<i64> {
    let last = hour == 24.0 && minute == 0.0 && second == 0.0;
    let fits = (0.0..24.0).contains(&hour) && (0.0..60.0).contains(&minute);
    if !(fits && (0.0..=60.0).contains(&second) || last) {
        let message = format!("time field value out of range: {hour:02}:{minute:02}:{second:02}");
        let detail = if second < 0.0 {
            format!("Invalid parameter sec: invalid sec: {second}")
        } else {
            format!("Invalid parameter hour, min, sec: invalid time: {hour}:{minute}:{second}")
        };
        return Err(out_of_range(message, detail));
    }
    Ok(((hour * 60.0 + minute) * 60.0) as i64 * 1_000_000 + (second * 1e6).round() as i64)
}

fn moment_of(parts: &[f64]) -> Result<i64> {
    let date = date_of(parts[0] as i32, parts[1] as i32, parts[2] as i32)?;
    let day_us = i64::from(days_since_1970(date)) * super::DAY_US;
    Ok(day_us + time_of(parts[3], parts[4], parts[5])?)
}

fn days_since_1970(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - 719_163
}

fn out_of_range(message: String, detail: String) -> DataFusionError {
    let error = UserError::new(SqlState::DATETIME_OVERFLOW, message).with_detail(detail);
    DataFusionError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, IntervalMonthDayNano};
    use chrono::NaiveDate;

    use super::{date_of, days_since_1970, interval_of, moment_of, parts, time_of};

    #[test]
    fn parts_are_put_together() {
        let interval = interval_of(&[1.0, 12.0, 1.0, 1.0, 1.0, 1.0, 1.5]).expect("in range");
        assert_eq!(interval, IntervalMonthDayNano::new(24, 8, 3_661_500_000_000));
        assert!(interval_of(&[2e8]).is_err() && interval_of(&[0.0, 0.0, 1e9]).is_err());
        assert_eq!(date_of(-5, 2, 29).ok(), NaiveDate::from_ymd_opt(-4, 2, 29));
        assert!(date_of(0, 1, 1).is_err() && date_of(2013, 2, 30).is_err());
        assert_eq!(date_of(1970, 1, 2).map(days_since_1970).ok(), Some(1));
        assert_eq!(time_of(0.0, 1.0, 0.5).ok(), Some(60_500_000));
        assert!(time_of(24.0, 0.0, 2.0).is_err() && time_of(1.0, -1.0, 0.0).is_err());
        assert_eq!(moment_of(&[1970.0, 1.0, 1.0, 0.0, 0.0, 1.0]).ok(), Some(1_000_000));
    }

    #[test]
    fn seconds_alone_may_have_a_fraction() {
        let int = || DataType::Int64;
        assert_eq!(parts::<0, 6>(&[]), Some(vec![]));
        assert!(parts::<2, 2>(&[int(), int(), DataType::Float64]).is_some());
        assert!(parts::<2, 2>(&[int(), int()]).is_none());
        assert!(parts::<2, 2>(&[int(), DataType::Float64, int()]).is_none());
    }
}
