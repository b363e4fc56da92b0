//! From what is stored to a running world: the catalog, each relation's state, each consumer where it was.
//!
//! Views and stages are planned again from their SQL; only state, positions and frozen definitions are stored.
//! Invariant: nothing symbolic is resolved again, and no bounded query is run again, by a restart.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use segue_catalog::{Catalog, ConsumerRef, Object, ObjectKind, ObjectState};
use segue_connect::{ReadDefinition, Registry};
use segue_coordinate::{ConsumerState, Role};
use segue_flow::Workers;
use segue_plan::delta::ViewPlan;
use segue_plan::stages::{PlannedStage, plan_source, plan_table};
use segue_sql::Statement;
use segue_store::capture::Manifest;
use segue_store::{Store, Stored};
use segue_types::{ConsumerId, Epoch, Generation, ObjectId, UserError};
use tokio::runtime::Handle;

use crate::api::Published;
use crate::consumer::{Consumer, Subscriber, Workplace};
use crate::ddl;
use crate::ddl::view::Maintained;
use crate::engine::StartError;
use crate::filling::Filling;
use crate::inbox::Inbox;
use crate::job::{Jobs, Phase};
use crate::limits::Gate;
use crate::memory::MemoryLimits;
use crate::outflow::Outflow;
use crate::relation::{Feed, Relation};
use crate::release::Leaving;
use crate::resting::Resting;
use crate::source::{SourceRuntime, StageRuntime};
use crate::world::{Pending, World, not_maintained};

/// A world that can step.
pub(crate) struct Restored {
    pub(crate) world: World,
    pub(crate) durable: Epoch,
    /// Objects whose CREATE was under way.
    pub(crate) creating: Vec<ObjectId>,
    /// Sources and tables that were dropped, or never came, and may have left something outside.
    pub(crate) releasing: Vec<(ObjectId, Vec<Leaving>)>,
}

/// Restores the last durable epoch.
pub(crate) fn restore(
    store: &Arc<Store>,
    registry: &Registry,
    inbox: &Inbox,
    runtime: &Handle,
    memory: MemoryLimits,
    workers: Workers,
) -> Result<Restored, StartError> {
    let mut stored = store.load()?;
    let objects = decode_objects(&stored)?;
    let catalog = Catalog::restore(stored.next_object, objects)
        .map_err(|error| failure("the catalog", &error))?;
    let states = decode_consumers(&stored)?;
    let last = states.iter().map(|(_, state)| state.generation()).max().unwrap_or_default();
    let durable = stored.epoch;
    let mut world = World {
        catalog,
        relations: BTreeMap::new(),
        readers: BTreeMap::new(),
        sources: BTreeMap::new(),
        consumers: BTreeMap::new(),
        released: VecDeque::new(),
        jobs: Jobs::default(),
        pending: Pending::default(),
        published: Arc::new(Published {
            epoch: durable,
            catalog: Arc::new(Catalog::default()),
            relations: HashMap::new(),
        }),
        workplace: Workplace { runtime: runtime.clone(), inbox: inbox.clone(), gate: Gate::new() },
        memory,
        resting: Resting::new(store),
        workers,
        open_epoch: durable.next(),
        next_consumer: stored.next_consumer,
        generation: last.next(),
        checkpoints: VecDeque::new(),
    };
    let captures = std::mem::take(&mut stored.captures);
    let mut plans = BTreeMap::new();
    let all: Vec<Arc<Object>> = world.catalog.iter().map(Arc::clone).collect();
    for object in &all {
        if let Some(source) = restore_source(object, registry, store, &captures)? {
            world.sources.insert(object.id, source);
        }
        if let Some(plan) = restore_relation(&mut world, object, store, &states)? {
            plans.insert(object.id, plan);
        }
    }
    publish(&mut world, durable);
    restore_consumers(&mut world, states, &plans, durable);
    let is_creating = |object: &&Arc<Object>| object.state == ObjectState::Creating;
    let creating: Vec<ObjectId> = all.iter().filter(is_creating).map(|o| o.id).collect();
    for object in &creating {
        // Before anybody can connect: a WAIT right after the start must find the job.
        world.jobs.set_phase(*object, Phase::Asking);
    }
    let releasing = releasing(&stored, registry);
    Ok(Restored { world, durable, creating, releasing })
}

fn decode_objects(stored: &Stored) -> Result<Vec<Object>, StartError> {
    let decode = |(id, bytes): &(ObjectId, Vec<u8>)| {
        Object::decode(bytes).map_err(|error| failure(&format!("object {id}"), &error))
    };
    stored.objects.iter().map(decode).collect()
}

fn decode_consumers(stored: &Stored) -> Result<Vec<(ConsumerId, ConsumerState)>, StartError> {
    let decode = |(id, bytes): &(ConsumerId, Vec<u8>)| {
        let state = serde_json::from_slice(bytes);
        state.map(|state| (*id, state)).map_err(|error| failure(&format!("consumer {id}"), &error))
    };
    stored.consumers.iter().map(decode).collect()
}

/// The stages of a source or table, with the definitions that were frozen at its CREATE.
fn restore_source(
    object: &Object,
    registry: &Registry,
    store: &Arc<Store>,
    captures: &[Manifest],
) -> Result<Option<Arc<SourceRuntime>>, StartError> {
    if object.stages().is_empty() {
        return Ok(None);
    }
    let planned =
        planned_stages(object, registry).map_err(|error| failure(&object.name, &error))?;
    let mut stages = Vec::new();
    for (index, (stage, planned)) in object.stages().iter().zip(planned).enumerate() {
        let definition = stage.definition.clone().expect("a stage is pinned before it is stored");
        let definition: ReadDefinition =
            serde_json::from_value(definition).map_err(|error| failure(&object.name, &error))?;
        let connector = registry.get(&planned.connector).expect("the planner found it");
        let is_its =
            |capture: &&Manifest| capture.object == object.id && capture.stage.as_usize() == index;
        let capture = captures.iter().find(is_its).cloned().map(Arc::new);
        stages.push(Arc::new(StageRuntime {
            name: planned.name,
            connector: Arc::clone(connector),
            config: planned.config,
            capabilities: planned.capabilities,
            handoff: planned.handoff,
            on_expiry: planned.on_expiry,
            definition,
            capture,
            generated: planned.generated,
            store: Arc::clone(store),
        }));
    }
    let watermark = segue_plan::watermark::of(object);
    Ok(Some(Arc::new(SourceRuntime { object: object.id, stages, watermark })))
}

/// What was not let go outside. What this version cannot read is told, and no reason not to start.
fn releasing(stored: &Stored, registry: &Registry) -> Vec<(ObjectId, Vec<Leaving>)> {
    let leavings = |(id, bytes): &(ObjectId, Vec<u8>)| {
        let object = Object::decode(bytes).map_err(|error| error.to_string());
        let leavings = object.and_then(|object| {
            Leaving::of_object(&object, registry).map_err(|error| error.to_string())
        });
        match leavings {
            Ok(leavings) => Some((*id, leavings)),
            Err(error) => {
                tracing::warn!(object = %id, %error, "cannot remove what a dropped source has left outside");
                None
            }
        }
    };
    stored.releases.iter().filter_map(leavings).collect()
}

pub(crate) fn planned_stages(
    object: &Object,
    registry: &Registry,
) -> Result<Vec<PlannedStage>, UserError> {
    match parse_definition(object)? {
        Statement::CreateSource(create) => Ok(plan_source(registry, &create)?.stages),
        Statement::CreateTable(create) => Ok(plan_table(registry, &create)?.stages),
        _ => Err(UserError::internal("a stored definition is of another kind than its object")),
    }
}

/// The relation of a table or materialized view with its state; the plan of a view.
fn restore_relation(
    world: &mut World,
    object: &Object,
    store: &Store,
    states: &[(ConsumerId, ConsumerState)],
) -> Result<Option<ViewPlan>, StartError> {
    let (mut relation, plan) = match &object.kind {
        ObjectKind::Table(_) => (ddl::table::relation(object, world.parallelism_of(object)), None),
        ObjectKind::MaterializedView | ObjectKind::Sink(_) => {
            let plan = Maintained::of(object).and_then(|create| create.plan(&world.catalog));
            let plan = plan.map_err(|error| failure(&object.name, &error))?;
            let feeds = ddl::view::feeds(object, &plan);
            let parallelism = world.parallelism_of(object);
            let mut relation = Relation::new(object.id, plan.spec.clone(), feeds, parallelism);
            relation.outflow = Outflow::of(object);
            (relation, Some(plan))
        }
        ObjectKind::Source(_) | ObjectKind::View => return Ok(None),
    };
    if object.state == ObjectState::Failed {
        let reason = object.failure.clone().unwrap_or_default();
        relation.failed = Some(not_maintained(object, &reason));
    } else if is_unfilled(object, &relation, states) {
        relation.filling = Some(Filling::Awaited);
        world.pending.dropped_states.push(object.id);
    } else {
        let blobs = store.state_blobs(object.id)?;
        relation.restore(blobs).map_err(|error| failure(&object.name, &error))?;
    }
    relation.dirty = false;
    world.add_relation(object.id, relation);
    Ok(plan)
}

/// Whether a view had not taken all of what it reads when the server stopped. Its readings of sources begin in the
/// epoch in which it is filled; one without is ready from that epoch on.
fn is_unfilled(
    object: &Object,
    relation: &Relation,
    states: &[(ConsumerId, ConsumerState)],
) -> bool {
    let reads = |id: ConsumerId| states.iter().any(|(consumer, _)| *consumer == id);
    object.state == ObjectState::Creating
        && relation.feeds.iter().any(|feed| matches!(feed, Feed::Relation { .. }))
        && !object.consumers.iter().any(|consumer| reads(consumer.id))
}

pub(crate) fn parse_definition(object: &Object) -> Result<Statement, UserError> {
    let mut statements = segue_sql::parse(&object.definition)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(UserError::internal("a stored definition is one statement")),
    }
}

/// The restored relations as the first version to read.
fn publish(world: &mut World, epoch: Epoch) {
    let relations = &mut world.relations;
    let relations = relations.iter_mut().map(|(id, r)| (*id, r.dataflow.version())).collect();
    let catalog = Arc::new(world.catalog.clone());
    world.published = Arc::new(Published { epoch, catalog, relations });
}

fn restore_consumers(
    world: &mut World,
    states: Vec<(ConsumerId, ConsumerState)>,
    plans: &BTreeMap<ObjectId, ViewPlan>,
    durable: Epoch,
) {
    let generation: Generation = world.generation;
    for (id, state) in states {
        let subscribers = subscribers(&world.catalog, id, plans);
        let source = read_by(&world.catalog, id).expect("a consumer goes with its source");
        let source = Arc::clone(&world.sources[&source]);
        let (state, effects) = segue_coordinate::recover(state, generation, durable);
        // A failed object's rows are of no use to anybody.
        let is_useless = |subscriber: &Subscriber| {
            let object = world.catalog.get(subscriber.object);
            object.is_some_and(|object| object.state == ObjectState::Failed)
        };
        let is_useless = !subscribers.is_empty() && subscribers.iter().all(is_useless);
        let mut consumer = Consumer::new(id, subscribers, source, state, world.workplace.clone());
        let stopped = if is_useless { None } else { consumer.perform(effects) };
        world.consumers.insert(id, consumer);
        world.settle(id, stopped);
        world.set_pace(id);
    }
    let follows = |consumer: &&Consumer| consumer.state().role() == Role::Follows;
    let followers: Vec<ConsumerId> =
        world.consumers.values().filter(follows).map(|consumer| consumer.id).collect();
    for id in followers {
        world.follow_again(id);
    }
}

/// What takes a consumer's rows.
fn subscribers(
    catalog: &Catalog,
    id: ConsumerId,
    plans: &BTreeMap<ObjectId, ViewPlan>,
) -> Vec<Subscriber> {
    let of = |object: &Arc<Object>| {
        let references = object.consumers.iter().filter(|consumer| consumer.id == id);
        let subscriber = |consumer: &ConsumerRef| match plans.get(&object.id) {
            Some(plan) => ddl::view::subscriber(object.id, *consumer, plan),
            None => ddl::table::subscriber(object, *consumer),
        };
        references.map(subscriber).collect::<Vec<_>>()
    };
    catalog.iter().flat_map(of).collect()
}

/// The source, or table with stages, that a consumer reads.
fn read_by(catalog: &Catalog, id: ConsumerId) -> Option<ObjectId> {
    let source = |object: &Arc<Object>| match &object.kind {
        ObjectKind::Source(source) if source.live == Some(id) => Some(object.id),
        _ => object.consumers.iter().find(|consumer| consumer.id == id).map(|found| found.source),
    };
    catalog.iter().find_map(source)
}

fn failure(object: &str, reason: &dyn std::fmt::Display) -> StartError {
    StartError::Restore { object: object.to_owned(), reason: reason.to_string() }
}
