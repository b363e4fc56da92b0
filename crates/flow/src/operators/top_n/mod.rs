//! The first rows of each partition in an order: ORDER BY … LIMIT, and row_number() with a bound.
//!
//! All rows are kept, each partition's in order, since what goes from the front is replaced by what comes next. Rows
//! that the order does not tell apart are ordered by all their columns, so that the same rows give the same answer.
//! What is shown of a partition is looked at before and after the step; only the difference is put out.

mod order;
mod partitions;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::row::SortField;
use segue_types::StateBlob;

use super::{Forget, Operator, OperatorState, StateSize};
use crate::arrangement::{Arrangement, Changes, Keys, Located};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::mark::Times;
use crate::rows::{CHUNK_ROWS, nullable};
use crate::spec::{RowNumbers, TopNSpec};
use order::Order;
use partitions::Partitions;

#[derive(Debug)]
pub(crate) struct TopN {
    place: String,
    spec: TopNSpec,
    schema: SchemaRef,
    rows: Arrangement,
    owner: BlobOwner,
    order: Order,
    partitions: Partitions,
}

/// A row that is shown, how often, and its number where rows are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    slot: u32,
    number: i64,
    count: i64,
}

/// A row that came, went, or changed its weight, and its partition.
#[derive(Clone, Copy, Debug)]
struct Touched {
    partition: u32,
    slot: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    New,
    Gone,
    Stays,
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
        TopN {
            place,
            spec: spec.clone(),
            schema: nullable(schema),
            rows: Arrangement::new(input, spec.partition.clone(), Changes::ComeAndGo),
            owner,
            order: Order::new(order.chain(ties).collect()),
            partitions: Partitions::default(),
        }
    }

    /// The partition of a row, if there is one.
    fn find(&self, keys: &Keys, row: usize) -> Option<u32> {
        self.partitions.find(keys.hash(row), |slot| self.rows.has_key(slot, keys, row))
    }

    /// Takes in how rows that have been applied are ordered.
    fn order(&mut self, rows: &RecordBatch, slots: &[u32]) -> Result<(), ArrowError> {
        let order = self.spec.order.iter().map(|sort| Arc::clone(rows.column(sort.column)));
        let columns = order.chain(rows.columns().iter().cloned()).collect::<Vec<_>>();
        self.order.add(slots, &columns)
    }

    /// Rows that were applied, by partition and in order; `found` are the partitions that there were before.
    fn touch(
        &mut self,
        keys: &Keys,
        found: impl Fn(usize) -> Option<u32>,
        rows: impl Iterator<Item = (u32, Kind)>,
    ) -> Vec<Touched> {
        let mut touched = Vec::with_capacity(keys.len());
        for (row, (slot, kind)) in rows.enumerate() {
            let partition = match found(row).or_else(|| self.find(keys, row)) {
                Some(partition) => partition,
                None => self.partitions.create(keys.hash(row), slot),
            };
            touched.push(Touched { partition, slot, kind });
        }
        touched.sort_unstable_by(|one, other| {
            let by_partition = one.partition.cmp(&other.partition);
            by_partition.then_with(|| self.order.compare(one.slot, other.slot))
        });
        touched
    }

    /// Brings the partitions up to date with what was touched in them.
    fn change(&mut self, touched: &[Touched]) {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for of_one in touched.chunk_by(|one, other| one.partition == other.partition) {
            let slots = |kind: Kind| {
                of_one
                    .iter()
                    .filter(move |touched| touched.kind == kind)
                    .map(|touched| touched.slot)
            };
            gone.clear();
            gone.extend(slots(Kind::Gone));
            new.clear();
            new.extend(slots(Kind::New));
            let compare = |one, other| self.order.compare(one, other);
            self.partitions.change(of_one[0].partition, &gone, &new, compare);
        }
    }

    /// Puts what a partition shows now behind `shown`.
    fn show(&self, partition: u32, shown: &mut Vec<Shown>) {
        let skip = i64::try_from(self.spec.skip).unwrap_or(i64::MAX);
        let fetch = self.spec.fetch.and_then(|fetch| i64::try_from(fetch).ok());
        let end = fetch.map_or(i64::MAX, |fetch| skip.saturating_add(fetch));
        let mut position = 0_i64;
        for slot in self.partitions.slots(partition) {
            if position >= end {
                break;
            }
            let (first, after) = (position, position + self.rows.weight(*slot));
            position = after;
            let (first, after) = (first.max(skip), after.min(end));
            match self.spec.numbers {
                RowNumbers::None if first < after => {
                    shown.push(Shown { slot: *slot, number: 0, count: after - first });
                }
                RowNumbers::None => {}
                RowNumbers::Last => {
                    let numbers = first..after;
                    let show = |place| Shown { slot: *slot, number: place + 1, count: 1 };
                    shown.extend(numbers.map(show));
                }
            }
        }
    }

    /// Rows by slot and number, in the output's columns; their counts are weights.
    fn output(&self, shown: &[Shown]) -> Delta {
        let slots = shown.iter().map(|shown| shown.slot).collect::<Vec<_>>();
        let mut columns = self.rows.gather(&slots).columns().to_vec();
        if self.spec.numbers == RowNumbers::Last {
            let numbers = shown.iter().map(|shown| shown.number);
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
            columns.push(numbers);
        }
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        let weights = shown.iter().map(|shown| shown.count).collect();
        Delta::weighted(rows.expect("the output's columns"), weights)
    }

    /// Applies a consolidated delta; returns what changed in what is shown.
    fn apply(&mut self, delta: &Delta) -> Result<Vec<Shown>, StepError> {
        let located = self.rows.locate(delta.rows());
        let keys = &located.keys;
        let touch = |slot: u32| self.rows.touch_key(slot);
        let has_key = |slot: u32, row: usize| self.rows.has_key(slot, keys, row);
        let found = self.partitions.find_all(keys.hashes(), touch, has_key);
        let mut numbers = found.iter().flatten().copied().collect::<Vec<_>>();
        numbers.sort_unstable();
        numbers.dedup();
        let mut before = Vec::new();
        numbers.iter().for_each(|number| self.show(*number, &mut before));

        let slots = self.rows.apply(delta, &located, &self.place)?;
        self.order_new(delta.rows(), &located, &slots).map_err(|error| StepError::Compute {
            place: self.place.clone(),
            source: error.into(),
        })?;
        let kind = |row: usize| match located.slots[row] {
            None => Kind::New,
            Some(slot) if self.rows.weight(slot) == 0 => Kind::Gone,
            Some(_) => Kind::Stays,
        };
        let rows = slots.iter().enumerate().map(|(row, slot)| (*slot, kind(row)));
        let rows = rows.collect::<Vec<_>>();
        let touched = self.touch(keys, |row| found[row], rows.into_iter());
        self.change(&touched);

        let mut after = Vec::new();
        for of_one in touched.chunk_by(|one, other| one.partition == other.partition) {
            self.show(of_one[0].partition, &mut after);
        }
        let gone = touched.iter().filter(|touched| touched.kind == Kind::Gone);
        self.order.forget(&gone.map(|touched| touched.slot).collect::<Vec<_>>());
        Ok(difference(before, after))
    }

    /// Takes in how those rows of an applied delta are ordered that were not there.
    fn order_new(
        &mut self,
        rows: &RecordBatch,
        located: &Located,
        slots: &[u32],
    ) -> Result<(), ArrowError> {
        let new = located.slots.iter().enumerate().filter(|(_, slot)| slot.is_none());
        let new = new.map(|(row, _)| row as u32).collect::<UInt32Array>();
        let slots = new.values().iter().map(|row| slots[*row as usize]).collect::<Vec<_>>();
        let rows = take_record_batch(rows, &new)?;
        self.order(&rows, &slots)
    }
}

/// What is shown now and was not, and the other way round. A slot is in one partition.
fn difference(mut before: Vec<Shown>, after: Vec<Shown>) -> Vec<Shown> {
    before.iter_mut().for_each(|shown| shown.count = -shown.count);
    before.extend(after);
    before.sort_unstable();
    let same = |one: &Shown, other: &Shown| (one.slot, one.number) == (other.slot, other.number);
    let sum = |of_one: &[Shown]| Shown {
        count: of_one.iter().map(|shown| shown.count).sum(),
        ..of_one[0]
    };
    before.chunk_by(same).map(sum).filter(|shown| shown.count != 0).collect()
}

impl Operator for TopN {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let Some(delta) = Delta::sum(inputs[0]) else { return Ok(Vec::new()) };
        let delta = delta.consolidated();
        if delta.is_empty() {
            return Ok(Vec::new());
        }
        let changes = self.apply(&delta)?;
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
        for slots in gone.chunks(CHUNK_ROWS) {
            let keys = Keys::of(&self.rows.gather(slots), self.rows.key());
            let all = slots.iter().map(|slot| (*slot, Kind::Gone));
            let touched = self.touch(&keys, |_| None, all);
            self.change(&touched);
            self.order.forget(slots);
        }
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
            let rows = self.rows.gather(slots);
            self.order(&rows, slots)
                .map_err(|error| RestoreError::Rebuild { reason: error.to_string() })?;
            let keys = Keys::of(&rows, self.rows.key());
            let all = slots.iter().map(|slot| (*slot, Kind::New));
            let touched = self.touch(&keys, |_| None, all);
            self.change(&touched);
        }
        Ok(())
    }

    fn contents(&mut self) -> Vec<Delta> {
        let mut shown = Vec::new();
        self.partitions.numbers().for_each(|number| self.show(number, &mut shown));
        shown.chunks(CHUNK_ROWS).map(|rows| self.output(rows)).collect()
    }

    fn size(&mut self) -> StateSize {
        let bytes = self.rows.bytes() + self.order.bytes() + self.partitions.bytes();
        StateSize { rows: self.rows.row_count(), bytes }
    }
}
