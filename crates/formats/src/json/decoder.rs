//! The decoder of JSON records: each a JSON object with a field per column.
//!
//! | column | from |
//! |---|---|
//! | integers, numeric, floats | numbers, and strings that spell one; `NaN` and `Infinity` as strings |
//! | text | strings; any other value as its JSON text |
//! | timestamp, timestamptz | ISO strings; numbers since 1970 in [`JsonOptions::epoch_unit`] |
//! | date, time | ISO strings; numbers of days since 1970, of microseconds since midnight |
//! | bytea | strings: `\x` and hex digits, or base64 |
//! | jsonb | any value but null |
//! | arrays, structs | JSON arrays and objects; strings with PostgreSQL's literal |
//!
//! A missing field and a JSON null are NULL. Names match exactly, or else but for case. Columns
//! outside the projection are checked to be JSON and nothing more.

use arrow::array::RecordBatch;
use arrow_schema::SchemaRef;
use segue_types::sql_type_of;

use super::JsonOptions;
use super::scanner::Scanner;
use super::shape::{ObjectShape, Shape};
use super::value::{Flaw, read_object, read_value};
use crate::{ColumnSet, DecodeError, text};

/// Decodes JSON records into batches of the projected schema.
#[derive(Debug)]
pub struct JsonDecoder {
    set: ColumnSet,
    shape: ObjectShape,
    options: JsonOptions,
    bytes: usize,
}

impl JsonDecoder {
    /// A decoder of records with `schema`'s columns, of which those at `projection` are wanted,
    /// in that order.
    ///
    /// # Panics
    /// If `projection` does not lie in `schema`, or a column has a type that no CREATE statement
    /// can declare.
    #[expect(clippy::needless_pass_by_value, reason = "callers hold the schema as an Arc")]
    pub fn new(schema: SchemaRef, projection: &[usize], options: JsonOptions) -> JsonDecoder {
        let set = ColumnSet::new(&schema, projection);
        let members = set.schema().fields().iter().map(|field| {
            Shape::new(&sql_type_of(field).expect("the column set was made from the same fields"))
        });
        let members = members.collect();
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let shape = ObjectShape::new(names, projection, members);
        JsonDecoder { set, shape, options, bytes: 0 }
    }

    /// Appends the row that `record` holds, or changes nothing.
    #[inline]
    pub fn decode(&mut self, record: &[u8]) -> Result<(), DecodeError> {
        match self.fill(record) {
            Ok(filled) => self.end_row(filled, record.len()),
            Err(error) => {
                self.set.roll_back();
                Err(error)
            }
        }
    }

    fn end_row(&mut self, filled: usize, bytes: usize) -> Result<(), DecodeError> {
        let ended = self.set.end_row(filled);
        match ended {
            Ok(()) => self.bytes += bytes,
            Err(_) => self.set.roll_back(),
        }
        ended
    }

    /// Writes the record's fields into the columns. How many columns got one.
    #[inline]
    fn fill(&mut self, record: &[u8]) -> Result<usize, DecodeError> {
        let text = simdutf8::basic::from_utf8(record)
            .map_err(|_| DecodeError::record("the record is not valid UTF-8"))?;
        let mut scanner = Scanner::new(text);
        if scanner.peek_token() != b'{' {
            return Err(DecodeError::record("the record is not a JSON object"));
        }
        let (len, mut current) = (self.set.len(), 0);
        let columns = self.set.columns_mut();
        let read = read_object(
            &mut scanner,
            &mut self.shape,
            columns,
            len,
            &self.options,
            0,
            &mut current,
        );
        let read = read.and_then(|filled| Ok(scanner.end().map(|()| filled)?));
        read.map_err(|flaw| self.blame(current, &flaw))
    }

    #[cold]
    fn blame(&self, column: usize, flaw: &Flaw) -> DecodeError {
        match flaw {
            Flaw::Malformed(malformed) => DecodeError::record(malformed.to_string()),
            Flaw::Value(error) => self.set.blame(column, error),
        }
    }

    /// Appends a row of NULLs.
    pub fn append_null_row(&mut self) {
        self.set.end_key_row();
    }

    /// Appends a row with the key alone, for a record without a value. `key` holds an object with
    /// the columns at `columns` (places in the projection), or, for one column, its bare value:
    /// JSON, or else plain text. The other columns are NULL, or zero where they are NOT NULL.
    pub fn append_key_only(&mut self, key: &[u8], columns: &[usize]) -> Result<(), DecodeError> {
        let filled = self.fill_key(key, columns);
        let missing = columns.iter().find(|column| self.set.is_unfilled(**column));
        let result = match (filled, missing) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(column)) => {
                Err(DecodeError::null(self.set.schema().field(*column).name()))
            }
            (Ok(()), None) => self.set.check_not_null(columns),
        };
        if result.is_ok() {
            self.set.end_key_row();
            self.bytes += key.len();
        } else {
            self.set.roll_back();
        }
        result
    }

    fn fill_key(&mut self, key: &[u8], columns: &[usize]) -> Result<(), DecodeError> {
        if key.trim_ascii_start().first() == Some(&b'{') {
            self.fill(key)?;
            return Ok(());
        }
        let [column] = columns else {
            return Err(DecodeError::record("the key is not a JSON object"));
        };
        let text = simdutf8::basic::from_utf8(key)
            .map_err(|_| DecodeError::record("the key is not valid UTF-8"))?;
        let mut scanner = Scanner::new(text);
        let mut read = || {
            let builder = &mut self.set.columns_mut()[*column];
            read_value(&mut scanner, builder, &mut self.shape.members[*column], &self.options, 0)?;
            Ok::<(), Flaw>(scanner.end()?)
        };
        if read().is_ok() {
            return Ok(());
        }
        self.set.roll_back();
        let appended = text::append(&mut self.set.columns_mut()[*column], text);
        appended.map_err(|error| self.set.blame(*column, &error))
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Bytes of the records behind these rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes all rows out as a batch of the projected schema.
    pub fn finish(&mut self) -> RecordBatch {
        self.bytes = 0;
        self.set.finish()
    }
}

#[cfg(test)]
mod tests;
