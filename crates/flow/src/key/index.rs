//! The in-memory hash index: 64-bit key hash → u32 slots, compared by the caller on collision.
//!
//! Open addressing with linear probing, so that a lookup is one cache miss, and a batch of lookups can have many
//! under way at once ([`Index::find_all`]). An entry keeps 32 bits of the hash, so that growing never looks at a key.
//! Nothing here is stored.

use std::hint::black_box;

/// From key hashes to slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// A power of two of them, or none.
    entries: Vec<Entry>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    slot: u32,
}

/// No slot: what [`Index::find_all`] says of a hash that is not there.
pub(crate) const NO_SLOT: u32 = u32::MAX;
const EMPTY: Entry = Entry { hash: 0, slot: NO_SLOT };
const ENTRIES_MIN: usize = 8;
/// A table that is less than one part in this many full is made smaller.
const SHRINK_FACTOR: usize = 16;
/// Lookups whose cache misses are awaited together.
pub(crate) const BLOCK: usize = 64;

impl Index {
    pub(crate) fn with_capacity(slots: usize) -> Index {
        let mut index = Index::default();
        index.reserve(slots);
        index
    }

    /// Makes room for `more` slots.
    pub(crate) fn reserve(&mut self, more: usize) {
        // At most three quarters full.
        let wanted = ((self.len + more) * 4).div_ceil(3).next_power_of_two().max(ENTRIES_MIN);
        if wanted > self.entries.len() {
            let former = std::mem::replace(&mut self.entries, vec![EMPTY; wanted]);
            former.into_iter().filter(|entry| entry.slot != NO_SLOT).for_each(|e| self.place(e));
        }
    }

    /// Where the probing for a hash begins: entries of neighbouring hashes are spread.
    fn home(&self, hash: u32) -> usize {
        let spread = u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (spread >> 32) as usize & (self.entries.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    fn place(&mut self, entry: Entry) {
        let mut at = self.home(entry.hash);
        while self.entries[at].slot != NO_SLOT {
            at = self.after(at);
        }
        self.entries[at] = entry;
    }

    /// Where the entry is for which `matches` holds.
    fn find_place(&self, hash: u64, mut matches: impl FnMut(u32) -> bool) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let part = hash as u32;
        let mut at = self.home(part);
        loop {
            let Entry { hash, slot } = self.entries[at];
            if slot == NO_SLOT {
                return None;
            }
            if hash == part && matches(slot) {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    /// The slot under `hash` for which `matches` holds.
    pub(crate) fn find(&self, hash: u64, matches: impl FnMut(u32) -> bool) -> Option<u32> {
        self.find_place(hash, matches).map(|at| self.entries[at].slot)
    }

    /// For each hash the slot for which `matches(slot, row)` holds, or [`NO_SLOT`].
    pub(crate) fn find_all(
        &self,
        hashes: &[u64],
        matches: impl Fn(u32, usize) -> bool,
    ) -> Vec<u32> {
        let mut slots = self.candidates(hashes);
        for (row, slot) in slots.iter_mut().enumerate() {
            if *slot != NO_SLOT && !matches(*slot, row) {
                let found = self.find(hashes[row], |slot| matches(slot, row));
                *slot = found.unwrap_or(NO_SLOT);
            }
        }
        slots
    }

    /// For each hash the first slot under it, which nearly always is the one.
    fn candidates(&self, hashes: &[u64]) -> Vec<u32> {
        let mut slots = Vec::with_capacity(hashes.len());
        if self.len == 0 {
            slots.resize(hashes.len(), NO_SLOT);
            return slots;
        }
        for block in hashes.chunks(BLOCK) {
            // No load waits for another here, so the block costs little more time than one miss.
            let touch = |hash: &u64| self.entries[self.home(*hash as u32)].slot;
            black_box(block.iter().map(touch).fold(0, |all, slot| all ^ slot));
            slots.extend(block.iter().map(|hash| self.find(*hash, |_| true).unwrap_or(NO_SLOT)));
        }
        slots
    }

    /// As [`Index::find_all`], where `matches` looks at what lies far apart: `touch(slot)` looks at the same before,
    /// for a block of lookups at once.
    pub(crate) fn find_touching(
        &self,
        hashes: &[u64],
        touch: impl Fn(u32) -> u64,
        matches: impl Fn(u32, usize) -> bool,
    ) -> Vec<u32> {
        let mut slots = Vec::with_capacity(hashes.len());
        for block in hashes.chunks(BLOCK) {
            self.warm(block, &touch);
            let first = slots.len();
            let find = |(at, hash): (usize, &u64)| {
                self.find(*hash, |slot| matches(slot, first + at)).unwrap_or(NO_SLOT)
            };
            slots.extend(block.iter().enumerate().map(find));
        }
        slots
    }

    /// Brings into the cache what lookups of these hashes will need, so that no miss waits for another.
    pub(crate) fn warm(&self, hashes: &[u64], touch: impl Fn(u32) -> u64) {
        if self.len == 0 {
            return;
        }
        let home = |hash: &u64| self.entries[self.home(*hash as u32)].slot;
        black_box(hashes.iter().map(home).fold(0, |all, slot| all ^ slot));
        let slots = hashes.iter().filter_map(|hash| self.find(*hash, |_| true));
        black_box(slots.map(touch).fold(0, |all, seen| all ^ seen));
    }

    /// Makes `slot` the one found for its key from now on; returns the one before.
    pub(crate) fn replace(
        &mut self,
        hash: u64,
        slot: u32,
        matches: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        match self.find_place(hash, matches) {
            Some(at) => Some(std::mem::replace(&mut self.entries[at].slot, slot)),
            None => {
                self.insert(hash, slot);
                None
            }
        }
    }

    /// The slot of this key if there is one; else `slot` becomes it.
    pub(crate) fn find_or_insert(
        &mut self,
        hash: u64,
        slot: u32,
        matches: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let found = self.find(hash, matches);
        if found.is_none() {
            self.insert(hash, slot);
        }
        found
    }

    /// Adds a slot whose key is not there yet.
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) {
        assert_ne!(slot, NO_SLOT, "the last number means none");
        self.reserve(1);
        self.place(Entry { hash: hash as u32, slot });
        self.len += 1;
    }

    /// Takes the slot out for which `matches` holds.
    pub(crate) fn remove(&mut self, hash: u64, matches: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut gap = self.find_place(hash, matches)?;
        let slot = self.entries[gap].slot;
        self.len -= 1;
        // Entries behind the gap move up, unless that would bring them before their home.
        let mut at = self.after(gap);
        while self.entries[at].slot != NO_SLOT {
            let distance = |from: usize| at.wrapping_sub(from) & (self.entries.len() - 1);
            if distance(self.home(self.entries[at].hash)) >= distance(gap) {
                self.entries[gap] = self.entries[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.entries[gap] = EMPTY;
        self.shrink();
        Some(slot)
    }

    /// Gives memory back when little is left of what there was; far from growing, so that neither follows the other.
    fn shrink(&mut self) {
        if self.entries.len() > ENTRIES_MIN && self.len * SHRINK_FACTOR < self.entries.len() {
            let former = std::mem::take(&mut self.entries);
            self.reserve(self.len);
            former.into_iter().filter(|entry| entry.slot != NO_SLOT).for_each(|e| self.place(e));
        }
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::{Index, NO_SLOT};

    /// Few hashes, so that they collide and wrap round the end of the table.
    fn hash_of(key: u32) -> u64 {
        u64::from(key % 7) << 32 | u64::from(key % 5)
    }

    proptest! {
        #[test]
        fn an_index_is_a_map(steps in prop::collection::vec((any::<bool>(), 0_u32..60), 0..300)) {
            let mut index = Index::default();
            let mut model = HashMap::new();
            for (comes, key) in steps {
                let hash = hash_of(key);
                if comes {
                    let known = index.find_or_insert(hash, key, |slot| slot == key);
                    prop_assert_eq!(known, model.insert(key, hash).map(|_| key));
                } else {
                    let gone = index.remove(hash, |slot| slot == key);
                    prop_assert_eq!(gone, model.remove(&key).map(|_| key));
                }
                for key in 0..60 {
                    let found = index.find(hash_of(key), |slot| slot == key);
                    prop_assert_eq!(found.is_some(), model.contains_key(&key));
                }
                let hashes: Vec<u64> = (0..60).map(hash_of).collect();
                let found = index.find_all(&hashes, |slot, row| slot as usize == row);
                let touching =
                    index.find_touching(&hashes, u64::from, |slot, row| slot as usize == row);
                prop_assert_eq!(&found, &touching);
                for (key, slot) in (0..60).zip(found) {
                    prop_assert_eq!(slot, if model.contains_key(&key) { key } else { NO_SLOT });
                }
            }
        }
    }
}
