//! EXPLAIN of queries by DataFusion, and of our own statements by what they would make.

use segue_plan::delta::{explain as explain_view, plan_view};
use segue_sql::{Explain, ExplainMode, Statement};
use segue_types::UserError;
use sqlparser::ast;

use super::show::table;
use super::{Call, insert, query};
use crate::outcome::Outcome;
use crate::session::{Running, Session};

/// Runs EXPLAIN [ANALYZE] of a query.
pub(super) async fn query(
    session: &Session,
    statement: &ast::Statement,
    _call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    let ast::Statement::Explain { analyze, verbose, statement, options, .. } = statement else {
        return Err(UserError::internal("not an EXPLAIN"));
    };
    let ast::Statement::Query(inner) = statement.as_ref() else {
        return Err(UserError::unsupported("EXPLAIN of this statement is not supported")
            .with_hint("Explain the query inside it."));
    };
    let option = |name: &str| {
        options.iter().flatten().any(|option| option.name.value.eq_ignore_ascii_case(name))
    };
    let explain = ast::Statement::Explain {
        describe_alias: ast::DescribeAlias::Explain,
        analyze: *analyze || option("analyze"),
        verbose: *verbose || option("verbose"),
        query_plan: false,
        estimate: false,
        statement: Box::new(query::rewritten(inner, &running.text)),
        format: None,
        options: None,
    };
    let plan = session.planner.plan(explain, &running.text).await?;
    let stream = session.planner.run(&plan, &running.text).await?;
    let batches = insert::collect(stream, running).await?;
    Ok(table("EXPLAIN", &[("QUERY PLAN", lines(&batches))]))
}

/// The plans, one line a row, each under its kind.
fn lines(batches: &[arrow::array::RecordBatch]) -> Vec<String> {
    use arrow::array::AsArray;
    let mut lines = Vec::new();
    for batch in batches {
        let kinds = batch.column(0).as_string::<i32>();
        let plans = batch.column(1).as_string::<i32>();
        for (kind, plan) in kinds.iter().zip(plans) {
            lines.push(format!("{}:", kind.unwrap_or_default()));
            lines.extend(plan.unwrap_or_default().lines().map(|line| format!("  {line}")));
        }
    }
    lines
}

/// Runs EXPLAIN of a statement of our own: the dataflow that would maintain the view.
pub(super) fn own(session: &Session, explain: &Explain) -> Result<Outcome, UserError> {
    match explain.statement.as_ref() {
        Statement::CreateMaterializedView(view) if explain.mode == ExplainMode::Plan => {
            let reading = session.planner.reading();
            let plan = plan_view(&reading.published.catalog, &view.query.tree)?;
            let lines = explain_view(&plan).lines().map(str::to_owned).collect();
            Ok(table("EXPLAIN", &[("QUERY PLAN", lines)]))
        }
        _ => Err(UserError::unsupported("EXPLAIN of this statement is not supported")
            .with_hint("Explain a query, or CREATE MATERIALIZED VIEW without ANALYZE.")),
    }
}
