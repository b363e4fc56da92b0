//! `generate_series(start, now(), step)` in FROM of a view: the time brings its rows, so that it never ends.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableSource};
use datafusion::scalar::ScalarValue;
use segue_types::{SqlState, UserError};

use super::provider::constant_of;

/// More often than this nobody looks.
const STEP_MIN_US: i64 = 1000;

/// The series.
#[derive(Debug)]
pub(super) struct TickSource {
    pub(super) schema: SchemaRef,
    pub(super) start_us: i64,
    pub(super) step_us: i64,
}

impl TableSource for TickSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The series that a call is, if it goes on to now().
pub(super) fn of(function: &str, arguments: &[Expr]) -> Result<Option<TickSource>> {
    let is_now =
        |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.func.name() == "now");
    match arguments {
        [start, end, step] if function == "generate_series" && is_now(end) => {
            let start = constant_of(start.clone())?;
            let step = constant_of(step.clone())?;
            let ticks = ticks(&start, &step)?;
            ticks.ok_or_else(|| DataFusionError::External(Box::new(refused()))).map(Some)
        }
        _ => Ok(None),
    }
}

fn ticks(start: &Expr, step: &Expr) -> Result<Option<TickSource>> {
    let (Expr::Literal(start, _), Expr::Literal(step, _)) = (start, step) else { return Ok(None) };
    let DataType::Timestamp(_, zone) = start.data_type() else { return Ok(None) };
    let ScalarValue::IntervalMonthDayNano(Some(step)) = step else { return Ok(None) };
    let IntervalMonthDayNano { months: 0, days, nanoseconds } = *step else { return Ok(None) };
    let step_us = i64::from(days).checked_mul(86_400_000_000);
    let step_us = step_us.and_then(|micros| micros.checked_add(nanoseconds / 1000));
    let held = DataType::Timestamp(TimeUnit::Microsecond, zone);
    let start = cast(&start.to_array()?, &held)?;
    let start = start.as_primitive::<TimestampMicrosecondType>().iter().next().flatten();
    let (Some(step_us), Some(start_us)) = (step_us, start) else { return Ok(None) };
    let schema = Arc::new(Schema::new(vec![Field::new("value", held, true)]));
    let is_long = step_us >= STEP_MIN_US;
    Ok(is_long.then_some(TickSource { schema, start_us, step_us }))
}

fn refused() -> UserError {
    let message = "generate_series() up to now() cannot be called with these arguments";
    UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(
        "generate_series(timestamp, now(), interval) takes a constant time and an interval without months, of a \
         millisecond at least.",
    )
}
