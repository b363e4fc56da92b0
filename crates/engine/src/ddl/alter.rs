//! ALTER … PAUSE and RESUME: durable, so a paused source is still paused after a restart.

use segue_catalog::Verb;
use segue_coordinate::Event;
use segue_sql::{Action, Alter};
use segue_types::{ConsumerId, UserError};

use super::stopping;
use crate::engine::Engine;

/// `ALTER {SOURCE|TABLE|MATERIALIZED VIEW} name {PAUSE|RESUME}`
pub(super) async fn alter(engine: &Engine, alter: Alter) -> Result<(), UserError> {
    let kind = super::drop::relation_kind(alter.kind);
    let object = engine.catalog().resolve_kind(alter.name.as_str(), kind, Verb::Alter)?.id;
    let (done, is_done) = tokio::sync::oneshot::channel();
    engine.inbox().run(move |world| {
        let reads = |consumer: &crate::consumer::Consumer| {
            consumer.object == object || consumer.source.object == object
        };
        let ids: Vec<ConsumerId> =
            world.consumers.values().filter(|consumer| reads(consumer)).map(|c| c.id).collect();
        for id in ids {
            let event = match alter.action {
                Action::Pause => Event::Pause,
                Action::Resume => Event::Resume,
            };
            world.tell(id, event);
        }
        world.when_durable(move |_| { _ = done.send(()) });
    });
    is_done.await.map_err(|_| stopping())
}
