//! CREATE TABLE … AS: a table with the columns of a query, filled with its rows.
//!
//! Invariant: a table whose rows could not be written is not left behind.

use std::sync::Arc;

use segue_sql::{Name, Statement};
use segue_types::{SqlState, UserError, sql_type_of};
use sqlparser::ast;

use super::{Call, columns, ddl, insert, query, target};
use crate::outcome::Outcome;
use crate::session::{Running, Session};

/// Runs it; `None` when the statement is no CREATE TABLE … AS.
pub(super) async fn execute(
    session: &mut Session,
    create: &ast::CreateTable,
    call: &Call,
    running: &Running,
) -> Option<Result<Outcome, UserError>> {
    let query = create.query.as_deref()?;
    Some(created(session, create, query, call, running).await)
}

async fn created(
    session: &mut Session,
    create: &ast::CreateTable,
    query: &ast::Query,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    target::refuse(create.temporary, "CREATE TEMPORARY TABLE")?;
    target::refuse(create.or_replace, "CREATE OR REPLACE TABLE")?;
    let last = create.name.0.last().and_then(|part| part.as_ident());
    let name = Name::new(last.map(target::folded).unwrap_or_default());
    let exists = session.planner.reading().published.catalog.by_name(name.as_str()).is_some();
    if exists && create.if_not_exists {
        running.notice(format!("relation \"{}\" already exists, skipping", name.as_str()));
        return Ok(Outcome::done("CREATE TABLE AS"));
    }
    let definition = definition(session, create, query, &name, running).await?;
    run(session, call, running, &definition).await?;
    session.begin_statement();
    let filled = fill(session, query, &name, call, running).await;
    if filled.is_err() {
        // Whatever the reason: it is told, and this can only add another one.
        drop(run(session, call, running, &format!("DROP TABLE {name}")).await);
    }
    filled
}

/// The CREATE TABLE of the query's columns.
async fn definition(
    session: &Session,
    create: &ast::CreateTable,
    query: &ast::Query,
    name: &Name,
    running: &Running,
) -> Result<String, UserError> {
    let plan = session.planner.plan(query::rewritten(query, &running.text), &running.text).await?;
    let schema = columns::named(query, plan.schema().as_arrow());
    let mut names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    if create.columns.len() > names.len() {
        let message = "too many column names were specified";
        return Err(UserError::new(SqlState::SYNTAX_ERROR, message));
    }
    for (column, name) in create.columns.iter().zip(&mut names) {
        *name = target::folded(&column.name);
    }
    let mut columns = Vec::with_capacity(names.len());
    for (field, name) in schema.fields().iter().zip(names) {
        let sql_type = sql_type_of(field).ok_or_else(|| {
            let message = format!("column \"{name}\" has a type that no table has");
            UserError::new(SqlState::INVALID_TABLE_DEFINITION, message)
        })?;
        columns.push(format!("{} {sql_type}", Name::new(name)));
    }
    Ok(format!("CREATE TABLE {name} ({})", columns.join(", ")))
}

async fn fill(
    session: &mut Session,
    query: &ast::Query,
    name: &Name,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    let text = format!("INSERT INTO {name} SELECT 1");
    let Some(Statement::Sql(statement)) = segue_sql::parse(&text)?.pop() else {
        return Err(UserError::internal("an INSERT is sqlparser's"));
    };
    let ast::Statement::Insert(mut insert) = *statement else {
        return Err(UserError::internal("an INSERT is an INSERT"));
    };
    insert.source = Some(Box::new(query.clone()));
    let outcome = insert::execute(session, &insert, call, running).await?;
    Ok(match outcome {
        Outcome::Done(tag) => Outcome::Done(tag.replacen("INSERT 0", "SELECT", 1)),
        other => other,
    })
}

async fn run(
    session: &mut Session,
    call: &Call,
    running: &Running,
    text: &str,
) -> Result<Outcome, UserError> {
    let statement = segue_sql::parse(text)?.pop();
    let statement = statement.ok_or_else(|| UserError::internal("our own text is a statement"))?;
    let call = Call { statement: Arc::new(statement), source: text.into(), ..call.clone() };
    ddl::execute(session, &call, running).await
}
