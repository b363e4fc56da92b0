//! SELECT, VALUES, WITH.

use std::sync::Arc;

use arrow::datatypes::Fields;
use futures::StreamExt;
use segue_types::UserError;
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
    let statement = rewritten(query, &call.source);
    let known = parameters::Types::new();
    let (parameters, plan) =
        parameters::plan(&session.planner, statement, &running.text, client_oids, &known).await?;
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
    let version = session.planner.reading().published.catalog.version();
    let text = &running.text;
    let plan = match call.plan.get(version) {
        Some(plan) => parameters::bind(plan.as_ref().clone(), &call.parameters, text)?,
        None => {
            let statement = rewritten(query, &call.source);
            parameters::plan_with_values(&session.planner, statement, text, &call.parameters).await?
        }
    };
    let schema = columns::named(query, plan.schema().as_arrow());
    let running_plan = session.planner.run(&plan, text);
    let stream = tokio::select! {
        biased;
        () = running.cancel.cancelled() => return Err(crate::errors::canceled()),
        stream = running_plan => stream?,
    };
    Ok(RowStream::of_query(schema, stream.boxed(), Arc::clone(text)))
}

/// The query as DataFusion reads it.
pub(super) fn rewritten(query: &ast::Query, source: &str) -> ast::Statement {
    let mut query = query.clone();
    columns::told_apart(&mut query);
    let statement = ast::Statement::Query(Box::new(query));
    if mentions_catalog(source) {
        for_catalog_query(source, statement)
    } else {
        for_query(statement)
    }
}
