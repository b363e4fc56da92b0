//! The state of several shards as that of one operator: stored blobs are theirs together.

use segue_types::StateBlob;

use super::{Workers, shard_of_group};
use crate::blob::SealedBlob;
use crate::delta::Delta;
use crate::error::RestoreError;
use crate::operators::{OperatorState, StateSize};
use crate::rows::RelationVersion;

/// Operators with state, in the order of the shards.
pub(super) trait StateShards: Send {
    /// Of the shards that are in memory.
    fn states(&mut self) -> Vec<&mut dyn OperatorState>;

    /// How many shards there are.
    fn shards(&self) -> usize;

    /// Everything has been sealed.
    fn sealed(&mut self);

    /// Those of all shards, which must be in memory.
    fn all_states(&mut self) -> Vec<&mut dyn OperatorState> {
        let shards = self.shards();
        let states = self.states();
        assert_eq!(states.len(), shards, "a shard at rest is woken before it is asked");
        states
    }

    fn workers(&self) -> Workers;

    fn tally(&mut self) -> &mut Tally;
}

/// How many rows came, to tell whether there is much to seal or to publish.
#[derive(Debug, Default)]
pub(super) struct Tally {
    unsealed: usize,
    unpublished: usize,
}

impl Tally {
    pub(super) fn add(&mut self, rows: usize) {
        self.unsealed += rows;
        self.unpublished += rows;
    }
}

impl<T: StateShards> OperatorState for T {
    fn seal(&mut self) -> Vec<SealedBlob> {
        let rows = std::mem::take(&mut self.tally().unsealed);
        let workers = self.workers();
        let sealed = workers.each(rows, &mut self.states(), |_, state| state.seal());
        self.sealed();
        sealed.into_iter().flatten().collect()
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        self.all_states().into_iter().flat_map(OperatorState::bases).collect()
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        let bytes = blobs.iter().map(|blob| blob.bytes.len()).sum();
        let workers = self.workers();
        let shards = self.shards();
        let load = |shard: usize, state: &mut &mut dyn OperatorState| {
            let is_own = |blob: &&StateBlob| shard_of_group(blob.group, shards) == shard;
            state.load(&blobs.iter().filter(is_own).cloned().collect::<Vec<_>>())
        };
        workers.each(bytes, &mut self.all_states(), load).into_iter().collect::<Result<(), _>>()?;
        self.sealed();
        Ok(())
    }

    fn contents(&mut self) -> Vec<Delta> {
        self.all_states().into_iter().flat_map(OperatorState::contents).collect()
    }

    fn size(&mut self) -> StateSize {
        self.states().into_iter().map(OperatorState::size).sum()
    }

    fn relation(&mut self) -> Option<RelationVersion> {
        let rows = std::mem::take(&mut self.tally().unpublished);
        let workers = self.workers();
        let versions = workers.each(rows, &mut self.all_states(), |_, state| state.relation());
        Some(RelationVersion::of_shards(&versions.into_iter().collect::<Option<Vec<_>>>()?))
    }

    fn rows_published(&mut self) -> u64 {
        self.states().into_iter().map(OperatorState::rows_published).sum()
    }

    fn relation_size(&mut self) -> Option<StateSize> {
        self.states().into_iter().map(OperatorState::relation_size).sum()
    }
}
