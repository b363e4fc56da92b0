//! Intervals are compared by how long they are, a month being 30 days and a day 24 hours; Arrow compares them part by
//! part.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::{cast, unary};
use arrow::datatypes::{DataType, Decimal128Type, IntervalMonthDayNanoType};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, ScalarUDF};
use segue_types::SqlType;

use super::general;

static LENGTH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let length: general::Returns = |_| {
        let digits = SqlType::Numeric { precision: 38, scale: 0 };
        Ok(general::typed(&digits))
    };
    Arc::new(general::function("interval_cmp_value", general::any, length, |columns, _| {
        Ok(Arc::new(lengths(&columns[0])?))
    }))
});

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![LENGTH.as_ref().clone()]
}

fn lengths(column: &ArrayRef) -> Result<PrimitiveArray<Decimal128Type>> {
    const DAY_NS: i128 = 86_400_000_000_000;
    let intervals = cast(column, &SqlType::Interval.arrow_type())?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let lengths = unary::<_, _, Decimal128Type>(intervals, |interval| {
        let days = i128::from(interval.months) * 30 + i128::from(interval.days);
        days * DAY_NS + i128::from(interval.nanoseconds)
    });
    Ok(lengths.with_data_type(DataType::Decimal128(38, 0)))
}

/// The comparison of intervals by their lengths; `None` for what is none.
pub(super) fn compared(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_interval = |expr: &Expr| {
        let ty = expr.get_type(schema);
        matches!(ty, Ok(DataType::Interval(_) | DataType::Duration(_)))
    };
    let length = |expr: &Expr| {
        Box::new(Expr::ScalarFunction(ScalarFunction::new_udf(
            Arc::clone(&LENGTH),
            vec![expr.clone()],
        )))
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.supports_propagation() && is_interval(left) && is_interval(right) =>
        {
            Some(Expr::BinaryExpr(BinaryExpr::new(length(left), *op, length(right))))
        }
        Expr::Between(Between { expr, negated, low, high })
            if [expr, low, high].into_iter().all(|part| is_interval(part)) =>
        {
            Some(Expr::Between(Between::new(length(expr), *negated, length(low), length(high))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, IntervalMonthDayNanoArray};
    use arrow::datatypes::IntervalMonthDayNano;

    use super::lengths;

    #[test]
    fn a_month_is_as_long_as_thirty_days() {
        let of = IntervalMonthDayNano::new;
        let parts = vec![of(1, 0, 0), of(0, 30, 0), of(0, 29, 86_400_000_000_000), of(0, 0, -1)];
        let array: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(parts));
        let lengths = lengths(&array).expect("intervals");
        assert!(lengths.value(0) == lengths.value(1) && lengths.value(1) == lengths.value(2));
        assert_eq!(lengths.value(3), -1);
    }
}
