//! ALTER: pausing and resuming, looking for new splits at once, rates and readers. All but the looking is durable, so
//! what is paused or slowed down still is after a restart.

use std::sync::Arc;

use segue_catalog::{CaptureSwitch, Object, ObjectState, RelationKind, Settings, Verb};
use segue_coordinate::Event;
use segue_sql::{Action, Alter, AlterJob, JobAction, Parallelism, RateLimit};
use segue_types::{ConsumerId, ObjectId, SqlState, UserError};

use super::{stopping, unless_canceled};
use crate::api::StatementContext;
use crate::consumer::{Consumer, Subscriber};
use crate::engine::Engine;
use crate::world::World;

/// `ALTER {SOURCE|TABLE|MATERIALIZED VIEW} name …`
pub(super) async fn alter(
    engine: &Engine,
    alter: Alter,
    context: &StatementContext,
) -> Result<(), UserError> {
    let kind = super::drop::relation_kind(alter.kind);
    let id = engine.catalog().resolve_kind(alter.name.as_str(), kind, Verb::Alter)?.id;
    match alter.action {
        Action::Pause => switch(engine, id, Switch::Pause).await,
        Action::Resume => switch(engine, id, Switch::Resume).await,
        Action::Refresh => refresh(engine, id, context).await,
        Action::SetSourceRateLimit(limit) => {
            let rate = rows_per_second(limit);
            set(engine, id, move |settings| settings.source_rows_per_second = rate).await
        }
        Action::SetBackfillRateLimit(limit) => {
            let rate = rows_per_second(limit);
            set(engine, id, move |settings| settings.backfill_rows_per_second = rate).await
        }
        Action::SetParallelism(parallelism) => {
            let count = match parallelism {
                Parallelism::Adaptive => None,
                Parallelism::Fixed(count) => Some(count),
            };
            set(engine, id, move |settings| settings.parallelism = count).await
        }
    }
}

/// `PAUSE JOB n, …` and `RESUME JOB n, …`
pub(super) async fn alter_jobs(engine: &Engine, alter: AlterJob) -> Result<(), UserError> {
    let to = match alter.action {
        JobAction::Pause => Switch::Pause,
        JobAction::Resume => Switch::Resume,
    };
    for job in alter.jobs {
        let id = u32::try_from(job).ok().map(ObjectId);
        let object = id.and_then(|id| engine.catalog().get(id).map(Arc::clone));
        let is_job = |object: &Arc<Object>| object.state == ObjectState::Creating;
        let Some(object) = object.filter(is_job) else { return Err(super::drop::no_job(job)) };
        switch(engine, object.id, to).await?;
    }
    Ok(())
}

fn rows_per_second(limit: RateLimit) -> Option<u64> {
    match limit {
        RateLimit::Unlimited => None,
        RateLimit::RowsPerSecond(rows) => Some(rows),
    }
}

/// Stores a changed setting; every reading that it is about obeys it from now on.
async fn set(
    engine: &Engine,
    id: ObjectId,
    change: impl FnOnce(&mut Settings) + Send + 'static,
) -> Result<(), UserError> {
    super::install(engine, move |world| {
        let gone = || UserError::new(SqlState::UNDEFINED_TABLE, "the relation has been dropped");
        let mut object = (**world.catalog.get(id).ok_or_else(gone)?).clone();
        change(&mut object.settings);
        world.put_object(object)?;
        let is_about = |consumer: &&Consumer| {
            consumer.source.object == id || consumer.subscribers.iter().any(|s| s.object == id)
        };
        let readings: Vec<ConsumerId> =
            world.consumers.values().filter(is_about).map(|consumer| consumer.id).collect();
        readings.into_iter().for_each(|id| world.set_pace(id));
        world.set_workers(id);
        Ok(())
    })
    .await
}

/// Looks for new splits now; returns when what was found is durable.
async fn refresh(
    engine: &Engine,
    id: ObjectId,
    context: &StatementContext,
) -> Result<(), UserError> {
    let ask = move |world: &mut World| {
        let of = |consumer: &&Consumer| consumer.source.object == id;
        world.consumers.values().filter(of).filter_map(Consumer::refresh).collect::<Vec<_>>()
    };
    let asked = engine.inbox().ask(ask).await.ok_or_else(stopping)?;
    for answer in asked {
        let listed = async {
            // A discovery that ended meanwhile has found all there is.
            drop(answer.await);
            Ok(())
        };
        unless_canceled(&context.cancel, listed).await?;
    }
    super::wait::flush(engine).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    Pause,
    Resume,
}

async fn switch(engine: &Engine, id: ObjectId, to: Switch) -> Result<(), UserError> {
    super::install(engine, move |world| {
        // The newest record: who reads for a view may have changed since the durable one.
        let gone = || UserError::new(SqlState::UNDEFINED_TABLE, "the relation has been dropped");
        let object = Arc::clone(world.catalog.get(id).ok_or_else(gone)?);
        let capture = match to {
            Switch::Pause => CaptureSwitch::Paused,
            Switch::Resume => CaptureSwitch::Running,
        };
        if let Some(switched) = world.switch_capture(id, capture) {
            return switched;
        }
        let readings = readings(world, &object);
        if world.relations.get(&id).is_some_and(|relation| relation.filling.is_some()) {
            return Err(still_filling(&object));
        }
        if readings.is_empty() {
            return Err(nothing_reads(to, object.relation_kind(), &object.name));
        }
        for id in readings {
            match to {
                Switch::Pause => pause(world, &object, id)?,
                Switch::Resume => resume(world, &object, id)?,
            }
        }
        Ok(())
    })
    .await
}

/// All readings of a source or table; those that feed a view.
fn readings(world: &World, object: &Object) -> Vec<ConsumerId> {
    match object.relation_kind() {
        RelationKind::Source | RelationKind::Table => {
            let reads = |consumer: &&Consumer| consumer.source.object == object.id;
            world.consumers.values().filter(reads).map(|consumer| consumer.id).collect()
        }
        RelationKind::View | RelationKind::MaterializedView | RelationKind::Sink => {
            object.consumers.iter().map(|consumer| consumer.id).collect()
        }
    }
}

/// A view that shares its reading with others is paused alone: it parts from them.
fn pause(world: &mut World, object: &Object, id: ConsumerId) -> Result<(), UserError> {
    if is_shared(world, object, id) {
        return world.part(object.id, id);
    }
    world.tell(id, Event::Pause);
    Ok(())
}

fn resume(world: &mut World, object: &Object, id: ConsumerId) -> Result<(), UserError> {
    if is_shared(world, object, id) {
        if !world.is_paused(id) {
            return Ok(());
        }
        let message = format!("the source of \"{}\" is paused", object.name);
        return Err(UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .with_hint("Resume the source: other views share its reading."));
    }
    world.tell(id, Event::Resume);
    let subscribers = world.consumers.get(&id).map(|consumer| consumer.subscribers.clone());
    for subscriber in subscribers.unwrap_or_default() {
        world.jobs.retry(subscriber.object);
    }
    Ok(())
}

/// Whether the reading serves, or will serve, others than this view.
fn is_shared(world: &World, object: &Object, id: ConsumerId) -> bool {
    let Some(consumer) = world.consumers.get(&id) else { return false };
    let is_other = |subscriber: &Subscriber| subscriber.object != object.id;
    let has_others =
        consumer.subscribers.iter().any(is_other) || !consumer.meeting.followers.is_empty();
    matches!(object.relation_kind(), RelationKind::MaterializedView | RelationKind::Sink)
        && has_others
}

/// Its readings have not begun.
fn still_filling(object: &Object) -> UserError {
    let message = format!("\"{}\" is being filled from the relations it reads", object.name);
    UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .with_hint("WAIT returns when it is ready; CANCEL JOB gives it up.")
}

/// A pause of nothing would be forgotten: what is created later would read on.
fn nothing_reads(to: Switch, kind: RelationKind, name: &str) -> UserError {
    let verb = match to {
        Switch::Pause => "pause",
        Switch::Resume => "resume",
    };
    let message = format!("there is no reading of {kind} \"{name}\" to {verb}");
    let error = UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
    match kind {
        RelationKind::Source => error.with_hint("Create a materialized view on it first."),
        _ => error.with_detail("Only what reads stages can be paused: it has none of its own."),
    }
}
