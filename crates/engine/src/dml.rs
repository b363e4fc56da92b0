//! Writing to tables: one statement at a time per table, acknowledged when durable and visible.

use std::collections::BTreeMap;

use segue_catalog::{ObjectKind, ObjectState};
use segue_connect::Changes;
use segue_flow::{RelationVersion, StepInput};
use segue_types::{ObjectId, SqlState, UserError};
use tokio::sync::OwnedMutexGuard;

use crate::ddl::stopping;
use crate::engine::Engine;
use crate::world::World;

/// The right to write to a table. While it is held no other statement writes there, so what
/// [`TableWriter::version`] shows is what the write will change.
pub struct TableWriter {
    engine: Engine,
    table: ObjectId,
    version: RelationVersion,
    _alone: OwnedMutexGuard<()>,
}

impl Engine {
    /// Waits for the right to write to `table`.
    ///
    /// # Errors
    /// 42P01 when it has gone, 42809 when it is no table, 55000 when it is not ready.
    pub async fn table(&self, table: ObjectId) -> Result<TableWriter, UserError> {
        let alone = self.lock_table(table).await;
        let published = self.published();
        let gone = || UserError::new(SqlState::UNDEFINED_TABLE, "the table has been dropped");
        let object = published.catalog.get(table).ok_or_else(gone)?;
        if !matches!(object.kind, ObjectKind::Table(_)) {
            let message = format!("cannot change {} \"{}\"", object.relation_kind(), object.name);
            return Err(UserError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        if object.state != ObjectState::Ready {
            let message = format!("table \"{}\" is {}", object.name, object.state);
            return Err(UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        let version = published.relations.get(&table).cloned().ok_or_else(gone)?;
        Ok(TableWriter { engine: self.clone(), table, version, _alone: alone })
    }
}

impl TableWriter {
    /// What the table holds.
    pub fn version(&self) -> &RelationVersion {
        &self.version
    }

    /// Writes `changes`, in order, in one epoch. Returns when they are durable and visible.
    pub async fn write(self, changes: Vec<Changes>) -> Result<(), UserError> {
        let (written, is_written) = tokio::sync::oneshot::channel();
        let table = self.table;
        self.engine.inbox().run(move |world| match apply(world, table, changes) {
            Ok(()) => world.when_durable(move |_| drop(written.send(Ok(())))),
            Err(error) => drop(written.send(Err(error))),
        });
        is_written.await.map_err(|_| stopping())?
    }
}

fn apply(world: &mut World, table: ObjectId, changes: Vec<Changes>) -> Result<(), UserError> {
    let gone = || UserError::new(SqlState::UNDEFINED_TABLE, "the table has been dropped");
    let relation = world.relations.get(&table).ok_or_else(gone)?;
    if let Some(error) = &relation.failed {
        return Err(error.clone());
    }
    let adds = |changes: &Changes| !changes.ops.removes_only();
    if changes.iter().any(adds)
        && let Some(error) = world.refuse_rows()
    {
        return Err(error);
    }
    let rows: u64 = changes.iter().map(|changes| changes.rows.num_rows() as u64).sum();
    let relation = &world.relations[&table];
    let marks = changes.iter().filter_map(|changes| relation.mark_of(&changes.rows));
    let marks = marks.collect::<Vec<_>>();
    let inputs = changes.into_iter().map(|changes| (0, StepInput::Changes(changes)));
    let inputs = inputs.chain(marks).collect();
    world.pending.rows += rows;
    world.run(BTreeMap::from([(table, inputs)]));
    match world.relations.get(&table).and_then(|relation| relation.failed.clone()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
