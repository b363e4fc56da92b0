//! GROUP BY: per group its weight and the accumulators, updated from deltas.
//!
//! A step gathers the old result of each group when it first touches it, adds the rows, and emits old −1, new
//! +1 for the groups
//! whose result changed. A group whose weight falls to 0 goes; without keys there is one group, which never goes.
//! Without aggregates this is DISTINCT. Budget: 2 M rows/s with 1 M keys and half retractions.

mod accumulator;
mod extremum;
mod finish;
mod groups;
mod ordered;
mod stored;
mod sums;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, SchemaRef};

pub use ordered::is_ordered;

use segue_types::StateBlob;

use crate::blob::{BlobOwner, SealedBlob, StoredSizes};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::key::{Column, can_decode};
use crate::operators::{Operator, OperatorState, StateSize};
use crate::rows::nullable;
use crate::spec::AggregateSpec;
use accumulator::{Accumulator, Subject, Touch};
use finish::Output;
use groups::{DIRTY, Groups, STORED, TOUCHED};

/// Whether rows can be grouped by a column of this type.
pub fn is_groupable(data_type: &DataType) -> bool {
    can_decode(data_type)
}

/// The aggregate operator.
#[derive(Debug)]
pub(crate) struct Aggregate {
    place: String,
    owner: BlobOwner,
    keys: Vec<usize>,
    schema: SchemaRef,
    groups: Groups,
    accumulators: Vec<Accumulator>,
    outputs: Vec<Output>,
    step: TouchedGroups,
    /// Slots marked dirty since the last seal; a slot may be here twice, or no longer dirty.
    dirty: Vec<u32>,
    /// Keys of groups that are stored and must go, with their vnodes.
    removed: Vec<(Vec<ArrayRef>, Vec<u8>)>,
    sizes: StoredSizes,
    errors: u64,
    /// Whether the one group of an aggregate without keys was put out.
    started: bool,
}

/// The groups that the current step touched, and what they were before.
#[derive(Debug, Default)]
struct TouchedGroups {
    slots: Vec<u32>,
    existed: Vec<bool>,
    /// Result columns before the step, in pieces that together are as long as `slots`.
    before: Vec<Vec<ArrayRef>>,
}

impl Aggregate {
    pub(crate) fn new(
        place: String,
        owner: BlobOwner,
        input: &SchemaRef,
        keys: Vec<usize>,
        aggregates: &[AggregateSpec],
        schema: &SchemaRef,
        append_only: bool,
    ) -> Aggregate {
        assert_eq!(schema.fields().len(), keys.len() + aggregates.len(), "keys, then aggregates");
        let types =
            keys.iter().map(|key| input.field(*key).data_type().clone()).collect::<Vec<_>>();
        assert!(types.iter().all(is_groupable), "the planner refuses other keys");
        let mut subjects: Vec<Subject> = Vec::new();
        let mut outputs = Vec::new();
        for (place, spec) in aggregates.iter().enumerate() {
            let result_type = schema.field(keys.len() + place).data_type().clone();
            let accumulator = accumulator_for(Subject::of(spec, input, append_only), &mut subjects);
            outputs.push(Output { function: spec.function, accumulator, result_type });
        }
        Aggregate {
            place,
            owner,
            keys,
            schema: nullable(schema),
            groups: Groups::new(types),
            accumulators: subjects
                .into_iter()
                .map(|subject| Accumulator::new(subject, input))
                .collect(),
            outputs,
            step: TouchedGroups::default(),
            dirty: Vec::new(),
            removed: Vec::new(),
            sizes: StoredSizes::default(),
            errors: 0,
            started: false,
        }
    }

    fn add(&mut self, delta: &Delta) {
        let columns = Column::of(delta.rows(), &self.keys);
        let mut slots = Vec::new();
        self.groups.probe(&columns, delta.len(), &mut slots);
        self.make_room();
        self.touch(&slots);
        let weights = delta.weights().map(|weights| &weights[..]);
        let group_weights = &mut self.groups.weights;
        match weights {
            None => slots.iter().for_each(|slot| group_weights[*slot as usize] += 1),
            Some(weights) => {
                slots
                    .iter()
                    .zip(weights)
                    .for_each(|(slot, weight)| group_weights[*slot as usize] += weight);
            }
        }
        let touch = Touch { rows: delta.rows(), slots: &slots, weights };
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.update(touch));
    }

    fn make_room(&mut self) {
        let slots = self.groups.slots();
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(slots));
    }

    /// Remembers what the groups were, where this step comes to them first.
    fn touch(&mut self, slots: &[u32]) {
        let mut fresh = Vec::new();
        for slot in slots {
            let marks = &mut self.groups.marks[*slot as usize];
            if *marks & TOUCHED != 0 {
                continue;
            }
            if *marks & DIRTY == 0 {
                self.dirty.push(*slot);
            }
            *marks |= TOUCHED | DIRTY;
            fresh.push(*slot);
        }
        if fresh.is_empty() {
            return;
        }
        let existed = |slot: &u32| match self.groups.is_single() {
            true => self.started,
            false => self.groups.weights[*slot as usize] > 0,
        };
        self.step.existed.extend(fresh.iter().map(existed));
        self.step.before.push(self.results(&fresh, &mut 0));
        self.step.slots.extend(fresh);
    }

    fn results(&self, slots: &[u32], errors: &mut u64) -> Vec<ArrayRef> {
        let finish = |output: &Output| {
            output.finish(&self.groups.weights, &self.accumulators, slots, errors)
        };
        self.outputs.iter().map(finish).collect()
    }

    /// The delta of the step, from the groups it touched; those without rows go.
    fn emit(&mut self) -> Result<Option<Delta>, StepError> {
        let TouchedGroups { slots, existed, before } = std::mem::take(&mut self.step);
        if slots.is_empty() {
            return Ok(None);
        }
        if slots.iter().any(|slot| self.groups.weights[*slot as usize] < 0) {
            return Err(StepError::NegativeMultiplicity { place: self.place.clone() });
        }
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.settle(&slots));
        let mut errors = 0;
        let after = self.results(&slots, &mut errors);
        self.errors += errors;
        let before = join_columns(&before);
        let keys = self.groups.key_columns(&slots);
        let changed = changed_rows(&before, &after, slots.len());
        let alive =
            |row: usize| self.groups.is_single() || self.groups.weights[slots[row] as usize] > 0;
        let removed =
            (0..slots.len()).filter(|row| existed[*row] && (!alive(*row) || changed[*row]));
        let removed = removed.map(|row| row as u32).collect::<UInt32Array>();
        let added = (0..slots.len()).filter(|row| alive(*row) && (!existed[*row] || changed[*row]));
        let added = added.map(|row| row as u32).collect::<UInt32Array>();
        let removed = self.output_rows(&keys, &before, &removed);
        let added = self.output_rows(&keys, &after, &added);
        self.started |= self.groups.is_single();
        self.bury(&slots);
        let delta = Delta::replacing(&removed, &added);
        Ok((!delta.is_empty()).then_some(delta))
    }

    fn output_rows(
        &self,
        keys: &[ArrayRef],
        results: &[ArrayRef],
        rows: &UInt32Array,
    ) -> RecordBatch {
        let pick = |column: &ArrayRef| take(column, rows, None).expect("rows are within the step");
        let columns = keys.iter().chain(results).map(pick).collect();
        let options =
            RecordBatchOptions::new().with_row_count(Some(arrow::array::Array::len(rows)));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .expect("results are of their types")
    }

    /// Ends the step for its groups: marks go, and so do groups without rows.
    fn bury(&mut self, slots: &[u32]) {
        let mut dead = Vec::new();
        for slot in slots {
            self.groups.marks[*slot as usize] &= !TOUCHED;
            if self.groups.weights[*slot as usize] == 0 && !self.groups.is_single() {
                dead.push(*slot);
            }
        }
        let stored =
            dead.iter().copied().filter(|slot| self.groups.marks[*slot as usize] & STORED != 0);
        let stored = stored.collect::<Vec<_>>();
        if !stored.is_empty() {
            let vnodes = stored.iter().map(|slot| self.groups.vnodes[*slot as usize]).collect();
            self.removed.push((self.groups.key_columns(&stored), vnodes));
        }
        dead.into_iter().for_each(|slot| self.release(slot));
    }

    fn release(&mut self, slot: u32) {
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.reset(slot));
        self.groups.release(slot);
    }
}

/// The accumulator of `subject`, made if no aggregate before needs it; `None` for COUNT(*), which is the
/// group's weight.
fn accumulator_for(mut subject: Subject, subjects: &mut Vec<Subject>) -> Option<usize> {
    if subject.class == accumulator::Class::Count {
        if subject.argument.is_none() && subject.filter.is_none() {
            return None;
        }
        // A sum of the same values counts them anyway.
        let counts = |other: &&Subject| {
            let sums = matches!(
                other.class,
                accumulator::Class::IntegerSum | accumulator::Class::FloatSum
            );
            sums && other.argument == subject.argument && other.filter == subject.filter
        };
        if let Some(sum) = subjects.iter().find(counts) {
            subject = sum.clone();
        }
    }
    let found = subjects.iter().position(|other| *other == subject);
    Some(found.unwrap_or_else(|| {
        subjects.push(subject);
        subjects.len() - 1
    }))
}

fn join_columns(pieces: &[Vec<ArrayRef>]) -> Vec<ArrayRef> {
    let [first, ..] = pieces else { return Vec::new() };
    let join = |column: usize| {
        let arrays = pieces.iter().map(|piece| piece[column].as_ref()).collect::<Vec<_>>();
        concat(&arrays).expect("a result keeps its type")
    };
    (0..first.len()).map(join).collect()
}

fn changed_rows(before: &[ArrayRef], after: &[ArrayRef], rows: usize) -> Vec<bool> {
    let mut changed = vec![false; rows];
    for (before, after) in before.iter().zip(after) {
        let (before, after) = (Column::new(before), Column::new(after));
        for (row, changed) in changed.iter_mut().enumerate() {
            *changed |= !before.equals(row, &after, row);
        }
    }
    changed
}

impl Operator for Aggregate {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        if self.groups.is_single() && !self.started {
            let mut slots = Vec::new();
            self.groups.probe(&[], 1, &mut slots);
            self.make_room();
            self.touch(&slots);
        }
        inputs[0].iter().filter(|delta| !delta.is_empty()).for_each(|delta| self.add(delta));
        Ok(self.emit()?.into_iter().collect())
    }

    fn expression_errors(&self) -> u64 {
        self.errors
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl OperatorState for Aggregate {
    fn seal(&mut self) -> Vec<SealedBlob> {
        self.seal_groups()
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.load_groups(blobs)
    }

    fn contents(&mut self) -> Vec<Delta> {
        let slots = self.groups.live_slots();
        let all = (0..slots.len() as u32).collect::<UInt32Array>();
        let results = self.results(&slots, &mut 0);
        vec![Delta::inserts(self.output_rows(&self.groups.key_columns(&slots), &results, &all))]
    }

    fn size(&self) -> StateSize {
        let accumulators = self.accumulators.iter().map(Accumulator::bytes).sum::<usize>();
        StateSize { rows: self.groups.live(), bytes: self.groups.bytes() + accumulators }
    }
}
