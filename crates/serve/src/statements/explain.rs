//! EXPLAIN of queries by DataFusion, and of our own statements by what they would make.

use segue_plan::delta::{explain as explain_view, plan_emitting};
use segue_plan::stages::{explain as explain_stages, plan_source, plan_table};
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
    let stream = session.planner.run(&plan, running).await?;
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

/// Runs EXPLAIN of a statement of our own: the dataflow that would maintain the view, or the stages
/// that would be read. Nothing is asked of any external system.
pub(super) fn own(session: &Session, explain: &Explain) -> Result<Outcome, UserError> {
    if explain.mode == ExplainMode::Analyze {
        return Err(UserError::unsupported("EXPLAIN ANALYZE of a CREATE is not supported")
            .with_hint(
                "Leave out ANALYZE; segue.operators tells what a view does once it is there.",
            ));
    }
    let registry = session.engine.registry();
    let text = match explain.statement.as_ref() {
        Statement::CreateMaterializedView(view) => {
            let reading = session.planner.reading();
            explain_view(&plan_emitting(
                &reading.published.catalog,
                ((*view.query.tree).clone(), view.emission),
            )?)
        }
        Statement::CreateSource(source) => {
            let plan = plan_source(registry, source)?;
            let object = format!("Source {}", source.name);
            explain_stages(&object, &plan.schema, &plan.key, &plan.stages, &plan.notices)
        }
        Statement::CreateTable(created) => {
            let plan = plan_table(registry, created)?;
            let object = format!("Table {}", created.name);
            explain_stages(&object, &plan.schema, &plan.key, &plan.stages, &plan.notices)
        }
        _ => {
            return Err(UserError::unsupported("EXPLAIN of this statement is not supported")
                .with_hint("Explain its query."));
        }
    };
    Ok(table("EXPLAIN", &[("QUERY PLAN", text.lines().map(str::to_owned).collect())]))
}
