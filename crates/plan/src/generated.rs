//! Generated columns: `c type AS (expression)`, computed when a row comes in, and kept where rows are kept.
//!
//! Words: the *base* columns are those that are not generated; expressions are over them alone.
//! `proctime()` and `now()` by themselves are the time at which the row came in. An expression that fails for a row
//! gives NULL, as in a view. The same definition gives the same plan whenever it is read.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arrow::array::{
    ArrayRef, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, new_null_array,
};

use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::physical_expr::PhysicalExpr;
use segue_catalog::Object;
use segue_sql::{Column, Columns};
use segue_types::{SqlState, UserError};

use crate::declared;
use crate::delta::errors::type_name;
use crate::delta::row_expression;

/// The generated columns of an object.
#[derive(Clone, Debug)]
pub struct Generated {
    schema: SchemaRef,
    /// Places of the base columns.
    base: Vec<usize>,
    base_schema: SchemaRef,
    columns: Vec<GeneratedColumn>,
}

#[derive(Clone, Debug)]
struct GeneratedColumn {
    place: usize,
    value: Value,
}

#[derive(Clone, Debug)]
enum Value {
    /// When the row came in.
    Now,
    /// Over the base columns.
    Computed(Arc<dyn PhysicalExpr>),
}

/// What was planned of objects, by their definitions: statements ask each time they write.
static PLANNED: LazyLock<Mutex<HashMap<String, Option<Arc<Generated>>>>> =
    LazyLock::new(Mutex::default);
/// More of them are forgotten together.
const PLANNED_MAX: usize = 256;

/// The generated columns of a source or table as it was created; `None` where there are none.
pub fn of(object: &Object) -> Option<Arc<Generated>> {
    // Most objects have none.
    if !object.definition.contains(" AS ") {
        return None;
    }
    let planned = || PLANNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = planned().get(&object.definition) {
        return known.clone();
    }
    let found = declared::columns(object);
    let found = found.and_then(|columns| plan(&columns, &object.schema).ok().flatten());
    let found = found.map(Arc::new);
    let mut planned = planned();
    if planned.len() >= PLANNED_MAX {
        planned.clear();
    }
    planned.insert(object.definition.clone(), found.clone());
    found
}

/// Whether a column of the object is generated.
pub fn is_generated(object: &Object, column: usize) -> bool {
    of(object).is_some_and(|generated| generated.is(column))
}

/// The generated columns that are declared among `columns`.
pub(crate) fn plan(columns: &Columns, schema: &SchemaRef) -> Result<Option<Generated>, UserError> {
    let declared = columns.columns.iter().filter(|column| column.generated.is_some());
    let declared = declared.collect::<Vec<_>>();
    if declared.is_empty() {
        return Ok(None);
    }
    let names = declared.iter().map(|column| column.name.as_str()).collect::<Vec<_>>();
    let is_base = |place: &usize| !names.contains(&schema.field(*place).name().as_str());
    let base = (0..schema.fields().len()).filter(is_base).collect::<Vec<_>>();
    let nullable = |place: &usize| schema.field(*place).clone().with_nullable(true);
    let base_schema = Arc::new(Schema::new(base.iter().map(nullable).collect::<Vec<_>>()));
    let column = |column: &&Column| {
        let name = column.name.as_str();
        let place = schema.index_of(name).expect("what is declared is in the schema");
        if columns.key.contains(&column.name) || column.default.is_some() {
            let message = format!("column \"{name}\" is generated");
            return Err(UserError::new(SqlState::INVALID_TABLE_DEFINITION, message)
                .with_detail("It can be neither part of a PRIMARY KEY nor have a DEFAULT.")
                .at(column.offset.0));
        }
        let value = value(column, schema.field(place).data_type(), &base_schema);
        let placed = |error: UserError| error.at(column.offset.0);
        value.map(|value| GeneratedColumn { place, value }).map_err(placed)
    };
    let columns = declared.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(Generated { schema: Arc::clone(schema), base, base_schema, columns }))
}

fn value(column: &Column, held: &DataType, base: &SchemaRef) -> Result<Value, UserError> {
    let text = &column.generated.as_ref().expect("the caller looked for these").text;
    let bare = text.trim_matches(|c: char| c.is_whitespace() || c == '(' || c == ')');
    let is_now = ["proctime", "now", "current_timestamp"];
    if !is_now.iter().any(|name| bare.eq_ignore_ascii_case(name)) {
        return row_expression(base, text, (&column.ty, held)).map(Value::Computed);
    }
    if !matches!(held, DataType::Timestamp(..)) {
        let message = format!("column \"{}\" cannot hold a time", column.name.as_str());
        return Err(UserError::new(SqlState::DATATYPE_MISMATCH, message)
            .with_detail(format!("The column is {}.", type_name(held)))
            .with_hint("Declare it timestamptz."));
    }
    Ok(Value::Now)
}

impl Generated {
    /// Whether a column is one of them.
    pub fn is(&self, column: usize) -> bool {
        self.columns.iter().any(|generated| generated.place == column)
    }

    /// How many base columns there are.
    pub fn base_count(&self) -> usize {
        self.base.len()
    }

    /// The columns that have to be read to give `wanted`, ascending.
    pub fn reads(&self, wanted: &[usize]) -> Vec<usize> {
        match wanted.iter().any(|column| self.is(*column)) {
            true => self.base.clone(),
            false => wanted.to_vec(),
        }
    }

    /// The columns `wanted` of rows of which the columns `read` are there.
    pub fn complete(
        &self,
        rows: &RecordBatch,
        read: &[usize],
        wanted: &[usize],
        now_us: i64,
    ) -> RecordBatch {
        let given = |column: usize| {
            let place = read.iter().position(|read| *read == column);
            place.map(|place| Arc::clone(rows.column(place)))
        };
        let count = rows.num_rows();
        let null = |column: usize| new_null_array(self.schema.field(column).data_type(), count);
        let base = self.base.iter().map(|column| given(*column).unwrap_or_else(|| null(*column)));
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let base = RecordBatch::try_new_with_options(
            Arc::clone(&self.base_schema),
            base.collect(),
            &options,
        )
        .expect("rows of the object's types");
        let array = |column: &usize| {
            let generated = self.columns.iter().find(|generated| generated.place == *column);
            match generated {
                Some(generated) => self.value(generated, &base, now_us),
                None => given(*column).unwrap_or_else(|| null(*column)),
            }
        };
        let arrays = wanted.iter().map(array).collect();
        let nullable = |column: &usize| self.schema.field(*column).clone().with_nullable(true);
        let schema = Arc::new(Schema::new(wanted.iter().map(nullable).collect::<Vec<_>>()));
        RecordBatch::try_new_with_options(schema, arrays, &options)
            .expect("generated columns have their types")
    }

    fn value(&self, column: &GeneratedColumn, base: &RecordBatch, now_us: i64) -> ArrayRef {
        let held = self.schema.field(column.place).data_type();
        let rows = base.num_rows();
        match &column.value {
            Value::Now => {
                let now = TimestampMicrosecondArray::from(vec![now_us; rows]);
                let now = now.with_timezone_opt(Some("+00:00"));
                cast(&now, held).expect("the planner asks for a time")
            }
            Value::Computed(expression) => {
                let value = segue_flow::value_of(expression.as_ref(), base);
                value.unwrap_or_else(|_| new_null_array(held, rows))
            }
        }
    }
}
