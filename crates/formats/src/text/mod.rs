//! The text form of every SQL type, as PostgreSQL reads it. CSV, COPY and the strings of JSON all
//! come here.
//!
//! Invariant: a value is appended as a whole, or the error leaves something that
//! `Column::truncate` cuts off.

mod binary;
mod civil;
mod interval;
mod nested;
mod number;
mod numeric;
mod time;

use crate::columns::{Column, Values};
use crate::json::jsonb;
use crate::{ValueError, columns::ByteValues};

pub(crate) use number::{float64_of_json, int_of_json};
pub(crate) use numeric::parse_numeric;
pub use time::EpochUnit;

/// Appends the value that `text` spells.
pub fn append(column: &mut Column, text: &str) -> Result<(), ValueError> {
    match &mut column.values {
        Values::Text(v) => v.push(text.as_bytes())?,
        Values::BigInt(v) => v.push(number::parse_int(text, "bigint")?),
        Values::Integer(v) => v.push(number::parse_int(text, "integer")?),
        Values::SmallInt(v) => v.push(number::parse_int(text, "smallint")?),
        Values::Double(v) => v.push(number::parse_float(text, "double precision")?),
        Values::Real(v) => v.push(number::parse_float(text, "real")?),
        Values::Numeric { values, precision, scale } => {
            values.push(parse_numeric(text.trim_ascii(), *precision, *scale)?);
        }
        Values::Boolean(v) => v.push(number::parse_boolean(text)?),
        Values::Date(v) => v.push(time::parse_date(text)?),
        Values::Time(v) => v.push(time::parse_time(text)?),
        Values::Timestamp(v) => v.push(time::parse_timestamp(text)?),
        Values::Timestamptz(v) => v.push(time::parse_timestamptz(text)?),
        Values::Interval(v) => v.push(interval::parse_interval(text)?),
        Values::Bytea(v) => binary::append_bytea(v, text)?,
        Values::Uuid(v) => binary::append_uuid(v, text)?,
        Values::Jsonb(v) => append_jsonb(v, text)?,
        Values::Array { ends, items } => nested::append_array(ends, items, text)?,
        Values::Struct { len, members } => nested::append_row(len, members, text)?,
    }
    column.validity.push_valid();
    Ok(())
}

/// Appends the value of an SQL literal: as [`append`], but a bytea without `\\x` is in PostgreSQL's escape format,
/// which producers of JSON do not write.
pub fn append_literal(column: &mut Column, text: &str) -> Result<(), ValueError> {
    if let Values::Bytea(values) = &mut column.values
        && !text.starts_with("\\x")
    {
        binary::append_escaped(values, text)?;
        column.validity.push_valid();
        return Ok(());
    }
    append(column, text)
}

fn append_jsonb(values: &mut ByteValues, text: &str) -> Result<(), ValueError> {
    jsonb::normalise(text, &mut values.bytes).map_err(|_| ValueError::invalid(text, "jsonb"))?;
    values.push(b"")
}
