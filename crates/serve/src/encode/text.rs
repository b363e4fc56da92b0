//! Values in PostgreSQL's text format, as psql shows them and COPY writes them.

use std::fmt::Write;

use bytes::{BufMut, BytesMut};

use super::column::{Column, Values};
use super::numeric::Fraction;
use super::{Forms, Style, datetime, float, numeric};

/// Writes the value of a row that is not NULL.
pub(super) fn write(column: &Column, row: usize, style: &Style, out: &mut BytesMut) {
    match &column.values {
        Values::Boolean(values) => out.put_u8(if values.value(row) { b't' } else { b'f' }),
        Values::SmallInt(values) => integer(values.value(row).into(), out),
        Values::Integer(values) if is_unsigned(column) => {
            integer(values.value(row).cast_unsigned().into(), out)
        }
        Values::Integer(values) => integer(values.value(row).into(), out),
        Values::BigInt(values) => integer(values.value(row), out),
        Values::Real(values) => float::write_f32(values.value(row), style.forms, out),
        Values::Double(values) => float::write_f64(values.value(row), style.forms, out),
        Values::Numeric { values, scale, trim } => {
            let fraction = match style.forms {
                Forms::PostgreSql if *trim => Fraction::Trimmed,
                Forms::PostgreSql => Fraction::All,
                Forms::RisingWave => risingwave_fraction(*scale),
            };
            numeric::write_text(values.value(row), *scale, fraction, out);
        }
        Values::Text(values) | Values::Uuid(values) | Values::Jsonb(values) => {
            out.extend_from_slice(values.value(row).as_bytes());
        }
        Values::Bytea(values) => {
            out.extend_from_slice(b"\\x");
            for byte in values.value(row) {
                out.put_u8(HEX[usize::from(byte >> 4)]);
                out.put_u8(HEX[usize::from(byte & 15)]);
            }
        }
        Values::Date(values) => datetime::write_date(values.value(row), out),
        Values::Time(values) => datetime::write_time(values.value(row), out),
        Values::Timestamp(values) => datetime::write_timestamp(values.value(row), out),
        Values::Timestamptz(values) => {
            datetime::write_timestamptz(values.value(row), style.zone, style.forms, out);
        }
        Values::Interval(values) => {
            let value = values.value(row);
            datetime::write_interval(value.months, value.days, value.nanoseconds, out);
        }
        Values::List { items, offsets } => {
            list(items, offsets[row] as usize..offsets[row + 1] as usize, style, out);
        }
        Values::Record(members) => record(members, row, style, out),
    }
}

/// What RisingWave prints has no type to be padded for; few digits behind the point are those that were written.
fn risingwave_fraction(scale: i8) -> Fraction {
    match scale {
        ..10 => Fraction::All,
        QUOTIENT_SCALE => Fraction::Quotient,
        _ => Fraction::Trimmed,
    }
}

/// Digits behind the point that a quotient or an average has.
const QUOTIENT_SCALE: i8 = 16;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Oids are unsigned, and kept in 32 signed bits.
fn is_unsigned(column: &Column) -> bool {
    column.ty == postgres_types::Type::OID
}

fn integer(value: i64, out: &mut BytesMut) {
    write!(out, "{value}").expect("a buffer takes all");
}

/// `{1,NULL,"a b"}`.
fn list(items: &Column, range: std::ops::Range<usize>, style: &Style, out: &mut BytesMut) {
    out.put_u8(b'{');
    let mut element = BytesMut::new();
    for (count, item) in range.enumerate() {
        if count > 0 {
            out.put_u8(b',');
        }
        if items.is_null(item) {
            out.extend_from_slice(b"NULL");
            continue;
        }
        element.clear();
        write(items, item, style, &mut element);
        if matches!(items.values, Values::List { .. }) || !needs_quotes(&element) {
            out.extend_from_slice(&element);
        } else {
            quote(&element, b"\\\\", b"\\\"", out);
        }
    }
    out.put_u8(b'}');
}

fn needs_quotes(element: &[u8]) -> bool {
    element.is_empty()
        || element.eq_ignore_ascii_case(b"null")
        || element.iter().any(|c| b"{}\",\\ \t\n\r\x0b\x0c".contains(c))
}

/// `(1,,"a b")`.
fn record(members: &[Column], row: usize, style: &Style, out: &mut BytesMut) {
    out.put_u8(b'(');
    let mut member_text = BytesMut::new();
    for (count, member) in members.iter().enumerate() {
        if count > 0 {
            out.put_u8(b',');
        }
        if member.is_null(row) {
            continue;
        }
        member_text.clear();
        write(member, row, style, &mut member_text);
        let quoted = member_text.is_empty()
            || member_text.iter().any(|c| b"(),\"\\ \t\n\r\x0b\x0c".contains(c));
        if quoted {
            // In a record a quote is doubled, not escaped.
            quote(&member_text, b"\\\\", b"\"\"", out);
        } else {
            out.extend_from_slice(&member_text);
        }
    }
    out.put_u8(b')');
}

fn quote(text: &[u8], backslash: &[u8], quote: &[u8], out: &mut BytesMut) {
    out.put_u8(b'"');
    for byte in text {
        match byte {
            b'\\' => out.extend_from_slice(backslash),
            b'"' => out.extend_from_slice(quote),
            other => out.put_u8(*other),
        }
    }
    out.put_u8(b'"');
}
