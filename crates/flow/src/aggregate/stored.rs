//! How groups are stored, per vnode group: keys that went; keys, weights and accumulators of groups; entries
//! of multisets.
//!
//! Each blob has the same parts: the keys that went (none in a base), the groups, then for each multiset its
//! entries as
//! (key, value, count), where a delta's count of 0 takes the value out.
//! Sums are stored in 64 bits where they fit; counts that are the groups' weights are stored as a column of NULLs.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, NullArray, RecordBatch,
};
use arrow::datatypes::{Decimal128Type, Field, Float64Type, Int64Type, Schema};
use arrow::error::ArrowError;

use super::Aggregate;
use super::accumulator::{Accumulator, State, with_extremum};
use super::counts::Counts;
use super::groups::STORED;
use super::ordered::Ordered;
use super::sums::IntegerSums;

use segue_types::{BlobKind, StateBlob};

use crate::blob::{Part, SealedBlob};
use crate::error::RestoreError;
use crate::key::{Column, GROUPS, group_of};

/// A multiset's entries: slots, values, counts.
type EntryColumns = (Vec<u32>, ArrayRef, Int64Array);

impl Aggregate {
    /// The columns of all groups that are to be stored are gathered at once, in the order of their slots, since each
    /// pass over them is one through all of memory. What belongs to which blob is dealt out when they are encoded.
    pub(super) fn seal_groups(&mut self) -> Vec<SealedBlob> {
        let mut dirty = self.tracker.take_unsealed();
        dirty.retain(|slot| self.groups.is_live(*slot));
        let groups = &self.groups;
        let entries = self
            .accumulators
            .iter_mut()
            .filter_map(|accumulator| accumulator.take_dirty_entries(|slot| groups.is_live(slot)));
        let entries = entries.collect::<Vec<_>>();
        let removed = self.take_removed();
        let deltas = self.blobs(BlobKind::Delta, removed, &dirty, &entries);
        let blobs = self.with_bases(deltas);
        blobs.iter().for_each(|blob| self.sizes.sealed(blob));
        dirty.iter().for_each(|slot| self.groups.marks[*slot as usize] |= STORED);
        blobs
    }

    /// The deltas, bases in the place of those that have grown too heavy.
    fn with_bases(&mut self, mut blobs: Vec<SealedBlob>) -> Vec<SealedBlob> {
        let rebased = self.sizes.rebased(&blobs);
        if rebased == [false; GROUPS] {
            return blobs;
        }
        blobs.retain(|delta| !rebased[usize::from(delta.group)]);
        blobs.extend(self.base_blobs(&rebased));
        // A group that is due has lost its last row: its base is empty.
        let is_there = |group: &usize| blobs.iter().any(|blob| usize::from(blob.group) == *group);
        let empty = (0..GROUPS).filter(|group| rebased[*group]);
        let empty = empty.filter(|group| !is_there(group)).collect::<Vec<_>>();
        blobs.extend(empty.into_iter().map(|group| self.empty_base(group)));
        blobs
    }

    /// All that these vnode groups hold, those that hold nothing left out.
    pub(super) fn base_blobs(&self, wanted: &[bool; GROUPS]) -> Vec<SealedBlob> {
        let slots = self.groups.live_of(wanted);
        let entries =
            self.accumulators.iter().filter_map(|accumulator| accumulator.entries_of(&slots));
        let entries = entries.collect::<Vec<_>>();
        self.blobs(BlobKind::Base, self.no_keys(), &slots, &entries)
    }

    fn empty_base(&self, group: usize) -> SealedBlob {
        let entries =
            self.accumulators.iter().filter_map(|accumulator| accumulator.entries_of(&[]));
        let mut parts = vec![self.no_keys().rows, self.group_rows(&[])];
        parts.extend(entries.map(|entries| self.entry_rows(&entries)));
        self.owner.seal(group as u8, BlobKind::Base, parts)
    }

    /// A blob for each vnode group that has any of this.
    fn blobs(
        &self,
        kind: BlobKind,
        removed: Dealt,
        slots: &[u32],
        entries: &[EntryColumns],
    ) -> Vec<SealedBlob> {
        let group_of_slot = |slot: &u32| group_of(self.groups.vnodes[*slot as usize]);
        let deal = |slots: &[u32], rows| Dealt::new(rows, slots.iter().map(group_of_slot));
        let mut parts = vec![removed, deal(slots, self.group_rows(slots))];
        parts.extend(entries.iter().map(|entries| deal(&entries.0, self.entry_rows(entries))));
        let mut blobs = Vec::new();
        for group in 0..GROUPS {
            if parts.iter().any(|part| !part.places[group].is_empty()) {
                let parts = parts.iter_mut().map(|part| part.take(group));
                blobs.push(self.owner.seal(group as u8, kind, parts));
            }
        }
        blobs
    }

    /// Keys that went.
    fn take_removed(&mut self) -> Dealt {
        let (keys, vnodes): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.removed).into_iter().unzip();
        if keys.is_empty() {
            return self.no_keys();
        }
        Dealt::new(batch(super::join_columns(&keys), 0), vnodes.concat().into_iter().map(group_of))
    }

    fn no_keys(&self) -> Dealt {
        Dealt::new(batch(self.groups.key_columns(&[]), 0), std::iter::empty())
    }

    /// Keys, weights and accumulators of the groups at `slots`.
    fn group_rows(&self, slots: &[u32]) -> RecordBatch {
        let mut columns = self.groups.key_columns(slots);
        let weights = slots.iter().map(|slot| self.groups.weights[*slot as usize]);
        columns.push(words(weights));
        columns.extend(self.accumulators.iter().flat_map(|accumulator| accumulator.columns(slots)));
        batch(columns, slots.len())
    }

    fn entry_rows(&self, (slots, values, counts): &EntryColumns) -> RecordBatch {
        let mut columns = self.groups.key_columns(slots);
        columns.extend([Arc::clone(values), Arc::new(counts.clone()) as ArrayRef]);
        batch(columns, slots.len())
    }

    pub(super) fn load_groups(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        for blob in blobs {
            let parts = self.owner.read(blob)?;
            self.load_parts(&parts, blob.group).map_err(|error| RestoreError::Blob {
                operator: blob.operator.0,
                group: blob.group,
                reason: error.to_string(),
            })?;
            self.sizes.loaded(blob);
        }
        self.started |= self.groups.is_single() && self.groups.slots() > 0;
        Ok(())
    }

    fn load_parts(&mut self, parts: &[RecordBatch], group: u8) -> Result<(), ArrowError> {
        let wrong = |reason: &str| ArrowError::IpcError(reason.to_owned());
        let multisets =
            self.accumulators.iter().filter(|accumulator| accumulator.is_multiset()).count();
        let [removed, groups, entries @ ..] = parts else { return Err(wrong("parts are missing")) };
        if entries.len() != multisets {
            return Err(wrong("the entries of a multiset are missing"));
        }
        let keys = self.keys.len();
        if keys > 0 && removed.num_rows() > 0 {
            let gone = self.slots_of_keys(removed);
            gone.iter().for_each(|slot| self.groups.weights[*slot as usize] = 0);
            self.release(&gone);
            self.tracker.loaded(&gone);
        }
        let slots = self.slots_of_keys(groups);
        if slots.iter().any(|slot| group_of(self.groups.vnodes[*slot as usize]) != group) {
            return Err(wrong("a key is not of this group"));
        }
        let weights = groups.column(keys).as_primitive::<Int64Type>();
        for (slot, weight) in slots.iter().zip(weights.values()) {
            if *weight < 0 {
                return Err(wrong("a group has a negative weight"));
            }
            self.groups.weights[*slot as usize] = *weight;
            self.groups.marks[*slot as usize] |= STORED;
        }
        self.tracker.loaded(&slots);
        let mut columns = groups.columns()[keys + 1..].iter();
        let weights = &self.groups.weights;
        for accumulator in &mut self.accumulators {
            accumulator.load(&slots, weights, &mut columns);
        }
        self.load_entries(entries)
    }

    fn load_entries(&mut self, entries: &[RecordBatch]) -> Result<(), ArrowError> {
        let keys = self.keys.len();
        let places =
            (0..self.accumulators.len()).filter(|place| self.accumulators[*place].is_multiset());
        for (place, entries) in places.collect::<Vec<_>>().into_iter().zip(entries) {
            let known = self.groups.slots();
            let slots = self.slots_of_keys(entries);
            if self.groups.slots() != known {
                return Err(ArrowError::IpcError(
                    "an entry is of a group that is not there".to_owned(),
                ));
            }
            let counts = entries.column(keys + 1).as_primitive::<Int64Type>();
            let values = Column::new(entries.column(keys));
            self.accumulators[place].load_entries(&slots, &values, counts);
        }
        Ok(())
    }

    fn slots_of_keys(&mut self, rows: &RecordBatch) -> Vec<u32> {
        let keys = rows.columns()[..self.keys.len()].iter().map(Column::new).collect::<Vec<_>>();
        let slots = self.groups.probe(&keys, rows.num_rows());
        self.make_room();
        slots
    }
}

/// Rows, and which of them belong to each vnode group.
struct Dealt {
    rows: RecordBatch,
    places: [Vec<u32>; GROUPS],
}

impl Dealt {
    fn new(rows: RecordBatch, groups: impl Iterator<Item = u8>) -> Dealt {
        let mut places = [const { Vec::new() }; GROUPS];
        for (row, group) in groups.enumerate() {
            places[usize::from(group)].push(row as u32);
        }
        Dealt { rows, places }
    }

    fn take(&mut self, group: usize) -> Part {
        Part::of(&self.rows, std::mem::take(&mut self.places[group]))
    }
}

/// Columns as a batch of their own; names do not matter, places do.
fn batch(columns: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let rows = columns.first().map_or(rows, |column| column.len());
    let field = |(place, column): (usize, &ArrayRef)| {
        Field::new(place.to_string(), column.data_type().clone(), true)
    };
    let schema = Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>());
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
        .expect("columns of one length")
}

fn words(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn doubles(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

impl Accumulator {
    fn is_multiset(&self) -> bool {
        matches!(self.state, State::Words(_) | State::Decimals(_) | State::Bytes(_))
    }

    /// The state columns of the groups at `slots`; none for a multiset.
    fn columns(&self, slots: &[u32]) -> Vec<ArrayRef> {
        let counts_of = |counts: &Counts| -> ArrayRef {
            match counts {
                Counts::Weights => Arc::new(NullArray::new(slots.len())),
                Counts::Own(counts) => words(slots.iter().map(|slot| counts[*slot as usize])),
            }
        };
        match &self.state {
            State::Count(counts) => vec![counts_of(counts)],
            State::IntegerSum(sums, counts) => {
                let sums: ArrayRef = match sums {
                    IntegerSums::Narrow(sums) => {
                        words(slots.iter().map(|slot| sums[*slot as usize]))
                    }
                    IntegerSums::Wide(sums) => Arc::new(Decimal128Array::from_iter_values(
                        slots.iter().map(|slot| sums[*slot as usize]),
                    )),
                };
                vec![sums, counts_of(counts)]
            }
            State::FloatSum(sums, counts) => {
                let special = |kind: usize| -> ArrayRef {
                    if sums.specials.is_empty() {
                        return Arc::new(NullArray::new(slots.len()));
                    }
                    let count = |slot| sums.specials.get(slot).map_or(0, |all| all[kind]);
                    words(slots.iter().map(count))
                };
                vec![
                    doubles(slots.iter().map(|slot| sums.pairs[*slot as usize].0)),
                    doubles(slots.iter().map(|slot| sums.pairs[*slot as usize].1)),
                    special(0),
                    special(1),
                    special(2),
                    counts_of(counts),
                ]
            }
            state => with_extremum!(state,
                best(best) => {
                    let values = slots.iter().map(|slot| best.value(*slot)).collect();
                    vec![Ordered::column(values, &self.argument_type)]
                },
                multiset(_sets) => Vec::new(),
                _ => unreachable!("the sums are above")),
        }
    }

    /// Sets the state of the groups at `slots`, whose weights are set already, from as many of `columns` as
    /// [`Accumulator::columns`] wrote.
    fn load<'a>(
        &mut self,
        slots: &[u32],
        weights: &[i64],
        columns: &mut impl Iterator<Item = &'a ArrayRef>,
    ) {
        let mut next = || columns.next().expect("the fingerprint fixes the columns");
        match &mut self.state {
            State::Count(counts) => counts.load(slots, weights, next()),
            State::IntegerSum(sums, counts) => {
                sums.load(slots, next());
                counts.load(slots, weights, next());
            }
            State::FloatSum(sums, counts) => {
                let (high, low) = (next(), next());
                let (high, low) =
                    (high.as_primitive::<Float64Type>(), low.as_primitive::<Float64Type>());
                // Without a special value anywhere, nothing is stored of their counts.
                let specials = [next(), next(), next()].map(|c| c.as_primitive_opt::<Int64Type>());
                let specials =
                    |row: usize| specials.map(|column| column.map_or(0, |all| all.value(row)));
                for (row, slot) in slots.iter().enumerate() {
                    sums.pairs[*slot as usize] = (high.value(row), low.value(row));
                    match specials(row) {
                        [0, 0, 0] => sums.specials.remove(slot),
                        counts => sums.specials.insert(*slot, counts),
                    };
                }
                counts.load(slots, weights, next());
            }
            state => with_extremum!(state,
                best(best) => {
                    let column = next();
                    let view = Column::new(column);
                    for (row, slot) in slots.iter().enumerate() {
                        best.values[*slot as usize] =
                            column.is_valid(row).then(|| Ordered::read(&view, row));
                    }
                },
                multiset(_sets) => {},
                _ => unreachable!("the sums are above")),
        }
    }

    fn take_dirty_entries(&mut self, is_live: impl Fn(u32) -> bool) -> Option<EntryColumns> {
        let data_type = &self.argument_type;
        with_extremum!(&mut self.state,
            best(_best) => None,
            multiset(sets) => Some(sets.take_dirty(is_live).into_columns(data_type)),
            _ => None)
    }

    fn entries_of(&self, slots: &[u32]) -> Option<EntryColumns> {
        with_extremum!(&self.state,
            best(_best) => None,
            multiset(sets) => Some(sets.entries_of(slots).into_columns(&self.argument_type)),
            _ => None)
    }

    fn load_entries(&mut self, slots: &[u32], values: &Column, counts: &Int64Array) {
        with_extremum!(&mut self.state,
            best(_best) => unreachable!("it has no entries"),
            multiset(sets) => sets.load(slots, values, counts),
            _ => unreachable!("it has no entries"));
    }
}

impl Counts {
    /// Sets stored counts; a column of NULLs says that they are the weights.
    fn load(&mut self, slots: &[u32], weights: &[i64], column: &ArrayRef) {
        let stored = column.as_primitive_opt::<Int64Type>();
        if let (None, Counts::Weights) = (stored, &*self) {
            return;
        }
        let counts = self.own(weights);
        counts.resize(weights.len(), 0);
        for (row, slot) in slots.iter().enumerate() {
            let slot = *slot as usize;
            counts[slot] = stored.map_or(weights[slot], |stored| stored.value(row));
        }
    }
}

impl IntegerSums {
    /// Sets stored sums, which were narrow or wide.
    fn load(&mut self, slots: &[u32], column: &ArrayRef) {
        let narrow = column.as_primitive_opt::<Int64Type>();
        let wide = column.as_primitive_opt::<Decimal128Type>();
        for (row, slot) in slots.iter().enumerate() {
            let sum = match (narrow, wide) {
                (Some(sums), _) => i128::from(sums.value(row)),
                (None, Some(sums)) => sums.value(row),
                (None, None) => unreachable!("the fingerprint fixes the columns"),
            };
            self.set(*slot as usize, sum);
        }
    }
}
