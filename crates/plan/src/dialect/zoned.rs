//! Arithmetic with instants by the clocks of the session's zone: a day is as long as the clocks make it.
//!
//! Only sessions in another zone than UTC come here.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampMicrosecondType,
};
use chrono::{DateTime, Days, Months};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF, lit};
use segue_types::{SqlState, SqlType};

use super::general::{self, failed};
use super::zone::{named, to_instant, to_local};

static ADD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let instant: general::Returns = |_| Ok(general::typed(&SqlType::Timestamptz));
    Arc::new(general::function("timestamptz_pl_interval", general::any, instant, added))
});

static SUBTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let instant: general::Returns = |_| Ok(general::typed(&SqlType::Timestamptz));
    Arc::new(general::function("timestamptz_mi_interval", general::any, instant, subtracted))
});

/// The expression by the clocks of a zone; `None` for what does not hang on it.
pub(super) fn in_zone(expr: &Expr, schema: &DFSchema, zone: &str) -> Option<Expr> {
    let is_instant = |expr: &Expr| {
        expr.get_type(schema).is_ok_and(|ty| matches!(ty, DataType::Timestamp(_, Some(_))))
    };
    let is_interval =
        |expr: &Expr| expr.get_type(schema).is_ok_and(|ty| matches!(ty, DataType::Interval(_)));
    let call = |function: &Arc<ScalarUDF>, instant: &Expr, interval: &Expr| {
        let operands = vec![instant.clone(), interval.clone(), lit(zone)];
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), operands))
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Plus if is_interval(right) && is_instant(left) => {
                Some(call(&ADD, left, right))
            }
            Operator::Plus if is_interval(left) && is_instant(right) => {
                Some(call(&ADD, right, left))
            }
            Operator::Minus if is_interval(right) && is_instant(left) => {
                Some(call(&SUBTRACT, left, right))
            }
            _ => None,
        },
        Expr::ScalarFunction(function) => match (function.func.name(), function.args.as_slice()) {
            ("date_trunc", [_, moment]) if is_instant(moment) => {
                let mut truncated = function.clone();
                truncated.args.push(lit(zone));
                Some(Expr::ScalarFunction(truncated))
            }
            ("date_part", [part, moment]) if is_instant(moment) && !is_epoch(part) => {
                let mut parted = function.clone();
                let local = Arc::new(super::cast::function(SqlType::Timestamp));
                let local = ScalarFunction::new_udf(local, vec![moment.clone()]);
                parted.args[1] = Expr::ScalarFunction(local);
                Some(Expr::ScalarFunction(parted))
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_epoch(part: &Expr) -> bool {
    matches!(part, Expr::Literal(ScalarValue::Utf8(Some(part)), _) if part.eq_ignore_ascii_case("epoch"))
}

fn added(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    moved(columns, 1)
}

fn subtracted(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    moved(columns, -1)
}

fn moved(columns: &[ArrayRef], sign: i64) -> Result<ArrayRef> {
    let moments = cast(&columns[0], &SqlType::Timestamptz.arrow_type())?;
    let moments = moments.as_primitive::<TimestampMicrosecondType>();
    let intervals = cast(&columns[1], &SqlType::Interval.arrow_type())?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let zones = columns[2].as_string::<i32>();
    let zone = zones.iter().flatten().next().map(named).transpose()?;
    let moved = moments.iter().zip(intervals).map(|(moment, interval)| {
        let Some(((moment, interval), zone)) = moment.zip(interval).zip(zone) else {
            return Ok(None);
        };
        let by_clock = |us| to_local(us, zone).and_then(|us| later(us, interval, sign));
        let days = if interval.months == 0 && interval.days == 0 {
            Some(moment)
        } else {
            by_clock(moment).and_then(|us| to_instant(us, zone))
        };
        let us = days.and_then(|us| us.checked_add(sign * (interval.nanoseconds / 1_000)));
        us.map(Some).ok_or_else(|| failed(SqlState::DATETIME_OVERFLOW, "timestamp out of range"))
    });
    let moved = moved.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?;
    Ok(Arc::new(moved.with_timezone("+00:00")))
}

/// Later by months and days.
fn later(local_us: i64, interval: IntervalMonthDayNano, sign: i64) -> Option<i64> {
    let moment = DateTime::from_timestamp_micros(local_us)?;
    let months = Months::new(interval.months.unsigned_abs());
    let back = (interval.months < 0) == (sign > 0);
    let moment =
        if back { moment.checked_sub_months(months) } else { moment.checked_add_months(months) }?;
    let days = Days::new(u64::from(interval.days.unsigned_abs()));
    let back = (interval.days < 0) == (sign > 0);
    let moment = if back { moment.checked_sub_days(days) } else { moment.checked_add_days(days) }?;
    Some(moment.timestamp_micros())
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;

    use super::later;

    #[test]
    fn months_and_days_go_both_ways() {
        const DAY_US: i64 = 86_400_000_000;
        let of = |months, days| IntervalMonthDayNano::new(months, days, 0);
        assert_eq!(later(0, of(1, 1), 1), Some(32 * DAY_US));
        assert_eq!(later(0, of(0, -1), 1), Some(-DAY_US));
        assert_eq!(later(32 * DAY_US, of(1, 0), -1), Some(DAY_US));
    }
}
