//! What `serve` needs of the engine: published versions to read, contexts to run statements in, status rows.

use std::collections::HashMap;
use std::sync::Arc;

use segue_catalog::Catalog;
use segue_flow::RelationVersion;
use segue_types::{Epoch, ObjectId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::patience::Patience;

/// The newest durable version of everything, swapped as one: a query that keeps it never mixes two epochs.
pub struct Published {
    pub epoch: Epoch,
    pub catalog: Arc<Catalog>,
    /// Tables and materialized views, also those still being created.
    pub relations: HashMap<ObjectId, RelationVersion>,
}

/// What a statement runs in.
#[derive(Clone)]
pub struct StatementContext {
    /// Progress and remarks for the client. Sending never waits: with a full channel a progress line is dropped.
    pub notices: mpsc::Sender<String>,
    /// Raised by Ctrl-C, a lost connection, or shutdown.
    pub cancel: CancellationToken,
    /// `SET background_ddl`: CREATE returns at once and goes on as a job.
    pub background_ddl: bool,
    /// `SET connector_timeout`: how long the statement waits for systems that are away.
    pub patience: Patience,
}

impl StatementContext {
    /// Tells the client something, if it still listens.
    pub fn notice(&self, text: impl Into<String>) {
        drop(self.notices.try_send(text.into()));
    }
}
