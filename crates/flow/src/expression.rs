//! Evaluation of expressions over whole batches, where one bad row costs its own value and nothing else.
//!
//! An expression that fails for a row (1/0, a bad cast) gives NULL for that row, counted. The batch is halved
//! until the bad
//! rows are alone, so that a batch without one costs one call.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::concat;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;

/// One value per row, NULL where the expression fails.
pub fn value_of(
    expression: &dyn PhysicalExpr,
    batch: &RecordBatch,
) -> Result<ArrayRef, DataFusionError> {
    evaluate(expression, batch, &mut 0)
}

/// One value per row; adds the rows that failed to `errors`.
pub(crate) fn evaluate(
    expression: &dyn PhysicalExpr,
    batch: &RecordBatch,
    errors: &mut u64,
) -> Result<ArrayRef, DataFusionError> {
    let rows = batch.num_rows();
    match expression.evaluate(batch).and_then(|value| value.into_array(rows)) {
        Ok(array) => Ok(array),
        Err(_) if rows == 0 => Ok(new_null_array(&expression.data_type(batch.schema_ref())?, rows)),
        Err(_) if rows == 1 => {
            *errors += 1;
            Ok(new_null_array(&expression.data_type(batch.schema_ref())?, rows))
        }
        Err(_) => {
            let half = rows / 2;
            let first = evaluate(expression, &batch.slice(0, half), errors)?;
            let second = evaluate(expression, &batch.slice(half, rows - half), errors)?;
            Ok(concat(&[first.as_ref(), second.as_ref()])?)
        }
    }
}

/// For each row whether the predicate is true; NULL and failed rows are not.
pub(crate) fn evaluate_predicate(
    predicate: &dyn PhysicalExpr,
    batch: &RecordBatch,
    errors: &mut u64,
) -> Result<BooleanArray, DataFusionError> {
    let array = evaluate(predicate, batch, errors)?;
    match array.as_boolean_opt() {
        Some(booleans) if booleans.null_count() == 0 => Ok(booleans.clone()),
        Some(booleans) => Ok(arrow::compute::prep_null_mask_filter(booleans)),
        None => {
            Err(DataFusionError::Internal(format!("a predicate of type {}", array.data_type())))
        }
    }
}
