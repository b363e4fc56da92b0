//! Unnest: linear. A row becomes as many rows as its longest list has items; the shorter lists end in NULLs.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;

use super::Operator;
use crate::delta::Delta;
use crate::error::StepError;

#[derive(Debug)]
pub(crate) struct Unnest {
    place: String,
    /// The columns that are lists, and become their items.
    lists: Vec<usize>,
    schema: SchemaRef,
}

impl Unnest {
    pub(crate) fn new(place: String, lists: Vec<usize>, schema: SchemaRef) -> Unnest {
        Unnest { place, lists, schema }
    }

    fn unnest(&self, delta: &Delta) -> Result<Delta, DataFusionError> {
        let rows = delta.rows();
        let lists = self.lists.iter().map(|list| rows.column(*list).as_list::<i32>());
        let lists = lists.collect::<Vec<_>>();
        // By list and output row: the item's place.
        let mut items = vec![Vec::<Option<u32>>::new(); lists.len()];
        let mut source = Vec::new();
        for row in 0..delta.len() {
            let length = |list: &arrow::array::ListArray| {
                if list.is_null(row) { 0 } else { list.value_length(row) as u32 }
            };
            let longest = lists.iter().map(|list| length(list)).max().unwrap_or(0);
            source.extend(std::iter::repeat_n(row as u32, longest as usize));
            for (list, items) in lists.iter().zip(&mut items) {
                let (first, length) = (list.value_offsets()[row] as u32, length(list));
                items.extend((0..longest).map(|item| (item < length).then_some(first + item)));
            }
        }
        let source = UInt32Array::from(source);
        let delta = delta.take(&source);
        let mut columns = delta.rows().columns().to_vec();
        for ((column, list), items) in self.lists.iter().zip(lists).zip(items) {
            columns[*column] = take(list.values(), &UInt32Array::from(items), None)?;
        }
        let columns: Vec<ArrayRef> = columns;
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(delta.with_rows(rows))
    }
}

impl Operator for Unnest {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let unnest = |delta| {
            self.unnest(delta)
                .map_err(|source| StepError::Compute { place: self.place.clone(), source })
        };
        let deltas = inputs[0].iter().map(unnest).collect::<Result<Vec<_>, _>>()?;
        Ok(deltas.into_iter().filter(|delta| !delta.is_empty()).collect())
    }
}
