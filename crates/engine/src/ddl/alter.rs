//! ALTER … PAUSE and RESUME: durable, so a paused source is still paused after a restart.

use std::sync::Arc;

use segue_catalog::{Object, RelationKind, Verb};
use segue_coordinate::Event;
use segue_sql::{Action, Alter};
use segue_types::{ConsumerId, SqlState, UserError};

use crate::consumer::{Consumer, Subscriber};
use crate::engine::Engine;
use crate::world::World;

/// `ALTER {SOURCE|TABLE|MATERIALIZED VIEW} name {PAUSE|RESUME}`
pub(super) async fn alter(engine: &Engine, alter: Alter) -> Result<(), UserError> {
    let kind = super::drop::relation_kind(alter.kind);
    let name = alter.name.as_str();
    let id = engine.catalog().resolve_kind(name, kind, Verb::Alter)?.id;
    let nothing = nothing_reads(alter.action, kind, name);
    super::install(engine, move |world| {
        // The newest record: who reads for a view may have changed since the durable one.
        let Some(object) = world.catalog.get(id).map(Arc::clone) else { return Err(nothing) };
        let readings = readings(world, &object);
        if readings.is_empty() {
            return Err(nothing);
        }
        for id in readings {
            match alter.action {
                Action::Pause => pause(world, &object, id)?,
                Action::Resume => resume(world, &object, id)?,
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
        RelationKind::View | RelationKind::MaterializedView => {
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
    object.relation_kind() == RelationKind::MaterializedView && has_others
}

/// A pause of nothing would be forgotten: what is created later would read on.
fn nothing_reads(action: Action, kind: RelationKind, name: &str) -> UserError {
    let verb = match action {
        Action::Pause => "pause",
        Action::Resume => "resume",
    };
    let message = format!("there is no reading of {kind} \"{name}\" to {verb}");
    let error = UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
    match kind {
        RelationKind::Source => error.with_hint("Create a materialized view on it first."),
        _ => error.with_detail("Only what reads stages can be paused: it has none of its own."),
    }
}
