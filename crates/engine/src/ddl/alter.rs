//! ALTER … PAUSE and RESUME: durable, so a paused source is still paused after a restart.

use segue_catalog::{RelationKind, Verb};
use segue_coordinate::Event;
use segue_sql::{Action, Alter};
use segue_types::{ConsumerId, SqlState, UserError};

use super::stopping;
use crate::engine::Engine;

/// `ALTER {SOURCE|TABLE|MATERIALIZED VIEW} name {PAUSE|RESUME}`
pub(super) async fn alter(engine: &Engine, alter: Alter) -> Result<(), UserError> {
    let event = match alter.action {
        Action::Pause => Event::Pause,
        Action::Resume => Event::Resume,
        Action::Refresh
        | Action::SetSourceRateLimit(_)
        | Action::SetBackfillRateLimit(_)
        | Action::SetParallelism(_) => {
            let message =
                format!("ALTER {} … {} is not supported", alter.kind.as_sql(), alter.action);
            return Err(UserError::unsupported(message));
        }
    };
    let kind = super::drop::relation_kind(alter.kind);
    let name = alter.name.as_str();
    let object = engine.catalog().resolve_kind(name, kind, Verb::Alter)?.id;
    let nothing = nothing_reads(&event, kind, name);
    let (done, is_done) = tokio::sync::oneshot::channel();
    engine.inbox().run(move |world| {
        let reads = |consumer: &crate::consumer::Consumer| {
            consumer.object == object || consumer.source.object == object
        };
        let ids: Vec<ConsumerId> =
            world.consumers.values().filter(|consumer| reads(consumer)).map(|c| c.id).collect();
        if ids.is_empty() {
            _ = done.send(Err(nothing));
            return;
        }
        for id in ids {
            let reader = world.consumers.get(&id).map(|consumer| consumer.object);
            world.tell(id, event.clone());
            if let (Action::Resume, Some(reader)) = (alter.action, reader) {
                world.jobs.retry(reader);
            }
        }
        world.when_durable(move |_| _ = done.send(Ok(())));
    });
    is_done.await.map_err(|_| stopping())?
}

/// A pause of nothing would be forgotten: what is created later would read on.
fn nothing_reads(event: &Event, kind: RelationKind, name: &str) -> UserError {
    let verb = if matches!(event, Event::Pause) { "pause" } else { "resume" };
    let message = format!("there is no reading of {kind} \"{name}\" to {verb}");
    let error = UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
    match kind {
        RelationKind::Source => error.with_hint("Create a materialized view on it first."),
        _ => error.with_detail("Only what reads stages can be paused: it has none of its own."),
    }
}
