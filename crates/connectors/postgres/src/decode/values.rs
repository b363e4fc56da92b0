//! One column: wire values appended to a typed Arrow builder.
//!
//! Invariant: after [`Values::append`] or [`Values::append_null`] the column is one row longer; after a
//! fault it is not used again.

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Decimal128Builder, ListArray, NullBufferBuilder,
    PrimitiveBuilder, StringArray, StructArray,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Date32Type, FieldRef, Fields, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use segue_types::{SqlState, SqlType};
use std::sync::Arc;

use super::fault::{Fault, fixed, take, take_value};
use super::numeric::{Decimal, Excess};
use super::temporal;
use crate::plan::Wire;

const JSONB_VERSION: u8 = 1;
const MULTI_DIMENSIONAL: &str =
    "Unnest it in the query, or cast the column to text and declare it so.";

/// A column under construction, by what comes in and what is built. `Int2As8` is an int2 in a bigint column.
pub(super) enum Values {
    Bool(BooleanBuilder),
    Int2(PrimitiveBuilder<Int16Type>),
    Int2As4(PrimitiveBuilder<Int32Type>),
    Int2As8(PrimitiveBuilder<Int64Type>),
    Int4(PrimitiveBuilder<Int32Type>),
    Int4As8(PrimitiveBuilder<Int64Type>),
    Int8(PrimitiveBuilder<Int64Type>),
    OidAs8(PrimitiveBuilder<Int64Type>),
    Float4(PrimitiveBuilder<Float32Type>),
    Float4As8(PrimitiveBuilder<Float64Type>),
    Float8(PrimitiveBuilder<Float64Type>),
    Numeric(Decimal128Builder, Decimal),
    /// UTF-8 is checked once per batch, in [`Values::finish`].
    Text(BinaryBuilder),
    Jsonb(BinaryBuilder),
    Uuid(BinaryBuilder),
    Bytea(BinaryBuilder),
    Date(PrimitiveBuilder<Date32Type>),
    Time(PrimitiveBuilder<Time64MicrosecondType>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    Interval(PrimitiveBuilder<IntervalMonthDayNanoType>),
    Array(Box<ListValues>),
    Composite(Box<StructValues>),
}

pub(super) struct ListValues {
    item: FieldRef,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    elements: Values,
}

pub(super) struct StructValues {
    fields: Fields,
    nulls: NullBufferBuilder,
    members: Vec<Values>,
}

/// Applies `$body` to whichever builder it is; those that are not one builder come after.
macro_rules! each_builder {
    ($values:expr, $builder:ident => $body:expr, $($other:pat => $other_body:expr),+ $(,)?) => {
        match $values {
            Values::Bool($builder) => $body,
            Values::Int2($builder) => $body,
            Values::Int2As4($builder) | Values::Int4($builder) => $body,
            Values::Int2As8($builder)
            | Values::Int4As8($builder)
            | Values::Int8($builder)
            | Values::OidAs8($builder) => $body,
            Values::Float4($builder) => $body,
            Values::Float4As8($builder) | Values::Float8($builder) => $body,
            Values::Numeric($builder, _) => $body,
            Values::Bytea($builder) => $body,
            Values::Date($builder) => $body,
            Values::Time($builder) => $body,
            Values::Timestamp($builder) => $body,
            Values::Interval($builder) => $body,
            $($other => $other_body),+
        }
    };
}

impl Values {
    /// An empty column of `data_type`, or `None` when the plan cannot fill it.
    pub(super) fn new(wire: &Wire, data_type: &DataType, rows: usize) -> Option<Values> {
        Some(match (wire, data_type) {
            (Wire::Bool, DataType::Boolean) => Values::Bool(BooleanBuilder::with_capacity(rows)),
            (Wire::Int2, DataType::Int16) => Values::Int2(PrimitiveBuilder::with_capacity(rows)),
            (Wire::Int2, DataType::Int32) => Values::Int2As4(PrimitiveBuilder::with_capacity(rows)),
            (Wire::Int2, DataType::Int64) => Values::Int2As8(PrimitiveBuilder::with_capacity(rows)),
            (Wire::Int4, DataType::Int32) => Values::Int4(PrimitiveBuilder::with_capacity(rows)),
            (Wire::Int4, DataType::Int64) => Values::Int4As8(PrimitiveBuilder::with_capacity(rows)),
            (Wire::Int8, DataType::Int64) => Values::Int8(PrimitiveBuilder::with_capacity(rows)),
            (Wire::Oid, DataType::Int64) => Values::OidAs8(PrimitiveBuilder::with_capacity(rows)),
            (Wire::Float4, DataType::Float32) => {
                Values::Float4(PrimitiveBuilder::with_capacity(rows))
            }
            (Wire::Float4, DataType::Float64) => {
                Values::Float4As8(PrimitiveBuilder::with_capacity(rows))
            }
            (Wire::Float8, DataType::Float64) => {
                Values::Float8(PrimitiveBuilder::with_capacity(rows))
            }
            (Wire::Numeric, DataType::Decimal128(precision, scale)) => {
                let builder = Decimal128Builder::with_capacity(rows);
                Values::Numeric(
                    builder.with_data_type(data_type.clone()),
                    Decimal {
                        precision: *precision,
                        scale: *scale,
                        excess: excess(*precision, *scale),
                    },
                )
            }
            (Wire::Text, DataType::Utf8) => Values::Text(BinaryBuilder::with_capacity(rows, 0)),
            (Wire::Jsonb, DataType::Utf8) => Values::Jsonb(BinaryBuilder::with_capacity(rows, 0)),
            (Wire::Uuid, DataType::Utf8) => {
                Values::Uuid(BinaryBuilder::with_capacity(rows, rows * 36))
            }
            (Wire::Bytea, DataType::Binary) => Values::Bytea(BinaryBuilder::with_capacity(rows, 0)),
            (Wire::Date, DataType::Date32) => Values::Date(PrimitiveBuilder::with_capacity(rows)),
            (Wire::Time, DataType::Time64(_)) => {
                Values::Time(PrimitiveBuilder::with_capacity(rows))
            }
            (Wire::Timestamp, DataType::Timestamp(_, None))
            | (Wire::Timestamptz, DataType::Timestamp(_, Some(_))) => {
                let builder = PrimitiveBuilder::with_capacity(rows);
                Values::Timestamp(builder.with_data_type(data_type.clone()))
            }
            (Wire::Interval, DataType::Interval(_)) => {
                Values::Interval(PrimitiveBuilder::with_capacity(rows))
            }
            (Wire::Array(element), DataType::List(item)) => Values::Array(Box::new(ListValues {
                item: Arc::clone(item),
                offsets: vec![0],
                nulls: NullBufferBuilder::new(rows),
                elements: Values::new(element, item.data_type(), rows)?,
            })),
            (Wire::Composite(wires), DataType::Struct(fields)) if wires.len() == fields.len() => {
                let members = wires.iter().zip(fields);
                Values::Composite(Box::new(StructValues {
                    fields: fields.clone(),
                    nulls: NullBufferBuilder::new(rows),
                    members: members
                        .map(|(wire, field)| Values::new(wire, field.data_type(), rows))
                        .collect::<Option<_>>()?,
                }))
            }
            _ => return None,
        })
    }

    /// Adds a value that is not NULL.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Box<Fault>> {
        match self {
            Values::Bool(builder) => builder.append_value(fixed::<1>(bytes)? != [0]),
            Values::Int2(builder) => builder.append_value(i16::from_be_bytes(fixed(bytes)?)),
            Values::Int2As4(builder) => {
                builder.append_value(i32::from(i16::from_be_bytes(fixed(bytes)?)));
            }
            Values::Int2As8(builder) => {
                builder.append_value(i64::from(i16::from_be_bytes(fixed(bytes)?)));
            }
            Values::Int4(builder) => builder.append_value(i32::from_be_bytes(fixed(bytes)?)),
            Values::Int4As8(builder) => {
                builder.append_value(i64::from(i32::from_be_bytes(fixed(bytes)?)));
            }
            Values::Int8(builder) => builder.append_value(i64::from_be_bytes(fixed(bytes)?)),
            Values::OidAs8(builder) => {
                builder.append_value(i64::from(u32::from_be_bytes(fixed(bytes)?)));
            }
            Values::Float4(builder) => builder.append_value(f32::from_be_bytes(fixed(bytes)?)),
            Values::Float4As8(builder) => {
                builder.append_value(f64::from(f32::from_be_bytes(fixed(bytes)?)));
            }
            Values::Float8(builder) => builder.append_value(f64::from_be_bytes(fixed(bytes)?)),
            Values::Numeric(builder, decimal) => builder.append_value(decimal.decode(bytes)?),
            Values::Text(builder) | Values::Bytea(builder) => builder.append_value(bytes),
            Values::Jsonb(builder) => match bytes.split_first() {
                Some((&JSONB_VERSION, text)) => builder.append_value(text),
                _ => return Err(Fault::malformed(bytes)),
            },
            Values::Uuid(builder) => builder.append_value(uuid_text(fixed(bytes)?)),
            Values::Date(builder) => builder.append_value(temporal::date(bytes)?),
            Values::Time(builder) => builder.append_value(temporal::time(bytes)?),
            Values::Timestamp(builder) => builder.append_value(temporal::timestamp(bytes)?),
            Values::Interval(builder) => builder.append_value(temporal::interval(bytes)?),
            Values::Array(list) => list.append(bytes)?,
            Values::Composite(members) => members.append(bytes)?,
        }
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        each_builder!(self, builder => builder.append_null(),
            Values::Text(builder) | Values::Jsonb(builder) | Values::Uuid(builder) => {
                builder.append_null();
            },
            Values::Array(list) => {
                list.nulls.append_null();
                list.offsets.push(*list.offsets.last().expect("an offset before the first row"));
            },
            Values::Composite(members) => {
                members.nulls.append_null();
                members.members.iter_mut().for_each(Values::append_null);
            },
        );
    }

    /// The column so far; the next batch starts empty.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, Box<Fault>> {
        Ok(each_builder!(self, builder => Arc::new(builder.finish()),
            Values::Text(builder) | Values::Jsonb(builder) | Values::Uuid(builder) => {
                let text = StringArray::try_from_binary(builder.finish());
                Arc::new(text.map_err(|_| not_utf8())?)
            },
            Values::Array(list) => list.finish()?,
            Values::Composite(members) => members.finish()?,
        ))
    }

    fn append_optional(&mut self, bytes: Option<&[u8]>) -> Result<(), Box<Fault>> {
        match bytes {
            Some(bytes) => self.append(bytes),
            None => {
                self.append_null();
                Ok(())
            }
        }
    }
}

impl ListValues {
    fn append(&mut self, bytes: &[u8]) -> Result<(), Box<Fault>> {
        let mut rest = bytes;
        let dimensions = i32::from_be_bytes(take(&mut rest)?);
        let _has_nulls: [u8; 4] = take(&mut rest)?;
        let _element_oid: [u8; 4] = take(&mut rest)?;
        let length = match dimensions {
            0 => 0,
            1 => {
                let length = i32::from_be_bytes(take(&mut rest)?);
                let _lower_bound: [u8; 4] = take(&mut rest)?;
                length
            }
            _ => {
                return Err(Fault::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("an array of {dimensions} dimensions has no place in an array column"),
                    MULTI_DIMENSIONAL,
                ));
            }
        };
        for _ in 0..length {
            self.elements.append_optional(take_value(&mut rest)?)?;
        }
        let end = self.offsets.last().and_then(|last| last.checked_add(length));
        match (end, rest) {
            (Some(end), []) => self.offsets.push(end),
            _ => return Err(Fault::malformed(bytes)),
        }
        self.nulls.append_non_null();
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef, Box<Fault>> {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        Ok(Arc::new(ListArray::new(
            Arc::clone(&self.item),
            OffsetBuffer::new(ScalarBuffer::from(offsets)),
            self.elements.finish()?,
            self.nulls.finish(),
        )))
    }
}

impl StructValues {
    fn append(&mut self, bytes: &[u8]) -> Result<(), Box<Fault>> {
        let mut rest = bytes;
        let count = i32::from_be_bytes(take(&mut rest)?);
        if usize::try_from(count) != Ok(self.members.len()) {
            return Err(Fault::malformed(bytes));
        }
        for member in &mut self.members {
            let _oid: [u8; 4] = take(&mut rest)?;
            member.append_optional(take_value(&mut rest)?)?;
        }
        self.nulls.append_non_null();
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef, Box<Fault>> {
        let arrays = self.members.iter_mut().map(Values::finish).collect::<Result<_, _>>()?;
        Ok(Arc::new(StructArray::new(self.fields.clone(), arrays, self.nulls.finish())))
    }
}

fn excess(precision: u8, scale: i8) -> Excess {
    match (SqlType::Numeric { precision, scale }) == SqlType::NUMERIC {
        true => Excess::Refused,
        false => Excess::Rounded,
    }
}

fn not_utf8() -> Box<Fault> {
    Fault::new(
        SqlState::DATA_CORRUPTED,
        "a text is not valid UTF-8",
        "Declare the column as bytea and select convert_to(c, 'UTF8'), or mend the text in the database.",
    )
}

fn uuid_text(bytes: [u8; 16]) -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (index, byte) in bytes.into_iter().enumerate() {
        // A dash stands before bytes 4, 6, 8 and 10.
        at += usize::from(matches!(index, 4 | 6 | 8 | 10));
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
        at += 2;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::uuid_text;

    #[test]
    fn a_uuid_reads_as_postgresql_prints_it() {
        let bytes = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128.to_be_bytes();
        assert_eq!(&uuid_text(bytes), b"01234567-89ab-cdef-fedc-ba9876543210");
    }
}
