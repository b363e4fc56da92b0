//! Evaluation of expressions over whole batches, where one bad row costs its own value and nothing else.
//!
//! An expression that fails for a row (1/0, a bad cast) gives NULL for that row, counted. The batch is halved
//! until the bad
//! rows are alone, so that a batch without one costs one call.

use std::fmt;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::concat;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;

use crate::delta::Delta;

/// One value per row, NULL where the expression fails.
pub fn value_of(
    expression: &dyn PhysicalExpr,
    batch: &RecordBatch,
) -> Result<ArrayRef, DataFusionError> {
    evaluate(expression, batch, &mut 0)
}

/// What an expression fails with where a subquery that stands for one value has several rows. A view may tell it
/// from the other failures: a statement that makes one can still be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeveralRows;

impl fmt::Display for SeveralRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more than one row returned by a subquery used as an expression")
    }
}

impl std::error::Error for SeveralRows {}

/// The rows for which an expression failed.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(crate) count: u64,
    /// Of those the places at which it failed with [`SeveralRows`].
    pub(crate) several: Vec<usize>,
}

impl Failures {
    fn add(&mut self, row: usize, error: &DataFusionError) {
        self.count += 1;
        if let DataFusionError::External(cause) = error.find_root()
            && cause.is::<SeveralRows>()
        {
            self.several.push(row);
        }
    }

    /// The weight of the rows that failed with [`SeveralRows`]: of those that are there, since a row that goes fails
    /// as it did when it came.
    pub(crate) fn several_in(&self, delta: &Delta) -> i64 {
        self.several.iter().map(|row| delta.weight(*row)).sum()
    }
}

/// One value per row; adds the rows that failed to `errors`.
pub(crate) fn evaluate(
    expression: &dyn PhysicalExpr,
    batch: &RecordBatch,
    errors: &mut u64,
) -> Result<ArrayRef, DataFusionError> {
    let mut failures = Failures::default();
    let value = evaluate_noting(expression, batch, 0, &mut failures)?;
    *errors += failures.count;
    Ok(value)
}

/// One value per row of a batch that begins at `first`; notes the rows that failed.
pub(crate) fn evaluate_noting(
    expression: &dyn PhysicalExpr,
    batch: &RecordBatch,
    first: usize,
    failures: &mut Failures,
) -> Result<ArrayRef, DataFusionError> {
    let rows = batch.num_rows();
    match expression.evaluate(batch).and_then(|value| value.into_array(rows)) {
        Ok(array) => Ok(array),
        Err(_) if rows == 0 => Ok(new_null_array(&expression.data_type(batch.schema_ref())?, rows)),
        Err(error) if rows == 1 => {
            failures.add(first, &error);
            Ok(new_null_array(&expression.data_type(batch.schema_ref())?, rows))
        }
        Err(_) => {
            let half = rows / 2;
            let one = evaluate_noting(expression, &batch.slice(0, half), first, failures)?;
            let rest = batch.slice(half, rows - half);
            let other = evaluate_noting(expression, &rest, first + half, failures)?;
            Ok(concat(&[one.as_ref(), other.as_ref()])?)
        }
    }
}

/// For each row whether the predicate is true; NULL and failed rows are not.
pub(crate) fn evaluate_predicate(
    predicate: &dyn PhysicalExpr,
    batch: &RecordBatch,
    errors: &mut u64,
) -> Result<BooleanArray, DataFusionError> {
    is_true(&evaluate(predicate, batch, errors)?)
}

/// Neither false nor NULL.
pub(crate) fn is_true(array: &ArrayRef) -> Result<BooleanArray, DataFusionError> {
    match array.as_boolean_opt() {
        Some(booleans) if booleans.null_count() == 0 => Ok(booleans.clone()),
        Some(booleans) => Ok(arrow::compute::prep_null_mask_filter(booleans)),
        None => {
            Err(DataFusionError::Internal(format!("a predicate of type {}", array.data_type())))
        }
    }
}
