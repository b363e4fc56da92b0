//! What readings leave in external systems for ever (a durable subscription, a group's offsets) is removed when their
//! source is dropped: in the background, again and again while the system is away, also after a restart.
//!
//! Words defined here: *leaving*, one such thing, by the name that its connector gives it; *claim*, the right to make
//! or remove it.
//! Invariants: a leaving is removed only while no source that has it exists or is being created; the record of a
//! dropped source is durable with the drop, and goes when nothing of it is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use segue_catalog::Object;
use segue_connect::{ConnectError, Connector, ReadConfig};
use segue_types::ObjectId;
use tokio::sync::OwnedMutexGuard;

use crate::backoff::Backoff;
use crate::engine::Engine;
use crate::source::{SourceRuntime, StageRuntime};
use crate::world::World;

/// How long a process goes on trying; the next one begins anew.
const TRIED_FOR: Duration = Duration::from_secs(3600);
/// How long one attempt may take.
const ATTEMPT_MAX: Duration = Duration::from_secs(30);

/// What becomes of the record of a dropped source.
pub(crate) enum ReleaseWrite {
    Put(Box<Object>),
    Done,
}

/// A claim on each of some leavings.
pub(crate) type Claims = Vec<OwnedMutexGuard<()>>;

/// Who may make or remove what.
#[derive(Default)]
pub(crate) struct Releases(Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Releases {
    /// Waits until nobody else makes or removes any of these.
    pub(crate) async fn claim(&self, leavings: BTreeSet<String>) -> Claims {
        let mut claims = Vec::new();
        // In the order of their names, so that two who claim several never wait for each other.
        for leaving in leavings {
            let lock = {
                let mut locks = self.0.lock();
                locks.retain(|_, lock| Arc::strong_count(lock) > 1);
                Arc::clone(locks.entry(leaving).or_default())
            };
            claims.push(lock.lock_owned().await);
        }
        claims
    }
}

/// One thing that is left.
#[derive(Clone)]
pub(crate) struct Leaving {
    name: String,
    connector: Arc<dyn Connector>,
    config: ReadConfig,
}

impl Leaving {
    /// What a read with this configuration leaves.
    pub(crate) fn of(connector: &Arc<dyn Connector>, config: &ReadConfig) -> Option<Leaving> {
        let name = connector.leaves(config)?;
        Some(Leaving { name, connector: Arc::clone(connector), config: config.clone() })
    }

    fn of_source(source: &SourceRuntime) -> Vec<Leaving> {
        let of_stage = |stage: &Arc<StageRuntime>| Leaving::of(&stage.connector, &stage.config);
        source.stages.iter().filter_map(of_stage).collect()
    }
}

/// The leavings of a source that is being created. Dropped before the source is there, they are removed.
pub(crate) struct Making {
    engine: Engine,
    leavings: Vec<Leaving>,
    claims: Claims,
}

impl Making {
    /// Waits until nobody removes any of them.
    pub(crate) async fn begin(engine: &Engine, leavings: Vec<Leaving>) -> Making {
        let names = leavings.iter().map(|leaving| leaving.name.clone()).collect();
        let claims = engine.releases().claim(names).await;
        Making { engine: engine.clone(), leavings, claims }
    }

    /// The source is there.
    pub(crate) fn keep(mut self) {
        self.leavings.clear();
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.claims.clear();
        let leavings = std::mem::take(&mut self.leavings);
        let runtime = tokio::runtime::Handle::try_current();
        // Without a runtime the process ends.
        if let (Ok(runtime), false) = (runtime, leavings.is_empty()) {
            let engine = self.engine.clone();
            runtime.spawn(async move { remove_all(&engine, &leavings).await });
        }
    }
}

impl World {
    /// Writes down the sources and tables among `ids` that leave something outside, and returns them.
    pub(crate) fn leave_outside(&mut self, ids: &[ObjectId]) -> Vec<Arc<SourceRuntime>> {
        let leaves = |source: &&Arc<SourceRuntime>| !Leaving::of_source(source).is_empty();
        let found = ids.iter().filter_map(|id| self.sources.get(id)).filter(leaves);
        let left: Vec<Arc<SourceRuntime>> = found.map(Arc::clone).collect();
        for source in &left {
            let object = self.catalog.get(source.object).expect("a source has a record");
            let write = ReleaseWrite::Put(Box::new((**object).clone()));
            self.pending.releases.insert(source.object, write);
        }
        left
    }

    fn is_left_by_any(&self, name: &str) -> bool {
        let leavings = self.sources.values().flat_map(|source| Leaving::of_source(source));
        leavings.into_iter().any(|leaving| leaving.name == name)
    }
}

/// Removes what a dropped source has left outside.
pub(crate) fn spawn(engine: &Engine, source: Arc<SourceRuntime>) {
    let engine = engine.clone();
    tokio::spawn(async move {
        if remove_all(&engine, &Leaving::of_source(&source)).await {
            let id = source.object;
            let done = move |world: &mut World| {
                world.pending.releases.insert(id, ReleaseWrite::Done);
            };
            engine.inbox().run(done);
        }
    });
}

/// Whether nothing is left.
async fn remove_all(engine: &Engine, leavings: &[Leaving]) -> bool {
    let mut all = true;
    for leaving in leavings {
        all &= remove(engine, leaving).await;
    }
    all
}

async fn remove(engine: &Engine, leaving: &Leaving) -> bool {
    let (name, began) = (&leaving.name, Instant::now());
    let mut backoff = Backoff::new();
    loop {
        match attempt(engine, leaving).await {
            Ok(()) => return true,
            Err(error) if began.elapsed() < TRIED_FOR => {
                tracing::info!(%error, "could not remove {name}, trying again");
                backoff.wait().await;
            }
            Err(error) => {
                tracing::warn!(%error, "{name} is left behind; the next start tries again");
                return false;
            }
        }
    }
}

async fn attempt(engine: &Engine, leaving: &Leaving) -> Result<(), ConnectError> {
    let name = leaving.name.clone();
    let _claim = engine.releases().claim(BTreeSet::from([name.clone()])).await;
    let is_needed = engine.inbox().ask(move |world| world.is_left_by_any(&name)).await;
    if is_needed == Some(true) {
        return Ok(());
    }
    let released = leaving.connector.release(&leaving.config);
    tokio::time::timeout(ATTEMPT_MAX, released).await.unwrap_or_else(|_| {
        Err(ConnectError::Unreachable {
            system: leaving.connector.name().to_owned(),
            reason: format!("no answer for {} s", ATTEMPT_MAX.as_secs()),
        })
    })
}
