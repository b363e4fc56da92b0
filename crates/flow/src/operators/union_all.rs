//! UNION ALL: the sum of the inputs' deltas, under the output's column names.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;

use super::Operator;
use crate::delta::Delta;
use crate::error::StepError;

#[derive(Debug)]
pub(crate) struct UnionAll {
    place: String,
    schema: SchemaRef,
}

impl UnionAll {
    pub(crate) fn new(place: String, schema: SchemaRef) -> UnionAll {
        UnionAll { place, schema }
    }

    fn rename(&self, delta: &Delta) -> Result<Delta, StepError> {
        RecordBatch::try_new(Arc::clone(&self.schema), delta.rows().columns().to_vec())
            .map(|rows| delta.with_rows(rows))
            .map_err(DataFusionError::from)
            .map_err(|source| StepError::Compute { place: self.place.clone(), source })
    }
}

impl Operator for UnionAll {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        inputs.iter().copied().flatten().map(|delta| self.rename(delta)).collect()
    }
}
