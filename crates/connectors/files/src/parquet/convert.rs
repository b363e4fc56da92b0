//! From a file's types to the declared ones. A value that has no place in its column costs its
//! row alone.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options, filter_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use segue_formats::{Column, append};
use segue_types::{SqlType, sql_type_of};

/// Rows in the declared types, nullable; the rows at fault are still among them.
pub(super) struct Converted {
    pub(super) batch: RecordBatch,
    /// In the order of the rows, one per row.
    pub(super) faults: Vec<Fault>,
}

pub(super) struct Fault {
    pub(super) row: usize,
    pub(super) reason: String,
}

/// Whether a file's column is the declared one.
pub(super) fn is_same_name(found: &str, declared: &str) -> bool {
    found.eq_ignore_ascii_case(declared)
}

/// Brings a file's rows to `wanted`'s columns; one that the file does not have is NULL.
pub(super) fn convert(batch: &RecordBatch, wanted: &SchemaRef) -> Converted {
    let mut reasons: Vec<Option<String>> = vec![None; batch.num_rows()];
    let mut arrays = Vec::with_capacity(wanted.fields().len());
    for field in wanted.fields() {
        let source = find(batch, field.name());
        let array = match &source {
            Some(source) => convert_array(source, field),
            None => None,
        };
        let array = array.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()));
        note_faults(source.as_ref(), &array, field, &mut reasons);
        arrays.push(array);
    }
    let faults = reasons.into_iter().enumerate();
    let faults = faults.filter_map(|(row, reason)| Some(Fault { row, reason: reason? })).collect();
    Converted { batch: rebuild(&nullable(wanted), arrays, batch.num_rows()), faults }
}

fn find(batch: &RecordBatch, name: &str) -> Option<ArrayRef> {
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let exact = names.iter().position(|found| *found == name);
    let index = exact.or_else(|| names.iter().position(|found| is_same_name(found, name)))?;
    Some(Arc::clone(batch.column(index)))
}

/// A conversion in which what cannot be converted is NULL; `None` when nothing can.
fn convert_array(source: &ArrayRef, field: &Field) -> Option<ArrayRef> {
    match sql_type_of(field) {
        Some(SqlType::Uuid | SqlType::Jsonb) => convert_checked_text(source, field),
        _ if source.data_type() == field.data_type() => Some(Arc::clone(source)),
        _ => {
            let options = CastOptions { safe: true, ..CastOptions::default() };
            cast_with_options(source, field.data_type(), &options).ok()
        }
    }
}

fn convert_checked_text(source: &ArrayRef, field: &Field) -> Option<ArrayRef> {
    let mut column = Column::new(field)?;
    let texts: ArrayRef = match source.data_type() {
        DataType::FixedSizeBinary(16) => {
            let values = source.as_fixed_size_binary().iter();
            let hex =
                |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            Arc::new(values.map(|value| value.map(hex)).collect::<arrow::array::StringArray>())
        }
        _ => cast_with_options(source, &DataType::Utf8, &CastOptions::default()).ok()?,
    };
    for text in texts.as_string::<i32>() {
        let rows = column.len();
        if text.is_none_or(|text| append(&mut column, text).is_err()) {
            column.truncate(rows);
            column.append_null();
        }
    }
    Some(column.finish(field))
}

fn note_faults(
    source: Option<&ArrayRef>,
    array: &ArrayRef,
    field: &Field,
    reasons: &mut [Option<String>],
) {
    if array.null_count() == 0 {
        return;
    }
    for (row, reason) in reasons.iter_mut().enumerate() {
        if reason.is_some() || array.is_valid(row) {
            continue;
        }
        if source.is_some_and(|source| source.is_valid(row)) {
            let name = field.name();
            let ty = sql_type_of(field).expect("declared columns have SQL types");
            *reason = Some(format!("column \"{name}\": the file's value is not a valid {ty}"));
        } else if !field.is_nullable() {
            let name = field.name();
            *reason =
                Some(format!("column \"{name}\": null value violates the not-null constraint"));
        }
    }
}

fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn rebuild(schema: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
        .expect("the arrays were brought to the schema's types")
}

/// The rows to keep.
pub(super) fn filter(batch: &RecordBatch, keep: Vec<bool>) -> RecordBatch {
    filter_record_batch(batch, &BooleanArray::from(keep)).expect("one flag per row")
}

/// The same rows under the schema with its NOT NULL columns, once no row violates it.
pub(super) fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    rebuild(schema, batch.columns().to_vec(), batch.num_rows())
}
