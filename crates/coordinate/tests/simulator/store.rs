//! What survives a crash: the last committed epoch with its state and its rows.
//!
//! Invariant: state and rows change together, in `commit`, or not at all.

use std::collections::BTreeMap;

use segue_coordinate::ConsumerState;
use segue_types::Epoch;

use crate::world::World;

/// Next offset per (stage, split).
pub type Positions = BTreeMap<(usize, usize), usize>;

#[derive(Default)]
pub struct Store {
    pub epoch: Epoch,
    pub state: Option<ConsumerState>,
    /// How many of the applied rows are committed.
    pub rows: usize,
    pub positions: Positions,
}

/// An epoch on its way to the store.
pub struct Sealed {
    pub epoch: Epoch,
    /// `None`: the state did not change in it and is not written.
    pub state: Option<ConsumerState>,
    pub rows: usize,
    pub positions: Positions,
}

impl Store {
    pub fn commit(&mut self, sealed: Sealed) {
        self.epoch = sealed.epoch;
        self.state = sealed.state.or(self.state.take());
        self.rows = sealed.rows;
        self.positions = sealed.positions;
    }

    /// The stored state as a new process reads it.
    pub fn read(&self) -> Option<ConsumerState> {
        let bytes = serde_json::to_vec(self.state.as_ref()?).expect("a state is plain data");
        Some(serde_json::from_slice(&bytes).expect("it was just written"))
    }

    /// Whether everything of the split up to its script's end is durable.
    pub fn holds_split(&self, world: &World, stage: usize, split: usize) -> bool {
        let script = &world.stages[stage].splits[split];
        let next = self.positions.get(&(stage, split)).copied().unwrap_or(script.first);
        next == script.last()
    }

    pub fn holds_stage(&self, world: &World, stage: usize) -> bool {
        (0..world.stages[stage].splits.len()).all(|split| self.holds_split(world, stage, split))
    }
}
