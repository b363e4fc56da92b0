//! Rest: a shard that nothing comes to leaves memory, and comes back when a row comes for it.
//!
//! Words: a shard is *clean* when nothing came since the last seal; a *round* looks for clean shards, and one that it
//! finds so for several rounds *rests*: its operator is made anew, empty, and what it held is only in the store; a row
//! *wakes* it.
//! Invariant: rounds come only while every seal is durable, so a clean shard's stored blobs are all that it held. A
//! shard at rest is asked for nothing but its size.

use std::ops::Range;
use std::sync::Arc;

use segue_types::{OperatorId, StateBlob};

use crate::error::RestoreError;
use crate::operators::{Normalise, Operator, OperatorState, StateSize};

/// Where state is read back from that has left memory.
pub trait StateSource: Send + Sync {
    /// All durable blobs of these vnode groups of an operator: of each group its base and then its deltas in their
    /// order. The error is text for a person.
    fn blobs(&self, operator: OperatorId, groups: Range<u8>) -> Result<Vec<StateBlob>, String>;
}

/// One look for state that may leave memory.
#[derive(Clone)]
pub struct RestRound {
    /// What is stored, which must be all that was ever sealed.
    pub source: Arc<dyn StateSource>,
    /// State leaves in the round that finds it clean for so many times.
    pub patience_rounds: u32,
    /// Less than this is not worth reading back.
    pub bytes_min: usize,
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rested {
    /// How many bytes left memory.
    pub bytes: usize,
    /// Whether later rounds may let more go, if nothing comes.
    pub more: bool,
}

impl std::ops::AddAssign for Rested {
    fn add_assign(&mut self, other: Rested) {
        self.bytes += other.bytes;
        self.more |= other.more;
    }
}

/// What stands in a shard: an operator, of whichever interface.
pub(crate) trait Resident: Send {
    fn state_of(&mut self) -> Option<&mut dyn OperatorState>;

    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// What an operator counts and does not store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) expression_errors: u64,
    pub(crate) late_rows: u64,
}

impl Resident for Box<dyn Operator> {
    fn state_of(&mut self) -> Option<&mut dyn OperatorState> {
        self.state()
    }

    fn counts(&self) -> Counts {
        Counts { expression_errors: self.expression_errors(), late_rows: self.late_rows() }
    }
}

impl Resident for Normalise {
    fn state_of(&mut self) -> Option<&mut dyn OperatorState> {
        Some(&mut self.stored)
    }
}

/// What the shards of one operator have in common: how one is made, and under which ids it stores its parts.
pub(crate) struct Home<T> {
    pub(crate) make: Box<dyn Fn() -> T + Send + Sync>,
    pub(crate) parts: Vec<OperatorId>,
}

/// One shard.
pub(super) struct Shard<T> {
    home: Arc<Home<T>>,
    groups: Range<u8>,
    resident: T,
    condition: Condition,
    /// By residents that have left.
    former: Counts,
}

enum Condition {
    /// Something may have come since the last seal.
    Touched,
    /// Nothing came; so many rounds found it so.
    Clean(u32),
    /// What it holds is in the store alone.
    Resting { source: Arc<dyn StateSource>, held: StateSize },
}

impl<T: Resident> Shard<T> {
    pub(super) fn new(home: Arc<Home<T>>, groups: Range<u8>) -> Shard<T> {
        let resident = (home.make)();
        Shard { home, groups, resident, condition: Condition::Touched, former: Counts::default() }
    }

    /// The operator, awake, to be given rows.
    pub(super) fn touch(&mut self) -> Result<&mut T, RestoreError> {
        self.wake()?;
        self.condition = Condition::Touched;
        Ok(&mut self.resident)
    }

    /// Reads back what has left memory.
    pub(super) fn wake(&mut self) -> Result<(), RestoreError> {
        let Condition::Resting { source, .. } = &self.condition else { return Ok(()) };
        let mut blobs = Vec::new();
        for part in &self.home.parts {
            let read = source.blobs(*part, self.groups.clone());
            blobs.extend(read.map_err(|reason| RestoreError::Unread { reason })?);
        }
        let state = self.resident.state_of().expect("only what has state rests");
        state.load(&blobs)?;
        self.condition = Condition::Clean(0);
        Ok(())
    }

    /// Whether the operator has state, in memory or not.
    pub(super) fn has_state(&mut self) -> bool {
        matches!(self.condition, Condition::Resting { .. }) || self.resident.state_of().is_some()
    }

    /// Takes part in a round.
    pub(super) fn rest(&mut self, round: &RestRound) -> Rested {
        let Condition::Clean(rounds) = &mut self.condition else { return Rested::default() };
        let Some(state) = self.resident.state_of() else { return Rested::default() };
        let held = state.size();
        if held.bytes < round.bytes_min {
            return Rested::default();
        }
        *rounds += 1;
        if *rounds < round.patience_rounds {
            return Rested { bytes: 0, more: true };
        }
        let Counts { expression_errors, late_rows } = self.resident.counts();
        self.former.expression_errors += expression_errors;
        self.former.late_rows += late_rows;
        self.resident = (self.home.make)();
        self.condition = Condition::Resting { source: Arc::clone(&round.source), held };
        Rested { bytes: held.bytes, more: false }
    }

    /// The state, where it is in memory.
    pub(super) fn state(&mut self) -> Option<&mut dyn OperatorState> {
        match self.condition {
            Condition::Resting { .. } => None,
            Condition::Touched | Condition::Clean(_) => self.resident.state_of(),
        }
    }

    /// All that it holds has been sealed.
    pub(super) fn sealed(&mut self) {
        if matches!(self.condition, Condition::Touched) {
            self.condition = Condition::Clean(0);
        }
    }

    /// How much has left memory.
    pub(super) fn resting(&self) -> StateSize {
        match self.condition {
            Condition::Resting { held, .. } => held,
            Condition::Touched | Condition::Clean(_) => StateSize::default(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let now = self.resident.counts();
        Counts {
            expression_errors: self.former.expression_errors + now.expression_errors,
            late_rows: self.former.late_rows + now.late_rows,
        }
    }

    /// The operator, to be asked what is no state.
    pub(super) fn resident(&self) -> &T {
        &self.resident
    }
}
