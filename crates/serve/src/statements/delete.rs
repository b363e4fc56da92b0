//! DELETE and TRUNCATE.

use std::sync::Arc;

use arrow::datatypes::Fields;
use segue_catalog::Object;
use segue_types::{SqlState, UserError};
use sqlparser::ast::{self, FromTable, SetExpr, TableFactor, TableWithJoins};

use super::parameters::{self, Types};
use super::returning::Returning;
use super::target::{self, refuse, removed};
use super::{Call, insert, query};
use crate::backend::{Changes, chunks};
use crate::outcome::Outcome;
use crate::plan::Reading;
use crate::prepared::Parameter;
use crate::session::{Running, Session};

/// What a DELETE does: the table, and the query of the rows that go.
struct Delete {
    object: Arc<Object>,
    query: ast::Query,
    returning: Option<Returning>,
}

fn resolve(session: &Session, delete: &ast::Delete) -> Result<Delete, UserError> {
    refuse(delete.using.is_some(), "DELETE … USING")?;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [table @ TableWithJoins { relation: TableFactor::Table { name, alias, .. }, .. }] =
        from.as_slice()
    else {
        return Err(UserError::new(SqlState::SYNTAX_ERROR, "DELETE needs one table"));
    };
    let object = target::changeable_table(session, name, "delete from")?;
    let mut query = target::skeleton("SELECT * FROM t");
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![table.clone()];
        select.selection.clone_from(&delete.selection);
    }
    let returning = Returning::of(delete.returning.as_ref(), name, alias.as_ref());
    Ok(Delete { object, query, returning })
}

/// The types of a DELETE's parameters.
pub(super) async fn prepare(
    session: &Session,
    delete: &ast::Delete,
    running: &Running,
    client_oids: &[u32],
) -> Result<(Vec<Parameter>, Option<Fields>), UserError> {
    let delete = resolve(session, delete)?;
    let statement = query::rewritten(&delete.query, "");
    let (text, known) = (&running.text, Types::new());
    let planned = parameters::plan(&session.planner, statement, text, client_oids, &known).await?;
    let fields = match &delete.returning {
        None => None,
        Some(returning) => Some(returning.fields(session, running).await?),
    };
    Ok((planned.0, fields))
}

/// Runs a DELETE under the table's write lock.
pub(super) async fn execute(
    session: &mut Session,
    delete: &ast::Delete,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    let delete = resolve(session, delete)?;
    if let Some(returning) = &delete.returning {
        // A mistake in the list must not leave the rows behind.
        returning.fields(session, running).await?;
    }
    let writer = session.engine.table(delete.object.id).await?;
    let published = session.engine.published();
    let locked = Some((delete.object.id, writer.version().clone()));
    session.planner.read(Reading { published, locked, returned: None });

    let text = &running.text;
    let statement = query::rewritten(&delete.query, "");
    let values = &call.parameters;
    let plan = parameters::plan_with_values(&session.planner, statement, text, values).await?;
    let batches = insert::collect(session.planner.run(&plan, running).await?, running).await?;
    let mut changes: Vec<Changes> = Vec::new();
    let mut gone = Vec::new();
    let mut count = 0;
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        count += batch.num_rows();
        let rows = target::held_rows(&delete.object, batch.columns(), batch.num_rows())?;
        if delete.returning.is_some() {
            gone.push(rows.clone());
        }
        changes.push(removed(&delete.object, rows));
    }
    if count > 0 {
        running.check()?;
        writer.write(changes).await?;
    }
    session.wrote();
    if let Some(returning) = &delete.returning {
        return returning.rows(session, &delete.object, gone, "DELETE", running).await;
    }
    Ok(Outcome::Done(format!("DELETE {count}")))
}

/// Runs a TRUNCATE: every row goes.
pub(super) async fn truncate(
    session: &mut Session,
    truncate: &ast::Truncate,
    running: &Running,
) -> Result<Outcome, UserError> {
    for table in &truncate.table_names {
        let object = target::changeable_table(session, &table.name, "truncate")?;
        let writer = session.engine.table(object.id).await?;
        let rows = chunks(writer.version(), &object.schema);
        let changes: Vec<Changes> = rows.map(|rows| removed(&object, rows)).collect();
        running.check()?;
        if !changes.is_empty() {
            writer.write(changes).await?;
        }
    }
    session.wrote();
    Ok(Outcome::done("TRUNCATE TABLE"))
}
