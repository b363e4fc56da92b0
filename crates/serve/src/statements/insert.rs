//! INSERT. Literal rows become columns directly; everything else is planned as a query whose columns
//! are cast to the table's.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::can_cast_types;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{ExprSchema, ScalarValue};
use datafusion::logical_expr::{ExprSchemable, LogicalPlan, LogicalPlanBuilder, col};
use segue_catalog::Object;
use segue_plan::dialect::is_absolute;
use segue_types::{SqlState, SqlType, UserError, sql_type_of};
use sqlparser::ast::{self, Expr, SetExpr, TableObject, UnaryOperator, Value};

use super::defaults::Defaults;
use super::parameters::{self, Types, placeholder};
use super::returning::Returning;
use super::target::{self, added, column_type, refuse};
use super::{Call, query};
use crate::errors::user_error;
use crate::outcome::Outcome;
use crate::prepared::Parameter;
use crate::session::{Running, Session};
use crate::values::{null_of, scalar_of_text};

/// Where the rows go.
struct Target {
    object: Arc<Object>,
    columns: Vec<usize>,
    /// How many columns the statement names; each must get a value.
    named: usize,
    defaults: Defaults,
    returning: Option<Returning>,
}

/// Columns that a statement gives values.
struct Given {
    columns: Vec<usize>,
    arrays: Vec<ArrayRef>,
    count: usize,
}

fn resolve(session: &Session, insert: &ast::Insert) -> Result<Target, UserError> {
    refuse(insert.on.is_some(), "ON CONFLICT in INSERT").map_err(|error| {
        error.with_hint("Say ON CONFLICT in CREATE TABLE; a PRIMARY KEY overwrites by default.")
    })?;
    refuse(insert.overwrite || insert.replace_into, "INSERT OVERWRITE")?;
    refuse(!insert.assignments.is_empty(), "INSERT SET")?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(UserError::unsupported("INSERT into a function is not supported"));
    };
    let object = target::table(session, name, "insert into")?;
    let names: Vec<String> = insert
        .columns
        .iter()
        .filter_map(|name| name.0.last().and_then(|part| part.as_ident()).map(target::folded))
        .collect();
    let columns = target::columns(&object, &names)?;
    let defaults = Defaults::of(&object)?;
    let returning = Returning::of(insert.returning.as_ref(), name, None);
    Ok(Target { object, columns, named: names.len(), defaults, returning })
}

/// The types of an INSERT's parameters: a placeholder that is a whole value has its column's.
pub(super) async fn prepare(
    session: &Session,
    insert: &ast::Insert,
    running: &Running,
    client_oids: &[u32],
) -> Result<(Vec<Parameter>, Option<Fields>), UserError> {
    let target = resolve(session, insert)?;
    let fields = match &target.returning {
        None => None,
        Some(returning) => Some(returning.fields(session, running).await?),
    };
    let Some(source) = &insert.source else { return Ok((Vec::new(), fields)) };
    let mut known = Types::new();
    let mut note = |exprs: &mut dyn Iterator<Item = &Expr>| {
        for (expr, column) in exprs.zip(&target.columns) {
            if let Some(number) = placeholder(expr) {
                known.insert(number, column_type(&target.object.schema, *column));
            }
        }
    };
    match source.body.as_ref() {
        SetExpr::Values(values) => values.rows.iter().for_each(|row| note(&mut row.iter())),
        SetExpr::Select(select) => {
            note(&mut select.projection.iter().filter_map(|item| match item {
                ast::SelectItem::UnnamedExpr(expr)
                | ast::SelectItem::ExprWithAlias { expr, .. } => Some(expr),
                _ => None,
            }));
        }
        _ => {}
    }
    let statement =
        query::rewritten(&cast_values(without_defaults(source, &target), &target), &running.text);
    let mut typed = statement.clone();
    parameters::with_types(&mut typed, &known);
    let planned =
        parameters::plan(&session.planner, typed, &running.text, client_oids, &known).await?;
    Ok((planned.0, fields))
}

/// Runs an INSERT.
pub(super) async fn execute(
    session: &mut Session,
    insert: &ast::Insert,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    let target = resolve(session, insert)?;
    if let Some(returning) = &target.returning {
        // A mistake in the list must not leave the rows behind.
        returning.fields(session, running).await?;
    }
    let given = match &insert.source {
        None => vec![Given { columns: Vec::new(), arrays: Vec::new(), count: 1 }],
        Some(source) => match literal_rows(&target, source, &call.parameters)? {
            Some(given) => vec![given],
            None => query_rows(session, &target, source, call, running).await?,
        },
    };
    let mut batches = Vec::with_capacity(given.len());
    for Given { columns, arrays, count } in &given {
        let (object, defaults) = (&target.object, &target.defaults);
        batches.push(defaults.rows(session, object, columns, arrays, *count, running).await?);
    }
    let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let written = if target.returning.is_some() { batches.clone() } else { Vec::new() };
    write(session, &target.object, batches, running).await?;
    if let Some(returning) = &target.returning {
        return returning.rows(session, &target.object, written, "INSERT 0", running).await;
    }
    Ok(Outcome::Done(format!("INSERT 0 {count}")))
}

/// Adds rows to a table; returns when they are durable and visible.
pub(super) async fn write(
    session: &mut Session,
    object: &Object,
    batches: Vec<RecordBatch>,
    running: &Running,
) -> Result<(), UserError> {
    running.check()?;
    let batches: Vec<RecordBatch> =
        batches.into_iter().filter(|batch| batch.num_rows() > 0).collect();
    if batches.is_empty() {
        return Ok(());
    }
    let writer = session.engine.table(object.id).await?;
    let changes = batches.into_iter().map(|batch| added(object, batch)).collect();
    writer.write(changes).await?;
    session.wrote();
    Ok(())
}

/// The rows of VALUES when each value is a literal or a parameter; `None` when one is more than that.
fn literal_rows(
    target: &Target,
    source: &ast::Query,
    parameters: &[ScalarValue],
) -> Result<Option<Given>, UserError> {
    let SetExpr::Values(values) = source.body.as_ref() else { return Ok(None) };
    if source.with.is_some() || source.order_by.is_some() || source.limit_clause.is_some() {
        return Ok(None);
    }
    for row in &values.rows {
        check_width(row.len(), target)?;
        check_booleans(row, target)?;
    }
    let width = values.rows.first().map_or(0, |row| row.len());
    let given = &target.columns[..width];
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(width);
    for (place, column) in given.iter().enumerate() {
        let ty = column_type(&target.object.schema, *column);
        let exprs = values.rows.iter().map(|row| &row[place]);
        if target.defaults.has(*column) && exprs.clone().any(is_default) {
            return Ok(None);
        }
        let texts: Option<Vec<Option<String>>> =
            exprs.clone().map(|expr| literal_text(expr, &ty)).collect();
        match texts {
            Some(texts) => {
                let texts = texts.iter().map(Option::as_deref);
                columns.push(crate::values::column_of_texts(&ty, texts)?);
            }
            None => match scalars(exprs, &ty, parameters)? {
                Some(array) => columns.push(array),
                None => return Ok(None),
            },
        }
    }
    Ok(Some(Given { columns: given.to_vec(), arrays: columns, count: values.rows.len() }))
}

/// PostgreSQL assigns a boolean to a column of no other type than text; a cast would.
fn check_booleans(row: &[Expr], target: &Target) -> Result<(), UserError> {
    for (expr, column) in row.iter().zip(&target.columns) {
        let wanted = target.object.schema.field(*column);
        if is_boolean(expr) && !takes_boolean(wanted.data_type()) {
            return Err(mismatch(wanted, &Field::new("", DataType::Boolean, true)));
        }
    }
    Ok(())
}

/// Whether the form of an expression shows that it is a boolean.
fn is_boolean(expr: &Expr) -> bool {
    use ast::BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Boolean(_)),
        Expr::Nested(inner) => is_boolean(inner),
        Expr::UnaryOp { op, .. } => *op == UnaryOperator::Not,
        Expr::BinaryOp { op, .. } => matches!(op, And | Eq | Gt | GtEq | Lt | LtEq | NotEq | Or),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::Between { .. }
        | Expr::InList { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::Exists { .. } => true,
        _ => false,
    }
}

/// Whether a value of one type may be written to a column of another.
pub(super) fn can_assign(found: &DataType, wanted: &DataType) -> bool {
    can_cast_types(found, wanted) && (found != &DataType::Boolean || takes_boolean(wanted))
}

fn takes_boolean(wanted: &DataType) -> bool {
    matches!(wanted, DataType::Boolean | DataType::Utf8)
}

/// A column of literals and parameters mixed.
fn scalars<'a>(
    exprs: impl Iterator<Item = &'a Expr>,
    ty: &SqlType,
    parameters: &[ScalarValue],
) -> Result<Option<ArrayRef>, UserError> {
    let mut values = Vec::new();
    for expr in exprs {
        let value = match (placeholder(expr), literal_text(expr, ty)) {
            (Some(number), _) => {
                let value = parameters.get(number - 1).ok_or_else(|| {
                    UserError::new(
                        SqlState::UNDEFINED_PARAMETER,
                        format!("there is no parameter ${number}"),
                    )
                })?;
                value.cast_to(&ty.arrow_type()).map_err(|error| user_error(&error, ""))?
            }
            (None, Some(Some(text))) => scalar_of_text(ty, &text)?,
            (None, Some(None)) => null_of(ty),
            (None, None) => return Ok(None),
        };
        values.push(value);
    }
    ScalarValue::iter_to_array(values).map(Some).map_err(|error| user_error(&error, ""))
}

/// The text of a literal that its column reads as PostgreSQL would; `None` for anything else.
/// A fraction for a whole-number column is not such a literal: it is rounded, which a query does.
fn literal_text(expr: &Expr, ty: &SqlType) -> Option<Option<String>> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Null => Some(None),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                is_absolute(ty, text).then(|| Some(text.clone()))
            }
            Value::Boolean(value) if *ty == SqlType::Boolean => Some(Some(value.to_string())),
            Value::Number(text, _) if takes_number(ty, text) => Some(Some(text.clone())),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) if takes_number(ty, text) => Some(Some(format!("-{text}"))),
                _ => None,
            },
            _ => None,
        },
        Expr::Identifier(_) if is_default(expr) => Some(None),
        _ => None,
    }
}

fn takes_number(ty: &SqlType, text: &str) -> bool {
    match ty {
        SqlType::SmallInt | SqlType::Integer | SqlType::BigInt => {
            text.bytes().all(|c| c.is_ascii_digit())
        }
        SqlType::Real | SqlType::Double | SqlType::Numeric { .. } => true,
        _ => false,
    }
}

fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// DEFAULT as the expression that it stands for.
fn without_defaults(source: &ast::Query, target: &Target) -> ast::Query {
    let mut source = source.clone();
    if let SetExpr::Values(values) = source.body.as_mut() {
        for row in &mut values.rows {
            for (expr, column) in row.iter_mut().zip(&target.columns) {
                if is_default(expr) {
                    *expr = target.defaults.expression(*column);
                }
            }
        }
    }
    source
}

/// Each value of VALUES is cast to its column's type by itself: the values of one column need not agree.
fn cast_values(mut source: ast::Query, target: &Target) -> ast::Query {
    if let SetExpr::Values(values) = source.body.as_mut() {
        for row in &mut values.rows {
            for (expr, column) in row.iter_mut().zip(&target.columns) {
                let ty = column_type(&target.object.schema, *column);
                assign(expr, &ty);
            }
        }
    }
    source
}

/// Makes an expression one of the column's type. No cast names a struct: `row(…)` gets its member names instead, and
/// other expressions of that type are read as they are.
fn assign(expr: &mut Expr, ty: &SqlType) {
    let SqlType::Struct(members) = ty else { return parameters::cast(expr, ty) };
    let values: Vec<Expr> = match expr {
        Expr::Tuple(values) => values.clone(),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            match row_arguments(function) {
                Some(values) => values,
                None => return,
            }
        }
        _ => return,
    };
    if values.len() != members.len() {
        return;
    }
    let named = members.iter().zip(values).flat_map(|((name, ty), mut value)| {
        assign(&mut value, ty);
        [Expr::value(Value::SingleQuotedString(name.clone())), value]
    });
    let mut call = target::skeleton("SELECT named_struct(1)");
    let SetExpr::Select(select) = call.body.as_mut() else { return };
    if let Some(ast::SelectItem::UnnamedExpr(Expr::Function(function))) =
        select.projection.first_mut()
        && let ast::FunctionArguments::List(list) = &mut function.args
    {
        let argument = |value| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value));
        list.args = named.map(argument).collect();
        *expr = Expr::Function(function.clone());
    }
}

fn row_arguments(function: &ast::Function) -> Option<Vec<Expr>> {
    let ast::FunctionArguments::List(list) = &function.args else { return None };
    let plain = |argument: &ast::FunctionArg| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

async fn query_rows(
    session: &Session,
    target: &Target,
    source: &ast::Query,
    call: &Call,
    running: &Running,
) -> Result<Vec<Given>, UserError> {
    let text = &running.text;
    let statement =
        query::rewritten(&cast_values(without_defaults(source, target), target), &call.source);
    let values = &call.parameters;
    let plan = parameters::plan_with_values(&session.planner, statement, text, values).await?;
    let width = plan.schema().fields().len();
    check_width(width, target)?;
    let given = &target.columns[..width];
    let plan = cast_columns(plan, &target.object, given, text)?;
    let stream = session.planner.run(&plan, running).await?;
    let batches = collect(stream, running).await?;
    let given = |batch: &RecordBatch| Given {
        columns: given.to_vec(),
        arrays: batch.columns().to_vec(),
        count: batch.num_rows(),
    };
    Ok(batches.iter().map(given).collect())
}

/// All batches of a stream, unless the statement is cancelled.
pub(super) async fn collect(
    stream: datafusion::execution::SendableRecordBatchStream,
    running: &Running,
) -> Result<Vec<RecordBatch>, UserError> {
    tokio::select! {
        biased;
        () = running.cancel.cancelled() => Err(crate::errors::canceled()),
        batches = datafusion::physical_plan::common::collect(stream) => {
            batches.map_err(|error| user_error(&error, &running.text))
        }
    }
}

fn check_width(width: usize, target: &Target) -> Result<(), UserError> {
    if width > target.columns.len() {
        return Err(UserError::new(
            SqlState::SYNTAX_ERROR,
            "INSERT has more expressions than target columns",
        ));
    }
    if width < target.named {
        return Err(UserError::new(
            SqlState::SYNTAX_ERROR,
            "INSERT has more target columns than expressions",
        ));
    }
    Ok(())
}

/// Casts a query's columns to those of the table.
pub(super) fn cast_columns(
    plan: LogicalPlan,
    object: &Object,
    given: &[usize],
    text: &str,
) -> Result<LogicalPlan, UserError> {
    let mut casts = Vec::with_capacity(given.len());
    for (column, place) in plan.schema().columns().into_iter().zip(given) {
        let wanted = object.schema.field(*place);
        let found = plan.schema().field_from_column(&column).map_err(|e| user_error(&e, text))?;
        if !can_assign(found.data_type(), wanted.data_type()) {
            return Err(mismatch(wanted, found));
        }
        let cast = col(column).cast_to(wanted.data_type(), plan.schema());
        let name = format!("column{}", casts.len());
        casts.push(cast.map_err(|error| user_error(&error, text))?.alias(name));
    }
    LogicalPlanBuilder::from(plan)
        .project(casts)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| user_error(&error, text))
}

pub(super) fn mismatch(wanted: &Field, found: &Field) -> UserError {
    let name = |field| {
        sql_type_of(field).map_or_else(|| field.data_type().to_string(), |ty| ty.to_string())
    };
    UserError::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "column \"{}\" is of type {} but expression is of type {}",
            wanted.name(),
            name(wanted),
            name(found)
        ),
    )
    .with_hint("You will need to rewrite or cast the expression.")
}
