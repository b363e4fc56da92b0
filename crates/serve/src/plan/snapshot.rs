//! The version that a statement reads, where the tables of its plan can find it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use parking_lot::Mutex;

use segue_types::ObjectId;

use super::source::Horizons;
use super::state::Identity;
use crate::backend::{Asker, Engine, Published, RelationVersion};
use crate::session::Running;

/// What one statement reads: a published version, and for DML the version of its target under the write
/// lock.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) published: Arc<Published>,
    /// Read instead of the published one.
    pub(crate) locked: Option<(ObjectId, RelationVersion)>,
    /// For RETURNING.
    pub(crate) returned: Option<Returned>,
}

/// Rows that stand for a table: those that a statement has written.
#[derive(Clone)]
pub(crate) struct Returned {
    pub(crate) table: ObjectId,
    pub(crate) rows: Arc<Vec<RecordBatch>>,
}

impl Reading {
    /// The rows of a stored relation; `None` when it stores none.
    pub(crate) fn version(&self, id: ObjectId) -> Option<&RelationVersion> {
        match &self.locked {
            Some((locked, version)) if *locked == id => Some(version),
            _ => self.published.relations.get(&id),
        }
    }
}

/// Holds what the session's running statement reads, and whose session it is.
pub(crate) struct SnapshotCell {
    engine: Engine,
    identity: Identity,
    reading: Mutex<Reading>,
    /// Of the plan that is being made.
    horizons: Mutex<Arc<Horizons>>,
}

impl SnapshotCell {
    pub(crate) fn new(engine: Engine, identity: Identity) -> SnapshotCell {
        let reading = Reading { published: engine.published(), locked: None, returned: None };
        let horizons =
            Arc::new(Horizons::new(engine.clone(), Asker::new(identity.settings.patience(), None)));
        SnapshotCell {
            engine,
            identity,
            reading: Mutex::new(reading),
            horizons: Mutex::new(horizons),
        }
    }

    /// A statement is about to run: sources are read up to now.
    pub(crate) fn begin(&self, running: &Running) {
        let patience = self.identity.settings.patience();
        let asker = Asker::new(patience, Some(running.notices.clone()));
        let horizons = Horizons::new(self.engine.clone(), asker);
        *self.horizons.lock() = Arc::new(horizons);
    }

    pub(crate) fn horizons(&self) -> Arc<Horizons> {
        Arc::clone(&self.horizons.lock())
    }

    pub(crate) fn set(&self, reading: Reading) {
        *self.reading.lock() = reading;
    }

    /// The statement is over. An idle session holds no rows: what is deleted meanwhile could not be let go.
    pub(crate) fn rest(&self) {
        let mut reading = self.reading.lock();
        let Published { epoch, catalog, .. } = &*reading.published;
        let (epoch, catalog) = (*epoch, Arc::clone(catalog));
        let published = Arc::new(Published { epoch, catalog, relations: HashMap::new() });
        *reading = Reading { published, locked: None, returned: None };
    }

    pub(crate) fn get(&self) -> Reading {
        self.reading.lock().clone()
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl std::fmt::Debug for SnapshotCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SnapshotCell")
    }
}
