//! Recomputation: what has no incremental form is computed again for the partitions that a step touched.
//!
//! It holds its inputs and what it put out, both by partition, and puts out the difference; so its output is exact even
//! where the program may choose (ties, order of sums). The program gets the rows sorted by all columns, so that what
//! depends on their order does not depend on the order of arrival. Without a key the whole is one partition.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use datafusion::error::DataFusionError;
use segue_types::StateBlob;

use super::{Forget, Held, Operator, OperatorState, StateSize};
use crate::arrangement::{Arrangement, Keys};
use crate::blob::SealedBlob;
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::mark::Times;
use crate::program::Program;
use crate::rows::nullable;

/// The recompute operator.
#[derive(Debug)]
pub(crate) struct Recompute {
    place: String,
    program: Arc<dyn Program>,
    inputs: Vec<Held>,
    output: Held,
    schema: SchemaRef,
    /// Whether the one partition of an operator without keys was computed.
    started: bool,
}

impl Recompute {
    pub(crate) fn new(
        place: String,
        program: Arc<dyn Program>,
        inputs: Vec<Held>,
        output: Held,
        schema: &SchemaRef,
    ) -> Recompute {
        Recompute { place, program, inputs, output, schema: nullable(schema), started: false }
    }

    fn is_whole(&self) -> bool {
        self.output.rows.key().is_empty()
    }

    /// Adds the changes of one input; returns the keys of its rows.
    fn add(&mut self, input: usize, deltas: &[Delta]) -> Result<Option<RecordBatch>, StepError> {
        let Some(delta) = Delta::sum(deltas) else { return Ok(None) };
        let delta = delta.consolidated();
        if delta.is_empty() {
            return Ok(None);
        }
        let rows = &mut self.inputs[input].rows;
        let located = rows.locate(delta.rows());
        rows.apply(&delta, &located, &self.place)?;
        rows.settle();
        let keys = delta.rows().project(rows.key()).expect("the key is within the input");
        Ok(Some(keys))
    }

    /// Each key once. Without key columns one row stands for the whole.
    fn distinct(&self, touched: &[RecordBatch]) -> Option<RecordBatch> {
        let first = touched.first()?;
        if self.is_whole() {
            return Some(first.slice(0, 1));
        }
        let schema = Arc::clone(&first.schema());
        let renamed = touched.iter().map(|keys| {
            RecordBatch::try_new(Arc::clone(&schema), keys.columns().to_vec())
                .expect("the keys of all inputs agree in their types")
        });
        let all = concat_batches(&schema, &renamed.collect::<Vec<_>>()).expect("one schema");
        Some(Delta::inserts(all).consolidated().rows().clone())
    }

    fn recompute(&mut self, touched: &RecordBatch) -> Result<Option<Delta>, StepError> {
        let compute = |source| StepError::Compute { place: self.place.clone(), source };
        let places = (0..touched.num_columns()).collect::<Vec<_>>();
        let keys = Keys::of(touched, &places);
        let inputs = self.inputs.iter().map(|held| in_order(&of_keys(&held.rows, &keys)));
        let inputs = inputs.collect::<Result<Vec<_>, _>>().map_err(compute)?;
        let mut changes = Vec::new();
        for rows in self.program.run(&inputs).map_err(compute)? {
            let schema = |error: arrow::error::ArrowError| StepError::Schema {
                place: self.place.clone(),
                reason: error.to_string(),
            };
            let rows = RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec());
            changes.push(Delta::inserts(rows.map_err(schema)?));
        }
        let before = of_keys(&self.output.rows, &keys);
        let weights = (0..before.len()).map(|row| -before.weight(row)).collect();
        let before =
            RecordBatch::try_new(Arc::clone(&self.schema), before.rows().columns().to_vec())
                .expect("it was put out");
        changes.push(Delta::weighted(before, weights));
        let delta = Delta::sum(&changes).expect("at least what was before").consolidated();
        if delta.is_empty() {
            return Ok(None);
        }
        let located = self.output.rows.locate(delta.rows());
        self.output.rows.apply(&delta, &located, &self.place)?;
        self.output.rows.settle();
        Ok(Some(delta))
    }
}

/// The rows of these keys.
fn of_keys(rows: &Arrangement, keys: &Keys) -> Delta {
    let slots = rows.heads(keys).into_iter().flat_map(|head| rows.chain(head)).collect::<Vec<_>>();
    rows.delta_of(&slots)
}

/// Every copy of each row, sorted by all columns.
fn in_order(delta: &Delta) -> Result<RecordBatch, DataFusionError> {
    let rows = delta.rows();
    let fields = rows.schema_ref().fields().iter();
    let fields = fields.map(|field| SortField::new(field.data_type().clone())).collect();
    let sortable = RowConverter::new(fields)?.convert_columns(rows.columns())?;
    let mut order = (0..delta.len() as u32).collect::<Vec<_>>();
    order.sort_by(|a, b| sortable.row(*a as usize).cmp(&sortable.row(*b as usize)));
    let copies = order.iter().flat_map(|row| {
        let count = usize::try_from(delta.weight(*row as usize)).expect("held rows are there");
        std::iter::repeat_n(*row, count)
    });
    Ok(take_record_batch(rows, &copies.collect::<UInt32Array>())?)
}

impl Operator for Recompute {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let mut touched = Vec::new();
        for (input, deltas) in inputs.iter().enumerate() {
            touched.extend(self.add(input, deltas)?);
        }
        if self.is_whole() && !self.started {
            let one: arrow::array::ArrayRef = Arc::new(UInt32Array::from(vec![0]));
            let one = RecordBatch::try_from_iter([("whole", one)]).expect("one column");
            touched.insert(0, one.project(&[]).expect("no columns"));
        }
        self.started = true;
        let Some(touched) = self.distinct(&touched) else { return Ok(Vec::new()) };
        Ok(self.recompute(&touched)?.into_iter().collect())
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl Forget for Recompute {
    /// Of a partition that is over, also what was put out.
    fn forget(
        &mut self,
        input: usize,
        column: usize,
        is_over: &dyn Fn(i64) -> bool,
    ) -> Result<Times, StepError> {
        let held = &mut self.inputs[input];
        let place = held.rows.key().iter().position(|key| *key == column);
        let place = place.expect("partitions end by a column of their key");
        let (_, left) = held.rows.forget(column, is_over);
        held.rows.settle();
        let output = &mut self.output.rows;
        output.forget(output.key()[place], is_over);
        output.settle();
        Ok(left)
    }
}

impl OperatorState for Recompute {
    fn seal(&mut self) -> Vec<SealedBlob> {
        let held = [&mut self.output].into_iter().chain(&mut self.inputs);
        held.flat_map(OperatorState::seal).collect()
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        let held = self.inputs.iter_mut().chain([&mut self.output]);
        held.flat_map(OperatorState::bases).collect()
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        for held in self.inputs.iter_mut().chain([&mut self.output]) {
            let own = blobs.iter().filter(|blob| blob.operator == held.owner.operator);
            held.load(&own.cloned().collect::<Vec<_>>())?;
        }
        self.started = true;
        Ok(())
    }

    fn contents(&mut self) -> Vec<Delta> {
        let rename = |delta: Delta| {
            let columns = delta.rows().columns().to_vec();
            let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns);
            delta.with_rows(rows.expect("the output's columns"))
        };
        self.output.rows.contents().into_iter().map(rename).collect()
    }

    fn size(&mut self) -> StateSize {
        self.inputs.iter_mut().chain([&mut self.output]).map(OperatorState::size).sum()
    }
}
