//! `generate_series` and `range` in FROM: DataFusion's for whole numbers and dates, and our own for timestamps with
//! microseconds and for numerics, which it does not count.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, Schema, TimeUnit};
use chrono::{DateTime, Days, Months, TimeDelta};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{Expr, lit};
use segue_types::{SqlState, SqlType, UserError};

use crate::values::scalar_of_text;

/// How long a series of ours may be: it is made before the query runs.
const ROWS_MAX: usize = 10_000_000;

/// The function.
#[derive(Debug)]
pub(super) struct Series {
    /// For what DataFusion counts.
    pub(super) inner: Arc<dyn TableFunctionImpl>,
    pub(super) last: Last,
}

/// Whether the bound itself belongs to the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Included,
    Excluded,
}

impl TableFunctionImpl for Series {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let scalars: Option<Vec<&ScalarValue>> = args.exprs().iter().map(literal).collect();
        if let Some(scalars) = scalars {
            match scalars.as_slice() {
                [
                    ScalarValue::TimestampMicrosecond(Some(from), zone),
                    ScalarValue::TimestampMicrosecond(Some(to), _),
                    step,
                ] => {
                    let moments = moments(*from, *to, interval(step)?, self.last)?;
                    let array = TimestampMicrosecondArray::from(moments);
                    let array: ArrayRef = Arc::new(array.with_timezone_opt(zone.clone()));
                    let ty = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                    return table(ty, array);
                }
                [from, to, rest @ ..] if [*from, *to].iter().any(|s| is_decimal(s)) => {
                    return numerics(from, to, rest.first().copied(), self.last);
                }
                _ => {}
            }
        }
        let whole: Vec<Expr> = args.exprs().iter().map(widened).collect();
        self.inner.call_with_args(TableFunctionArgs::new(&whole, args.session()))
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(scalar, _) => Some(scalar),
        _ => None,
    }
}

/// DataFusion counts bigints alone.
fn widened(expr: &Expr) -> Expr {
    match literal(expr) {
        Some(ScalarValue::Int32(Some(number))) => lit(i64::from(*number)),
        Some(ScalarValue::Int16(Some(number))) => lit(i64::from(*number)),
        _ => expr.clone(),
    }
}

fn table(ty: DataType, values: ArrayRef) -> Result<Arc<dyn TableProvider>> {
    let schema = Arc::new(Schema::new(vec![Field::new("value", ty, true)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values])?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

fn refused(state: SqlState, message: &str) -> DataFusionError {
    DataFusionError::External(Box::new(UserError::new(state, message)))
}

fn too_long() -> DataFusionError {
    let message = format!("a series may have {ROWS_MAX} values");
    refused(SqlState::PROGRAM_LIMIT_EXCEEDED, &message)
}

fn no_step() -> DataFusionError {
    refused(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

fn interval(step: &ScalarValue) -> Result<IntervalMonthDayNano> {
    let step = match step {
        ScalarValue::Utf8(Some(text)) => scalar_of_text(&SqlType::Interval, text)
            .map_err(|error| DataFusionError::External(Box::new(error)))?,
        other => other.clone(),
    };
    match step {
        ScalarValue::IntervalMonthDayNano(Some(step)) => Ok(step),
        _ => Err(refused(
            SqlState::UNDEFINED_FUNCTION,
            "the step of a series of timestamps is an interval",
        )),
    }
}

fn moments(from: i64, to: i64, step: IntervalMonthDayNano, last: Last) -> Result<Vec<i64>> {
    let mut moments = Vec::new();
    let rises = match advanced(from, step) {
        Some(next) if next == from => return Err(no_step()),
        Some(next) => next > from,
        None => return Ok(moments),
    };
    let mut at = from;
    while is_within(at, to, rises, last) {
        if moments.len() == ROWS_MAX {
            return Err(too_long());
        }
        moments.push(at);
        let Some(next) = advanced(at, step) else { break };
        at = next;
    }
    Ok(moments)
}

fn is_within<T: Ord + Copy>(at: T, to: T, rises: bool, last: Last) -> bool {
    match (rises, last) {
        (true, Last::Included) => at <= to,
        (true, Last::Excluded) => at < to,
        (false, Last::Included) => at >= to,
        (false, Last::Excluded) => at > to,
    }
}

/// Months, then days, then the rest, as PostgreSQL adds an interval.
fn advanced(at_us: i64, step: IntervalMonthDayNano) -> Option<i64> {
    let at = DateTime::from_timestamp_micros(at_us)?;
    let months = Months::new(step.months.unsigned_abs());
    let at = if step.months < 0 {
        at.checked_sub_months(months)
    } else {
        at.checked_add_months(months)
    }?;
    let days = Days::new(u64::from(step.days.unsigned_abs()));
    let at = if step.days < 0 { at.checked_sub_days(days) } else { at.checked_add_days(days) }?;
    Some(at.checked_add_signed(TimeDelta::nanoseconds(step.nanoseconds))?.timestamp_micros())
}

fn is_decimal(scalar: &ScalarValue) -> bool {
    matches!(scalar, ScalarValue::Decimal128(Some(_), ..))
}

fn numerics(
    from: &ScalarValue,
    to: &ScalarValue,
    step: Option<&ScalarValue>,
    last: Last,
) -> Result<Arc<dyn TableProvider>> {
    let one = ScalarValue::Int64(Some(1));
    let scalars = [from, to, step.unwrap_or(&one)];
    let scale = scalars.iter().map(|scalar| scale(scalar)).max().unwrap_or(0);
    let ty = DataType::Decimal128(38, scale);
    let mut numbers = [0; 3];
    for (number, scalar) in numbers.iter_mut().zip(scalars) {
        match scalar.cast_to(&ty)? {
            ScalarValue::Decimal128(Some(value), ..) => *number = value,
            _ => return table(ty.clone(), Arc::new(empty(&ty))),
        }
    }
    let [from, to, step] = numbers;
    if step == 0 {
        return Err(no_step());
    }
    let mut values = Vec::new();
    let mut at = from;
    while is_within(at, to, step > 0, last) {
        if values.len() == ROWS_MAX {
            return Err(too_long());
        }
        values.push(at);
        at += step;
    }
    table(ty.clone(), Arc::new(Decimal128Array::from(values).with_data_type(ty)))
}

fn empty(ty: &DataType) -> Decimal128Array {
    Decimal128Array::from(Vec::<i128>::new()).with_data_type(ty.clone())
}

fn scale(scalar: &ScalarValue) -> i8 {
    match scalar {
        ScalarValue::Decimal128(_, _, scale) => *scale,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;

    use super::{Last, moments};

    #[test]
    fn moments_advance_by_months_days_and_hours() {
        const DAY_US: i64 = 86_400_000_000;
        let day = IntervalMonthDayNano::new(0, 1, 0);
        assert_eq!(moments(0, 2 * DAY_US, day, Last::Included).expect("short").len(), 3);
        assert_eq!(moments(0, 2 * DAY_US, day, Last::Excluded).expect("short").len(), 2);
        let month = IntervalMonthDayNano::new(1, 0, 0);
        let year = moments(0, 364 * DAY_US, month, Last::Included).expect("short");
        assert_eq!((year.len(), year[1]), (12, 31 * DAY_US));
        let back = IntervalMonthDayNano::new(0, -1, 0);
        assert_eq!(moments(DAY_US, 0, back, Last::Included).expect("short"), [DAY_US, 0]);
        assert!(moments(0, 1, IntervalMonthDayNano::new(0, 0, 0), Last::Included).is_err());
        let tiny = IntervalMonthDayNano::new(0, 0, 1_000);
        assert!(moments(0, DAY_US, tiny, Last::Included).is_err());
    }
}
