//! CSV: RFC 4180 with PostgreSQL's options. An unquoted field equal to the null text (empty by
//! default) is NULL; a quoted one never is. Quoted fields may hold line ends, so records are
//! found by [`record_end`], not by lines.

mod options;

use arrow::array::RecordBatch;
use arrow_schema::SchemaRef;
use memchr::memchr2;

pub use options::{CsvOptions, Header};

use crate::{ColumnSet, DecodeError, text};

/// Where a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordEnd {
    /// The end of its bytes, without the line end.
    pub end: usize,
    /// Where the next record begins.
    pub next: usize,
}

/// The end of the record that `bytes` begins with; `None` when `bytes` does not hold all of it. A
/// last record without a line end is found only by whoever knows that nothing follows.
pub fn record_end(bytes: &[u8], options: &CsvOptions) -> Option<RecordEnd> {
    let mut at = 0;
    let mut quoted = false;
    loop {
        let stop = if quoted { options.quote } else { b'\n' };
        at += memchr2(stop, options.quote, &bytes[at..])?;
        let escaped =
            quoted && options.escape != options.quote && is_escaped(bytes, at, options.escape);
        if bytes[at] == options.quote && !escaped {
            quoted = !quoted;
        } else if !quoted {
            let end = at - usize::from(at > 0 && bytes[at - 1] == b'\r');
            return Some(RecordEnd { end, next: at + 1 });
        }
        at += 1;
    }
}

/// Whether an odd number of `escape` bytes stands before `at`.
pub(crate) fn is_escaped(bytes: &[u8], at: usize, escape: u8) -> bool {
    bytes[..at].iter().rev().take_while(|byte| **byte == escape).count() % 2 == 1
}

/// The fields of one record, unquoted; reused from record to record.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    text: String,
    /// Where each field ends in `text`, and whether it was quoted.
    ends: Vec<(usize, bool)>,
}

impl Fields {
    /// Splits a record.
    pub(crate) fn split(&mut self, record: &str, options: &CsvOptions) -> Result<(), DecodeError> {
        self.text.clear();
        self.ends.clear();
        let (mut quoted, mut was_quoted) = (false, false);
        let bytes = record.as_bytes();
        let (mut at, mut copied) = (0, 0);
        while at < bytes.len() {
            let byte = bytes[at];
            let next = bytes.get(at + 1).copied();
            if quoted
                && byte == options.escape
                && next.is_some_and(|next| options.is_escapable(next))
            {
                self.text.push_str(&record[copied..at]);
                (copied, at) = (at + 1, at + 2);
                continue;
            }
            if byte == options.quote {
                self.text.push_str(&record[copied..at]);
                copied = at + 1;
                quoted = !quoted;
                was_quoted = true;
            } else if byte == options.delimiter && !quoted {
                self.text.push_str(&record[copied..at]);
                copied = at + 1;
                self.ends.push((self.text.len(), was_quoted));
                was_quoted = false;
            }
            at += 1;
        }
        if quoted {
            return Err(DecodeError::record("unterminated quoted field"));
        }
        self.text.push_str(&record[copied..]);
        self.ends.push((self.text.len(), was_quoted));
        Ok(())
    }

    /// How many fields there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The fields in order: text, and whether it was quoted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(&self.ends).map(|(start, (end, quoted))| (&self.text[start..*end], *quoted))
    }
}

/// Decodes CSV records into batches of the projected schema.
#[derive(Debug)]
pub struct CsvDecoder {
    schema: SchemaRef,
    projection: Vec<usize>,
    options: CsvOptions,
    set: ColumnSet,
    /// For each field of a record, its place in the projection.
    targets: Vec<Option<usize>>,
    fields: Fields,
    bytes: usize,
}

impl CsvDecoder {
    /// A decoder of records with one field per column of `schema`, in that order (until a header
    /// says otherwise), of which those at `projection` are wanted.
    ///
    /// # Panics
    /// If `projection` does not lie in `schema`, or a column has a type that no CREATE statement
    /// can declare.
    pub fn new(schema: SchemaRef, projection: &[usize], options: CsvOptions) -> CsvDecoder {
        let set = ColumnSet::new(&schema, projection);
        let place = |column| projection.iter().position(|wanted| *wanted == column);
        let targets = (0..schema.fields().len()).map(place).collect();
        let projection = projection.to_vec();
        CsvDecoder {
            schema,
            projection,
            options,
            set,
            targets,
            fields: Fields::default(),
            bytes: 0,
        }
    }

    /// Takes the order of the fields from a header record. Columns that it does not name are
    /// NULL; names that are no columns are skipped.
    pub fn set_header(&mut self, record: &[u8]) -> Result<(), DecodeError> {
        let text = utf8(record)?;
        self.fields.split(text.strip_prefix('\u{feff}').unwrap_or(text), &self.options)?;
        let names = self.schema.fields().iter().map(|field| field.name().as_str());
        let names: Vec<&str> = names.collect();
        let column_of = |header: &str| {
            let exact = names.iter().position(|name| *name == header);
            exact.or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(header)))
        };
        let columns: Vec<Option<usize>> =
            self.fields.iter().map(|(header, _)| column_of(header.trim())).collect();
        if columns.iter().all(Option::is_none) {
            return Err(DecodeError::record("the header names none of the columns"));
        }
        for (place, column) in columns.iter().enumerate() {
            if column.is_some() && columns[..place].contains(column) {
                return Err(DecodeError::record("the header names a column twice"));
            }
        }
        let place = |column: usize| self.projection.iter().position(|wanted| *wanted == column);
        self.targets = columns.into_iter().map(|column| column.and_then(place)).collect();
        Ok(())
    }

    /// Appends the row that `record`, without its line end, holds, or changes nothing.
    pub fn decode(&mut self, record: &[u8]) -> Result<(), DecodeError> {
        let ended = self.fill(record).and_then(|()| self.set.end_row(0));
        match ended {
            Ok(()) => self.bytes += record.len(),
            Err(_) => self.set.roll_back(),
        }
        ended
    }

    fn fill(&mut self, record: &[u8]) -> Result<(), DecodeError> {
        self.fields.split(utf8(record)?, &self.options)?;
        if self.fields.len() != self.targets.len() {
            return Err(DecodeError::record(format!(
                "expected {} fields, found {}",
                self.targets.len(),
                self.fields.len()
            )));
        }
        append_fields(&mut self.set, &self.targets, &self.fields, &self.options.null)
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

/// Writes the fields with a target into their columns.
pub(crate) fn append_fields(
    set: &mut ColumnSet,
    targets: &[Option<usize>],
    fields: &Fields,
    null: &str,
) -> Result<(), DecodeError> {
    for ((field, quoted), target) in fields.iter().zip(targets) {
        let Some(target) = *target else { continue };
        let column = &mut set.columns_mut()[target];
        if !quoted && field == null {
            column.append_null();
        } else {
            text::append(column, field).map_err(|error| set.blame(target, &error))?;
        }
    }
    Ok(())
}

pub(crate) fn utf8(record: &[u8]) -> Result<&str, DecodeError> {
    simdutf8::basic::from_utf8(record)
        .map_err(|_| DecodeError::record("the record is not valid UTF-8"))
}

#[cfg(test)]
mod tests;
