//! State that is not in use leaves memory when that is short, and is read back when a row comes for it.
//!
//! Words: a *round* looks at every relation once; see `segue_flow`'s [`RestRound`] for what it lets go.
//! Invariant: a round comes only while no commit is under way, so that what leaves memory is durable.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use segue_flow::{RestRound, Rested, StateBlob, StateSource};
use segue_store::Store;
use segue_types::OperatorId;

use crate::world::World;

/// Rounds are at least this far apart.
pub(crate) const ROUND_INTERVAL: Duration = Duration::from_millis(50);
/// What nothing came to in so many rounds leaves.
const PATIENCE_ROUNDS: u32 = 10;
/// Less than this is not worth reading back.
const SHARD_BYTES_MIN: usize = 64 << 10;

/// The state of operators as it is stored.
struct StoredState(Arc<Store>);

impl StateSource for StoredState {
    fn blobs(&self, operator: OperatorId, groups: Range<u8>) -> Result<Vec<StateBlob>, String> {
        self.0.group_blobs(operator, groups).map_err(|error| error.to_string())
    }
}

/// Lets state go, and remembers whether to look again.
pub(crate) struct Resting {
    round: RestRound,
    /// Whether the last round found what may leave later.
    more: bool,
}

impl Resting {
    pub(crate) fn new(store: &Arc<Store>) -> Resting {
        let source = Arc::new(StoredState(Arc::clone(store)));
        let (patience_rounds, bytes_min) = (PATIENCE_ROUNDS, SHARD_BYTES_MIN);
        Resting { round: RestRound { source, patience_rounds, bytes_min }, more: false }
    }
}

impl World {
    /// How long until another round may let something go, though nothing happens.
    pub(crate) fn until_round(&self) -> Option<Duration> {
        self.resting.more.then_some(ROUND_INTERVAL)
    }

    /// One round, if memory is short. Nothing may be on its way to the disk.
    pub(crate) fn rest(&mut self) {
        self.resting.more = false;
        if self.state_bytes() <= self.memory.resting_bytes() {
            return;
        }
        let mut rested = Rested::default();
        for relation in self.relations.values_mut() {
            rested += relation.rest(&self.resting.round);
        }
        self.resting.more = rested.more;
        if rested.bytes > 0 {
            let (bytes, left) = (self.state_bytes(), rested.bytes);
            tracing::info!(bytes, left, "state that is not in use has left memory");
            self.check_memory();
        }
    }
}
