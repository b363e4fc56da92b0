//! UPDATE: a query gives each row that changes, as it was and as it will be.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Fields;
use datafusion::common::ExprSchema;
use datafusion::logical_expr::{ExprSchemable, LogicalPlan, LogicalPlanBuilder, col};
use datafusion::prelude::Expr as PlanExpr;
use segue_catalog::Object;
use segue_types::{SqlState, UserError};
use sqlparser::ast::{
    self, AssignmentTarget, Expr, Ident, ObjectName, SelectItem, SetExpr, TableFactor,
};

use super::defaults::Defaults;
use super::parameters::{self, Types, placeholder};
use super::returning::Returning;
use super::target::{self, column_type, refuse, removed, replaced};
use super::{Call, insert, query};
use crate::backend::Changes;
use crate::errors::user_error;
use crate::outcome::Outcome;
use crate::plan::Reading;
use crate::prepared::Parameter;
use crate::session::{Running, Session};

/// What an UPDATE does: the table, which columns it sets, and the query of old rows and new values.
struct Update {
    object: Arc<Object>,
    columns: Vec<usize>,
    query: ast::Query,
    /// Types of the placeholders that are a column's whole new value.
    known: Types,
    returning: Option<Returning>,
}

fn resolve(session: &Session, update: &ast::Update) -> Result<Update, UserError> {
    refuse(
        update.from.is_some() || !update.table.joins.is_empty(),
        "UPDATE with more than one table",
    )?;
    let TableFactor::Table { name, alias, .. } = &update.table.relation else {
        return Err(UserError::new(SqlState::SYNTAX_ERROR, "UPDATE needs a table"));
    };
    let object = target::changeable_table(session, name, "update")?;
    let mut query = target::skeleton("SELECT * FROM t");
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(UserError::internal("the skeleton of UPDATE is no SELECT"));
    };
    select.from = vec![update.table.clone()];
    select.selection.clone_from(&update.selection);
    let (mut columns, mut known) = (Vec::new(), Types::new());
    for (name, value) in assignments(update)? {
        let ident = name.0.last().and_then(|part| part.as_ident());
        let column = target::column(&object, &ident.map(target::folded).unwrap_or_default())?;
        target::refuse_generated(&object, column)?;
        if columns.contains(&column) {
            return Err(UserError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "multiple assignments to same column \"{}\"",
                    object.schema.field(column).name()
                ),
            ));
        }
        if let Some(number) = placeholder(&value) {
            known.insert(number, column_type(&object.schema, column));
        }
        select.projection.push(SelectItem::ExprWithAlias {
            expr: new_value(&value, &object, column)?,
            alias: Ident::with_quote('"', format!("new {}", columns.len())),
        });
        columns.push(column);
    }
    let returning = Returning::of(update.returning.as_ref(), name, alias.as_ref());
    Ok(Update { object, columns, query, known, returning })
}

/// Columns and their new values; `(a, b) = (x, y)` and `(a, b) = (SELECT x, y …)` are taken apart.
fn assignments(update: &ast::Update) -> Result<Vec<(&ObjectName, Expr)>, UserError> {
    let mut assignments = Vec::new();
    for assignment in &update.assignments {
        match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => assignments.push((name, value.clone())),
            (AssignmentTarget::Tuple(names), value) => {
                let values = row_values(value, names.len())?;
                assignments.extend(names.iter().zip(values));
            }
        }
    }
    Ok(assignments)
}

fn row_values(value: &Expr, count: usize) -> Result<Vec<Expr>, UserError> {
    let values = match value {
        Expr::Tuple(values) => values.clone(),
        Expr::Nested(value) if count == 1 => vec![(**value).clone()],
        Expr::Subquery(query) => columns_of(query)
            .ok_or_else(|| UserError::unsupported("SET (a, b) = (SELECT * …) is not supported"))?,
        _ => {
            let message =
                "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
            return Err(UserError::unsupported(message));
        }
    };
    match values.len() == count {
        true => Ok(values),
        false => {
            let message = "number of columns does not match number of values";
            Err(UserError::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

/// A subquery for each column of a subquery; `None` where it does not list them.
fn columns_of(query: &ast::Query) -> Option<Vec<Expr>> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let plain = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    if !select.projection.iter().all(plain) {
        return None;
    }
    let column = |item: &SelectItem| {
        let mut of_column = query.clone();
        if let SetExpr::Select(select) = of_column.body.as_mut() {
            select.projection = vec![item.clone()];
        }
        Expr::Subquery(Box::new(of_column))
    };
    Some(select.projection.iter().map(column).collect())
}

fn new_value(value: &Expr, object: &Object, column: usize) -> Result<Expr, UserError> {
    let is_default = matches!(value, Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"));
    if is_default { Ok(Defaults::of(object)?.expression(column)) } else { Ok(value.clone()) }
}

/// The types of an UPDATE's parameters.
pub(super) async fn prepare(
    session: &Session,
    update: &ast::Update,
    running: &Running,
    client_oids: &[u32],
) -> Result<(Vec<Parameter>, Option<Fields>), UserError> {
    let update = resolve(session, update)?;
    let mut statement = query::rewritten(&update.query, "");
    parameters::with_types(&mut statement, &update.known);
    let text = &running.text;
    let planned =
        parameters::plan(&session.planner, statement, text, client_oids, &update.known).await?;
    let fields = match &update.returning {
        None => None,
        Some(returning) => Some(returning.fields(session, running).await?),
    };
    Ok((planned.0, fields))
}

/// Runs an UPDATE under the table's write lock.
pub(super) async fn execute(
    session: &mut Session,
    update: &ast::Update,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    let update = resolve(session, update)?;
    if let Some(returning) = &update.returning {
        // A mistake in the list must not leave the rows behind.
        returning.fields(session, running).await?;
    }
    let writer = session.engine.table(update.object.id).await?;
    let published = session.engine.published();
    let locked = Some((update.object.id, writer.version().clone()));
    session.planner.read(Reading { published, locked, returned: None });

    let text = &running.text;
    let statement = query::rewritten(&update.query, "");
    let values = &call.parameters;
    let plan = parameters::plan_with_values(&session.planner, statement, text, values).await?;
    let plan = cast_new_values(plan, &update, text)?;
    let batches = insert::collect(session.planner.run(&plan, running).await?, running).await?;
    let mut changes = Vec::new();
    let mut written = Vec::new();
    let mut count = 0;
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        count += batch.num_rows();
        changes.push(changes_of(&update, batch)?);
    }
    if count > 0 {
        let (gone, come): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        if update.returning.is_some() {
            written.extend(come.iter().map(|changes: &Changes| changes.rows.clone()));
        }
        // All keys go before any comes: a row may take the key that another one leaves.
        let ordered = gone.into_iter().flatten().chain(come).collect();
        running.check()?;
        writer.write(ordered).await?;
    }
    session.wrote();
    if let Some(returning) = &update.returning {
        return returning.rows(session, &update.object, written, "UPDATE", running).await;
    }
    Ok(Outcome::Done(format!("UPDATE {count}")))
}

/// What goes (nothing, when the new row replaces the old one by its key), and what comes.
fn changes_of(
    update: &Update,
    batch: &RecordBatch,
) -> Result<(Option<Changes>, Changes), UserError> {
    let width = update.object.schema.fields().len();
    let old: Vec<ArrayRef> = batch.columns()[..width].to_vec();
    let mut new = old.clone();
    for (place, column) in update.columns.iter().enumerate() {
        new[*column] = Arc::clone(batch.column(width + place));
    }
    let all: Vec<usize> = (0..width).collect();
    let new = target::rows(&update.object, &all, &new, batch.num_rows())?;
    let key = &update.object.key;
    let moves = key.is_empty() || update.columns.iter().any(|column| key.contains(column));
    let gone = if moves || target::resolves(&update.object) {
        let old = target::held_rows(&update.object, &old, batch.num_rows())?;
        Some(removed(&update.object, old))
    } else {
        None
    };
    Ok((gone, replaced(&update.object, new)))
}

/// Casts the new values to their columns' types; the old ones are what they are.
fn cast_new_values(
    plan: LogicalPlan,
    update: &Update,
    text: &str,
) -> Result<LogicalPlan, UserError> {
    let width = update.object.schema.fields().len();
    let mut exprs: Vec<PlanExpr> = Vec::new();
    for (place, column) in plan.schema().columns().into_iter().enumerate() {
        if place < width {
            exprs.push(col(column));
            continue;
        }
        let wanted = update.object.schema.field(update.columns[place - width]);
        let found = plan.schema().field_from_column(&column).map_err(|e| user_error(&e, text))?;
        if !insert::can_assign(found.data_type(), wanted.data_type()) {
            return Err(insert::mismatch(wanted, found));
        }
        let cast = col(column).cast_to(wanted.data_type(), plan.schema());
        let cast = cast.map_err(|error| user_error(&error, text))?;
        exprs.push(cast.alias(format!("new value {place}")));
    }
    LogicalPlanBuilder::from(plan)
        .project(exprs)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| user_error(&error, text))
}
