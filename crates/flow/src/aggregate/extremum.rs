//! MIN and MAX. Of an append-only input the best value is enough; where values can be taken back each group keeps
//! all of its values in order, with their multiplicities.

use std::collections::BTreeMap;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;
use hashbrown::HashSet;

use super::ordered::Ordered;
use crate::key::Column;

/// Which end is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Min,
    Max,
}

/// The best value of each group of an append-only input.
#[derive(Debug)]
pub(super) struct Best<V> {
    pub(super) end: End,
    pub(super) values: Vec<Option<V>>,
}

impl<V: Ordered> Best<V> {
    /// The best of a slot; `None` when nothing has come that counts.
    pub(super) fn value(&self, slot: u32) -> Option<V> {
        self.values[slot as usize].clone()
    }

    pub(super) fn add(&mut self, slot: usize, value: V) {
        let best = &mut self.values[slot];
        let better = best.as_ref().is_none_or(|best| match self.end {
            End::Min => value < *best,
            End::Max => value > *best,
        });
        if better {
            *best = Some(value);
        }
    }
}

/// All values of each group.
#[derive(Debug)]
pub(super) struct Multisets<V> {
    pub(super) groups: Vec<Multiset<V>>,
    /// What is not stored as it is now: slot and value.
    dirty: HashSet<(u32, V)>,
    entries: usize,
}

impl<V> Default for Multisets<V> {
    fn default() -> Multisets<V> {
        Multisets { groups: Vec::new(), dirty: HashSet::new(), entries: 0 }
    }
}

/// Values and how often each is there. Within a step a count may be negative: a removal can come before its addition.
#[derive(Clone, Debug)]
pub(super) enum Multiset<V> {
    /// In order; most groups have few values.
    Few(Vec<(V, i64)>),
    Many(BTreeMap<V, i64>),
}

/// From here on inserting into a sorted list costs more than a tree.
const FEW_MAX: usize = 32;

impl<V: Ordered> Multiset<V> {
    /// Adds `weight` to the count of `value`; returns by how many the number of distinct values grew.
    fn add(&mut self, value: V, weight: i64) -> isize {
        match self {
            Multiset::Few(list) => match list.binary_search_by(|(other, _)| other.cmp(&value)) {
                Ok(place) if list[place].1 + weight == 0 => {
                    list.remove(place);
                    -1
                }
                Ok(place) => {
                    list[place].1 += weight;
                    0
                }
                Err(place) if list.len() < FEW_MAX => {
                    list.insert(place, (value, weight));
                    1
                }
                Err(_) => {
                    let mut tree = std::mem::take(list).into_iter().collect::<BTreeMap<_, _>>();
                    tree.insert(value, weight);
                    *self = Multiset::Many(tree);
                    1
                }
            },
            Multiset::Many(tree) => {
                let count = tree.entry(value.clone()).or_insert(0);
                let grown = isize::from(*count == 0);
                *count += weight;
                if *count == 0 {
                    tree.remove(&value);
                    return grown - 1;
                }
                grown
            }
        }
    }

    fn count(&self, value: &V) -> i64 {
        match self {
            Multiset::Few(list) => match list.binary_search_by(|(other, _)| other.cmp(value)) {
                Ok(place) => list[place].1,
                Err(_) => 0,
            },
            Multiset::Many(tree) => tree.get(value).copied().unwrap_or(0),
        }
    }

    pub(super) fn end(&self, end: End) -> Option<V> {
        let value = match (self, end) {
            (Multiset::Few(list), End::Min) => list.first().map(|(value, _)| value),
            (Multiset::Few(list), End::Max) => list.last().map(|(value, _)| value),
            (Multiset::Many(tree), End::Min) => tree.first_key_value().map(|(value, _)| value),
            (Multiset::Many(tree), End::Max) => tree.last_key_value().map(|(value, _)| value),
        };
        value.cloned()
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&V, i64)> + '_> {
        match self {
            Multiset::Few(list) => Box::new(list.iter().map(|(value, count)| (value, *count))),
            Multiset::Many(tree) => Box::new(tree.iter().map(|(value, count)| (value, *count))),
        }
    }

    fn len(&self) -> usize {
        match self {
            Multiset::Few(list) => list.len(),
            Multiset::Many(tree) => tree.len(),
        }
    }
}

impl<V: Ordered> Multisets<V> {
    pub(super) fn resize(&mut self, slots: usize) {
        self.groups.resize_with(slots, || Multiset::Few(Vec::new()));
    }

    pub(super) fn add(&mut self, slot: u32, value: V, weight: i64) {
        let grown = self.groups[slot as usize].add(value.clone(), weight);
        self.entries = self.entries.strict_add_signed(grown);
        self.dirty.insert((slot, value));
    }

    pub(super) fn reset(&mut self, slot: u32) {
        let old = std::mem::replace(&mut self.groups[slot as usize], Multiset::Few(Vec::new()));
        self.entries -= old.len();
    }

    /// The values that changed since the last seal, of the slots for which `is_live`: slots, values, counts (0: gone).
    pub(super) fn take_dirty(&mut self, is_live: impl Fn(u32) -> bool) -> Entries<V> {
        let mut entries = Entries::default();
        for (slot, value) in self.dirty.drain().filter(|(slot, _)| is_live(*slot)) {
            entries.counts.push(self.groups[slot as usize].count(&value));
            entries.slots.push(slot);
            entries.values.push(Some(value));
        }
        entries
    }

    /// All values of the groups at `slots`.
    pub(super) fn entries_of(&self, slots: &[u32]) -> Entries<V> {
        let mut entries = Entries::default();
        for slot in slots {
            for (value, count) in self.groups[*slot as usize].entries() {
                entries.slots.push(*slot);
                entries.values.push(Some(value.clone()));
                entries.counts.push(count);
            }
        }
        entries
    }

    /// Sets stored counts.
    pub(super) fn load(&mut self, slots: &[u32], column: &Column, counts: &Int64Array) {
        for (row, slot) in slots.iter().enumerate() {
            let value = V::read(column, row);
            let group = &mut self.groups[*slot as usize];
            let missing = counts.value(row) - group.count(&value);
            if missing != 0 {
                self.entries = self.entries.strict_add_signed(group.add(value, missing));
            }
        }
    }

    /// About how much memory the values take.
    pub(super) fn bytes(&self) -> usize {
        let each = size_of::<(V, i64)>() + 16;
        self.groups.capacity() * size_of::<Multiset<V>>()
            + self.entries * each
            + self.dirty.capacity() * each
    }
}

/// Entries of multisets, column by column.
#[derive(Debug)]
pub(super) struct Entries<V> {
    pub(super) slots: Vec<u32>,
    pub(super) values: Vec<Option<V>>,
    pub(super) counts: Vec<i64>,
}

impl<V> Default for Entries<V> {
    fn default() -> Entries<V> {
        Entries { slots: Vec::new(), values: Vec::new(), counts: Vec::new() }
    }
}

impl<V: Ordered> Entries<V> {
    /// The slots, and the columns of values and counts.
    pub(super) fn into_columns(self, data_type: &DataType) -> (Vec<u32>, ArrayRef, Int64Array) {
        (self.slots, V::column(self.values, data_type), Int64Array::from(self.counts))
    }
}
