//! Statements that change what exists, and those that wait: each one whole or not at all.
//!
//! Invariants: changes to the catalog are made one after the other, each durable before the next is planned;
//! whoever waits for something long does not hold that lock.

mod alter;
mod drop;
pub(crate) mod opening;
mod rename;
mod staged;
pub(crate) mod table;
pub(crate) mod view;
mod wait;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use segue_catalog::{CatalogError, ObjectKind};
use segue_sql::{OnExisting, Statement};
use segue_types::{ObjectId, SqlState, UserError};
use tokio_util::sync::CancellationToken;

use crate::api::StatementContext;
use crate::engine::Engine;
use crate::status::JobProgress;
use crate::world::World;
use view::Maintained;

/// How often a statement that waits tells how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

impl Engine {
    /// Runs DDL, FLUSH, WAIT and CANCEL JOB. Returns when its effect is durable and visible.
    ///
    /// # Errors
    /// As the user is told; after an error or a cancellation nothing of the statement is left.
    pub async fn execute(
        &self,
        statement: Statement,
        context: &StatementContext,
    ) -> Result<(), UserError> {
        match statement {
            Statement::CreateSource(create) => staged::create_source(self, create, context).await,
            Statement::CreateTable(create) => table::create_table(self, create, context).await,
            Statement::CreateView(create) => view::create_view(self, create, context).await,
            Statement::CreateMaterializedView(create) => {
                view::create_maintained(self, Maintained::View(create), context).await
            }
            Statement::CreateSink(create) => {
                view::create_maintained(self, Maintained::Sink(create), context).await
            }
            Statement::Drop(statement) => drop::drop_objects(self, statement, context).await,
            Statement::Alter(alter) => alter::alter(self, alter, context).await,
            Statement::AlterJob(alter) => alter::alter_jobs(self, alter).await,
            Statement::Rename(statement) => rename::rename(self, statement).await,
            Statement::Flush => wait::flush(self).await,
            Statement::Wait(wait) => wait::wait(self, wait, context).await,
            Statement::CancelJob(cancel) => drop::cancel_jobs(self, cancel).await,
            Statement::CreateIndex(_)
            | Statement::DropIndex(_)
            | Statement::Show(_)
            | Statement::Describe(_)
            | Statement::Explain(_)
            | Statement::Sql(_) => {
                Err(UserError::internal("a statement that changes nothing reached the engine"))
            }
        }
    }
}

/// Ends `work` when the statement is cancelled. The work is dropped: it must not have changed anything yet.
async fn unless_canceled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, UserError>>,
) -> Result<T, UserError> {
    tokio::select! {
        result = work => result,
        () = cancel.cancelled() => Err(canceled()),
    }
}

pub(crate) fn canceled() -> UserError {
    UserError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

/// The server is on its way down and can do nothing more.
pub(crate) fn stopping() -> UserError {
    UserError::new(SqlState::ADMIN_SHUTDOWN, "the server is shutting down")
}

/// When an object's CREATE began, for its record.
fn now_unix_ms() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// Whether the statement has nothing to do because the name is taken and that is fine.
fn already_exists(
    engine: &Engine,
    name: &str,
    on_existing: OnExisting,
    context: &StatementContext,
) -> Result<bool, UserError> {
    if engine.catalog().by_name(name).is_none() {
        return Ok(false);
    }
    match on_existing {
        OnExisting::Refuse => Err(CatalogError::Duplicate { name: name.to_owned() }.into()),
        OnExisting::Skip => {
            context.notice(format!("relation \"{name}\" already exists, skipping"));
            Ok(true)
        }
        OnExisting::Replace => Err(UserError::unsupported("CREATE OR REPLACE is not supported")
            .with_hint("Drop the object first, then create it.")),
    }
}

/// Runs `change` between two steps; returns when what it did is durable and visible.
async fn install(
    engine: &Engine,
    change: impl FnOnce(&mut World) -> Result<(), UserError> + Send + 'static,
) -> Result<(), UserError> {
    let (done, is_done) = tokio::sync::oneshot::channel();
    engine.inbox().run(move |world| match change(world) {
        Ok(()) => world.when_durable(move |_| drop(done.send(Ok(())))),
        Err(error) => drop(done.send(Err(error))),
    });
    is_done.await.map_err(|_| stopping())?
}

/// Runs the rest of a CREATE: in the background if the session asked for it, else until it is done, telling how far it
/// is, and as long as no system is away for longer than the session's patience. Cancelled or failed, it leaves nothing
/// behind; a server that stops keeps it for its next start.
async fn run_job(
    engine: &Engine,
    id: ObjectId,
    context: &StatementContext,
    work: impl Future<Output = Result<(), UserError>> + Send + 'static,
) -> Result<(), UserError> {
    if context.background_ddl {
        context
            .notice(format!("job {id} goes on in the background; SHOW JOBS tells how far it is"));
        tokio::spawn(in_background(engine.clone(), id, work));
        return Ok(());
    }
    let listener = context.notices.clone();
    engine.inbox().run(move |world| world.jobs.listen(id, listener));
    let mut work = Box::pin(finished(engine, id, work));
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    ticks.tick().await;
    let error = loop {
        tokio::select! {
            result = &mut work => match result {
                Ok(()) => return Ok(()),
                Err(error) => break error,
            },
            () = context.cancel.cancelled() => break canceled(),
            _ = ticks.tick() => {
                let progress = engine.inbox().ask(move |world| world.progress(id)).await;
                let progress = progress.unwrap_or_default();
                for one in &progress {
                    context.notice(one.show());
                }
                let given_up = |one: &JobProgress| one.given_up(context.patience);
                if let Some(error) = progress.iter().find_map(given_up) {
                    break error;
                }
            }
        }
    };
    drop(work);
    if engine.is_stopping() {
        return Err(stopping());
    }
    drop::undo(engine, id).await?;
    Err(error)
}

/// Does a job's work and waits until the job is done: its object ready, durably. Ends early when the work
/// fails or the object is dropped by somebody else.
async fn finished(
    engine: &Engine,
    id: ObjectId,
    work: impl Future<Output = Result<(), UserError>>,
) -> Result<(), UserError> {
    tokio::select! {
        result = wait::job(engine, id) => result,
        Err(error) = work => Err(error),
    }
}

/// Runs a job that nobody waits for; its failure is kept for SHOW JOBS.
async fn in_background(
    engine: Engine,
    id: ObjectId,
    work: impl Future<Output = Result<(), UserError>>,
) {
    if let Err(error) = finished(&engine, id, work).await {
        tracing::warn!(job = %id, %error, "a job failed");
        engine.inbox().run(move |world| world.jobs.fail(id, error));
    }
}

/// Goes on with a CREATE that was under way when the server stopped.
pub(crate) fn resume(engine: &Engine, id: ObjectId) {
    let Some(object) = engine.catalog().get(id).map(std::sync::Arc::clone) else { return };
    let (engine, handle) = (engine.clone(), engine.clone());
    match object.kind {
        ObjectKind::Source(_) => {
            tokio::spawn(in_background(engine, id, staged::resume(handle, id)));
        }
        ObjectKind::Table(_) => {
            tokio::spawn(in_background(engine, id, table::resume(handle, id)));
        }
        ObjectKind::MaterializedView | ObjectKind::Sink(_) => {
            tokio::spawn(in_background(engine, id, view::resume(handle, object)));
        }
        ObjectKind::View => unreachable!("a view is ready when it is created"),
    }
}
