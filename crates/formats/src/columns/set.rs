//! The columns of one batch in the making, row by row: every row is appended as a whole or not at
//! all.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};

use super::Column;
use crate::{DecodeError, ValueError};

/// Builders for the projected columns of a schema. Between calls all columns have `len` rows.
#[derive(Debug)]
pub struct ColumnSet {
    schema: SchemaRef,
    columns: Vec<Column>,
    /// The NOT NULL columns.
    required: Vec<usize>,
    len: usize,
}

impl ColumnSet {
    /// Builders for `schema`'s columns at `projection`, in that order.
    ///
    /// # Panics
    /// If an index lies outside the schema, or a column has a type that no CREATE statement can
    /// declare.
    pub fn new(schema: &Schema, projection: &[usize]) -> ColumnSet {
        let schema = Arc::new(schema.project(projection).expect("projections lie in their schema"));
        let column = |field: &Arc<Field>| {
            Column::new(field).expect("declared columns have SQL types with a builder")
        };
        let columns = schema.fields().iter().map(column).collect();
        let required = (0..schema.fields().len()).filter(|i| !schema.field(*i).is_nullable());
        let required = required.collect();
        ColumnSet { columns, required, schema, len: 0 }
    }

    /// The projected schema.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Complete rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no complete row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The builders, for a row that is being written.
    pub(crate) fn columns_mut(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    /// Whether the row being written has no value yet for column `column`.
    #[inline]
    pub(crate) fn is_unfilled(&self, column: usize) -> bool {
        self.columns[column].len() == self.len
    }

    /// Ends the row being written: columns without a value become NULL.
    pub(crate) fn end_row(&mut self, filled: usize) -> Result<(), DecodeError> {
        if filled < self.columns.len() {
            for (column, field) in self.columns.iter_mut().zip(self.schema.fields()) {
                if column.len() == self.len {
                    column.append_null();
                }
                debug_assert!(column.len() == self.len + 1, "{field}");
            }
        }
        self.check_not_null(&self.required)?;
        self.len += 1;
        Ok(())
    }

    /// That the row being written has a value in these columns.
    pub(crate) fn check_not_null(&self, columns: &[usize]) -> Result<(), DecodeError> {
        match columns.iter().find(|column| self.columns[**column].validity.last_is_null()) {
            Some(column) => Err(DecodeError::null(self.schema.field(*column).name())),
            None => Ok(()),
        }
    }

    /// Takes back the row being written.
    pub(crate) fn roll_back(&mut self) {
        let len = self.len;
        self.columns.iter_mut().for_each(|column| column.truncate(len));
    }

    /// Ends a row that only names a key: what is not filled becomes NULL, or zero where the
    /// column is NOT NULL, since Arrow refuses a NULL there and nobody reads it.
    pub(crate) fn end_key_row(&mut self) {
        for (column, field) in self.columns.iter_mut().zip(self.schema.fields()) {
            if column.len() == self.len {
                if field.is_nullable() { column.append_null() } else { column.append_zero() }
            }
        }
        self.len += 1;
    }

    /// Names the column of a value error.
    #[cold]
    pub(crate) fn blame(&self, column: usize, error: &ValueError) -> DecodeError {
        DecodeError::value(self.schema.field(column).name(), error)
    }

    /// Takes all rows out.
    pub fn finish(&mut self) -> RecordBatch {
        let rows = std::mem::take(&mut self.len);
        let arrays = self.columns.iter_mut().zip(self.schema.fields());
        let arrays = arrays.map(|(column, field)| column.finish(field)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .expect("every column has one value per row, and none is NULL where it must not be")
    }
}
