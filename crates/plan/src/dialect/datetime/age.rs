//! `age`, and `justify_hours`, `justify_days`, `justify_interval`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::unary;
use arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike, Months, NaiveDateTime};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use segue_types::SqlType;

use super::super::general;
use super::{interval, timestamp};

const DAY_NS: i64 = 86_400_000_000_000;

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    macro_rules! justify {
        ($name:literal, $how:expr) => {
            general::function($name, one_interval, interval, |columns, _| {
                let intervals = columns[0].as_primitive::<IntervalMonthDayNanoType>();
                let justified = unary::<_, _, IntervalMonthDayNanoType>(intervals, $how);
                Ok(Arc::new(justified))
            })
        };
    }
    vec![
        general::function("age", two_moments, interval, |columns, _| ages(columns)),
        justify!("justify_hours", |interval| same_sign(in_days(interval))),
        justify!("justify_days", in_months),
        justify!("justify_interval", |interval| same_sign(in_months(in_days(interval)))),
    ]
}

fn one_interval(given: &[DataType]) -> Option<Vec<DataType>> {
    let taken = |ty: &DataType| {
        matches!(ty, DataType::Interval(_) | DataType::Duration(_) | DataType::Null)
            || general::is_text(ty)
    };
    matches!(given, [ty] if taken(ty)).then(|| vec![SqlType::Interval.arrow_type()])
}

fn two_moments(given: &[DataType]) -> Option<Vec<DataType>> {
    let taken = |ty: &DataType| {
        matches!(ty, DataType::Timestamp(..) | DataType::Date32 | DataType::Null)
            || general::is_text(ty)
    };
    (given.len() == 2 && given.iter().all(taken)).then(|| vec![timestamp(); 2])
}

fn ages(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let [later, earlier] = [0, 1].map(|at| columns[at].as_primitive::<TimestampMicrosecondType>());
    let moment = |us: i64| DateTime::from_timestamp_micros(us).map(|moment| moment.naive_utc());
    let ages = later.iter().zip(earlier).map(|(later, earlier)| {
        let (later, earlier) = (moment(later?)?, moment(earlier?)?);
        if later >= earlier {
            between(earlier, later)
        } else {
            between(later, earlier).map(negated)
        }
    });
    Ok(Arc::new(ages.collect::<PrimitiveArray<IntervalMonthDayNanoType>>()))
}

/// As many months as fit, then days and the rest.
fn between(earlier: NaiveDateTime, later: NaiveDateTime) -> Option<IntervalMonthDayNano> {
    let count = |moment: NaiveDateTime| moment.year() * 12 + moment.month0().cast_signed();
    let mut months = count(later) - count(earlier);
    let after = |months: i32| earlier.checked_add_months(Months::new(months.cast_unsigned()));
    if (later.day(), later.time()) < (earlier.day(), earlier.time()) {
        months -= 1;
    }
    let rest = later.signed_duration_since(after(months)?);
    let days = i32::try_from(rest.num_days()).ok()?;
    let nanos = rest.num_microseconds()? % super::DAY_US * 1_000;
    Some(IntervalMonthDayNano::new(months, days, nanos))
}

fn negated(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    IntervalMonthDayNano::new(-interval.months, -interval.days, -interval.nanoseconds)
}

/// Each 24 hours are a day.
fn in_days(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let whole = i32::try_from(interval.nanoseconds / DAY_NS).unwrap_or(0);
    let nanos = interval.nanoseconds - i64::from(whole) * DAY_NS;
    IntervalMonthDayNano::new(interval.months, interval.days.saturating_add(whole), nanos)
}

/// Each 30 days are a month.
fn in_months(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let (mut months, mut days) = (interval.months + interval.days / 30, interval.days % 30);
    if months > 0 && days < 0 {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && days > 0 {
        (months, days) = (months + 1, days - 30);
    }
    IntervalMonthDayNano::new(months, days, interval.nanoseconds)
}

/// The parts with one sign: `1 day -1 hour` is 23 hours.
fn same_sign(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let IntervalMonthDayNano { mut months, mut days, mut nanoseconds } = interval;
    if months > 0 && (days < 0 || days == 0 && nanoseconds < 0) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || days == 0 && nanoseconds > 0) {
        (months, days) = (months + 1, days - 30);
    }
    if days > 0 && nanoseconds < 0 {
        (days, nanoseconds) = (days - 1, nanoseconds + DAY_NS);
    } else if days < 0 && nanoseconds > 0 {
        (days, nanoseconds) = (days + 1, nanoseconds - DAY_NS);
    }
    IntervalMonthDayNano::new(months, days, nanoseconds)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;
    use chrono::NaiveDate;

    use super::{between, in_days, in_months, same_sign};

    const HOUR_NS: i64 = 3_600_000_000_000;

    #[test]
    fn an_age_is_counted_in_months_first() {
        let day = |y, m, d| NaiveDate::from_ymd_opt(y, m, d).and_then(|d| d.and_hms_opt(0, 0, 0));
        let age =
            |from: Option<_>, to: Option<_>| between(from.expect("a day"), to.expect("a day"));
        let of = |months, days| Some(IntervalMonthDayNano::new(months, days, 0));
        assert_eq!(age(day(1957, 6, 13), day(2001, 4, 10)), of(43 * 12 + 9, 28));
        assert_eq!(age(day(2024, 1, 31), day(2024, 3, 1)), of(1, 1));
    }

    #[test]
    fn parts_run_over_into_greater_ones() {
        let of = IntervalMonthDayNano::new;
        assert_eq!(in_days(of(0, 0, 27 * HOUR_NS)), of(0, 1, 3 * HOUR_NS));
        assert_eq!(in_months(of(0, 35, 0)), of(1, 5, 0));
        assert_eq!(same_sign(in_months(in_days(of(1, 0, -HOUR_NS)))), of(0, 29, 23 * HOUR_NS));
        assert_eq!(same_sign(of(0, 1, -HOUR_NS)), of(0, 0, 23 * HOUR_NS));
    }
}
