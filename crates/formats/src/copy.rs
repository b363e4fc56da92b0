//! The rows of `COPY … FROM STDIN`, in PostgreSQL's text and csv formats, in whatever pieces they
//! arrive.
//!
//! Unlike the decoders of sources, COPY is one statement: the first bad line ends it.

use std::fmt;

use arrow::array::RecordBatch;
use arrow_schema::Schema;
use memchr::memchr;

use crate::csv::{Fields, Header, append_fields, is_escaped, utf8};
use crate::{ColumnSet, CsvOptions, DecodeError, record_end, text};

/// How much of a line may arrive before its end does.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The options of COPY's text format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyTextOptions {
    pub delimiter: u8,
    pub null: String,
}

impl Default for CopyTextOptions {
    fn default() -> CopyTextOptions {
        CopyTextOptions { delimiter: b'\t', null: "\\N".to_owned() }
    }
}

/// A line that COPY cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyError {
    /// Counted from 1; a record over several lines counts as its first.
    pub line: u64,
    pub error: DecodeError,
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {}", self.line, self.error)
    }
}

impl std::error::Error for CopyError {}

#[derive(Debug)]
enum Dialect {
    Text(CopyTextOptions),
    Csv(CsvOptions),
}

/// Decodes the data of one COPY statement.
#[derive(Debug)]
pub struct CopyDecoder {
    set: ColumnSet,
    targets: Vec<Option<usize>>,
    dialect: Dialect,
    /// What came of a line that is not complete.
    pending: Vec<u8>,
    line: u64,
    header_due: bool,
    /// The end marker `\.` was seen.
    ended: bool,
    fields: Fields,
    scratch: Vec<u8>,
}

impl CopyDecoder {
    /// Of the text format. The lines hold `schema`'s columns at `columns`, in that order, and so
    /// do the batches.
    pub fn text(schema: &Schema, columns: &[usize], options: CopyTextOptions) -> CopyDecoder {
        CopyDecoder::new(schema, columns, Dialect::Text(options))
    }

    /// Of the csv format. A header is skipped.
    pub fn csv(schema: &Schema, columns: &[usize], options: CsvOptions) -> CopyDecoder {
        CopyDecoder::new(schema, columns, Dialect::Csv(options))
    }

    fn new(schema: &Schema, columns: &[usize], dialect: Dialect) -> CopyDecoder {
        let header_due =
            matches!(&dialect, Dialect::Csv(options) if options.header == Header::Present);
        CopyDecoder {
            set: ColumnSet::new(schema, columns),
            targets: (0..columns.len()).map(Some).collect(),
            dialect,
            pending: Vec::new(),
            line: 1,
            header_due,
            ended: false,
            fields: Fields::default(),
            scratch: Vec::new(),
        }
    }

    /// Takes the next piece of the data and decodes the lines that are now complete.
    pub fn push(&mut self, data: &[u8]) -> Result<(), CopyError> {
        let mut pending = std::mem::take(&mut self.pending);
        let joined = if pending.is_empty() {
            data
        } else {
            pending.extend_from_slice(data);
            &pending
        };
        let mut at = 0;
        while let Some((end, next)) = self.line_end(&joined[at..]) {
            self.decode(&joined[at..at + end])?;
            self.count_lines(&joined[at..at + next]);
            at += next;
        }
        if joined.len() - at > LINE_BYTES_MAX {
            return Err(self.error(DecodeError::record("the line is too long")));
        }
        if pending.is_empty() {
            pending.extend_from_slice(&data[at..]);
        } else {
            pending.drain(..at);
        }
        self.pending = pending;
        Ok(())
    }

    /// The data is complete: decodes a last line without a line end.
    pub fn end(&mut self) -> Result<(), CopyError> {
        let rest = std::mem::take(&mut self.pending);
        if rest.is_empty() { Ok(()) } else { self.decode(&rest) }
    }

    /// The end of the line that `bytes` begins with, and where the next one starts.
    fn line_end(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        if let Dialect::Csv(options) = &self.dialect {
            return record_end(bytes, options).map(|record| (record.end, record.next));
        }
        let mut at = 0;
        loop {
            at += memchr(b'\n', &bytes[at..])?;
            // A line end after a backslash is data.
            if !is_escaped(bytes, at, b'\\') {
                return Some((at - usize::from(at > 0 && bytes[at - 1] == b'\r'), at + 1));
            }
            at += 1;
        }
    }

    fn count_lines(&mut self, record: &[u8]) {
        self.line += memchr::memchr_iter(b'\n', record).count() as u64;
    }

    fn decode(&mut self, line: &[u8]) -> Result<(), CopyError> {
        if self.ended || std::mem::take(&mut self.header_due) {
            return Ok(());
        }
        if line == b"\\." {
            self.ended = true;
            return Ok(());
        }
        let decoded = self.fill(line).and_then(|()| self.set.end_row(0));
        decoded.map_err(|error| {
            self.set.roll_back();
            self.error(error)
        })
    }

    fn fill(&mut self, line: &[u8]) -> Result<(), DecodeError> {
        match &self.dialect {
            Dialect::Text(options) => {
                let mut columns = 0;
                for field in split_text(line, options.delimiter) {
                    if columns == self.targets.len() {
                        return Err(DecodeError::record("extra data after last expected column"));
                    }
                    if field == options.null.as_bytes() {
                        self.set.columns_mut()[columns].append_null();
                    } else {
                        self.scratch.clear();
                        unescape_text(field, &mut self.scratch);
                        let value = utf8(&self.scratch)?;
                        let appended = text::append(&mut self.set.columns_mut()[columns], value);
                        appended.map_err(|error| self.set.blame(columns, &error))?;
                    }
                    columns += 1;
                }
                self.check_count(columns)
            }
            Dialect::Csv(options) => {
                self.fields.split(utf8(line)?, options)?;
                self.check_count(self.fields.len())?;
                append_fields(&mut self.set, &self.targets, &self.fields, &options.null)
            }
        }
    }

    fn check_count(&self, fields: usize) -> Result<(), DecodeError> {
        if fields > self.targets.len() {
            return Err(DecodeError::record("extra data after last expected column"));
        }
        match self.set.schema().fields().get(fields) {
            Some(column) => {
                Err(DecodeError::record(format!("missing data for column \"{}\"", column.name())))
            }
            None => Ok(()),
        }
    }

    #[cold]
    fn error(&self, error: DecodeError) -> CopyError {
        CopyError { line: self.line, error }
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Takes the rows so far out.
    pub fn finish(&mut self) -> RecordBatch {
        self.set.finish()
    }
}

/// The fields of a line in text format, still escaped.
fn split_text(line: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut at = 0;
        while let Some(found) = memchr(delimiter, &line[at..]) {
            at += found;
            if !is_escaped(line, at, b'\\') {
                rest = Some(&line[at + 1..]);
                return Some(&line[..at]);
            }
            at += 1;
        }
        rest = None;
        Some(line)
    })
}

/// Appends the bytes that a field in text format stands for.
fn unescape_text(field: &[u8], out: &mut Vec<u8>) {
    let mut rest = field;
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let (byte, len) = match rest.first() {
            None => (b'\\', 0),
            Some(b'b') => (0x08, 1),
            Some(b'f') => (0x0c, 1),
            Some(b'n') => (b'\n', 1),
            Some(b'r') => (b'\r', 1),
            Some(b't') => (b'\t', 1),
            Some(b'v') => (0x0b, 1),
            Some(b'0'..=b'7') => digits(rest, 8, 3),
            Some(b'x') if rest.get(1).is_some_and(u8::is_ascii_hexdigit) => {
                let (byte, len) = digits(&rest[1..], 16, 2);
                (byte, len + 1)
            }
            Some(other) => (*other, 1),
        };
        out.push(byte);
        rest = &rest[len..];
    }
    out.extend_from_slice(rest);
}

/// Up to `max` digits as a byte, and how many there were.
fn digits(bytes: &[u8], radix: u32, max: usize) -> (u8, usize) {
    let digits = bytes.iter().take(max).map_while(|byte| char::from(*byte).to_digit(radix));
    digits.fold((0, 0), |(value, len), digit| ((value as u32 * radix + digit) as u8, len + 1))
}

#[cfg(test)]
mod tests;
