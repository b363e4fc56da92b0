//! Canonical key bytes back to columns. Lists and structs can be encoded and compared, but not read back.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, StringBuilder,
    Time64MicrosecondArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};

/// Whether a key column of this type can be read back from its encoding.
pub(crate) fn can_decode(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Null
            | DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Decimal128(..)
            | DataType::Float32
            | DataType::Float64
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Interval(IntervalUnit::MonthDayNano)
            | DataType::Utf8
            | DataType::Binary
    )
}

/// Reads the next value of `data_type` and leaves `encoded` after it.
fn next_value<'a>(data_type: &DataType, encoded: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (tag, rest) = encoded.split_first().expect("each column has its NULL byte");
    let mut rest = rest;
    let value = (*tag == 1).then(|| {
        let length = match data_type {
            DataType::Boolean => 1,
            DataType::Decimal128(..) | DataType::Interval(_) => 16,
            DataType::Utf8 | DataType::Binary => {
                let (length, bytes) = rest.split_first_chunk().expect("a length has 4 bytes");
                rest = bytes;
                u32::from_le_bytes(*length) as usize
            }
            _ => 8,
        };
        let (value, after) = rest.split_at(length);
        rest = after;
        value
    });
    *encoded = rest;
    value
}

fn integer(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().expect("an integer has 8 bytes"))
}

fn float(bytes: &[u8]) -> f64 {
    f64::from_bits(u64::from_le_bytes(bytes.try_into().expect("a float has 8 bytes")))
}

fn interval(bytes: &[u8]) -> IntervalMonthDayNano {
    let at = |from: usize| bytes[from..from + 4].try_into().expect("four bytes");
    IntervalMonthDayNano::new(
        i32::from_le_bytes(at(0)),
        i32::from_le_bytes(at(4)),
        integer(&bytes[8..]),
    )
}

/// The column whose values come next in each of `keys`; each is left after its value.
///
/// # Panics
/// If the type is not one of [`can_decode`] or the bytes are not an encoding of it.
pub(crate) fn decode_column(data_type: &DataType, keys: &mut [&[u8]]) -> ArrayRef {
    let rows = keys.len();
    let values = keys.iter_mut().map(|key| next_value(data_type, key));
    let narrow = "it was widened from this type";
    match data_type {
        DataType::Null => {
            values.for_each(drop);
            new_null_array(data_type, rows)
        }
        DataType::Boolean => {
            let mut out = BooleanBuilder::with_capacity(rows);
            values.for_each(|value| out.append_option(value.map(|bytes| bytes[0] == 1)));
            Arc::new(out.finish())
        }
        DataType::Int16 => {
            let value = |bytes: &[u8]| i16::try_from(integer(bytes)).expect(narrow);
            Arc::new(values.map(|bytes| bytes.map(value)).collect::<Int16Array>())
        }
        DataType::Int32 => {
            let value = |bytes: &[u8]| i32::try_from(integer(bytes)).expect(narrow);
            Arc::new(values.map(|bytes| bytes.map(value)).collect::<Int32Array>())
        }
        DataType::Date32 => {
            let value = |bytes: &[u8]| i32::try_from(integer(bytes)).expect(narrow);
            Arc::new(values.map(|bytes| bytes.map(value)).collect::<Date32Array>())
        }
        DataType::Int64 => Arc::new(values.map(|bytes| bytes.map(integer)).collect::<Int64Array>()),
        DataType::Time64(_) => {
            Arc::new(values.map(|bytes| bytes.map(integer)).collect::<Time64MicrosecondArray>())
        }
        DataType::Timestamp(_, zone) => Arc::new(
            values
                .map(|bytes| bytes.map(integer))
                .collect::<TimestampMicrosecondArray>()
                .with_timezone_opt(zone.clone()),
        ),
        DataType::Decimal128(..) => {
            let value = |bytes: &[u8]| i128::from_le_bytes(bytes.try_into().expect("16 bytes"));
            let array = values.map(|bytes| bytes.map(value)).collect::<Decimal128Array>();
            Arc::new(array.with_data_type(data_type.clone()))
        }
        DataType::Float32 => {
            Arc::new(values.map(|bytes| bytes.map(|b| float(b) as f32)).collect::<Float32Array>())
        }
        DataType::Float64 => {
            Arc::new(values.map(|bytes| bytes.map(float)).collect::<Float64Array>())
        }
        DataType::Interval(_) => {
            Arc::new(values.map(|bytes| bytes.map(interval)).collect::<IntervalMonthDayNanoArray>())
        }
        DataType::Utf8 => {
            let mut out = StringBuilder::with_capacity(rows, rows * 8);
            let text = |bytes| std::str::from_utf8(bytes).expect("it was encoded from text");
            values.for_each(|value| out.append_option(value.map(text)));
            Arc::new(out.finish())
        }
        DataType::Binary => {
            let mut out = BinaryBuilder::with_capacity(rows, rows * 8);
            values.for_each(|value| out.append_option(value));
            Arc::new(out.finish())
        }
        other => panic!("a key of type {other} cannot be read back"),
    }
}
