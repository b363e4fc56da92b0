//! DEFAULT: what a column holds that a statement gives no value.
//!
//! Defaults are kept as the text of CREATE TABLE. They are evaluated for every row that is written, by a query of
//! their own.

use arrow::array::{ArrayRef, RecordBatch};
use segue_catalog::Object;
use segue_sql::{Columns, CreateTable, Statement};
use segue_types::{SqlState, SqlType, UserError};
use sqlparser::ast::{self, Expr, SelectItem, SetExpr, Value};

use super::target::{self, column_type};
use super::{insert, parameters, query};
use crate::session::{Running, Session};

/// The defaults of a table that are not NULL.
pub(super) struct Defaults(Vec<(usize, Expr)>);

impl Defaults {
    /// As CREATE TABLE gave them.
    pub(super) fn of(object: &Object) -> Result<Defaults, UserError> {
        let declared = match segue_sql::parse(&object.definition)?.pop() {
            Some(Statement::CreateTable(table)) => table.columns,
            _ => return Ok(Defaults(Vec::new())),
        };
        let place = |name: &str| object.schema.index_of(name).expect("columns are as declared");
        let given = given(&declared).map(|(name, expr)| (place(name), expr.clone()));
        Ok(Defaults(given.collect()))
    }

    /// The default of a column; NULL where there is none.
    pub(super) fn expression(&self, column: usize) -> Expr {
        let found = self.0.iter().find(|(place, _)| *place == column);
        found.map_or_else(|| Expr::value(Value::Null), |(_, expr)| expr.clone())
    }

    /// Whether a column has one.
    pub(super) fn has(&self, column: usize) -> bool {
        self.0.iter().any(|(place, _)| *place == column)
    }

    /// Rows of the table from the columns that a statement gives.
    pub(super) async fn rows(
        &self,
        session: &Session,
        object: &Object,
        given: &[usize],
        columns: &[ArrayRef],
        count: usize,
        running: &Running,
    ) -> Result<RecordBatch, UserError> {
        let missing: Vec<&(usize, Expr)> =
            self.0.iter().filter(|(place, _)| !given.contains(place)).collect();
        if missing.is_empty() || count == 0 {
            return target::rows(object, given, columns, count);
        }
        let mut query = target::skeleton("SELECT 1 FROM generate_series(1, 1) AS g(g)");
        let typed = missing
            .iter()
            .map(|(place, expr)| typed(expr.clone(), &column_type(&object.schema, *place)));
        select(&mut query, typed, count);
        let plan = session.planner.plan(query::rewritten(&query, ""), "").await?;
        let batches = insert::collect(session.planner.run(&plan, running).await?, running).await?;
        let all = arrow::compute::concat_batches(&batches[0].schema(), &batches)
            .map_err(|error| UserError::internal(format!("defaults do not fit: {error}")))?;
        let places: Vec<usize> =
            given.iter().copied().chain(missing.iter().map(|(place, _)| *place)).collect();
        let columns: Vec<ArrayRef> =
            columns.iter().chain(all.columns()).map(ArrayRef::clone).collect();
        target::rows(object, &places, &columns, count)
    }
}

/// Columns with a default other than NULL.
fn given(columns: &Columns) -> impl Iterator<Item = (&str, &Expr)> {
    columns.columns.iter().filter_map(|column| {
        let default = column.default.as_ref()?;
        let is_null = default.text.eq_ignore_ascii_case("null");
        (!is_null).then(|| (column.name.as_str(), default.tree.as_ref()))
    })
}

/// Computes it once: a text that is no value of the column's type is found only then.
async fn evaluated(
    session: &Session,
    query: &ast::Query,
    running: &Running,
) -> Result<(), UserError> {
    let plan = session.planner.plan(query::rewritten(query, ""), &running.text).await?;
    let rows = insert::collect(session.planner.run(&plan, running).await?, running).await?;
    drop(rows);
    Ok(())
}

fn typed(mut expr: Expr, ty: &SqlType) -> Expr {
    parameters::cast(&mut expr, ty);
    expr
}

/// Puts the expressions among the columns, and the count into the series.
fn select(query: &mut ast::Query, exprs: impl Iterator<Item = Expr>, count: usize) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    // Two defaults may be the same expression.
    let named = |(place, expr): (usize, Expr)| SelectItem::ExprWithAlias {
        expr,
        alias: ast::Ident::with_quote('"', format!("default {place}")),
    };
    select.projection = exprs.enumerate().map(named).collect();
    if let [from] = select.from.as_mut_slice()
        && let ast::TableFactor::Table { args: Some(args), .. } = &mut from.relation
        && let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(last))) =
            args.args.last_mut()
    {
        *last = Expr::value(Value::Number(count.to_string(), false));
    }
}

/// Checks the defaults of a CREATE TABLE: each can be computed and has the type of its column.
pub(super) async fn check(
    session: &Session,
    create: &CreateTable,
    running: &Running,
) -> Result<(), UserError> {
    for column in &create.columns.columns {
        let Some(default) = &column.default else { continue };
        let mut query = target::skeleton("SELECT 1");
        if let SetExpr::Select(select) = query.body.as_mut() {
            let expr = typed(default.tree.as_ref().clone(), &column.ty);
            select.projection = vec![SelectItem::UnnamedExpr(expr)];
        }
        if let Err(error) = evaluated(session, &query, running).await {
            let is_column = error.state == SqlState::UNDEFINED_COLUMN;
            let error = if is_column {
                let message = "cannot use column reference in DEFAULT expression";
                UserError {
                    message: message.to_owned(),
                    state: SqlState::FEATURE_NOT_SUPPORTED,
                    hint: None,
                    ..error
                }
            } else {
                error
            };
            return Err(if error.offset.is_some() { error } else { error.at(column.offset.0) });
        }
    }
    Ok(())
}
