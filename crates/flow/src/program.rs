//! Batch computations that the planner hands to the engine, for what has no incremental form.

use std::fmt::Debug;

use arrow::array::RecordBatch;
use datafusion::error::DataFusionError;

/// A function of whole relations: synchronous, without I/O or clock, the same rows in giving the same rows out.
pub trait Program: Debug + Send + Sync {
    /// The rows that follow from one batch per input. They are of the types that the operator's schema says.
    fn run(&self, inputs: &[RecordBatch]) -> Result<Vec<RecordBatch>, DataFusionError>;
}
