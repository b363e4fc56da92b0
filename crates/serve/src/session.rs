//! A session: what one client has set, prepared, opened and begun.
//!
//! Words: *prepared statement*, *portal*, *cursor*, *transaction block*.
//! Invariant: inside a transaction block reads stay on the version that the block's first statement
//! saw, until the session itself writes; a failed block answers nothing but its end.

use std::collections::HashMap;
use std::sync::Arc;

use segue_types::{SqlState, UserError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::backend::{Engine, Published};
use crate::outcome::RowStream;
use crate::plan::{Identity, Planner, Reading, SnapshotCell, session_state};
use crate::prepared::{Portal, Prepared};
use crate::settings::Settings;

/// The state of a transaction block. Blocks give reads one version; writes are done at once, since
/// Segue has no rollback.
#[derive(Default)]
pub(crate) enum Transaction {
    #[default]
    Idle,
    Open {
        /// The version that the block reads; `None` before its first statement and after a write.
        pinned: Option<Arc<Published>>,
    },
    Failed,
}

/// What a running statement is given.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) cancel: CancellationToken,
    pub(crate) notices: mpsc::Sender<String>,
    /// The whole text that the client sent, for places in errors.
    pub(crate) text: Arc<str>,
}

impl Running {
    /// Fails once the statement has been cancelled.
    pub(crate) fn check(&self) -> Result<(), UserError> {
        if self.cancel.is_cancelled() { Err(crate::errors::canceled()) } else { Ok(()) }
    }

    /// Tells the client something. A full channel drops it: a statement never waits for a slow reader.
    pub(crate) fn notice(&self, text: impl Into<String>) {
        drop(self.notices.try_send(text.into()));
    }
}

/// One client's session.
pub(crate) struct Session {
    pub(crate) engine: Engine,
    pub(crate) identity: Identity,
    pub(crate) settings: Arc<Settings>,
    pub(crate) planner: Planner,
    pub(crate) transaction: Transaction,
    pub(crate) prepared: HashMap<String, Arc<Prepared>>,
    pub(crate) portals: HashMap<String, Portal>,
    pub(crate) cursors: HashMap<String, RowStream>,
}

/// A client that opens more of anything than this has lost track of them.
pub(crate) const NAMED_MAX: usize = 10_000;

impl Session {
    pub(crate) fn new(engine: Engine, identity: Identity) -> Session {
        let cell = Arc::new(SnapshotCell::new(engine.clone(), identity.clone()));
        let state = session_state(&identity, &cell);
        Session {
            engine,
            planner: Planner::new(state, cell, Arc::clone(&identity.settings)),
            settings: Arc::clone(&identity.settings),
            identity,
            transaction: Transaction::Idle,
            prepared: HashMap::new(),
            portals: HashMap::new(),
            cursors: HashMap::new(),
        }
    }

    /// Gives the next statement the version that it reads.
    pub(crate) fn begin_statement(&mut self) {
        let published = match &mut self.transaction {
            Transaction::Open { pinned } => {
                Arc::clone(pinned.get_or_insert_with(|| self.engine.published()))
            }
            Transaction::Idle | Transaction::Failed => self.engine.published(),
        };
        self.planner.read(Reading { published, locked: None, returned: None });
    }

    /// What the session wrote is visible to its next statement, also within a block.
    pub(crate) fn wrote(&mut self) {
        if let Transaction::Open { pinned } = &mut self.transaction {
            *pinned = None;
        }
    }

    /// A statement failed: a block that is open fails with it.
    pub(crate) fn failed(&mut self) {
        if matches!(self.transaction, Transaction::Open { .. }) {
            self.transaction = Transaction::Failed;
        }
    }

    /// Drops everything that `DISCARD ALL` names.
    pub(crate) fn discard_all(&mut self) {
        self.prepared.clear();
        self.portals.clear();
        self.cursors.clear();
        self.settings.reset_all();
    }

    /// The prepared statement of this name.
    pub(crate) fn prepared(&self, name: &str) -> Result<&Arc<Prepared>, UserError> {
        self.prepared.get(name).ok_or_else(|| {
            UserError::new(
                SqlState::UNDEFINED_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" does not exist"),
            )
        })
    }
}

/// The error of a statement inside a failed block.
pub(crate) fn aborted() -> UserError {
    UserError::new(
        SqlState::FAILED_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}
