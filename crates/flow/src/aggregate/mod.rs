//! GROUP BY: per group its weight and the accumulators, updated from deltas.
//!
//! A step gathers the old result of each group when it first touches it, adds the rows, and emits old −1, new
//! +1 for the groups whose result changed. Where nobody reads the changes it only adds the rows (*absorbs* them).
//! A group whose weight falls to 0 goes; without keys there is one group, which never goes.
//! Without aggregates this is DISTINCT. Budget: 2 M rows/s with 1 M keys and half retractions.

mod accumulator;
mod counts;
mod extremum;
mod finish;
mod groups;
mod ordered;
mod stored;
mod sums;
mod tracker;
mod windowed;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, SchemaRef};

pub use ordered::is_ordered;
pub(crate) use windowed::Windowed;

use segue_types::StateBlob;

use crate::blob::{BlobOwner, SealedBlob, StoredSizes};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::key::{Column, GROUPS, can_decode};
use crate::operators::{Operator, OperatorState, StateSize};
use crate::rows::{DenseRows, RelationVersion, RowSource, nullable};
use crate::spec::AggregateSpec;
use accumulator::{Accumulator, Subject, Touch};
use finish::Output;
use groups::{Groups, STORED, TOUCHED};
use tracker::Tracker;

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
    tracker: Tracker,
    /// The relation, where it is this aggregate's own rows.
    relation: Option<DenseRows>,
    /// Keys of groups that are stored and must go, with their vnodes.
    removed: Vec<(Vec<ArrayRef>, Vec<u8>)>,
    sizes: StoredSizes,
    errors: u64,
    /// Whether changes came since the last version that were not put out.
    absorbed: bool,
    /// Rows that the relation got of such changes.
    published: u64,
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
            tracker: Tracker::default(),
            relation: None,
            removed: Vec::new(),
            sizes: StoredSizes::default(),
            errors: 0,
            absorbed: false,
            published: 0,
            started: false,
        }
    }

    /// Makes its rows the relation: under the names of `schema`, and with the keys as key.
    pub(crate) fn hold_relation(&mut self, schema: &SchemaRef) {
        assert!(!self.keys.is_empty(), "the rows of a relation have a key");
        let key = (0..self.keys.len()).collect();
        self.relation = Some(DenseRows::new(schema, key, Arc::clone(self.groups.index())));
    }

    /// The slots of the groups of a delta's rows.
    fn slots_of(&mut self, delta: &Delta) -> Vec<u32> {
        let slots = self.groups.probe(&Column::of(delta.rows(), &self.keys), delta.len());
        self.make_room();
        slots
    }

    fn add(&mut self, delta: &Delta, slots: &[u32]) {
        let weights = delta.weights().map(|weights| &weights[..]);
        let group_weights = &self.groups.weights;
        let touch = Touch { rows: delta.rows(), slots, weights, group_weights };
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.update(touch));
        let group_weights = &mut self.groups.weights;
        match weights {
            None => slots.iter().for_each(|slot| group_weights[*slot as usize] += 1),
            Some(weights) => {
                let each = slots.iter().zip(weights);
                each.for_each(|(slot, weight)| group_weights[*slot as usize] += weight);
            }
        }
        self.tracker.changed(slots);
    }

    fn make_room(&mut self) {
        let slots = self.groups.slots();
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(slots));
        self.tracker.resize(slots);
    }

    /// Remembers what the groups were, where this step comes to them first.
    fn touch(&mut self, slots: &[u32]) {
        let mut fresh = Vec::with_capacity(slots.len());
        for slot in slots {
            let marks = &mut self.groups.marks[*slot as usize];
            if *marks & TOUCHED == 0 {
                *marks |= TOUCHED;
                fresh.push(*slot);
            }
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
        let emptied = self.settle(&slots)?;
        let mut errors = 0;
        let after = self.results(&slots, &mut errors);
        self.errors += errors;
        let before = join_columns(&before);
        let changed = changed_rows(&before, &after, slots.len());
        let alive =
            |row: usize| self.groups.is_single() || self.groups.weights[slots[row] as usize] > 0;
        let rows = 0..slots.len();
        let removed = rows.clone().filter(|row| existed[*row] && (!alive(*row) || changed[*row]));
        let removed = removed.map(|row| row as u32).collect::<Vec<_>>();
        let added = rows.filter(|row| alive(*row) && (!existed[*row] || changed[*row]));
        let added = added.map(|row| row as u32).collect::<Vec<_>>();
        let delta = self.delta(&slots, [&before, &after], [&removed, &added]);
        self.started |= self.groups.is_single();
        slots.iter().for_each(|slot| self.groups.marks[*slot as usize] &= !TOUCHED);
        self.bury(&emptied);
        Ok((!delta.is_empty()).then_some(delta))
    }

    /// The results before go at the rows `removed`, those after come at the rows `added`.
    fn delta(
        &self,
        slots: &[u32],
        results: [&[ArrayRef]; 2],
        [removed, added]: [&[u32]; 2],
    ) -> Delta {
        let [before, after] = results;
        let all = slots.len();
        let rows = removed.iter().copied().chain(added.iter().map(|row| all as u32 + row));
        let rows = rows.collect::<UInt32Array>();
        let pick = |before: &ArrayRef, after: &ArrayRef| {
            let both = || concat(&[before.as_ref(), after.as_ref()]);
            match (removed.len(), added.len()) {
                (0, added) if added == all => Ok(Arc::clone(after)),
                (removed, added) if removed == all && added == all => both(),
                _ => both().and_then(|both| take(&both, &rows, None)),
            }
            .expect("a result keeps its type, and rows are within the step")
        };
        let moved = removed.iter().chain(added).map(|row| slots[*row as usize]).collect::<Vec<_>>();
        let mut columns = self.groups.key_columns(&moved);
        columns.extend(before.iter().zip(after).map(|(before, after)| pick(before, after)));
        let weights =
            std::iter::repeat_n(-1, removed.len()).chain(std::iter::repeat_n(1, added.len()));
        let rows = self.batch(columns, moved.len());
        match removed {
            [] => Delta::inserts(rows),
            _ => Delta::weighted(rows, weights.collect()),
        }
    }

    /// Ends the step for the groups that it came to, before anything is computed of them; returns those without rows.
    fn settle(&mut self, slots: &[u32]) -> Result<Vec<u32>, StepError> {
        let weights = &self.groups.weights;
        let mut emptied =
            slots.iter().copied().filter(|slot| weights[*slot as usize] <= 0).collect::<Vec<_>>();
        emptied.sort_unstable();
        emptied.dedup();
        if emptied.iter().any(|slot| weights[*slot as usize] < 0) {
            return Err(StepError::NegativeMultiplicity { place: self.place.clone() });
        }
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.settle(slots, &emptied));
        Ok(emptied)
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> RecordBatch {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .expect("results are of their types")
    }

    /// Groups without rows go.
    fn bury(&mut self, slots: &[u32]) {
        if self.groups.is_single() {
            return;
        }
        let stored = slots.iter().copied();
        let stored = stored.filter(|slot| self.groups.marks[*slot as usize] & STORED != 0);
        let stored = stored.collect::<Vec<_>>();
        if !stored.is_empty() {
            let vnodes = stored.iter().map(|slot| self.groups.vnodes[*slot as usize]).collect();
            self.removed.push((self.groups.key_columns(&stored), vnodes));
        }
        self.release(slots);
    }

    fn release(&mut self, slots: &[u32]) {
        for accumulator in &mut self.accumulators {
            slots.iter().for_each(|slot| accumulator.reset(*slot));
        }
        let relation = self.relation.as_ref();
        self.groups.release(slots, |index, hash, slot| {
            if let Some(relation) = relation {
                relation.bury(index, hash, slot);
            }
        });
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
        // Most rows differ in the first column already, a count.
        for (row, changed) in changed.iter_mut().enumerate().filter(|(_, changed)| !**changed) {
            *changed = !before.equals(row, &after, row);
        }
    }
    changed
}

impl RowSource for Aggregate {
    fn places(&self) -> usize {
        self.groups.slots()
    }

    fn is_live(&self, place: u32) -> bool {
        self.groups.is_live(place)
    }

    fn rows_at(&self, places: &[u32], errors: &mut u64) -> Vec<ArrayRef> {
        let mut columns = self.groups.key_columns(places);
        columns.extend(self.results(places, errors));
        columns
    }
}

impl Operator for Aggregate {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        if self.groups.is_single() && !self.started {
            self.groups.probe(&[], 1);
            self.make_room();
            self.touch(&[0]);
            self.tracker.changed(&[0]);
        }
        for delta in inputs[0].iter().filter(|delta| !delta.is_empty()) {
            let slots = self.slots_of(delta);
            self.touch(&slots);
            self.add(delta, &slots);
        }
        Ok(self.emit()?.into_iter().collect())
    }

    fn absorb(&mut self, inputs: &[&[Delta]]) -> Result<(), StepError> {
        if self.relation.is_none() {
            return self.step(inputs).map(drop);
        }
        let mut all = Vec::new();
        for delta in inputs[0].iter().filter(|delta| !delta.is_empty()) {
            let slots = self.slots_of(delta);
            self.add(delta, &slots);
            all.extend(slots);
        }
        self.absorbed |= !all.is_empty();
        let emptied = self.settle(&all)?;
        self.bury(&emptied);
        Ok(())
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

    fn bases(&mut self) -> Vec<SealedBlob> {
        self.base_blobs(&[true; GROUPS])
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.load_groups(blobs)
    }

    fn contents(&mut self) -> Vec<Delta> {
        let slots = self.groups.live_slots();
        vec![Delta::inserts(self.batch(self.rows_at(&slots, &mut 0), slots.len()))]
    }

    fn size(&mut self) -> StateSize {
        let accumulators = self.accumulators.iter().map(Accumulator::bytes).sum::<usize>();
        let bytes = self.groups.bytes() + accumulators + self.tracker.bytes();
        StateSize { rows: self.groups.live(), bytes }
    }

    fn relation(&mut self) -> Option<RelationVersion> {
        let mut relation = self.relation.take()?;
        let changed = self.tracker.take_unpublished();
        let mut errors = 0;
        let version = relation.version(self, &changed, &mut errors);
        if std::mem::take(&mut self.absorbed) {
            // A step that puts its changes out counts them itself.
            self.errors += errors;
            self.published += changed.ones().count() as u64;
        }
        self.relation = Some(relation);
        Some(version)
    }

    fn relation_size(&mut self) -> Option<StateSize> {
        let relation = self.relation.as_ref()?;
        Some(StateSize { rows: self.groups.live(), bytes: relation.bytes() })
    }

    fn rows_published(&mut self) -> u64 {
        self.published
    }
}
