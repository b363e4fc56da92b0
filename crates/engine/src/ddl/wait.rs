//! FLUSH and WAIT.

use segue_catalog::Verb;
use segue_sql::Wait;
use segue_types::{ObjectId, UserError};

use super::{stopping, unless_canceled};
use crate::api::StatementContext;
use crate::engine::Engine;

/// Returns when everything that has been consumed so far is durable and visible.
pub(super) async fn flush(engine: &Engine) -> Result<(), UserError> {
    let (durable, is_durable) = tokio::sync::oneshot::channel();
    engine.inbox().run(move |world| world.when_durable(move |_| _ = durable.send(())));
    is_durable.await.map_err(|_| stopping())
}

/// Returns when the jobs asked for are done.
pub(super) async fn wait(
    engine: &Engine,
    wait: Wait,
    context: &StatementContext,
) -> Result<(), UserError> {
    let objects: Vec<ObjectId> = match wait {
        Wait::All => {
            let jobs = |world: &mut crate::world::World| {
                world.jobs.iter().map(|(object, _)| object).collect()
            };
            engine.inbox().ask(jobs).await.ok_or_else(stopping)?
        }
        Wait::For(kind, name) => {
            vec![super::drop::resolve(engine, kind, name.as_str(), Verb::Wait)?.id]
        }
    };
    for object in objects {
        unless_canceled(&context.cancel, job(engine, object)).await?;
    }
    Ok(())
}

/// Waits for the job of `object`, if there is one.
pub(super) async fn job(engine: &Engine, object: ObjectId) -> Result<(), UserError> {
    let answered =
        engine.inbox().ask(move |world| world.jobs.wait(object)).await.ok_or_else(stopping)?;
    answered.await.map_err(|_| stopping())?
}
