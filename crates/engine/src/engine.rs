//! The handle that everybody outside holds: published versions, DDL, DML, status, shutdown.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use segue_catalog::Catalog;
use segue_connect::Registry;
use segue_flow::Workers;
use segue_store::{DeadLetter, LoadError, OpenError, Store};
use segue_types::{ObjectId, SqlState, UserError};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio_util::sync::CancellationToken;

use crate::api::Published;
use crate::ddl::stopping;
use crate::inbox::{Inbox, Message};
use crate::memory::MemoryLimits;
use crate::release::Releases;
use crate::status::Status;
use crate::status::latest::Latest;
use crate::{recover, step};

/// Where the engine keeps what is durable, and how it learns that the server stops.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub data_dir: PathBuf,
    /// Raised when the server is asked to stop: statements end, but what they create is kept for the next start.
    pub stop: CancellationToken,
    pub memory: MemoryLimits,
    /// How many threads maintain one table or view of which much changes, where ALTER … SET PARALLELISM has not said
    /// otherwise.
    pub workers: NonZeroUsize,
}

/// Why the engine could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Load(#[from] LoadError),
    /// What is stored does not fit this version or this configuration.
    #[error("could not restore \"{object}\": {reason}")]
    Restore { object: String, reason: String },
    #[error("could not start a thread: {0}")]
    Thread(std::io::Error),
}

/// A running engine. Cheap to clone; the last clone does not stop it, [`Engine::shutdown`] does.
#[derive(Clone)]
pub struct Engine(Arc<Shared>);

struct Shared {
    registry: Registry,
    stop: CancellationToken,
    store: Arc<Store>,
    inbox: Inbox,
    published: Arc<ArcSwap<Published>>,
    /// Held while the catalog is changed: from planning to durable.
    catalog_lock: tokio::sync::Mutex<()>,
    /// One lock a table, held by each DML statement from its read to its durable write.
    table_locks: Mutex<HashMap<ObjectId, Arc<tokio::sync::Mutex<()>>>>,
    failure: watch::Receiver<Option<UserError>>,
    latest: Latest,
    releases: Releases,
    step_thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Opens the data directory, restores the last durable epoch, and goes on from there.
    ///
    /// Must be called within a tokio runtime, which readers will run on.
    pub async fn start(config: EngineConfig, registry: Registry) -> Result<Engine, StartError> {
        let runtime = tokio::runtime::Handle::current();
        let data_dir = config.data_dir;
        let opened = tokio::task::spawn_blocking(move || Store::open(&data_dir)).await;
        let store = Arc::new(opened.expect("opening the store does not panic")?);
        let (inbox, receiver) = Inbox::new();
        let workers = Workers::new(config.workers, segue_sql::STACK_BYTES);
        let (memory, registry_of) = (config.memory, &registry);
        let restored = recover::restore(&store, registry_of, &inbox, &runtime, memory, workers)?;
        let published = Arc::new(ArcSwap::new(Arc::clone(&restored.world.published)));
        let (failed, failure) = watch::channel(None);
        let committer = crate::commit::Committer::start(
            Arc::clone(&store),
            restored.durable,
            Arc::clone(&published),
            inbox.clone(),
            move |error| drop(failed.send(Some(commit_failure(&error)))),
        )
        .map_err(StartError::Thread)?;
        let world = restored.world;
        let step_thread = std::thread::Builder::new()
            .name("segue-step".to_owned())
            .stack_size(segue_sql::STACK_BYTES)
            .spawn(move || step::run(world, &receiver, committer))
            .map_err(StartError::Thread)?;
        let engine = Engine(Arc::new(Shared {
            registry,
            stop: config.stop,
            store,
            inbox,
            published,
            catalog_lock: tokio::sync::Mutex::new(()),
            table_locks: Mutex::new(HashMap::new()),
            failure,
            latest: Latest::default(),
            releases: Releases::default(),
            step_thread: Mutex::new(Some(step_thread)),
        }));
        for object in restored.creating {
            crate::ddl::resume(&engine, object);
        }
        for (id, leavings) in restored.releasing {
            crate::release::spawn(&engine, id, leavings);
        }
        Ok(engine)
    }

    /// The newest durable catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.published().catalog)
    }

    /// The connectors of this server.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// The newest durable version of everything.
    pub fn published(&self) -> Arc<Published> {
        self.0.published.load_full()
    }

    /// What the step thread knows now.
    pub async fn status(&self) -> Result<Status, UserError> {
        self.inbox().ask(|world| world.status()).await.ok_or_else(stopping)
    }

    /// The same, and how far the systems have come that are read. What does not answer at once is left out.
    pub async fn status_with_latest(&self) -> Result<Status, UserError> {
        let asked = self.inbox().ask(|world| world.status_and_probes()).await;
        let (mut status, probes) = asked.ok_or_else(stopping)?;
        self.0.latest.ask(&probes).await;
        self.0.latest.tell(&probes, &mut status);
        Ok(status)
    }

    /// The records that could not be decoded, oldest first; a ring.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, UserError> {
        let store = Arc::clone(&self.0.store);
        let loaded = tokio::task::spawn_blocking(move || store.dead_letters()).await;
        let letters = loaded.expect("reading dead letters does not panic");
        letters.map_err(|error| UserError::new(SqlState::DATA_CORRUPTED, error.to_string()))
    }

    /// Resolves when the engine cannot go on: a commit failed, or the step thread ended unasked.
    pub async fn failed(&self) -> UserError {
        let mut failure = self.0.failure.clone();
        loop {
            if let Some(error) = failure.borrow_and_update().clone() {
                return error;
            }
            if failure.changed().await.is_err() {
                return UserError::internal("the step thread has ended unexpectedly");
            }
        }
    }

    /// Takes a last epoch and ends; returns when that is durable.
    pub async fn shutdown(&self) {
        self.inbox().send(Message::Shutdown);
        let thread = self.0.step_thread.lock().take();
        if let Some(thread) = thread {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the step thread panicked");
            }
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    pub(crate) fn inbox(&self) -> &Inbox {
        &self.0.inbox
    }

    pub(crate) fn releases(&self) -> &Releases {
        &self.0.releases
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.0.store
    }

    pub(crate) async fn lock_catalog(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.catalog_lock.lock().await
    }

    pub(crate) async fn lock_table(&self, table: ObjectId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.table_locks.lock();
            // Locks of dropped tables go when nobody holds them.
            locks.retain(|id, lock| *id == table || Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(table).or_default())
        };
        lock.lock_owned().await
    }
}

fn commit_failure(error: &segue_store::CommitError) -> UserError {
    UserError::new(SqlState::IO_ERROR, format!("could not commit an epoch: {error}")).with_hint(
        "Free or repair the disk and start the server again; nothing acknowledged is lost.",
    )
}
