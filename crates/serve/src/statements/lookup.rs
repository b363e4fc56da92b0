//! The path around the planner: `SELECT columns FROM relation WHERE key = value AND …` is one look into
//! the index.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Fields, Schema};
use datafusion::common::ScalarValue;
use segue_catalog::{Object, ObjectState};
use segue_plan::dialect::is_absolute;
use segue_types::{SqlType, UserError, sql_type_of};
use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor,
    UnaryOperator, Value,
};

use super::parameters::{Types, placeholder};
use super::target::folded;
use crate::plan::Reading;
use crate::values::scalar_of_text;

/// The answer, when the query is a lookup; `None` sends it to the planner, which knows all the rest,
/// errors included.
pub(super) fn execute(
    reading: &Reading,
    query: &Query,
    parameters: &[ScalarValue],
) -> Result<Option<RecordBatch>, UserError> {
    let Some(lookup) = analyse(reading, query) else { return Ok(None) };
    let Some(version) = reading.version(lookup.object.id) else { return Ok(None) };
    let Some(key) = lookup.key(parameters) else { return Ok(None) };
    let Some(found) = crate::backend::lookup(version, key) else { return Ok(None) };
    let columns: Vec<ArrayRef> =
        lookup.columns.iter().map(|(column, _)| Arc::clone(found.column(*column))).collect();
    let schema = Arc::new(Schema::new(lookup.fields()));
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(found.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options)
        .map(Some)
        .map_err(|error| UserError::internal(format!("a lookup's columns do not fit: {error}")))
}

/// The types of a lookup's parameters, and its columns; `None` when the planner must find them out.
pub(super) fn describe(reading: &Reading, query: &Query) -> Option<(Types, Fields)> {
    let lookup = analyse(reading, query)?;
    let mut types = Types::new();
    for (value, column) in lookup.values.iter().zip(&lookup.object.key) {
        let number = placeholder(value)?;
        let ty = sql_type_of(lookup.object.schema.field(*column))?;
        // One parameter for two columns may have to be of two types.
        if types.insert(number, ty).is_some() {
            return None;
        }
    }
    Some((types, lookup.fields().into()))
}

/// A lookup.
struct Lookup<'a> {
    object: Arc<Object>,
    /// Columns and the names that they are shown under.
    columns: Vec<(usize, String)>,
    /// What the key's columns are to equal, in the key's order.
    values: Vec<&'a Expr>,
}

impl Lookup<'_> {
    fn fields(&self) -> Vec<Field> {
        let schema = &self.object.schema;
        let shown = self.columns.iter();
        shown.map(|(column, name)| schema.field(*column).clone().with_name(name)).collect()
    }

    /// One row of the key's columns; `None` when a value is not a constant of its column's type.
    fn key(&self, parameters: &[ScalarValue]) -> Option<Vec<ArrayRef>> {
        let constant = |(value, column): (&&Expr, &usize)| {
            let ty = sql_type_of(self.object.schema.field(*column))?;
            constant(value, &ty, parameters)?.to_array().ok()
        };
        self.values.iter().zip(&self.object.key).map(constant).collect()
    }
}

fn analyse<'a>(reading: &Reading, query: &'a Query) -> Option<Lookup<'a>> {
    let select = plain_select(query)?;
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, alias, args: None, .. } = &from.relation else { return None };
    if !from.joins.is_empty() {
        return None;
    }
    let [part] = name.0.as_slice() else { return None };
    let table = folded(part.as_ident()?);
    let object = reading.published.catalog.by_name(&table)?;
    if object.key.is_empty() || !object.is_stored() || object.state != ObjectState::Ready {
        return None;
    }
    let visible = match alias {
        Some(alias) if alias.columns.is_empty() => folded(&alias.name),
        Some(_) => return None,
        None => table,
    };
    let mut values: Vec<Option<&Expr>> = vec![None; object.key.len()];
    conditions(select.selection.as_ref()?, object, &visible, &mut values)?;
    let values = values.into_iter().collect::<Option<Vec<_>>>()?;
    let columns = projection(select, object, &visible)?;
    Some(Lookup { object: Arc::clone(object), columns, values })
}

/// The SELECT of a query that has nothing else.
fn plain_select(query: &Query) -> Option<&Select> {
    let bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.pipe_operators.is_empty();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let plain = bare
        && select.distinct.is_none()
        && select.top.is_none()
        && select.exclude.is_none()
        && select.into.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.prewhere.is_none()
        && select.lateral_views.is_empty()
        && select.connect_by.is_empty()
        && select.named_window.is_empty()
        && matches!(&select.group_by, GroupByExpr::Expressions(exprs, modifiers)
            if exprs.is_empty() && modifiers.is_empty());
    plain.then_some(select)
}

/// Fills the key's values from `a = 1 AND b = $1`; `None` when the condition is anything more or less.
fn conditions<'a>(
    condition: &'a Expr,
    object: &Object,
    visible: &str,
    values: &mut [Option<&'a Expr>],
) -> Option<()> {
    match condition {
        Expr::Nested(inner) => conditions(inner, object, visible, values),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conditions(left, object, visible, values)?;
            conditions(right, object, visible, values)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let (column, value) = match column_of(left, object, visible) {
                Some(column) => (column, right),
                None => (column_of(right, object, visible)?, left),
            };
            let place = object.key.iter().position(|key| *key == column)?;
            // The same column twice is the planner's to judge.
            values[place].replace(value.as_ref()).is_none().then_some(())
        }
        _ => None,
    }
}

fn column_of(expr: &Expr, object: &Object, visible: &str) -> Option<usize> {
    let name = match expr {
        Expr::Identifier(name) => folded(name),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, name] if folded(table) == visible => folded(name),
            _ => return None,
        },
        _ => return None,
    };
    object.schema.fields().iter().position(|field| *field.name() == name)
}

/// A constant of the key's own type; NULL and values of other types go to the planner.
fn constant(expr: &Expr, ty: &SqlType, parameters: &[ScalarValue]) -> Option<ScalarValue> {
    if let Some(number) = placeholder(expr) {
        let value = parameters.get(number - 1)?;
        if value.is_null() {
            return None;
        }
        return if value.data_type() == ty.arrow_type() {
            Some(value.clone())
        } else {
            whole_number(value, ty)
        };
    }
    let whole = matches!(ty, SqlType::SmallInt | SqlType::Integer | SqlType::BigInt);
    let text = match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            Value::Number(text, _) if whole => text.clone(),
            _ => return None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) if whole => format!("-{text}"),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    is_absolute(ty, &text).then(|| scalar_of_text(ty, &text).ok())?
}

/// Drivers send the smallest integer type that holds the value.
fn whole_number(value: &ScalarValue, ty: &SqlType) -> Option<ScalarValue> {
    let integral =
        matches!(value, ScalarValue::Int16(_) | ScalarValue::Int32(_) | ScalarValue::Int64(_));
    let whole = matches!(ty, SqlType::SmallInt | SqlType::Integer | SqlType::BigInt);
    if integral && whole { value.cast_to(&ty.arrow_type()).ok() } else { None }
}

fn projection(select: &Select, object: &Object, visible: &str) -> Option<Vec<(usize, String)>> {
    let fields = object.schema.fields();
    let mut columns = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(options) if options.to_string().is_empty() => {
                columns.extend(
                    fields.iter().enumerate().map(|(index, field)| (index, field.name().clone())),
                );
            }
            SelectItem::UnnamedExpr(expr) => {
                let column = column_of(expr, object, visible)?;
                columns.push((column, fields[column].name().clone()));
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                columns.push((column_of(expr, object, visible)?, folded(alias)));
            }
            _ => return None,
        }
    }
    Some(columns)
}
