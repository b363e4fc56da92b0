//! The partitions of a top-N: for each key the slots of its rows, in order.
//!
//! Most partitions are small, so their slots lie in the partition itself; a large one is a vector that a step's rows
//! are merged into from behind, moving four bytes a row.
//! Invariant: a partition is in the index exactly while it has a slot; its key is that of any of its slots.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::key::{Index, NO_SLOT};

/// Slots that lie in the partition itself.
const SLOTS_INLINE: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Partitions {
    by_key: Index,
    each: Vec<Partition>,
    free: Vec<u32>,
    /// Slots that lie outside of their partitions, about.
    spilled: usize,
}

#[derive(Debug, Default)]
struct Partition {
    hash: u64,
    /// One whose row has the key.
    example: u32,
    slots: SmallVec<[u32; SLOTS_INLINE]>,
}

impl Partitions {
    /// The partition of a key; `has_key` tells whether it is the key of a slot's row.
    pub(super) fn find(&self, hash: u64, has_key: impl Fn(u32) -> bool) -> Option<u32> {
        self.by_key.find(hash, |number| has_key(self.each[number as usize].example))
    }

    /// The partitions of many keys, where there are such; `touch` and `has_key` look at the row of a slot.
    pub(super) fn find_all(
        &self,
        hashes: &[u64],
        touch: impl Fn(u32) -> u64,
        has_key: impl Fn(u32, usize) -> bool,
    ) -> Vec<Option<u32>> {
        let example = |number: u32| self.each[number as usize].example;
        let touch = |number: u32| touch(example(number));
        let same = |number: u32, row: usize| has_key(example(number), row);
        let found = self.by_key.find_touching(hashes, touch, same);
        found.into_iter().map(|number| (number != NO_SLOT).then_some(number)).collect()
    }

    /// A new partition, of the key of `slot`, which is to be inserted.
    pub(super) fn create(&mut self, hash: u64, slot: u32) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.each.push(Partition::default());
            self.each.len() as u32 - 1
        });
        self.each[number as usize] = Partition { hash, example: slot, slots: SmallVec::new() };
        self.by_key.insert(hash, number);
        number
    }

    /// The slots of a partition, in order.
    pub(super) fn slots(&self, number: u32) -> &[u32] {
        &self.each[number as usize].slots
    }

    /// All partitions.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let numbers = 0..self.each.len() as u32;
        numbers.filter(|number| !self.each[*number as usize].slots.is_empty())
    }

    /// Brings a partition up to date: `gone` and `new` are slots of its, both in order.
    pub(super) fn change(
        &mut self,
        number: u32,
        gone: &[u32],
        new: &[u32],
        compare: impl Fn(u32, u32) -> Ordering,
    ) {
        let partition = &mut self.each[number as usize];
        self.spilled -= spilled(partition);
        remove(&mut partition.slots, gone, &compare);
        merge(&mut partition.slots, new, &compare);
        if partition.slots.spilled() && partition.slots.len() * 4 < partition.slots.capacity() {
            partition.slots.shrink_to_fit();
        }
        self.spilled += spilled(partition);
        match partition.slots.first() {
            Some(first) => partition.example = *first,
            None => {
                let hash = partition.hash;
                self.by_key.remove(hash, |other| other == number).expect("it was in the index");
                self.free.push(number);
            }
        }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.by_key.bytes()
            + self.each.capacity() * size_of::<Partition>()
            + self.spilled * size_of::<u32>()
    }
}

fn spilled(partition: &Partition) -> usize {
    if partition.slots.spilled() { partition.slots.capacity() } else { 0 }
}

/// Takes out slots that are there, all in order.
fn remove(
    slots: &mut SmallVec<[u32; SLOTS_INLINE]>,
    gone: &[u32],
    compare: &impl Fn(u32, u32) -> Ordering,
) {
    let Some(first) = gone.first() else { return };
    let place = |slot: u32, from: &[u32]| {
        from.binary_search_by(|other| compare(*other, slot)).expect("a row that goes was there")
    };
    let mut to = place(*first, slots);
    let mut from = to + 1;
    for slot in &gone[1..] {
        let next = from + place(*slot, &slots[from..]);
        slots.copy_within(from..next, to);
        to += next - from;
        from = next + 1;
    }
    let end = slots.len();
    slots.copy_within(from..end, to);
    slots.truncate(to + end - from);
}

/// Puts in slots that are not there, all in order: from behind, so that each one is moved once.
fn merge(
    slots: &mut SmallVec<[u32; SLOTS_INLINE]>,
    new: &[u32],
    compare: &impl Fn(u32, u32) -> Ordering,
) {
    let mut end = slots.len();
    slots.resize(end + new.len(), 0);
    for (before, slot) in new.iter().enumerate().rev() {
        let place = slots[..end].partition_point(|other| compare(*other, *slot) == Ordering::Less);
        slots.copy_within(place..end, place + before + 1);
        slots[place + before] = *slot;
        end = place;
    }
}

#[cfg(test)]
mod tests {
    use super::Partitions;

    #[test]
    fn slots_stay_in_order_and_an_empty_partition_goes() {
        let mut partitions = Partitions::default();
        let number = partitions.create(5, 30);
        let change = |partitions: &mut Partitions, gone: &[u32], new: &[u32]| {
            partitions.change(number, gone, new, |one, other| one.cmp(&other));
            partitions.slots(number).to_vec()
        };
        assert_eq!(change(&mut partitions, &[], &[30, 50]), [30, 50]);
        assert_eq!(change(&mut partitions, &[], &[10, 20, 40, 60]), [10, 20, 30, 40, 50, 60]);
        assert_eq!(change(&mut partitions, &[10, 40, 60], &[]), [20, 30, 50]);
        assert_eq!(change(&mut partitions, &[20, 30], &[25, 70]), [25, 50, 70]);
        assert_eq!(partitions.find(5, |slot| slot == 25), Some(number), "an example is one of its");
        assert_eq!(partitions.numbers().collect::<Vec<_>>(), [number]);
        assert_eq!(change(&mut partitions, &[25, 50, 70], &[]), [0; 0]);
        assert_eq!(partitions.find(5, |_| true), None);
        assert_eq!(partitions.create(6, 1), number, "its number is free");
    }

    #[test]
    fn any_changes_give_what_sorting_gives() {
        let mut partitions = Partitions::default();
        let number = partitions.create(0, 0);
        let mut held = std::collections::BTreeSet::from([0_u32]);
        partitions.change(number, &[], &[0], |one, other| one.cmp(&other));
        for round in 0..200_u32 {
            let coin = |slot: u32| ((slot.wrapping_mul(2_654_435_761) ^ (round * 40_503)) >> 7) & 3;
            let gone = held.iter().copied().filter(|slot| *slot > 0 && coin(*slot) == 0);
            let gone = gone.collect::<Vec<_>>();
            let new = (1..60).filter(|slot| !held.contains(slot) && coin(*slot) == 1);
            let new = new.collect::<Vec<_>>();
            partitions.change(number, &gone, &new, |one, other| one.cmp(&other));
            held.retain(|slot| !gone.contains(slot));
            held.extend(new);
            assert!(partitions.slots(number).iter().eq(&held), "round {round}");
        }
    }
}
