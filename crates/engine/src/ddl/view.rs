//! CREATE VIEW; CREATE MATERIALIZED VIEW and CREATE SINK, which are maintained alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use segue_catalog::{Catalog, ConsumerRef, Object, ObjectKind, ObjectState, Settings, SinkObject};
use segue_flow::Mark;
use segue_plan::delta::{MarkInput, ViewPlan, plan_emitting};
use segue_plan::sink::plan_sink;
use segue_sql::{CreateSink, CreateView, Name, OnExisting, Statement};
use segue_types::{ConsumerId, ObjectId, SqlState, UserError};

use super::opening::{self, Opening};
use super::{already_exists, unless_canceled};
use crate::api::StatementContext;
use crate::consumer::Subscriber;
use crate::engine::Engine;
use crate::job::Phase;
use crate::meeting::NewReading;
use crate::outflow::Outflow;
use crate::patience::Asker;
use crate::relation::{Feed, Relation};
use crate::world::World;

/// `CREATE VIEW`
pub(super) async fn create_view(
    engine: &Engine,
    create: CreateView,
    context: &StatementContext,
) -> Result<(), UserError> {
    let _alone = engine.lock_catalog().await;
    let name = create.name.as_str().to_owned();
    if already_exists(engine, &name, create.on_existing, context)? {
        return Ok(());
    }
    let catalog = engine.catalog();
    let described = segue_plan::delta::describe_query(&catalog, &create.query.tree)?;
    let names: Vec<String> = create.columns.iter().map(|name| name.as_str().to_owned()).collect();
    let object = Object {
        id: catalog.next_id(),
        name,
        schema: segue_plan::delta::rename(&described.schema, &names)?,
        key: Vec::new(),
        definition: Statement::CreateView(create).to_string(),
        kind: ObjectKind::View,
        depends_on: described.depends_on,
        state: ObjectState::Ready,
        consumers: Vec::new(),
        settings: Settings::default(),
        created_unix_ms: super::now_unix_ms(),
        failure: None,
        gaps: Vec::new(),
    };
    super::install(engine, move |world| world.put_object(object)).await
}

/// What is defined by a query and maintained.
#[derive(Clone)]
pub(crate) enum Maintained {
    View(CreateView),
    Sink(CreateSink),
}

impl Maintained {
    /// What a stored definition says.
    pub(crate) fn of(object: &Object) -> Result<Maintained, UserError> {
        match crate::recover::parse_definition(object)? {
            Statement::CreateMaterializedView(create) => Ok(Maintained::View(create)),
            Statement::CreateSink(create) => Ok(Maintained::Sink(create)),
            _ => Err(UserError::internal("a stored definition is of another kind than its object")),
        }
    }

    fn name(&self) -> (&Name, OnExisting) {
        match self {
            Maintained::View(create) => (&create.name, create.on_existing),
            Maintained::Sink(create) => (&create.name, create.on_existing),
        }
    }

    fn definition(self) -> String {
        match self {
            Maintained::View(create) => Statement::CreateMaterializedView(create).to_string(),
            Maintained::Sink(create) => Statement::CreateSink(create).to_string(),
        }
    }

    /// The dataflow, and the kind of its object.
    fn planned(&self, catalog: &Catalog) -> Result<(ViewPlan, ObjectKind), UserError> {
        match self {
            Maintained::View(create) => {
                let names = create.columns.iter().map(|name| name.as_str().to_owned());
                let names = names.collect::<Vec<_>>();
                let query = (*create.query.tree).clone();
                let plan = plan_emitting(catalog, (query, create.emission))?.renamed(&names)?;
                Ok((plan, ObjectKind::MaterializedView))
            }
            Maintained::Sink(create) => {
                let plan = plan_sink(catalog, create)?;
                let (into, removals) = (plan.into, plan.removals);
                Ok((plan.view, ObjectKind::Sink(SinkObject { into, removals })))
            }
        }
    }

    pub(crate) fn plan(&self, catalog: &Catalog) -> Result<ViewPlan, UserError> {
        Ok(self.planned(catalog)?.0)
    }
}

/// `CREATE MATERIALIZED VIEW`, `CREATE SINK`
pub(super) async fn create_maintained(
    engine: &Engine,
    create: Maintained,
    context: &StatementContext,
) -> Result<(), UserError> {
    let (name, on_existing) = create.name();
    let name = name.as_str().to_owned();
    if already_exists(engine, &name, on_existing, context)? {
        return Ok(());
    }
    let before = create.plan(&engine.catalog())?;
    let sources = sources_of(&engine.catalog(), &before)?;
    let openings = {
        let asker = Asker::of(context);
        unless_canceled(&context.cancel, opening::open_all(engine, &sources, &asker)).await?
    };
    let alone = engine.lock_catalog().await;
    if already_exists(engine, &name, on_existing, context)? {
        return Ok(());
    }
    let catalog = engine.catalog();
    // Planned again: what the first plan read may have been dropped meanwhile.
    let (plan, kind) = create.planned(&catalog)?;
    if sources_of(&catalog, &plan)? != sources {
        let message = "a source of the view was replaced while the statement ran";
        return Err(UserError::new(SqlState::OBJECT_IN_USE, message).with_hint("Run it again."));
    }
    for notice in &plan.notices {
        context.notice(notice.clone());
    }
    let consumers = allocate(engine, sources.len()).await?;
    let object = object(&catalog, (create, kind), &plan, &consumers);
    let id = object.id;
    super::install(engine, move |world| set_up(world, object, plan, openings)).await?;
    drop(alone);
    // What is little has been taken in the same epoch.
    let is_ready = |object: &Arc<Object>| object.state == ObjectState::Ready;
    if engine.catalog().get(id).is_none_or(is_ready) {
        return Ok(());
    }
    super::run_job(engine, id, context, std::future::ready(Ok(()))).await
}

/// The inputs that are sources, by input; refused when something that is read is not ready.
fn sources_of(catalog: &Catalog, plan: &ViewPlan) -> Result<BTreeMap<usize, ObjectId>, UserError> {
    let mut sources = BTreeMap::new();
    for (input, read) in plan.inputs.iter().enumerate() {
        let object = catalog.get(read.object).expect("the planner found it in this catalog");
        if object.state != ObjectState::Ready {
            let kind = object.relation_kind();
            let message = format!("{kind} \"{}\" is {}", object.name, object.state);
            return Err(UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_hint("WAIT returns when it is ready; SHOW JOBS tells how far it is."));
        }
        if matches!(object.kind, ObjectKind::Source(_)) {
            sources.insert(input, read.object);
        }
    }
    Ok(sources)
}

pub(super) async fn allocate(engine: &Engine, n: usize) -> Result<Vec<ConsumerId>, UserError> {
    let allocated = engine.inbox().ask(move |world| world.allocate_consumers(n)).await;
    allocated.ok_or_else(super::stopping)
}

fn object(
    catalog: &Catalog,
    (create, kind): (Maintained, ObjectKind),
    plan: &ViewPlan,
    consumers: &[ConsumerId],
) -> Object {
    let is_source = |id: ObjectId| {
        catalog.get(id).is_some_and(|object| matches!(object.kind, ObjectKind::Source(_)))
    };
    let reading = plan.inputs.iter().enumerate().filter(|(_, read)| is_source(read.object));
    let consumers: Vec<ConsumerRef> = reading
        .zip(consumers)
        .map(|((input, read), id)| ConsumerRef { id: *id, source: read.object, input })
        .collect();
    Object {
        id: catalog.next_id(),
        name: create.name().0.as_str().to_owned(),
        schema: Arc::clone(&plan.schema),
        key: plan.key.clone(),
        definition: create.definition(),
        kind,
        depends_on: plan.depends_on.iter().copied().collect::<BTreeSet<_>>(),
        state: ObjectState::Creating,
        consumers,
        settings: Settings::default(),
        created_unix_ms: super::now_unix_ms(),
        failure: None,
        gaps: Vec::new(),
    }
}

/// A reading that begins once its view is filled.
struct PlannedReading {
    reference: ConsumerRef,
    subscriber: Subscriber,
    opening: Opening,
}

fn planned_readings(
    object: &Object,
    plan: &ViewPlan,
    mut openings: BTreeMap<usize, Opening>,
) -> Vec<PlannedReading> {
    let reading = |reference: &ConsumerRef| PlannedReading {
        reference: *reference,
        subscriber: subscriber(object.id, *reference, plan),
        opening: openings.remove(&reference.input).expect("every source was opened"),
    };
    object.consumers.iter().map(reading).collect()
}

/// Takes the view in between two steps: filled from the relations that it reads, then its readings started.
fn set_up(
    world: &mut World,
    object: Object,
    plan: ViewPlan,
    openings: BTreeMap<usize, Opening>,
) -> Result<(), UserError> {
    let id = object.id;
    let feeds = feeds(&object, &plan);
    let readings = planned_readings(&object, &plan, openings);
    for reading in &readings {
        world.refuse_gap(reading.reference.source, &reading.opening.starts)?;
    }
    let mut relation = Relation::new(id, plan.spec, feeds, world.parallelism_of(&object));
    relation.outflow = Outflow::of(&object);
    world.put_object(object)?;
    world.add_relation(id, relation);
    fill_and_read(world, id, readings);
    Ok(())
}

fn fill_and_read(world: &mut World, id: ObjectId, readings: Vec<PlannedReading>) {
    world.jobs.set_phase(id, Phase::Filling);
    world.begin_fill(id, move |world| start_readings(world, id, readings));
}

/// A view that reads no source is ready.
fn start_readings(world: &mut World, id: ObjectId, readings: Vec<PlannedReading>) {
    world.pour_out(id);
    if readings.is_empty() {
        return world.finish_job(id);
    }
    let mut targets = BTreeMap::new();
    for PlannedReading { reference, subscriber, opening } in readings {
        // While the view was filled, the live reading may have fallen behind what is left.
        if let Err(error) = world.refuse_gap(reference.source, &opening.starts) {
            return world.jobs.fail(id, error);
        }
        let (source, starts) = (opening.source, opening.starts.as_slice());
        world.open_reading(NewReading { reference, subscriber, source, starts });
        targets.insert(reference.id, opening.target);
    }
    world.jobs.set_phase(id, Phase::CatchingUp(targets));
}

/// What a view takes from one of its readings.
pub(crate) fn subscriber(object: ObjectId, consumer: ConsumerRef, plan: &ViewPlan) -> Subscriber {
    let columns = plan.inputs[consumer.input].projection.clone().into();
    let is_its = |mark: &MarkInput| match mark {
        MarkInput::Watermark { object, .. } => *object == consumer.source,
        MarkInput::Clock => false,
    };
    let mark = plan.marks.iter().position(is_its).map(|place| plan.inputs.len() + place);
    Subscriber { object, input: consumer.input, columns, mark, told: Mark::Unknown }
}

/// What feeds each input of a view.
pub(crate) fn feeds(object: &Object, plan: &ViewPlan) -> Vec<Feed> {
    let feed = |(input, read): (usize, &segue_plan::delta::ViewInput)| {
        if object.consumers.iter().any(|consumer| consumer.input == input) {
            Feed::Consumer
        } else {
            Feed::Relation { object: read.object, projection: read.projection.clone().into() }
        }
    };
    let mark = |mark: &MarkInput| match *mark {
        MarkInput::Clock => Feed::Clock,
        MarkInput::Watermark { object: of, column } => {
            match object.consumers.iter().any(|consumer| consumer.source == of) {
                true => Feed::Consumer,
                false => Feed::Watermark { object: of, column },
            }
        }
    };
    plan.inputs.iter().enumerate().map(feed).chain(plan.marks.iter().map(mark)).collect()
}

/// Goes on with a view whose creation was under way when the server stopped. One that was not filled is filled anew;
/// else its consumers read on from where they were. What they have to reach is asked again, for as long as the
/// systems are away.
pub(super) async fn resume(engine: Engine, object: Arc<Object>) -> Result<(), UserError> {
    let id = object.id;
    engine.inbox().run(move |world| world.jobs.set_phase(id, Phase::Asking));
    let is_filled = move |world: &mut World| world.relations[&id].filling.is_none();
    if !engine.inbox().ask(is_filled).await.ok_or_else(super::stopping)? {
        return fill_again(engine, object).await;
    }
    let mut targets = BTreeMap::new();
    for consumer in &object.consumers {
        let source = consumer.source;
        let found =
            engine.inbox().ask(move |world| world.sources.get(&source).map(Arc::clone)).await;
        let Some(source) = found.ok_or_else(super::stopping)? else { return Ok(()) };
        targets.insert(consumer.input, opening::target_at_last(&source).await?);
    }
    engine.inbox().run(move |world| {
        // While it was asked, a reading may have met the live one and gone: who reads now is what has to get there.
        let Some(object) = world.catalog.get(id) else { return };
        let reading = object.consumers.iter();
        let reading = reading.filter_map(|consumer| {
            targets.remove(&consumer.input).map(|target| (consumer.id, target))
        });
        let targets = reading.collect();
        world.jobs.set_phase(id, Phase::CatchingUp(targets));
        world.check_jobs();
    });
    Ok(())
}

async fn fill_again(engine: Engine, object: Arc<Object>) -> Result<(), UserError> {
    let plan = Maintained::of(&object)?.plan(&engine.catalog())?;
    let sources = sources_of(&engine.catalog(), &plan)?;
    let openings = opening::open_all_at_last(&engine, &sources).await?;
    let id = object.id;
    engine.inbox().run(move |world| {
        if world.relations.contains_key(&id) {
            fill_and_read(world, id, planned_readings(&object, &plan, openings));
        }
    });
    Ok(())
}
