//! The in-memory hash index: 64-bit key hash → u32 slots, compared by the caller on collision.
//!
//! An entry keeps 32 bits of the hash, so that growing never looks at a key. Nothing here is stored.

use hashbrown::HashTable;

/// From key hashes to slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    table: HashTable<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    slot: u32,
}

/// hashbrown takes the bucket from the low bits and the tag from the high ones: both need to vary.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Index {
    pub(crate) fn with_capacity(slots: usize) -> Index {
        Index { table: HashTable::with_capacity(slots) }
    }

    /// The slot under `hash` for which `matches` holds.
    pub(crate) fn find(&self, hash: u64, mut matches: impl FnMut(u32) -> bool) -> Option<u32> {
        let part = hash as u32;
        self.table
            .find(spread(part), |entry| entry.hash == part && matches(entry.slot))
            .map(|entry| entry.slot)
    }

    /// Makes `slot` the one found for its key from now on; returns the one before.
    pub(crate) fn replace(
        &mut self,
        hash: u64,
        slot: u32,
        mut matches: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let part = hash as u32;
        let same = |entry: &Entry| entry.hash == part && matches(entry.slot);
        match self.table.find_mut(spread(part), same) {
            Some(entry) => Some(std::mem::replace(&mut entry.slot, slot)),
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
        let entry = Entry { hash: hash as u32, slot };
        self.table.insert_unique(spread(entry.hash), entry, |entry| spread(entry.hash));
    }

    /// Takes the slot out for which `matches` holds.
    pub(crate) fn remove(
        &mut self,
        hash: u64,
        mut matches: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let part = hash as u32;
        let same = |entry: &Entry| entry.hash == part && matches(entry.slot);
        let entry = self.table.find_entry(spread(part), same).ok()?;
        Some(entry.remove().0.slot)
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.table.capacity() * 8 / 7 * (size_of::<Entry>() + 1)
    }
}
