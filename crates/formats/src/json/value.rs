//! One JSON value → one value of a column.

use crate::ValueError;
use crate::columns::{Column, Values};
use crate::json::scanner::{Malformed, Number, RawString, Scanner};
use crate::json::shape::{ObjectShape, Shape, Target};
use crate::json::{JsonOptions, escape, jsonb};
use crate::text::{self, EpochUnit, float64_of_json, int_of_json, parse_numeric};

/// Why a record cannot be read.
#[derive(Debug)]
pub(super) enum Flaw {
    Malformed(Malformed),
    Value(ValueError),
}

impl From<Malformed> for Flaw {
    fn from(malformed: Malformed) -> Flaw {
        Flaw::Malformed(malformed)
    }
}

impl From<ValueError> for Flaw {
    fn from(error: ValueError) -> Flaw {
        Flaw::Value(error)
    }
}

/// Reads an object's fields into `columns`, which all have `len` rows. How many columns got a
/// value; `current` is the column that was being written when an error came.
pub(super) fn read_object(
    scanner: &mut Scanner<'_>,
    shape: &mut ObjectShape,
    columns: &mut [Column],
    len: usize,
    options: &JsonOptions,
    depth: usize,
    current: &mut usize,
) -> Result<usize, Flaw> {
    let depth = scanner.open(depth)?;
    let (mut filled, mut due) = (0, 0);
    if scanner.peek_token() == b'}' {
        scanner.advance();
        return Ok(0);
    }
    loop {
        scanner.expect(b'"', "expected a field name")?;
        let target = shape.field(scanner, &mut due)?;
        scanner.expect(b':', "expected a colon")?;
        let target = match target {
            Target::Exact(column) => Some(column),
            Target::Folded(column) if columns[column].len() == len => Some(column),
            Target::Folded(_) | Target::Skip => None,
        };
        match target {
            None => scanner.skip_value(depth)?,
            Some(index) => {
                *current = index;
                let column = &mut columns[index];
                if column.len() == len {
                    filled += 1;
                } else {
                    // A name that comes twice: the last one holds, as in PostgreSQL.
                    column.truncate(len);
                }
                read_value(scanner, column, &mut shape.members[index], options, depth)?;
            }
        }
        if !scanner.another(b'}')? {
            return Ok(filled);
        }
    }
}

/// Reads one value into a column.
#[inline]
pub(super) fn read_value(
    scanner: &mut Scanner<'_>,
    column: &mut Column,
    shape: &mut Shape,
    options: &JsonOptions,
    depth: usize,
) -> Result<(), Flaw> {
    match scanner.peek_token() {
        b'n' => {
            scanner.literal("null")?;
            column.append_null();
            Ok(())
        }
        _ if matches!(column.values, Values::Jsonb(_)) => read_jsonb(scanner, column, depth),
        b'"' => {
            scanner.advance();
            let raw = scanner.string()?;
            append_string(column, raw)
        }
        b'-' | b'0'..=b'9' => {
            let number = scanner.number()?;
            append_number(column, number, options)?;
            column.validity.push_valid();
            Ok(())
        }
        b't' => {
            scanner.literal("true")?;
            append_boolean(column, true)
        }
        b'f' => {
            scanner.literal("false")?;
            append_boolean(column, false)
        }
        _ => read_nested(scanner, column, shape, options, depth),
    }
}

#[inline]
fn append_string(column: &mut Column, raw: RawString<'_>) -> Result<(), Flaw> {
    match &mut column.values {
        Values::Text(values) => {
            if raw.escaped {
                escape::unescape(raw.text, &mut values.bytes);
                values.push(b"")?;
            } else {
                values.push(raw.text.as_bytes())?;
            }
            column.validity.push_valid();
        }
        _ if raw.escaped => text::append(column, &escape::unescaped(raw.text))?,
        _ => text::append(column, raw.text)?,
    }
    Ok(())
}

/// Appends a number below the validity, which the caller pushes.
#[inline]
fn append_number(
    column: &mut Column,
    number: Number<'_>,
    options: &JsonOptions,
) -> Result<(), ValueError> {
    let text = number.text;
    match &mut column.values {
        Values::BigInt(v) => match number.small {
            Some(small) => v.push(small),
            None => v.push(int_of_json(text, "bigint")?),
        },
        Values::Integer(v) => match number.small.map(i32::try_from) {
            Some(Ok(small)) => v.push(small),
            _ => v.push(int_of_json(text, "integer")?),
        },
        Values::SmallInt(v) => match number.small.map(i16::try_from) {
            Some(Ok(small)) => v.push(small),
            _ => v.push(int_of_json(text, "smallint")?),
        },
        Values::Double(v) => {
            let value = float64_of_json(text);
            v.push(value.ok_or_else(|| ValueError::out_of_range(text, "double precision"))?);
        }
        Values::Real(v) => {
            let value = text.parse().ok().filter(|value: &f32| value.is_finite());
            v.push(value.ok_or_else(|| ValueError::out_of_range(text, "real"))?);
        }
        Values::Numeric { values, precision, scale } => {
            values.push(parse_numeric(text, *precision, *scale)?);
        }
        Values::Text(v) => v.push(text.as_bytes())?,
        Values::Timestamp(v) => v.push(epoch_us(text, options.epoch_unit, "timestamp")?),
        Values::Timestamptz(v) => v.push(epoch_us(text, options.epoch_unit, "timestamptz")?),
        Values::Date(v) => v.push(int_of_json(text, "date")?),
        Values::Time(v) => v.push(time_us(text)?),
        Values::Boolean(v) if matches!(text, "0" | "1") => v.push(text == "1"),
        other => return Err(ValueError::invalid(text, name(other))),
    }
    Ok(())
}

/// A number of a timestamp column, also with a fraction, as microseconds.
fn epoch_us(text: &str, unit: EpochUnit, ty: &str) -> Result<i64, ValueError> {
    let out_of_range = || ValueError::out_of_range(text, ty);
    if let Ok(number) = text.parse() {
        return unit.micros(number).ok_or_else(out_of_range);
    }
    let fraction_digits = match unit {
        EpochUnit::Second | EpochUnit::Guess => 6,
        EpochUnit::Milli => 3,
        EpochUnit::Micro => 0,
    };
    let micros = parse_numeric(text, 38, fraction_digits).map_err(|_| out_of_range())?;
    i64::try_from(micros).map_err(|_| out_of_range())
}

/// A number of a time column: microseconds since midnight.
fn time_us(text: &str) -> Result<i64, ValueError> {
    let micros = int_of_json(text, "time")?;
    if (0..86_400_000_000).contains(&micros) {
        return Ok(micros);
    }
    Err(ValueError::out_of_range(text, "time"))
}

fn append_boolean(column: &mut Column, value: bool) -> Result<(), Flaw> {
    let text = if value { "true" } else { "false" };
    match &mut column.values {
        Values::Boolean(v) => v.push(value),
        Values::Text(v) => v.push(text.as_bytes())?,
        other => return Err(ValueError::invalid(text, name(other)).into()),
    }
    column.validity.push_valid();
    Ok(())
}

fn read_jsonb(scanner: &mut Scanner<'_>, column: &mut Column, depth: usize) -> Result<(), Flaw> {
    let start = scanner.at();
    scanner.skip_value(depth)?;
    let Values::Jsonb(values) = &mut column.values else {
        unreachable!("the caller looked at the type")
    };
    let text = scanner.since(start);
    jsonb::normalise(text, &mut values.bytes).map_err(|_| ValueError::invalid(text, "jsonb"))?;
    values.push(b"")?;
    column.validity.push_valid();
    Ok(())
}

fn read_nested(
    scanner: &mut Scanner<'_>,
    column: &mut Column,
    shape: &mut Shape,
    options: &JsonOptions,
    depth: usize,
) -> Result<(), Flaw> {
    let opening = scanner.peek();
    match (&mut column.values, shape) {
        (Values::Array { ends, items }, Shape::Array(shape)) if opening == b'[' => {
            read_items(scanner, items, shape, options, depth)?;
            let end = i32::try_from(items.len());
            ends.push(end.map_err(|_| ValueError::new("the batch holds too many array items"))?);
        }
        (Values::Struct { len, members }, Shape::Object(shape)) if opening == b'{' => {
            let mut ignored = 0;
            read_object(scanner, shape, members, *len, options, depth, &mut ignored)?;
            for member in members.iter_mut().filter(|member| member.len() == *len) {
                member.append_null();
            }
            *len += 1;
        }
        (Values::Text(values), _) => {
            let start = scanner.at();
            scanner.skip_value(depth)?;
            values.push(scanner.since(start).as_bytes())?;
        }
        (other, _) => {
            let start = scanner.at();
            scanner.skip_value(depth)?;
            return Err(ValueError::invalid(scanner.since(start), name(other)).into());
        }
    }
    column.validity.push_valid();
    Ok(())
}

fn read_items(
    scanner: &mut Scanner<'_>,
    items: &mut Column,
    shape: &mut Shape,
    options: &JsonOptions,
    depth: usize,
) -> Result<(), Flaw> {
    let depth = scanner.open(depth)?;
    if scanner.peek_token() == b']' {
        scanner.advance();
        return Ok(());
    }
    loop {
        read_value(scanner, items, shape, options, depth)?;
        if !scanner.another(b']')? {
            return Ok(());
        }
    }
}

fn name(values: &Values) -> &'static str {
    match values {
        Values::Boolean(_) => "boolean",
        Values::SmallInt(_) => "smallint",
        Values::Integer(_) => "integer",
        Values::BigInt(_) => "bigint",
        Values::Real(_) => "real",
        Values::Double(_) => "double precision",
        Values::Numeric { .. } => "numeric",
        Values::Text(_) => "text",
        Values::Uuid(_) => "uuid",
        Values::Jsonb(_) => "jsonb",
        Values::Bytea(_) => "bytea",
        Values::Date(_) => "date",
        Values::Time(_) => "time",
        Values::Timestamp(_) => "timestamp",
        Values::Timestamptz(_) => "timestamptz",
        Values::Interval(_) => "interval",
        Values::Array { .. } => "array",
        Values::Struct { .. } => "struct",
    }
}
