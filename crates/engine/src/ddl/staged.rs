//! CREATE SOURCE, and what CREATE TABLE … WITH STAGES has in common with it: pin every stage, store the
//! definitions, capture the bounded queries, publish.
//!
//! Invariant: everything symbolic is resolved and durable before the first row is read.

use std::sync::Arc;

use segue_catalog::{Object, ObjectKind, ObjectState, Settings, SourceObject, StageObject};
use segue_plan::stages::{PlannedStage, plan_source};
use segue_sql::CreateSource;
use segue_store::crash_point;
use segue_types::{ObjectId, UserError};

use super::{stopping, unless_canceled};
use crate::api::StatementContext;
use crate::capture::{self, Progress};
use crate::engine::Engine;
use crate::patience::Asker;
use crate::release::{Intent, Leaving, Making};
use crate::source::{SourceRuntime, StageRuntime};
use crate::world::World;

/// `CREATE SOURCE`
pub(super) async fn create_source(
    engine: &Engine,
    create: CreateSource,
    context: &StatementContext,
) -> Result<(), UserError> {
    let name = create.name.as_str().to_owned();
    if super::already_exists(engine, &name, create.on_existing, context)? {
        return Ok(());
    }
    let planned = plan_source(engine.registry(), &create)?;
    let intent = Intent {
        name: name.clone(),
        schema: Arc::clone(&planned.schema),
        definition: segue_sql::Statement::CreateSource(create.clone()).to_string(),
    };
    let (stages, making) = {
        let asker = Asker::of(context);
        unless_canceled(&context.cancel, pin(engine, planned.stages, intent, &asker)).await?
    };
    for notice in planned.notices {
        context.notice(notice);
    }
    let alone = engine.lock_catalog().await;
    if super::already_exists(engine, &name, create.on_existing, context)? {
        return Ok(());
    }
    let id = engine.catalog().next_id();
    let source = Arc::new(SourceRuntime { object: id, stages, watermark: planned.watermark });
    let object = Object {
        id,
        name,
        schema: planned.schema,
        key: planned.key,
        definition: segue_sql::Statement::CreateSource(create).to_string(),
        kind: ObjectKind::Source(SourceObject { stages: stage_objects(&source), live: None }),
        depends_on: Default::default(),
        state: if source.needs_capture() { ObjectState::Creating } else { ObjectState::Ready },
        consumers: Vec::new(),
        settings: Settings::default(),
        created_unix_ms: super::now_unix_ms(),
        failure: None,
        gaps: Vec::new(),
    };
    let progress = Arc::new(Progress::default());
    let (runtime, shared) = (Arc::clone(&source), Arc::clone(&progress));
    let intent = making.recorded();
    super::install(engine, move |world| {
        world.put_object(object)?;
        world.fulfil(intent);
        if runtime.needs_capture() {
            world.begin_capture(id, shared);
        }
        world.sources.insert(id, runtime);
        Ok(())
    })
    .await?;
    making.keep();
    drop(alone);
    if !source.needs_capture() {
        return Ok(());
    }
    super::run_job(engine, id, context, capture_source(engine.clone(), source, progress)).await
}

/// Pins every stage, the last one first: what a later stage needs retained is secured before an earlier one
/// is read. What they leave outside goes again unless it is kept.
pub(super) async fn pin(
    engine: &Engine,
    planned: Vec<PlannedStage>,
    intent: Intent,
    asker: &Asker,
) -> Result<(Vec<Arc<StageRuntime>>, Making), UserError> {
    let leaving =
        |stage: &PlannedStage| Leaving::of(engine.registry().get(&stage.connector)?, &stage.config);
    let leavings = planned.iter().filter_map(leaving).collect();
    let making = Making::begin(engine, leavings, intent).await?;
    let mut stages = Vec::with_capacity(planned.len());
    for stage in planned.into_iter().rev() {
        let connector = engine.registry().get(&stage.connector).expect("the planner found it");
        let place = (stage.name.as_str(), connector.name());
        let definition = asker.once(place, connector.pin(&stage.config)).await?;
        asker.remark(&stage.name, definition.remarks.iter().map(String::as_str));
        stages.push(Arc::new(StageRuntime {
            name: stage.name,
            connector: Arc::clone(connector),
            config: stage.config,
            capabilities: stage.capabilities,
            handoff: stage.handoff,
            on_expiry: stage.on_expiry,
            definition,
            capture: None,
            generated: stage.generated,
            store: Arc::clone(engine.store()),
        }));
    }
    stages.reverse();
    crash_point!("after-pin");
    Ok((stages, making))
}

/// The stages as the catalog keeps them.
pub(super) fn stage_objects(source: &SourceRuntime) -> Vec<StageObject> {
    let object = |stage: &Arc<StageRuntime>| StageObject {
        name: stage.name.clone(),
        connector: stage.connector.name().to_owned(),
        options: stage.config.options.0.clone(),
        boundedness: stage.capabilities.boundedness,
        semantics: stage.capabilities.semantics,
        definition: Some(
            serde_json::to_value(&stage.definition).expect("a definition is plain data"),
        ),
        continuity: stage.handoff.as_ref().map(|handoff| handoff.continuity),
    };
    source.stages.iter().map(object).collect()
}

/// The job of a source: its bounded queries are captured and published, then it is ready.
pub(super) async fn capture_source(
    engine: Engine,
    source: Arc<SourceRuntime>,
    progress: Arc<Progress>,
) -> Result<(), UserError> {
    let id = source.object;
    capture_and(&engine, source, &progress, move |world| world.finish_job(id)).await
}

/// Captures what has to be, publishes it, and runs `then` in the same epoch.
pub(super) async fn capture_and(
    engine: &Engine,
    source: Arc<SourceRuntime>,
    progress: &Progress,
    then: impl FnOnce(&mut World) + Send + 'static,
) -> Result<(), UserError> {
    let id = source.object;
    let tell = |text: String| tracing::warn!(object = %id, "{text}");
    let manifests = capture::capture_all(&source, engine.store(), progress, tell).await?;
    let published = move |world: &mut World| {
        // The object may have been dropped while the query ran.
        if !world.sources.contains_key(&id) {
            return;
        }
        let captured = source.with_captures(&manifests);
        world.sources.insert(id, Arc::new(captured));
        world.pending.captures.extend(manifests);
        then(world);
    };
    engine.inbox().ask(published).await.ok_or_else(stopping)
}

/// Goes on with a source whose creation was under way when the server stopped.
pub(super) async fn resume(engine: Engine, id: ObjectId) -> Result<(), UserError> {
    let progress = Arc::new(Progress::default());
    let shared = Arc::clone(&progress);
    let found = move |world: &mut World| {
        world.begin_capture(id, shared);
        world.sources.get(&id).map(Arc::clone)
    };
    let source = engine.inbox().ask(found).await.ok_or_else(stopping)?;
    let Some(source) = source else { return Ok(()) };
    capture_source(engine, source, progress).await
}
