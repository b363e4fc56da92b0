//! The target of INSERT, UPDATE, DELETE and COPY: the table, its columns, and what its rows must satisfy.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, RecordBatch, UInt8Array};
use arrow::datatypes::{DataType, SchemaRef};
use segue_catalog::{Mutability, Object, ObjectKind, OnConflict, RelationKind};
use segue_plan::generated;
use segue_types::{Op, SqlState, SqlType, UserError, nearest, sql_type_of};
use sqlparser::ast;

use crate::backend::{Changes, Ops};
use crate::encode::{Column, Style, to_text};
use crate::session::Session;

/// The table of this name, or why it cannot be written.
pub(super) fn table(
    session: &Session,
    name: &ast::ObjectName,
    verb: &str,
) -> Result<Arc<Object>, UserError> {
    let parts: Vec<String> = name.0.iter().map(part).collect();
    let (schema, name) = match parts.as_slice() {
        [name] => ("public", name.as_str()),
        [.., schema, name] => (schema.as_str(), name.as_str()),
        [] => return Err(UserError::new(SqlState::SYNTAX_ERROR, "a table's name is missing")),
    };
    let reading = session.planner.reading();
    let catalog = &reading.published.catalog;
    let object = if schema == "public" { catalog.by_name(name) } else { None };
    let Some(object) = object else {
        if crate::catalog::system_relation_schema(schema, name).is_some() {
            let message = format!("cannot {verb} system relation {schema}.{name}");
            return Err(UserError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_hint("Only tables can be written."));
        }
        let message = format!("relation \"{name}\" does not exist");
        return Err(UserError::new(SqlState::UNDEFINED_TABLE, message));
    };
    match object.relation_kind() {
        RelationKind::Table => Ok(Arc::clone(object)),
        kind => Err(UserError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot {verb} {kind} \"{name}\""),
        )
        .with_hint("Only tables can be written.")),
    }
}

/// The same, for statements that change or remove rows.
pub(super) fn changeable_table(
    session: &Session,
    name: &ast::ObjectName,
    verb: &str,
) -> Result<Arc<Object>, UserError> {
    let object = table(session, name, verb)?;
    match &object.kind {
        ObjectKind::Table(table) if table.mutability == Mutability::AppendOnly => {
            let message = format!("cannot {verb} table \"{}\"", object.name);
            Err(UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_detail("The table was created APPEND ONLY."))
        }
        _ => Ok(object),
    }
}

/// A part of a name, folded to lower case unless it was quoted.
fn part(part: &ast::ObjectNamePart) -> String {
    match part {
        ast::ObjectNamePart::Identifier(ident) => folded(ident),
        other => other.to_string(),
    }
}

/// An identifier as PostgreSQL folds it.
pub(super) fn folded(ident: &ast::Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// The column of this name.
pub(super) fn column(object: &Object, name: &str) -> Result<usize, UserError> {
    let fields = object.schema.fields();
    fields.iter().position(|field| field.name() == name).ok_or_else(|| {
        let error = UserError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{}\" does not exist", object.name),
        );
        match nearest(name, fields.iter().map(|field| field.name().as_str())) {
            Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
            None => error,
        }
    })
}

/// The columns of a list; all of them for an empty one.
pub(super) fn columns(object: &Object, names: &[String]) -> Result<Vec<usize>, UserError> {
    if names.is_empty() {
        let all = 0..object.schema.fields().len();
        let generated = generated::of(object);
        let is_given = |column: &usize| generated.as_ref().is_none_or(|some| !some.is(*column));
        return Ok(all.filter(is_given).collect());
    }
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let index = column(object, name)?;
        refuse_generated(object, index)?;
        if found.contains(&index) {
            return Err(UserError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        found.push(index);
    }
    Ok(found)
}

/// What is computed is not given.
pub(super) fn refuse_generated(object: &Object, column: usize) -> Result<(), UserError> {
    if !generated::is_generated(object, column) {
        return Ok(());
    }
    let name = object.schema.field(column).name();
    let message = format!("column \"{name}\" can only be updated to DEFAULT");
    Err(UserError::new(SqlState::GENERATED_ALWAYS, message)
        .with_detail(format!("Column \"{name}\" is a generated column.")))
}

/// The SQL type of a table's column.
pub(super) fn column_type(schema: &SchemaRef, index: usize) -> SqlType {
    sql_type_of(schema.field(index)).expect("declared columns have SQL types")
}

/// A batch of the table's schema from the columns that a statement gives; the others are NULL.
pub(super) fn rows(
    object: &Object,
    given: &[usize],
    columns: &[ArrayRef],
    count: usize,
) -> Result<RecordBatch, UserError> {
    let fields = object.schema.fields().iter().enumerate();
    let arrays = fields
        .map(|(index, field)| match given.iter().position(|column| *column == index) {
            Some(place) => checked_text(field, &columns[place]),
            None => Ok(arrow::array::new_null_array(field.data_type(), count)),
        })
        .collect::<Result<Vec<_>, _>>()?;
    batch(object, generate(object, arrays, count), count)
}

/// A batch of rows that the table holds: with what was generated when they came in.
pub(super) fn held_rows(
    object: &Object,
    columns: &[ArrayRef],
    count: usize,
) -> Result<RecordBatch, UserError> {
    let fields = object.schema.fields().iter().zip(columns);
    let arrays = fields.map(|(field, column)| checked_text(field, column));
    batch(object, arrays.collect::<Result<Vec<_>, _>>()?, count)
}

fn batch(object: &Object, arrays: Vec<ArrayRef>, count: usize) -> Result<RecordBatch, UserError> {
    check_nulls(object, &arrays)?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::clone(&object.schema), arrays, &options)
        .map_err(|error| UserError::internal(format!("rows do not fit their table: {error}")))
}

/// The columns with those that are generated computed.
fn generate(object: &Object, arrays: Vec<ArrayRef>, count: usize) -> Vec<ArrayRef> {
    let Some(generated) = generated::of(object) else { return arrays };
    let all = (0..arrays.len()).collect::<Vec<_>>();
    let fields = object.schema.fields().iter();
    let nullable = fields.map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Arc::new(arrow::datatypes::Schema::new(nullable.collect::<Vec<_>>()));
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(count));
    let rows = RecordBatch::try_new_with_options(schema, arrays, &options);
    let rows = rows.expect("columns of the table's types");
    generated.complete(&rows, &all, &all, chrono::Utc::now().timestamp_micros()).columns().to_vec()
}

/// A query knows uuid and jsonb only as text; what is stored has been checked.
fn checked_text(field: &arrow::datatypes::Field, array: &ArrayRef) -> Result<ArrayRef, UserError> {
    use arrow::array::AsArray;
    match sql_type_of(field) {
        Some(ty @ (SqlType::Uuid | SqlType::Jsonb)) => {
            crate::values::column_of_texts(&ty, array.as_string::<i32>().iter())
        }
        // Of a parameter it is known only that its items are texts.
        Some(SqlType::Array(_)) if field.data_type() != array.data_type() => {
            let DataType::List(item) = field.data_type() else { return Ok(Arc::clone(array)) };
            let list = array.as_list::<i32>();
            let items = checked_text(item, list.values())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(ListArray::new(Arc::clone(item), offsets, items, nulls)))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn check_nulls(object: &Object, arrays: &[ArrayRef]) -> Result<(), UserError> {
    for (field, array) in object.schema.fields().iter().zip(arrays) {
        if field.is_nullable() || array.null_count() == 0 {
            continue;
        }
        let row = (0..array.len()).find(|row| array.is_null(*row)).unwrap_or(0);
        let shown: Vec<String> = object
            .schema
            .fields()
            .iter()
            .zip(arrays)
            .map(|(field, array)| {
                let text = Column::new(field, array)
                    .ok()
                    .and_then(|column| to_text(&column, row, &Style::default()));
                text.unwrap_or_else(|| "null".to_owned())
            })
            .collect();
        return Err(UserError::new(
            SqlState::NOT_NULL_VIOLATION,
            format!(
                "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                field.name(),
                object.name
            ),
        )
        .with_detail(format!("Failing row contains ({}).", shown.join(", "))));
    }
    Ok(())
}

/// Rows that come: the one row of their key in a keyed table, unless it keeps the first; one more row
/// in any other.
pub(super) fn added(object: &Object, rows: RecordBatch) -> Changes {
    let keeps_first = matches!(
        &object.kind,
        ObjectKind::Table(table) if table.on_conflict == OnConflict::Ignore
    );
    let ops = if object.key.is_empty() || keeps_first { Ops::Insert } else { Ops::Put };
    Changes { rows, ops }
}

/// Rows as they are from now on: an UPDATE's, whatever the table does with conflicts.
pub(super) fn replaced(object: &Object, rows: RecordBatch) -> Changes {
    let ops = if object.key.is_empty() { Ops::Insert } else { Ops::Put };
    Changes { rows, ops }
}

/// Whether what is there and what comes become one row. Then the old row has to go before one that stands for itself.
pub(super) fn resolves(object: &Object) -> bool {
    matches!(
        &object.kind,
        ObjectKind::Table(table)
            if table.on_conflict == OnConflict::UpdateIfNotNull || !table.versions.is_empty()
    )
}

/// Rows that go.
pub(super) fn removed(object: &Object, rows: RecordBatch) -> Changes {
    let op = if object.key.is_empty() { Op::Retract } else { Op::Remove };
    let codes = UInt8Array::from(vec![op as u8; rows.num_rows()]);
    Changes { rows, ops: Ops::Each(codes) }
}

/// A query of our own making, to be filled in.
pub(super) fn skeleton(text: &'static str) -> ast::Query {
    *segue_sql::parse_query(text).expect("our own text is a query").tree
}

/// Refuses a clause by its name.
pub(super) fn refuse(present: bool, what: &str) -> Result<(), UserError> {
    if present { Err(UserError::unsupported(format!("{what} is not supported"))) } else { Ok(()) }
}
