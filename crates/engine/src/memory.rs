//! The limits of memory: above the soft one no reader delivers, above the hard one the largest view is suspended.
//! Before either, what is not in use leaves memory: see [`crate::resting`].
//!
//! What counts is the state of all tables and views, as their operators account for it; queues are bounded by
//! themselves. It is looked at when an epoch is sealed: nothing grows by more than the queues in between.
//! Invariant: the server goes on. A suspended view keeps its definition and loses its state; a table, whose rows exist
//! nowhere else, is never suspended, but takes no more rows while the hard limit is exceeded.

use segue_catalog::RelationKind;
use segue_types::{ObjectId, SqlState, UserError};

use crate::limits::Passage;
use crate::relation::Relation;
use crate::world::World;

/// How much memory state may take, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Sources are not read while state takes more.
    pub soft_bytes: u64,
    /// The largest view is suspended when state takes more.
    pub hard_bytes: u64,
}

impl MemoryLimits {
    /// Nothing is limited.
    pub const NONE: MemoryLimits = MemoryLimits { soft_bytes: u64::MAX, hard_bytes: u64::MAX };

    /// State that is not in use leaves memory when all of it takes more: before sources have to wait.
    pub(crate) fn resting_bytes(self) -> u64 {
        self.soft_bytes / 4 * 3
    }
}

impl World {
    /// What tables and views take.
    pub(crate) fn state_bytes(&self) -> u64 {
        self.relations.values().map(|relation| relation.bytes).sum()
    }

    /// After a seal: closes or opens the gate of the readers, and suspends what is too large.
    pub(crate) fn check_memory(&mut self) {
        while self.state_bytes() > self.memory.hard_bytes {
            let Some(view) = self.largest_view() else { break };
            self.suspend(view);
        }
        let bytes = self.state_bytes();
        let passage = if bytes > self.memory.soft_bytes { Passage::Closed } else { Passage::Open };
        if self.workplace.gate.set(passage) {
            let soft_bytes = self.memory.soft_bytes;
            match passage {
                Passage::Closed => {
                    tracing::error!(
                        bytes,
                        soft_bytes,
                        "memory is short: sources are not read; drop a view or raise the limit"
                    );
                }
                Passage::Open => tracing::warn!(bytes, soft_bytes, "sources are read again"),
            }
        }
    }

    fn largest_view(&self) -> Option<ObjectId> {
        let is_view = |id: &ObjectId| {
            let object = self.catalog.get(*id);
            let kind = object.map(|object| object.relation_kind());
            matches!(kind, Some(RelationKind::MaterializedView | RelationKind::Sink))
        };
        let views =
            self.relations.iter().filter(|(id, relation)| relation.bytes > 0 && is_view(id));
        views.max_by_key(|(_, relation)| relation.bytes).map(|(id, _)| *id)
    }

    /// Gives a view's memory back. It, and what reads it, is not maintained any more.
    fn suspend(&mut self, id: ObjectId) {
        let name = self.catalog.get(id).map_or_else(String::new, |object| object.name.clone());
        let bytes = self.relations[&id].bytes;
        let reason = format!(
            "it was suspended because memory is exhausted: its state took {bytes} bytes, that of all tables and views \
             {}; the hard limit is {}",
            self.state_bytes(),
            self.memory.hard_bytes
        );
        tracing::error!(view = %name, %reason, "the largest view was suspended");
        self.stop_maintaining(id, &reason);
        for suspended in self.catalog.dependents(id).into_iter().chain([id]) {
            if let Some(relation) = self.relations.get_mut(&suspended) {
                relation.give_back();
            }
        }
    }

    /// What a table says to new rows while the hard limit is exceeded.
    pub(crate) fn refuse_rows(&mut self) -> Option<UserError> {
        if self.state_bytes() > self.memory.hard_bytes {
            // Versions that held deleted rows may have gone since the last seal.
            self.relations.values_mut().for_each(Relation::weigh_again);
        }
        let bytes = self.state_bytes();
        (bytes > self.memory.hard_bytes).then(|| {
            out_of_memory("tables take no more rows: memory is exhausted")
                .with_detail(format!(
                    "The state of all tables and views takes {bytes} bytes; the hard limit is {}.",
                    self.memory.hard_bytes
                ))
                .with_hint("Delete rows, drop something, or start the server with a higher limit.")
        })
    }
}

fn out_of_memory(message: impl Into<String>) -> UserError {
    UserError::new(SqlState::OUT_OF_MEMORY, message)
}
