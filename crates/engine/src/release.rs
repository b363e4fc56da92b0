//! What readings leave in external systems for ever (a durable subscription, a group's offsets) is removed when their
//! source is dropped: in the background, again and again while the system is away, also after a restart.
//!
//! Words defined here: *leaving*, one such thing, by the name that its connector gives it; *claim*, the right to make
//! or remove it; *intent*, the record of a source that is about to make its leavings, as if it had been dropped.
//! Invariants: a leaving is removed only while no source that has it exists or is being created; the record of a
//! dropped source is durable with the drop, and goes when nothing of it is left; a leaving is made only when its intent
//! is durable, and the intent goes in the epoch in which its source comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use segue_catalog::{Object, ObjectKind, ObjectState, Settings, SourceObject};
use segue_connect::{ConnectError, Connector, ReadConfig, Registry};
use segue_plan::stages::PlannedStage;
use segue_types::{ObjectId, SqlState, UserError};
use tokio::sync::OwnedMutexGuard;

use crate::backoff::Backoff;
use crate::ddl::stopping;
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

    /// What the object of a stored record leaves.
    pub(crate) fn of_object(
        object: &Object,
        registry: &Registry,
    ) -> Result<Vec<Leaving>, UserError> {
        let planned = crate::recover::planned_stages(object, registry)?;
        let of_stage =
            |stage: PlannedStage| Leaving::of(registry.get(&stage.connector)?, &stage.config);
        Ok(planned.into_iter().filter_map(of_stage).collect())
    }

    fn of_source(source: &SourceRuntime) -> Vec<Leaving> {
        let of_stage = |stage: &Arc<StageRuntime>| Leaving::of(&stage.connector, &stage.config);
        source.stages.iter().filter_map(of_stage).collect()
    }
}

/// What is known of a source before its stages are pinned.
pub(crate) struct Intent {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    pub(crate) definition: String,
}

impl Intent {
    fn record(self, id: ObjectId) -> Object {
        Object {
            id,
            name: self.name,
            schema: self.schema,
            key: Vec::new(),
            definition: self.definition,
            kind: ObjectKind::Source(SourceObject { stages: Vec::new(), live: None }),
            depends_on: BTreeSet::new(),
            state: ObjectState::Creating,
            consumers: Vec::new(),
            settings: Settings::default(),
            created_unix_ms: None,
            failure: None,
            gaps: Vec::new(),
        }
    }
}

/// The leavings of a source that is being created. Dropped before the source is there, they are removed.
pub(crate) struct Making {
    engine: Engine,
    leavings: Vec<Leaving>,
    claims: Claims,
    recorded: Option<ObjectId>,
}

impl Making {
    /// Waits until nobody removes any of them, and writes down that they are about to be made.
    pub(crate) async fn begin(
        engine: &Engine,
        leavings: Vec<Leaving>,
        intent: Intent,
    ) -> Result<Making, UserError> {
        let names = leavings.iter().map(|leaving| leaving.name.clone()).collect();
        let claims = engine.releases().claim(names).await;
        refuse_owned(engine, &leavings).await?;
        let recorded = match leavings.is_empty() {
            true => None,
            false => Some(record(engine, intent).await?),
        };
        Ok(Making { engine: engine.clone(), leavings, claims, recorded })
    }

    /// The record that goes in the epoch in which the source comes.
    pub(crate) fn recorded(&self) -> Option<ObjectId> {
        self.recorded
    }

    /// The source is there.
    pub(crate) fn keep(mut self) {
        self.leavings.clear();
    }
}

/// What a source has for itself, no other may have.
async fn refuse_owned(engine: &Engine, leavings: &[Leaving]) -> Result<(), UserError> {
    for leaving in leavings {
        let Some(name) = leaving.connector.owns(&leaving.config) else { continue };
        let wanted = name.clone();
        let owner = engine.inbox().ask(move |world| world.owner_of(&wanted)).await;
        if let Some(owner) = owner.ok_or_else(stopping)? {
            let stage = &leaving.config.stage;
            let message = format!("stage \"{stage}\": {name} belongs to source \"{owner}\"");
            return Err(UserError::new(SqlState::OBJECT_IN_USE, message)
                .with_detail("It has the position of one reader.")
                .with_hint("Give each source its own, or leave the option out."));
        }
    }
    Ok(())
}

/// Writes an intent down, under a number that no object has or will have; returns when it is durable.
async fn record(engine: &Engine, intent: Intent) -> Result<ObjectId, UserError> {
    let _alone = engine.lock_catalog().await;
    let id = engine.catalog().next_id();
    let (durable, is_durable) = tokio::sync::oneshot::channel();
    engine.inbox().run(move |world| {
        world.catalog = world.catalog.without_id(id);
        let write = ReleaseWrite::Put(Box::new(intent.record(id)));
        world.pending.releases.insert(id, write);
        world.when_durable(move |_| _ = durable.send(()));
    });
    is_durable.await.map_err(|_| stopping())?;
    Ok(id)
}

impl Drop for Making {
    fn drop(&mut self) {
        self.claims.clear();
        let leavings = std::mem::take(&mut self.leavings);
        let runtime = tokio::runtime::Handle::try_current();
        // Without a runtime the process ends, and the next one reads the record.
        if let (Ok(_), Some(id), false) = (runtime, self.recorded, leavings.is_empty()) {
            spawn(&self.engine, id, leavings);
        }
    }
}

impl World {
    /// Writes down the sources and tables among `ids` that leave something outside, and returns them.
    pub(crate) fn leave_outside(&mut self, ids: &[ObjectId]) -> Vec<(ObjectId, Vec<Leaving>)> {
        let found = ids.iter().filter_map(|id| self.sources.get(id));
        let left: Vec<(ObjectId, Vec<Leaving>)> = found
            .map(|source| (source.object, Leaving::of_source(source)))
            .filter(|(_, leavings)| !leavings.is_empty())
            .collect();
        for (id, _) in &left {
            let object = self.catalog.get(*id).expect("a source has a record");
            let write = ReleaseWrite::Put(Box::new((**object).clone()));
            self.pending.releases.insert(*id, write);
        }
        left
    }

    /// The source is there: what it leaves outside is its own from now on.
    pub(crate) fn fulfil(&mut self, intent: Option<ObjectId>) {
        self.pending.releases.extend(intent.map(|id| (id, ReleaseWrite::Done)));
    }

    /// The source that has this for itself.
    fn owner_of(&self, name: &str) -> Option<String> {
        let owns = |source: &&Arc<SourceRuntime>| {
            let mut stages = source.stages.iter();
            stages
                .any(|stage| stage.connector.owns(&stage.config).is_some_and(|owned| owned == name))
        };
        let source = self.sources.values().find(owns)?;
        Some(self.catalog.get(source.object)?.name.clone())
    }

    fn is_left_by_any(&self, name: &str) -> bool {
        let leavings = self.sources.values().flat_map(|source| Leaving::of_source(source));
        leavings.into_iter().any(|leaving| leaving.name == name)
    }
}

/// Removes what a source has left outside that was dropped, or never came; then its record.
pub(crate) fn spawn(engine: &Engine, id: ObjectId, leavings: Vec<Leaving>) {
    let engine = engine.clone();
    tokio::spawn(async move {
        if remove_all(&engine, &leavings).await {
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
