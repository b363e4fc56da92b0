//! CREATE TABLE: fed by DML, or by stages as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use segue_catalog::{
    ConsumerRef, Object, ObjectKind, ObjectState, OnConflict, Settings, TableObject,
};
use segue_flow::{Conflict, Mark, Nulls, Resolution};
use segue_plan::stages::{TablePlan, plan_table};
use segue_plan::watermark::{self, WatermarkPlan};
use segue_sql::{CreateTable, Statement};
use segue_types::{ObjectId, UserError};

use super::{already_exists, opening, staged, stopping, unless_canceled};
use crate::api::StatementContext;
use crate::capture::Progress;
use crate::consumer::Subscriber;
use crate::engine::Engine;
use crate::job::Phase;
use crate::meeting::NewReading;
use crate::patience::{Asker, Patience};
use crate::relation::{Feed, Parallelism, Relation};
use crate::release::Intent;
use crate::source::SourceRuntime;
use crate::world::World;

/// `CREATE TABLE`
pub(super) async fn create_table(
    engine: &Engine,
    create: CreateTable,
    context: &StatementContext,
) -> Result<(), UserError> {
    let name = create.name.as_str().to_owned();
    let on_existing = create.on_existing;
    if already_exists(engine, &name, on_existing, context)? {
        return Ok(());
    }
    let mut plan = plan_table(engine.registry(), &create)?;
    let planned = std::mem::take(&mut plan.stages);
    let intent = Intent {
        name: name.clone(),
        schema: Arc::clone(&plan.schema),
        definition: Statement::CreateTable(create.clone()).to_string(),
    };
    let (stages, making) = {
        let asker = Asker::of(context);
        unless_canceled(&context.cancel, staged::pin(engine, planned, intent, &asker)).await?
    };
    for notice in &plan.notices {
        context.notice(notice.clone());
    }
    let alone = engine.lock_catalog().await;
    if already_exists(engine, &name, on_existing, context)? {
        return Ok(());
    }
    let id = engine.catalog().next_id();
    let watermark = plan.watermark;
    let runtime = || Arc::new(SourceRuntime { object: id, stages: stages.clone(), watermark });
    let source = (!stages.is_empty()).then(runtime);
    let consumers = super::view::allocate(engine, usize::from(source.is_some())).await?;
    let consumers: Vec<ConsumerRef> = consumers
        .iter()
        .map(|consumer| ConsumerRef { id: *consumer, source: id, input: 0 })
        .collect();
    let object = object(id, create, &plan, source.as_deref(), consumers);
    let runtime = source.clone();
    let intent = making.recorded();
    let set_up = move |world: &mut World| {
        set_up(world, object, runtime)?;
        world.fulfil(intent);
        Ok(())
    };
    super::install(engine, set_up).await?;
    making.keep();
    drop(alone);
    let Some(source) = source else { return Ok(()) };
    super::run_job(engine, id, context, fill(engine.clone(), source, Asker::of_job(context))).await
}

fn object(
    id: ObjectId,
    create: CreateTable,
    plan: &TablePlan,
    source: Option<&SourceRuntime>,
    consumers: Vec<ConsumerRef>,
) -> Object {
    let kind = ObjectKind::Table(TableObject {
        stages: source.map_or_else(Vec::new, staged::stage_objects),
        on_conflict: plan.on_conflict,
        versions: plan.versions.clone(),
        mutability: plan.mutability,
    });
    Object {
        id,
        name: create.name.as_str().to_owned(),
        schema: Arc::clone(&plan.schema),
        key: plan.key.clone(),
        definition: Statement::CreateTable(create).to_string(),
        kind,
        depends_on: Default::default(),
        state: if source.is_some() { ObjectState::Creating } else { ObjectState::Ready },
        consumers,
        settings: Settings::default(),
        created_unix_ms: super::now_unix_ms(),
        failure: None,
        gaps: Vec::new(),
    }
}

fn set_up(
    world: &mut World,
    object: Object,
    source: Option<Arc<SourceRuntime>>,
) -> Result<(), UserError> {
    let id = object.id;
    let relation = relation(&object, world.parallelism_of(&object));
    world.put_object(object)?;
    world.add_relation(id, relation);
    if let Some(source) = source {
        world.begin_capture(id, Arc::default());
        world.sources.insert(id, source);
    }
    Ok(())
}

/// The dataflow of a table: whatever feeds it comes in at one input, in the order of its steps.
pub(crate) fn relation(object: &Object, parallelism: Parallelism) -> Relation {
    let ObjectKind::Table(table) = &object.kind else { unreachable!("only tables are made here") };
    let resolve = |nulls| Conflict::Resolve(Resolution { nulls, versions: table.versions.clone() });
    let conflict = match table.on_conflict {
        OnConflict::Overwrite if table.versions.is_empty() => Conflict::Overwrite,
        OnConflict::Overwrite => resolve(Nulls::Replace),
        OnConflict::Ignore => Conflict::DoNothing,
        OnConflict::UpdateIfNotNull => resolve(Nulls::KeepFormer),
    };
    let schema = Arc::clone(&object.schema);
    let kind = segue_flow::InputKind::Changelog;
    let mut spec = segue_flow::DataflowSpec::table(schema, object.key.clone(), conflict, kind);
    let is_staged = !object.consumers.is_empty();
    let mut feeds = vec![if is_staged { Feed::Consumer } else { Feed::Statements }];
    if let Some(WatermarkPlan { column, delay_us, .. }) = watermark::of(object) {
        spec.watch(column);
        feeds.push(if is_staged { Feed::Consumer } else { Feed::OwnTimes { column, delay_us } });
    }
    Relation::new(object.id, spec, feeds, parallelism)
}

/// A table takes all columns of its stages.
pub(crate) fn subscriber(object: &Object, consumer: ConsumerRef) -> Subscriber {
    let columns = (0..object.schema.fields().len()).collect();
    // The mark's input is the one behind the rows'.
    let mark = watermark::of(object).map(|_| consumer.input + 1);
    Subscriber { object: object.id, input: consumer.input, columns, mark, told: Mark::Unknown }
}

/// The job of a table with stages: capture, then read until what was there at the beginning is in.
pub(super) async fn fill(
    engine: Engine,
    source: Arc<SourceRuntime>,
    asker: Asker,
) -> Result<(), UserError> {
    let id = source.object;
    let opening = opening::open(Arc::clone(&source), &asker).await?;
    let progress = Arc::new(Progress::default());
    let shown = Arc::clone(&progress);
    engine.inbox().run(move |world| world.begin_capture(id, shown));
    let start = move |world: &mut World| {
        let Some(object) = world.catalog.get(id).map(Arc::clone) else { return };
        let consumer = object.consumers[0];
        // After a restart the consumer may be there already, and then goes on from where it was.
        if !world.consumers.contains_key(&consumer.id) {
            let source = Arc::clone(&world.sources[&id]);
            let subscriber = subscriber(&object, consumer);
            let starts = &opening.starts;
            world.open_reading(NewReading { reference: consumer, subscriber, source, starts });
        }
        let targets = BTreeMap::from([(consumer.id, opening.target)]);
        world.jobs.set_phase(id, Phase::CatchingUp(targets));
        world.check_jobs();
    };
    staged::capture_and(&engine, source, &progress, start).await
}

/// Goes on with a table whose creation was under way when the server stopped.
pub(super) async fn resume(engine: Engine, id: ObjectId) -> Result<(), UserError> {
    let found = engine.inbox().ask(move |world| world.sources.get(&id).map(Arc::clone)).await;
    match found.ok_or_else(stopping)? {
        Some(source) => fill(engine, source, Asker::silent(Patience::Endless)).await,
        None => Ok(()),
    }
}
