//! SELECT, VALUES, WITH.

use std::sync::Arc;

use arrow::datatypes::Fields;
use futures::StreamExt;
use segue_types::{SqlState, UserError};
use sqlparser::ast;

use super::{Call, columns, lookup, parameters};
use crate::outcome::{Outcome, RowStream};
use crate::plan::{for_catalog_query, for_query, mentions_catalog};
use crate::prepared::Parameter;
use crate::session::{Running, Session};

/// Plans a query and says what parameters and columns it has.
pub(super) async fn prepare(
    session: &Session,
    query: &ast::Query,
    call: &Call,
    running: &Running,
    client_oids: &[u32],
) -> Result<(Vec<Parameter>, Fields), UserError> {
    unless_canceled(running, described(session, query, call, running, client_oids)).await
}

/// Planning alone can take long, too.
async fn unless_canceled<T>(
    running: &Running,
    work: impl Future<Output = Result<T, UserError>>,
) -> Result<T, UserError> {
    tokio::select! {
        biased;
        () = running.cancel.cancelled() => Err(crate::errors::canceled()),
        result = work => result,
    }
}

async fn described(
    session: &Session,
    query: &ast::Query,
    call: &Call,
    running: &Running,
    client_oids: &[u32],
) -> Result<(Vec<Parameter>, Fields), UserError> {
    if let Some((types, fields)) = lookup::describe(&session.planner.reading(), query) {
        return Ok((parameters::agree(&types, client_oids), fields));
    }
    let client_oids = &parameters::with_oids(query, client_oids);
    let known = parameters::Types::new();
    let (planner, text) = (&session.planner, &running.text);
    let statement = rewritten(query, &call.source);
    let planned = parameters::plan(planner, statement, text, client_oids, &known).await;
    let (parameters, plan) = match planned {
        Err(error) if is_same_name(&error) => {
            let statement = rewritten_apart(query, &call.source);
            parameters::plan(planner, statement, text, client_oids, &known).await?
        }
        planned => planned?,
    };
    let fields = columns::named(query, plan.schema().as_arrow()).fields().clone();
    let version = session.planner.reading().published.catalog.version();
    call.plan.put(version, Arc::new(plan));
    Ok((parameters, fields))
}

/// Starts a query.
pub(super) async fn execute(
    session: &Session,
    query: &ast::Query,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    let reading = session.planner.reading();
    if let Some(batch) = lookup::execute(&reading, query, &call.parameters)? {
        return Ok(Outcome::batch("SELECT", batch));
    }
    Ok(Outcome::Rows(start(session, query, call, running).await?))
}

/// The rows of a query, planned by DataFusion.
pub(super) async fn start(
    session: &Session,
    query: &ast::Query,
    call: &Call,
    running: &Running,
) -> Result<RowStream, UserError> {
    unless_canceled(running, started(session, query, call, running)).await
}

async fn started(
    session: &Session,
    query: &ast::Query,
    call: &Call,
    running: &Running,
) -> Result<RowStream, UserError> {
    let version = session.planner.reading().published.catalog.version();
    let text = &running.text;
    let plan = match call.plan.get(version) {
        Some(plan) => parameters::bind(plan.as_ref().clone(), &call.parameters, text)?,
        None => {
            let (planner, values) = (&session.planner, &call.parameters);
            let statement = rewritten(query, &call.source);
            match parameters::plan_with_values(planner, statement, text, values).await {
                Err(error) if is_same_name(&error) => {
                    let statement = rewritten_apart(query, &call.source);
                    parameters::plan_with_values(planner, statement, text, values).await?
                }
                planned => planned?,
            }
        }
    };
    let schema = columns::named(query, plan.schema().as_arrow());
    let stream = session.planner.run(&plan, running).await?;
    Ok(RowStream::of_query(schema, stream.boxed(), Arc::clone(text)))
}

/// Whether two columns have one name in DataFusion, though PostgreSQL does not mind.
fn is_same_name(error: &UserError) -> bool {
    error.state == SqlState::DUPLICATE_COLUMN
}

/// The query as DataFusion reads it.
pub(super) fn rewritten(query: &ast::Query, source: &str) -> ast::Statement {
    let mut query = query.clone();
    columns::told_apart(&mut query);
    rewritten_for(query, source)
}

/// The same, with a name of its own for every column.
fn rewritten_apart(query: &ast::Query, source: &str) -> ast::Statement {
    let mut query = query.clone();
    columns::all_told_apart(&mut query);
    rewritten_for(query, source)
}

fn rewritten_for(query: ast::Query, source: &str) -> ast::Statement {
    let statement = ast::Statement::Query(Box::new(query));
    if mentions_catalog(source) {
        for_catalog_query(source, statement)
    } else {
        for_query(statement)
    }
}
