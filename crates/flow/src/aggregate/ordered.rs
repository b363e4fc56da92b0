//! Values in the order of MIN and MAX: NULLs are no values, NaN is the greatest, −0.0 is 0.0, text is ordered by bytes.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int64Array,
    StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};

use crate::key::Column;
use crate::key::column::{Values, canonical_float, slice};

/// Whether MIN and MAX can be taken of this type.
pub fn is_ordered(data_type: &DataType) -> bool {
    class_of(data_type).is_some()
}

/// How values of a type are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderClass {
    /// Up to 64 bits.
    Word,
    Decimal,
    Bytes,
}

pub(super) fn class_of(data_type: &DataType) -> Option<OrderClass> {
    Some(match data_type {
        DataType::Boolean
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32
        | DataType::Time64(TimeUnit::Microsecond)
        | DataType::Timestamp(TimeUnit::Microsecond, _) => OrderClass::Word,
        DataType::Decimal128(..) => OrderClass::Decimal,
        DataType::Utf8 | DataType::Binary => OrderClass::Bytes,
        _ => return None,
    })
}

/// A value as the extremum state holds it.
pub(super) trait Ordered: Ord + Clone + std::hash::Hash + Send + std::fmt::Debug {
    /// The value of a row that is not NULL.
    fn read(column: &Column, row: usize) -> Self;

    /// A column of `data_type`.
    fn column(values: Vec<Option<Self>>, data_type: &DataType) -> ArrayRef;

    /// Memory behind the value itself.
    fn bytes(&self) -> usize;
}

impl Ordered for i64 {
    fn read(column: &Column, row: usize) -> i64 {
        match column.values() {
            Values::Bool(values) => i64::from(values.value(row)),
            Values::F32(values) => float_order(f64::from(values[row])),
            Values::F64(values) => float_order(values[row]),
            _ => column.integer(row).expect("a word is a boolean, a float or an integer"),
        }
    }

    fn column(values: Vec<Option<i64>>, data_type: &DataType) -> ArrayRef {
        let floats =
            |values: Vec<Option<i64>>| values.into_iter().map(|value| value.map(order_float));
        match data_type {
            DataType::Boolean => Arc::new(
                values.into_iter().map(|value| value.map(|v| v == 1)).collect::<BooleanArray>(),
            ),
            DataType::Float64 => Arc::new(floats(values).collect::<Float64Array>()),
            DataType::Float32 => Arc::new(
                floats(values).map(|value| value.map(|v| v as f32)).collect::<Float32Array>(),
            ),
            DataType::Date32 => {
                let days =
                    cast(&Int64Array::from(values), &DataType::Int32).expect("it was widened");
                cast(&days, data_type).expect("a date is its days")
            }
            _ => cast(&Int64Array::from(values), data_type).expect("it was widened from this type"),
        }
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Floats as integers in the same order.
fn float_order(value: f64) -> i64 {
    let bits = canonical_float(value).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn order_float(order: i64) -> f64 {
    f64::from_bits((order ^ (((order >> 63) as u64) >> 1) as i64) as u64)
}

impl Ordered for i128 {
    fn read(column: &Column, row: usize) -> i128 {
        match column.values() {
            Values::I128(values) => values[row],
            _ => unreachable!("only decimals are held in 128 bits"),
        }
    }

    fn column(values: Vec<Option<i128>>, data_type: &DataType) -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_data_type(data_type.clone()))
    }

    fn bytes(&self) -> usize {
        0
    }
}

impl Ordered for Box<[u8]> {
    fn read(column: &Column, row: usize) -> Box<[u8]> {
        match column.values() {
            Values::Bytes(offsets, bytes) => slice(offsets, bytes, row).into(),
            _ => unreachable!("only text and bytea are held as bytes"),
        }
    }

    fn column(values: Vec<Option<Box<[u8]>>>, data_type: &DataType) -> ArrayRef {
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).expect("it came from text").to_owned();
        match data_type {
            DataType::Utf8 => Arc::new(
                values.iter().map(|value| value.as_deref().map(text)).collect::<StringArray>(),
            ),
            _ => Arc::new(BinaryArray::from_iter(values.iter().map(|value| value.as_deref()))),
        }
    }

    fn bytes(&self) -> usize {
        self.len() + 16
    }
}

#[cfg(test)]
mod tests {
    use super::{float_order, order_float};

    #[test]
    fn floats_keep_their_order_and_come_back() {
        let ordered = [
            f64::NEG_INFINITY,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(ordered.windows(2).all(|pair| float_order(pair[0]) < float_order(pair[1])));
        assert!(
            ordered.iter().all(|value| order_float(float_order(*value)).total_cmp(value).is_eq())
        );
        assert_eq!(float_order(-0.0), float_order(0.0));
    }
}
