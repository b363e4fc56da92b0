//! The index that a relation's writer and the readers of its versions share.
//!
//! `current` names the living rows. A row that dies while a version may still see it goes to the graveyard until
//! the last such version is dropped. A reader looks into both, and its own masks decide.

use std::collections::VecDeque;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::key::Index;

/// An [`IndexState`] behind a lock that is held for one batch at most.
#[derive(Debug, Default)]
pub(crate) struct SharedIndex {
    state: RwLock<IndexState>,
}

/// Living rows, and dead ones that old versions see.
#[derive(Debug, Default)]
pub(crate) struct IndexState {
    pub(crate) current: Index,
    pub(super) graveyard: Index,
    /// Number of the first version that no longer sees the row, its hash, the row; in order of the number.
    burials: VecDeque<(u64, u64, u32)>,
}

impl SharedIndex {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, IndexState> {
        // A writer that panics leaves its dataflow unusable, but what readers see is decided by their own masks.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, IndexState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn bytes(&self) -> usize {
        let state = self.read();
        state.current.bytes() + state.graveyard.bytes() + state.burials.len() * 24
    }
}

impl IndexState {
    /// Keeps a dead row findable for the versions before `first_without`.
    pub(crate) fn bury(&mut self, hash: u64, slot: u32, first_without: u64) {
        self.graveyard.insert(hash, slot);
        self.burials.push_back((first_without, hash, slot));
    }

    /// Forgets the dead that no version from `oldest` on sees.
    pub(crate) fn exhume(&mut self, oldest: u64) {
        while let Some((first_without, hash, slot)) = self.burials.front().copied()
            && first_without <= oldest
        {
            self.graveyard
                .remove(hash, |buried| buried == slot)
                .expect("every burial is in the graveyard");
            self.burials.pop_front();
        }
    }
}
