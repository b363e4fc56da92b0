//! EXPLAIN of queries by DataFusion, and of our own statements by what they would make.

use std::collections::BTreeMap;

use segue_catalog::{RelationKind, Verb};
use segue_plan::delta::{
    Place, explain as explain_view, explain_with as explain_view_with, plan_emitting, plan_stored,
};
use segue_plan::sink::plan_sink;
use segue_plan::stages::{explain as explain_stages, plan_source, plan_table};
use segue_sql::{Explain, ExplainMode, Explained, ObjectKind, Statement};
use segue_types::UserError;
use sqlparser::ast;

use super::show::table;
use super::{Call, insert, query};
use crate::backend::OperatorStatus;
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

/// Runs EXPLAIN of what is ours.
pub(super) async fn own(session: &Session, explain: &Explain) -> Result<Outcome, UserError> {
    let text = match (&explain.subject, explain.mode) {
        (Explained::Create(statement), ExplainMode::Plan) => created(session, statement)?,
        (Explained::Create(_), ExplainMode::Analyze) => {
            return Err(UserError::unsupported("EXPLAIN ANALYZE of a CREATE is not supported")
                .with_hint(
                    "Leave out ANALYZE, or create it and use EXPLAIN ANALYZE MATERIALIZED VIEW.",
                ));
        }
        (Explained::Object(ObjectKind::MaterializedView, name), mode) => {
            maintained(session, name.as_str(), mode).await?
        }
        (Explained::Object(kind, _), _) => {
            let message = format!("EXPLAIN of a {} is not supported", kind.as_sql().to_lowercase());
            return Err(UserError::unsupported(message)
                .with_hint("Only a materialized view has a plan of operators."));
        }
    };
    Ok(table("EXPLAIN", &[("QUERY PLAN", text.lines().map(str::to_owned).collect())]))
}

/// The dataflow that would maintain the view, or the stages that would be read. Nothing is asked of any external
/// system.
fn created(session: &Session, statement: &Statement) -> Result<String, UserError> {
    let registry = session.engine.registry();
    Ok(match statement {
        Statement::CreateMaterializedView(view) => {
            let reading = session.planner.reading();
            explain_view(&plan_emitting(
                &reading.published.catalog,
                ((*view.query.tree).clone(), view.emission),
            )?)
        }
        Statement::CreateSink(sink) => {
            let reading = session.planner.reading();
            explain_view(&plan_sink(&reading.published.catalog, sink)?.view)
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
    })
}

/// The dataflow that maintains a view; analyzed, with what its operators did and hold.
async fn maintained(session: &Session, name: &str, mode: ExplainMode) -> Result<String, UserError> {
    let reading = session.planner.reading();
    let catalog = &reading.published.catalog;
    let object = catalog.resolve_kind(name, RelationKind::MaterializedView, Verb::Explain)?;
    let plan = plan_stored(catalog, object)?;
    if mode == ExplainMode::Plan {
        return Ok(explain_view(&plan));
    }
    let status = session.engine.status().await?;
    let own = status.operators.iter().filter(|operator| operator.object == object.id);
    let own = own.map(|operator| (operator.place(), operator)).collect::<BTreeMap<_, _>>();
    Ok(explain_view_with(&plan, &|place| {
        let place = match place {
            Place::Relation => None,
            Place::Operator(place) => Some(place),
        };
        own.get(&place).map(|operator| measured(operator))
    }))
}

fn measured(operator: &OperatorStatus) -> String {
    let mut said = format!("rows in {}, out {}", operator.rows_in, operator.rows_out);
    if operator.state_bytes > 0 {
        let (rows, bytes) = (operator.state_rows, operator.state_bytes);
        said += &format!(", held {rows} in {bytes} bytes");
    }
    if operator.resting_bytes > 0 {
        said += &format!(", {} bytes at rest on disk", operator.resting_bytes);
    }
    said += &format!(", busy {:.3} ms", operator.busy.as_secs_f64() * 1000.0);
    if operator.workers > 1 {
        said += &format!(", workers {}", operator.workers);
    }
    if operator.expression_errors > 0 {
        said += &format!(", expression errors {}", operator.expression_errors);
    }
    said
}
