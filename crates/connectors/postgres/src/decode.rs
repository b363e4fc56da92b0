//! COPY BINARY → record batches: framing here, columns in [`values`].
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0" i32 flags, i32 length, extension │ i16 columns, (i32 length, bytes)… per row │ i16 -1
//! ```
//!
//! Invariants: a row is decoded only when all of it is there, wherever chunks end; the data are complete
//! only when the trailer was seen and nothing follows it.

mod fault;
mod numeric;
mod temporal;
mod values;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use arrow::datatypes::SchemaRef;
use segue_connect::{IncludeKind, ReadConfig};
use segue_types::{SqlState, UserError};

use crate::plan::Plan;
use values::Values;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
/// A server before 12 may send an OID before the columns; we never ask for it.
const FLAG_OIDS: u32 = 1 << 16;
const ROWS_MAX: usize = 8192;
const BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Header,
    Rows,
    Trailer,
}

/// Decodes one COPY stream.
pub(crate) struct Decoder {
    schema: SchemaRef,
    columns: Vec<Column>,
    includes: Vec<IncludeKind>,
    stage_name: String,
    /// Which columns of the schema may not be NULL.
    required: Vec<usize>,
    stage: Stage,
    /// What is left of a chunk that ended within a row.
    pending: Vec<u8>,
    rows: usize,
    bytes: usize,
}

struct Column {
    name: String,
    values: Values,
}

/// A row that cannot be decoded, or a stream that breaks the format.
type Refused = Box<UserError>;

impl Decoder {
    pub(crate) fn new(config: &ReadConfig, plan: &Plan) -> Result<Decoder, UserError> {
        let fields = config.schema.fields();
        let column = |index: usize| {
            let (planned, field) = (&plan.columns[index], &fields[index]);
            let values =
                Values::new(&planned.wire, field.data_type(), ROWS_MAX).ok_or_else(|| {
                    let text = format!("{:?} cannot fill {}", planned.wire, field.data_type());
                    UserError::internal(text)
                })?;
            Ok(Column { name: planned.name.clone(), values })
        };
        let required = |index: &usize| config.key.contains(index) || !fields[*index].is_nullable();
        Ok(Decoder {
            schema: Arc::clone(&config.schema),
            columns: (0..config.declared_columns).map(column).collect::<Result<_, UserError>>()?,
            includes: config.includes.iter().map(|include| include.kind.clone()).collect(),
            stage_name: config.stage.clone(),
            required: (0..fields.len()).filter(required).collect(),
            stage: Stage::Header,
            pending: Vec::new(),
            rows: 0,
            bytes: 0,
        })
    }

    /// Decodes the rows that `chunk` completes.
    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), Refused> {
        if self.pending.is_empty() {
            let used = self.consume(chunk)?;
            self.pending.extend_from_slice(&chunk[used..]);
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.extend_from_slice(chunk);
            let used = self.consume(&pending)?;
            pending.drain(..used);
            self.pending = pending;
        }
        Ok(())
    }

    /// Whether it is time to take a batch.
    pub(crate) fn is_full(&self) -> bool {
        self.rows >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether the server has sent all there is.
    pub(crate) fn is_complete(&self) -> bool {
        self.stage == Stage::Trailer && self.pending.is_empty()
    }

    /// The rows decoded so far.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, Refused> {
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        for column in &mut self.columns {
            let array = column.values.finish().map_err(|fault| fault.in_column(&column.name))?;
            arrays.push(array);
        }
        for (kind, field) in self.includes.iter().zip(&self.schema.fields()[self.columns.len()..]) {
            let array: ArrayRef = match kind {
                IncludeKind::Stage => Arc::new(StringArray::from_iter_values(
                    (0..self.rows).map(|_| &self.stage_name),
                )),
                _ => new_null_array(field.data_type(), self.rows),
            };
            arrays.push(array);
        }
        if let Some(index) = self.required.iter().find(|index| arrays[**index].null_count() > 0) {
            let name = self.schema.field(*index).name();
            let text = format!(
                "column \"{name}\": NULL in a column that is NOT NULL or in the PRIMARY KEY"
            );
            let error = UserError::new(SqlState::NOT_NULL_VIOLATION, text);
            return Err(error.with_hint("Filter such rows in the query.").into());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| {
            UserError::internal(format!("a batch cannot be built: {error}"))
        })?;
        (self.rows, self.bytes) = (0, 0);
        Ok(batch)
    }

    /// Decodes whole rows from the front of `bytes`; returns how many bytes they took.
    fn consume(&mut self, bytes: &[u8]) -> Result<usize, Refused> {
        let mut at = match self.stage {
            Stage::Header => match header_length(bytes)? {
                Some(length) => length,
                None => return Ok(0),
            },
            Stage::Rows => 0,
            Stage::Trailer if bytes.is_empty() => 0,
            Stage::Trailer => return Err(broken("data follow the trailer")),
        };
        if self.stage == Stage::Header {
            self.stage = Stage::Rows;
        }
        while self.stage == Stage::Rows {
            match self.row(&bytes[at..])? {
                0 => return Ok(at),
                used => at += used,
            }
        }
        Ok(at)
    }

    /// Decodes the row or trailer at the front of `bytes`; 0 when not all of it is there.
    fn row(&mut self, bytes: &[u8]) -> Result<usize, Refused> {
        let Some((count, fields)) = bytes.split_first_chunk::<2>() else { return Ok(0) };
        let count = i16::from_be_bytes(*count);
        if count == -1 {
            self.stage = Stage::Trailer;
            return Ok(2);
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            return Err(broken(format!("a row has {count} columns of {}", self.columns.len())));
        }
        let Some(length) = fields_length(fields, self.columns.len())? else { return Ok(0) };
        let mut rest = &fields[..length];
        for column in &mut self.columns {
            let value = fault::take_value(&mut rest).expect("fields_length has walked the row");
            match value {
                Some(value) => {
                    column.values.append(value).map_err(|fault| fault.in_column(&column.name))?;
                }
                None => column.values.append_null(),
            }
        }
        self.rows += 1;
        self.bytes += length;
        Ok(2 + length)
    }
}

fn header_length(bytes: &[u8]) -> Result<Option<usize>, Refused> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let number = |at: usize| {
        u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes of a longer header"))
    };
    if !header.starts_with(SIGNATURE) || number(SIGNATURE.len()) & FLAG_OIDS != 0 {
        return Err(broken("the header is not that of COPY BINARY"));
    }
    let extension = usize::try_from(number(SIGNATURE.len() + 4)).expect("usize has 32 bits");
    let length = HEADER_BYTES + extension;
    Ok((bytes.len() >= length).then_some(length))
}

/// The length of `count` fields, or `None` when not all of them are there.
fn fields_length(bytes: &[u8], count: usize) -> Result<Option<usize>, Refused> {
    let mut at = 0;
    for _ in 0..count {
        let Some(length) = bytes.get(at..at + 4) else { return Ok(None) };
        at += 4;
        match i32::from_be_bytes(length.try_into().expect("four bytes")) {
            -1 => {}
            length => {
                at += usize::try_from(length)
                    .map_err(|_| broken(format!("a value has the length {length}")))?;
            }
        }
    }
    Ok((at <= bytes.len()).then_some(at))
}

fn broken(reason: impl Into<String>) -> Refused {
    let error = UserError::new(SqlState::PROTOCOL_VIOLATION, "the server's COPY data are broken");
    Box::new(error.with_detail(reason))
}

#[cfg(test)]
mod tests;
