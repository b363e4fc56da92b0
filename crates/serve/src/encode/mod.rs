//! Arrow columns → the fields of DataRow messages, in text and in binary.
//!
//! A batch is first brought to the few canonical Arrow types (whole columns at a time), then each row is
//! written straight into the output buffer. Words: *format*, *style* (what a session sets about text).
//! Invariant: numerics never pass through a float or a 96-bit decimal.

mod binary;
mod canonical;
mod column;
mod datetime;
mod float;
mod numeric;
mod text;
mod zone;

use arrow::array::RecordBatch;
use bytes::{BufMut, BytesMut};
use segue_types::UserError;

pub(crate) use column::Column;
pub(crate) use zone::Zone;

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub(crate) enum Format {
    Text = 0,
    Binary = 1,
}

impl Format {
    /// The format of a protocol code.
    pub(crate) fn from_code(code: i16) -> Format {
        if code == 1 { Format::Binary } else { Format::Text }
    }

    /// The format of column `index`: none given means text, one given is for all.
    pub(crate) fn of_column(formats: &[Format], index: usize) -> Format {
        match formats {
            [] => Format::Text,
            [all] => *all,
            each => each.get(index).copied().unwrap_or(Format::Text),
        }
    }
}

/// What a session sets about how values are printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    pub(crate) zone: Zone,
    pub(crate) forms: Forms,
}

/// Whose text forms values have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Forms {
    #[default]
    PostgreSql,
    /// Numerics without zeros at their end, offsets of time zones with minutes.
    RisingWave,
}

/// A batch that is ready to be written row by row.
pub(crate) struct Rows {
    columns: Vec<(Column, Format)>,
    count: usize,
}

impl Rows {
    /// Prepares a batch. Errors name a column whose type no client can be shown.
    pub(crate) fn new(batch: &RecordBatch, formats: &[Format]) -> Result<Rows, UserError> {
        let schema = batch.schema();
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .enumerate()
            .map(|(index, (field, array))| {
                Ok((Column::new(field, array)?, Format::of_column(formats, index)))
            })
            .collect::<Result<_, UserError>>()?;
        Ok(Rows { columns, count: batch.num_rows() })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Writes row `row` as a DataRow message.
    pub(crate) fn write(&self, row: usize, style: &Style, out: &mut BytesMut) {
        out.put_u8(b'D');
        let start = out.len();
        out.put_i32(0);
        out.put_i16(self.columns.len() as i16);
        for (column, format) in &self.columns {
            write_field(column, *format, row, style, out);
        }
        patch_length(out, start, 0);
    }

    /// Writes row `row` as fields of text, `None` for NULL: for COPY and cursors that print.
    pub(crate) fn text(
        &self,
        row: usize,
        column: usize,
        style: &Style,
        out: &mut BytesMut,
    ) -> bool {
        let (column, _) = &self.columns[column];
        if column.is_null(row) {
            return false;
        }
        text::write(column, row, style, out);
        true
    }
}

fn write_field(column: &Column, format: Format, row: usize, style: &Style, out: &mut BytesMut) {
    if column.is_null(row) {
        out.put_i32(-1);
        return;
    }
    let start = out.len();
    out.put_i32(0);
    match format {
        Format::Text => text::write(column, row, style, out),
        Format::Binary => binary::write(column, row, style, out),
    }
    patch_length(out, start, 4);
}

/// Puts the length of what follows `start` there, less `excluded` (fields do not count the length itself).
fn patch_length(out: &mut BytesMut, start: usize, excluded: usize) {
    let length = i32::try_from(out.len() - start - excluded).expect("a row is under 2 GB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// One value as text, for messages and casts. `None` for NULL.
pub(crate) fn to_text(column: &Column, row: usize, style: &Style) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    let mut out = BytesMut::new();
    text::write(column, row, style, &mut out);
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests;
