//! DECLARE, FETCH and CLOSE: a query that is read in portions, forward only.

use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::datatypes::Fields;
use segue_types::{SqlState, UserError};
use sqlparser::ast::{
    CloseCursor, DeclareAssignment, Expr, FetchDirection, Statement, ValueWithSpan,
};

use super::{Call, query};
use crate::outcome::{Outcome, RowStream};
use crate::session::{NAMED_MAX, Running, Session, Transaction};

/// Runs a statement of this family.
pub(super) async fn execute(
    session: &mut Session,
    statement: &Statement,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    match statement {
        Statement::Declare { stmts } => {
            for declare in stmts {
                let name = declare.names.first().map(|name| name.value.clone()).unwrap_or_default();
                let query = match (&declare.for_query, &declare.assignment) {
                    (Some(query), _) => query.as_ref(),
                    (None, Some(DeclareAssignment::For(expr))) => match expr.as_ref() {
                        Expr::Subquery(query) => query.as_ref(),
                        _ => return Err(no_query()),
                    },
                    _ => return Err(no_query()),
                };
                declare_cursor(session, name, query, call, running).await?;
            }
            Ok(Outcome::done("DECLARE CURSOR"))
        }
        Statement::Fetch { name, direction, .. } => {
            fetch(session, &name.value, direction, running).await
        }
        Statement::Close { cursor: CloseCursor::All } => {
            session.cursors.clear();
            Ok(Outcome::done("CLOSE CURSOR ALL"))
        }
        Statement::Close { cursor: CloseCursor::Specific { name } } => {
            match session.cursors.remove(&name.value) {
                Some(_) => Ok(Outcome::done("CLOSE CURSOR")),
                None => Err(unknown(&name.value)),
            }
        }
        other => Err(UserError::unsupported(format!("{other} is not supported"))),
    }
}

fn no_query() -> UserError {
    UserError::new(SqlState::SYNTAX_ERROR, "a cursor is declared FOR a query")
}

fn unknown(name: &str) -> UserError {
    UserError::new(SqlState::UNDEFINED_CURSOR, format!("cursor \"{name}\" does not exist"))
}

async fn declare_cursor(
    session: &mut Session,
    name: String,
    query: &sqlparser::ast::Query,
    call: &Call,
    running: &Running,
) -> Result<(), UserError> {
    if matches!(session.transaction, Transaction::Idle) {
        return Err(UserError::new(
            SqlState::NO_ACTIVE_TRANSACTION,
            "DECLARE CURSOR can only be used in transaction blocks",
        ));
    }
    if session.cursors.contains_key(&name) {
        return Err(UserError::new(
            SqlState::try_from("42P03".to_owned()).expect("five ASCII characters"),
            format!("cursor \"{name}\" already exists"),
        ));
    }
    if session.cursors.len() >= NAMED_MAX {
        return Err(UserError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many cursors"));
    }
    let rows = query::start(session, query, call, running).await?;
    session.cursors.insert(name, rows);
    Ok(())
}

/// The columns of an open cursor.
pub(super) fn fields(session: &Session, name: &str) -> Result<Fields, UserError> {
    match session.cursors.get(name) {
        Some(rows) => Ok(rows.schema.fields().clone()),
        None => Err(unknown(name)),
    }
}

async fn fetch(
    session: &mut Session,
    name: &str,
    direction: &FetchDirection,
    running: &Running,
) -> Result<Outcome, UserError> {
    let count = rows_wanted(direction)?;
    let rows = session.cursors.get_mut(name).ok_or_else(|| unknown(name))?;
    let batches = rows.take(count, &running.cancel).await?;
    let schema = Arc::clone(&rows.schema);
    // A query's batches can differ from its plan in what may be NULL; the first batch knows.
    let schema = batches.first().map_or(schema, |batch| batch.schema());
    let batch = concat_batches(&schema, &batches)
        .map_err(|error| UserError::internal(format!("could not join a portion: {error}")))?;
    Ok(Outcome::Rows(RowStream::of_batch("FETCH", batch)))
}

/// How many rows FETCH wants; `None` for all.
fn rows_wanted(direction: &FetchDirection) -> Result<Option<usize>, UserError> {
    let number = |limit: &ValueWithSpan| {
        limit.value.to_string().parse::<usize>().map(Some).map_err(|_| backward())
    };
    match direction {
        FetchDirection::Next => Ok(Some(1)),
        FetchDirection::All | FetchDirection::ForwardAll => Ok(None),
        FetchDirection::Count { limit } => number(limit),
        FetchDirection::Forward { limit: Some(limit) } => number(limit),
        FetchDirection::Forward { limit: None } => Ok(Some(1)),
        _ => Err(backward()),
    }
}

fn backward() -> UserError {
    UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
        .with_hint("Use FETCH FORWARD.")
}
