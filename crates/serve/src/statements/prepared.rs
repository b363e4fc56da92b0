//! PREPARE, EXECUTE and DEALLOCATE in SQL. They share their names with the extended protocol's.

use std::sync::Arc;

use arrow::array::Array;
use datafusion::common::ScalarValue;
use segue_types::{SqlState, UserError};
use sqlparser::ast::{self, Statement};

use super::{Call, execute as execute_call, parameters};
use crate::outcome::Outcome;
use crate::pg_type::pg_type;
use crate::prepared::Parameters;
use crate::session::{NAMED_MAX, Running, Session};

/// Runs a statement of this family.
pub(super) async fn execute(
    session: &mut Session,
    statement: &Statement,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    match statement {
        Statement::Prepare { name, data_types, statement } => {
            let text = inner_text(&call.source).unwrap_or_else(|| statement.to_string());
            prepare(session, &name.value, data_types, text, running).await
        }
        Statement::Execute { name: Some(name), parameters, using, .. } => {
            let given: Vec<ast::Expr> =
                parameters.iter().chain(using.iter().map(|using| &using.expr)).cloned().collect();
            run(session, &name.to_string(), given, running).await
        }
        Statement::Deallocate { name, .. } => deallocate(session, &name.value),
        other => Err(UserError::unsupported(format!("{other} is not supported"))),
    }
}

/// What stands behind `PREPARE name [(types)] AS`, in the user's own words.
fn inner_text(source: &str) -> Option<String> {
    let lower = source.to_ascii_lowercase();
    let at = lower.find(" as ").or_else(|| lower.find("\nas "))?;
    source.get(at + 4..).map(str::to_owned)
}

async fn prepare(
    session: &mut Session,
    name: &str,
    data_types: &[ast::DataType],
    text: String,
    running: &Running,
) -> Result<Outcome, UserError> {
    if session.prepared.contains_key(name) {
        return Err(UserError::new(
            SqlState::DUPLICATE_PREPARED_STATEMENT,
            format!("prepared statement \"{name}\" already exists"),
        ));
    }
    if session.prepared.len() >= NAMED_MAX {
        return Err(UserError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "too many prepared statements",
        ));
    }
    let oids = data_types
        .iter()
        .map(|ty| Ok(pg_type(&segue_sql::parse_type(&ty.to_string())?).oid()))
        .collect::<Result<Vec<u32>, UserError>>()?;
    let inner = Running { text: text.into(), ..running.clone() };
    let prepared = super::prepare(session, &inner, &oids).await?;
    session.prepared.insert(name.to_owned(), Arc::new(prepared));
    Ok(Outcome::done("PREPARE"))
}

async fn run(
    session: &mut Session,
    name: &str,
    given: Vec<ast::Expr>,
    running: &Running,
) -> Result<Outcome, UserError> {
    let prepared = Arc::clone(session.prepared(name)?);
    if given.len() != prepared.parameters.len() {
        return Err(UserError::new(
            SqlState::SYNTAX_ERROR,
            format!("wrong number of parameters for prepared statement \"{name}\""),
        )
        .with_detail(format!(
            "Expected {} parameters but got {}.",
            prepared.parameters.len(),
            given.len()
        )));
    }
    let Some(statement) = prepared.statement.clone() else {
        return Ok(Outcome::done("SELECT 0"));
    };
    let mut values = Vec::with_capacity(given.len());
    for (mut expr, parameter) in given.into_iter().zip(&prepared.parameters) {
        parameters::cast(&mut expr, &parameter.ty);
        values.push(constant(session, expr, running).await?);
    }
    let call = Call {
        statement,
        source: Arc::clone(&prepared.text),
        parameters: Parameters::new(values),
        plan: Arc::clone(&prepared.plan),
    };
    let inner = Running { text: Arc::clone(&prepared.text), ..running.clone() };
    Box::pin(execute_call(session, call, &inner)).await
}

/// The value of an expression without columns.
async fn constant(
    session: &Session,
    expr: ast::Expr,
    running: &Running,
) -> Result<ScalarValue, UserError> {
    let text = &running.text;
    let plan = session.planner.plan_query(select_of(expr), text).await?;
    let stream = session.planner.run(&plan, running).await?;
    let batches = datafusion::physical_plan::common::collect(stream)
        .await
        .map_err(|error| crate::errors::user_error(&error, text))?;
    let column = batches.iter().find(|batch| batch.num_rows() > 0).map(|batch| batch.column(0));
    let column = column.filter(|column| !column.is_empty());
    let column = column.ok_or_else(|| UserError::internal("a constant has no value"))?;
    ScalarValue::try_from_array(column, 0).map_err(|error| crate::errors::user_error(&error, text))
}

/// `SELECT expr`.
fn select_of(expr: ast::Expr) -> ast::Query {
    let mut query = super::target::skeleton("SELECT NULL");
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![ast::SelectItem::UnnamedExpr(expr)];
    }
    query
}

fn deallocate(session: &mut Session, name: &str) -> Result<Outcome, UserError> {
    if name.eq_ignore_ascii_case("all") {
        session.prepared.clear();
        return Ok(Outcome::done("DEALLOCATE ALL"));
    }
    session.prepared(name)?;
    session.prepared.remove(name);
    Ok(Outcome::done("DEALLOCATE"))
}
