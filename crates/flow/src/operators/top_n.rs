//! The first rows of each partition in an order: ORDER BY … LIMIT, and row_number() with a bound.
//!
//! All rows are kept, each partition's in order, since what goes from the front is replaced by what comes next. Rows
//! that the order does not tell apart are ordered by all their columns, so that the same rows give the same answer.
//! What is shown of a partition is compared before and after the step; only the difference is put out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use segue_types::StateBlob;

use super::{Forget, Operator, OperatorState, StateSize};
use crate::arrangement::{Arrangement, Changes};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::key::{Column, encode_row};
use crate::mark::Times;
use crate::rows::{CHUNK_ROWS, nullable};
use crate::spec::{RowNumbers, TopNSpec};

/// A row that is shown: its slot and, where rows are numbered, its number.
type Shown = BTreeMap<(u32, i64), i64>;

#[derive(Debug)]
pub(crate) struct TopN {
    place: String,
    spec: TopNSpec,
    schema: SchemaRef,
    rows: Arrangement,
    owner: BlobOwner,
    converter: RowConverter,
    /// By the encoded key.
    partitions: BTreeMap<Box<[u8]>, Partition>,
}

#[derive(Debug, Default)]
struct Partition {
    /// Slots in order, under bytes that compare as the rows do.
    sorted: BTreeMap<Box<[u8]>, u32>,
    shown: Shown,
}

impl TopN {
    pub(crate) fn new(
        place: String,
        owner: BlobOwner,
        input: &SchemaRef,
        spec: &TopNSpec,
        schema: &SchemaRef,
    ) -> TopN {
        let field = |column: usize| input.field(column).data_type().clone();
        let order = spec.order.iter();
        let order = order.map(|sort| SortField::new_with_options(field(sort.column), sort.options));
        let ties = (0..input.fields().len()).map(|column| SortField::new(field(column)));
        let converter = RowConverter::new(order.chain(ties).collect());
        TopN {
            place,
            spec: spec.clone(),
            schema: nullable(schema),
            rows: Arrangement::new(input, spec.partition.clone(), Changes::ComeAndGo),
            owner,
            converter: converter.expect("the planner asks for the order of types that have one"),
            partitions: BTreeMap::new(),
        }
    }

    /// Puts the rows at `slots` into their partitions, or takes them out; returns the partitions.
    fn sort_in(&mut self, slots: &[u32]) -> Result<BTreeSet<Box<[u8]>>, ArrowError> {
        let batch = self.rows.gather(slots);
        let order = self.spec.order.iter().map(|sort| Arc::clone(batch.column(sort.column)));
        let columns = order.chain(batch.columns().iter().cloned()).collect::<Vec<_>>();
        let sortable = self.converter.convert_columns(&columns)?;
        let keys = Column::of(&batch, self.rows.key());
        let mut touched = BTreeSet::new();
        let mut key = Vec::new();
        for (row, slot) in slots.iter().enumerate() {
            key.clear();
            encode_row(&keys, row, &mut key);
            let bytes: Box<[u8]> = sortable.row(row).as_ref().into();
            let partition = self.partitions.entry(key.as_slice().into()).or_default();
            match self.rows.weight(*slot) {
                0 => partition.sorted.remove(&bytes),
                _ => partition.sorted.insert(bytes, *slot),
            };
            if !touched.contains(key.as_slice()) {
                touched.insert(key.as_slice().into());
            }
        }
        Ok(touched)
    }

    /// What a partition shows now.
    fn shown(&self, partition: &Partition) -> Shown {
        let skip = i64::try_from(self.spec.skip).unwrap_or(i64::MAX);
        let fetch = self.spec.fetch.and_then(|fetch| i64::try_from(fetch).ok());
        let end = fetch.map_or(i64::MAX, |fetch| skip.saturating_add(fetch));
        let mut shown = Shown::new();
        let mut position = 0_i64;
        for slot in partition.sorted.values() {
            if position >= end {
                break;
            }
            let (first, after) = (position, position + self.rows.weight(*slot));
            position = after;
            let (first, after) = (first.max(skip), after.min(end));
            match self.spec.numbers {
                RowNumbers::None if first < after => {
                    shown.insert((*slot, 0), after - first);
                }
                RowNumbers::None => {}
                RowNumbers::Last => {
                    shown.extend((first..after).map(|place| ((*slot, place + 1), 1)));
                }
            }
        }
        shown
    }

    /// Rows by slot and number, in the output's columns.
    fn output(&self, changes: &[((u32, i64), i64)]) -> Delta {
        let slots = changes.iter().map(|((slot, _), _)| *slot).collect::<Vec<_>>();
        let mut columns = self.rows.gather(&slots).columns().to_vec();
        if self.spec.numbers == RowNumbers::Last {
            let numbers = changes.iter().map(|((_, number), _)| *number);
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
            columns.push(numbers);
        }
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        let weights = changes.iter().map(|(_, weight)| *weight).collect();
        Delta::weighted(rows.expect("the output's columns"), weights)
    }

    /// Brings what these partitions show up to date; returns the difference.
    fn show(&mut self, touched: BTreeSet<Box<[u8]>>) -> Vec<((u32, i64), i64)> {
        let mut changes = Vec::new();
        for key in touched {
            let partition = &self.partitions[&key];
            let now = self.shown(partition);
            for (row, count) in &now {
                let change = count - partition.shown.get(row).unwrap_or(&0);
                changes.extend((change != 0).then_some((*row, change)));
            }
            let gone = partition.shown.iter().filter(|(row, _)| !now.contains_key(*row));
            changes.extend(gone.map(|(row, count)| (*row, -count)));
            if partition.sorted.is_empty() {
                self.partitions.remove(&key);
            } else {
                self.partitions.get_mut(&key).expect("just read").shown = now;
            }
        }
        changes
    }
}

impl Operator for TopN {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let Some(delta) = Delta::sum(inputs[0]) else { return Ok(Vec::new()) };
        let delta = delta.consolidated();
        if delta.is_empty() {
            return Ok(Vec::new());
        }
        let located = self.rows.locate(delta.rows());
        let slots = self.rows.apply(&delta, &located, &self.place)?;
        let touched = self.sort_in(&slots).map_err(|error| StepError::Compute {
            place: self.place.clone(),
            source: error.into(),
        })?;
        let changes = self.show(touched);
        let output = self.output(&changes);
        self.rows.settle();
        Ok(if output.is_empty() { Vec::new() } else { vec![output] })
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl Forget for TopN {
    fn forget(
        &mut self,
        _input: usize,
        column: usize,
        is_over: &dyn Fn(i64) -> bool,
    ) -> Result<Times, StepError> {
        let (gone, left) = self.rows.forget(column, is_over);
        let touched = self.sort_in(&gone).map_err(|error| StepError::Compute {
            place: self.place.clone(),
            source: error.into(),
        })?;
        // A partition is over as a whole.
        touched.iter().for_each(|key| drop(self.partitions.remove(key)));
        self.rows.settle();
        Ok(left)
    }
}

impl OperatorState for TopN {
    fn seal(&mut self) -> Vec<SealedBlob> {
        self.rows.seal(&self.owner)
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        self.rows.bases(&self.owner)
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.rows.load(&self.owner, blobs)?;
        let slots = self.rows.live().collect::<Vec<_>>();
        for slots in slots.chunks(CHUNK_ROWS) {
            self.sort_in(slots)
                .map_err(|error| RestoreError::Rebuild { reason: error.to_string() })?;
        }
        let all = self.partitions.keys().cloned().collect();
        self.show(all);
        Ok(())
    }

    fn contents(&mut self) -> Vec<Delta> {
        let shown = self.partitions.values().flat_map(|partition| &partition.shown);
        let shown = shown.map(|(row, count)| (*row, *count)).collect::<Vec<_>>();
        shown.chunks(CHUNK_ROWS).map(|rows| self.output(rows)).collect()
    }

    fn size(&mut self) -> StateSize {
        // An entry of an ordered map: its bytes, about as many as the row has, and a node's share.
        let rows = self.rows.row_count();
        let per_row = self.rows.bytes().checked_div(rows).map_or(0, |bytes| bytes + 64);
        StateSize { rows, bytes: self.rows.bytes() + rows * per_row }
    }
}
