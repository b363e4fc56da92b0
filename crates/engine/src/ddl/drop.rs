//! DROP and CANCEL JOB.

use std::sync::Arc;

use segue_catalog::{DropBehavior, Object, ObjectState, RelationKind, Verb};
use segue_sql::{CancelJob, Drop, ObjectKind, OnMissing};
use segue_types::{ObjectId, SqlState, UserError};

use super::stopping;
use crate::api::StatementContext;
use crate::engine::Engine;
use crate::release;

/// `DROP …`
pub(super) async fn drop_objects(
    engine: &Engine,
    statement: Drop,
    context: &StatementContext,
) -> Result<(), UserError> {
    let _alone = engine.lock_catalog().await;
    let mut targets = Vec::new();
    for name in &statement.names {
        match resolve(engine, statement.kind, name.as_str(), Verb::Drop) {
            Ok(object) => targets.push(object.id),
            Err(error)
                if statement.on_missing == OnMissing::Skip
                    && error.state == SqlState::UNDEFINED_TABLE =>
            {
                context.notice(format!("{}, skipping", error.message));
            }
            Err(error) => return Err(error),
        }
    }
    let behavior = match statement.behavior {
        segue_sql::DropBehavior::Restrict => DropBehavior::Restrict,
        segue_sql::DropBehavior::Cascade => DropBehavior::Cascade,
    };
    let catalog = engine.catalog();
    let order = catalog.plan_drop(&targets, behavior)?;
    let others = order.iter().filter(|id| !targets.contains(id));
    let names: Vec<String> = others
        .filter_map(|id| catalog.get(*id))
        .map(|object| format!("{} \"{}\"", object.relation_kind(), object.name))
        .collect();
    if !names.is_empty() {
        context.notice(format!("drop cascades to {}", names.join(", ")));
    }
    remove(engine, order).await
}

/// `CANCEL JOB …`
pub(super) async fn cancel_jobs(engine: &Engine, cancel: CancelJob) -> Result<(), UserError> {
    let _alone = engine.lock_catalog().await;
    let mut objects = Vec::new();
    for job in cancel.jobs {
        let id = u32::try_from(job).ok().map(ObjectId);
        let object = id.and_then(|id| engine.catalog().get(id).map(Arc::clone));
        match object {
            Some(object) if object.state == ObjectState::Creating => objects.push(object.id),
            _ => {
                return Err(no_job(job));
            }
        }
    }
    remove(engine, objects).await
}

pub(super) fn no_job(job: u64) -> UserError {
    UserError::new(SqlState::UNDEFINED_OBJECT, format!("job {job} does not exist"))
        .with_hint("SHOW JOBS lists those that are under way.")
}

/// Removes an object whose creation was cancelled or failed, unless somebody has already.
pub(super) async fn undo(engine: &Engine, object: ObjectId) -> Result<(), UserError> {
    let _alone = engine.lock_catalog().await;
    if engine.catalog().get(object).is_none() {
        return Ok(());
    }
    remove(engine, vec![object]).await
}

/// Removes objects in this order; returns when they are gone, durably.
async fn remove(engine: &Engine, order: Vec<ObjectId>) -> Result<(), UserError> {
    if order.is_empty() {
        return Ok(());
    }
    let (gone, are_gone) = tokio::sync::oneshot::channel();
    engine.inbox().run(move |world| {
        let left = world.leave_outside(&order);
        world.remove_objects(&order);
        world.when_durable(move |_| _ = gone.send(left));
    });
    for (id, leavings) in are_gone.await.map_err(|_| stopping())? {
        release::spawn(engine, id, leavings);
    }
    Ok(())
}

/// The object that a statement names, of the kind that it names.
pub(super) fn resolve(
    engine: &Engine,
    kind: ObjectKind,
    name: &str,
    verb: Verb,
) -> Result<Arc<Object>, UserError> {
    let expected = relation_kind(kind);
    Ok(Arc::clone(engine.catalog().resolve_kind(name, expected, verb)?))
}

/// The catalog's word for a statement's.
pub(super) fn relation_kind(kind: ObjectKind) -> RelationKind {
    match kind {
        ObjectKind::Source => RelationKind::Source,
        ObjectKind::Table => RelationKind::Table,
        ObjectKind::View => RelationKind::View,
        ObjectKind::MaterializedView => RelationKind::MaterializedView,
        ObjectKind::Sink => RelationKind::Sink,
    }
}
