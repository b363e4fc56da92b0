//! Typed views of columns that compare, hash and encode single rows without a dynamic call.
//!
//! Equality is that of GROUP BY: NULL equals NULL, −0.0 equals 0.0, NaN equals NaN.

use std::borrow::Cow;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, StructArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt64Type,
};

/// A column, shared with the batch it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    nulls: Option<NullBuffer>,
    values: Values,
}

#[derive(Clone, Debug)]
pub(crate) enum Values {
    Null,
    Bool(BooleanBuffer),
    I16(ScalarBuffer<i16>),
    I32(ScalarBuffer<i32>),
    I64(ScalarBuffer<i64>),
    I128(ScalarBuffer<i128>),
    F32(ScalarBuffer<f32>),
    F64(ScalarBuffer<f64>),
    Interval(ScalarBuffer<IntervalMonthDayNano>),
    Bytes(OffsetBuffer<i32>, Buffer),
    List(OffsetBuffer<i32>, Box<Column>),
    Struct(Vec<Column>),
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> ScalarBuffer<T::Native> {
    array.as_primitive::<T>().values().clone()
}

impl Column {
    /// A view of `array`.
    ///
    /// # Panics
    /// If the type is none that a relation of Segue holds: the planner casts all others away.
    pub(crate) fn new(array: &ArrayRef) -> Column {
        let values = match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Bool(array.as_boolean().values().clone()),
            DataType::Int16 => Values::I16(primitive::<Int16Type>(array)),
            DataType::Int32 => Values::I32(primitive::<Int32Type>(array)),
            DataType::Date32 => Values::I32(primitive::<Date32Type>(array)),
            DataType::Int64 => Values::I64(primitive::<Int64Type>(array)),
            DataType::Time64(TimeUnit::Microsecond) => {
                Values::I64(primitive::<Time64MicrosecondType>(array))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Values::I64(primitive::<TimestampMicrosecondType>(array))
            }
            DataType::UInt64 => Values::I64(reinterpret(array.as_primitive::<UInt64Type>())),
            DataType::Decimal128(..) => Values::I128(primitive::<Decimal128Type>(array)),
            DataType::Float32 => Values::F32(primitive::<Float32Type>(array)),
            DataType::Float64 => Values::F64(primitive::<Float64Type>(array)),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                Values::Interval(primitive::<IntervalMonthDayNanoType>(array))
            }
            DataType::Utf8 => {
                let text = array.as_string::<i32>();
                Values::Bytes(text.offsets().clone(), text.values().clone())
            }
            DataType::Binary => {
                let bytes = array.as_binary::<i32>();
                Values::Bytes(bytes.offsets().clone(), bytes.values().clone())
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Values::List(list.offsets().clone(), Box::new(Column::new(list.values())))
            }
            DataType::Struct(_) => Values::Struct(members(array.as_struct())),
            other => {
                return Column::new(&cast(array, &held_type(other)).expect("widening cannot fail"));
            }
        };
        Column { nulls: array.logical_nulls(), values }
    }

    /// The view of each column at `columns`.
    pub(crate) fn of(batch: &arrow::array::RecordBatch, columns: &[usize]) -> Vec<Column> {
        columns.iter().map(|column| Column::new(batch.column(*column))).collect()
    }

    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    pub(crate) fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Whether two rows of one type are the same to GROUP BY.
    pub(crate) fn equals(&self, row: usize, other: &Column, other_row: usize) -> bool {
        match (self.is_null(row), other.is_null(other_row)) {
            (false, false) => self.values.equals(row, &other.values, other_row),
            (left, right) => left && right,
        }
    }

    /// Looks at a value, so that it is in the cache when it is compared.
    pub(crate) fn touch(&self, row: usize) -> u64 {
        match &self.values {
            Values::I64(values) => values[row] as u64,
            Values::Bytes(offsets, bytes) => {
                u64::from(slice(offsets, bytes, row).first().copied().unwrap_or_default())
            }
            Values::I32(values) => values[row] as u64,
            Values::I128(values) => values[row] as u64,
            Values::F64(values) => values[row].to_bits(),
            _ => 0,
        }
    }

    /// The value of an integer-like column (also date, time, timestamp), if it is one.
    pub(crate) fn integer(&self, row: usize) -> Option<i64> {
        match &self.values {
            Values::I16(values) => Some(i64::from(values[row])),
            Values::I32(values) => Some(i64::from(values[row])),
            Values::I64(values) => Some(values[row]),
            _ => None,
        }
    }
}

impl Column {
    /// The values of an integer-like column, widened; whatever they are where it is NULL.
    pub(crate) fn integers(&self) -> Option<Cow<'_, [i64]>> {
        match &self.values {
            Values::I16(values) => Some(values.iter().map(|value| i64::from(*value)).collect()),
            Values::I32(values) => Some(values.iter().map(|value| i64::from(*value)).collect()),
            Values::I64(values) => Some(Cow::Borrowed(values)),
            _ => None,
        }
    }
}

/// The type in which a value of a narrower or foreign type is held.
fn held_type(other: &DataType) -> DataType {
    match other {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        unknown => panic!("no column of a relation has the type {unknown}"),
    }
}

fn reinterpret(array: &PrimitiveArray<UInt64Type>) -> ScalarBuffer<i64> {
    ScalarBuffer::new(array.values().inner().clone(), 0, array.len())
}

fn members(array: &StructArray) -> Vec<Column> {
    array.columns().iter().map(Column::new).collect()
}

/// The one bit pattern of a float value: one NaN, one zero.
pub(crate) fn canonical_float(value: f64) -> f64 {
    match value {
        value if value.is_nan() => f64::NAN,
        // Also −0.0, which compares equal.
        0.0 => 0.0,
        value => value,
    }
}

impl Values {
    fn equals(&self, row: usize, other: &Values, other_row: usize) -> bool {
        match (self, other) {
            (Values::I64(a), Values::I64(b)) => a[row] == b[other_row],
            (Values::Bytes(a, a_bytes), Values::Bytes(b, b_bytes)) => {
                slice(a, a_bytes, row) == slice(b, b_bytes, other_row)
            }
            (Values::I32(a), Values::I32(b)) => a[row] == b[other_row],
            (Values::I16(a), Values::I16(b)) => a[row] == b[other_row],
            (Values::I128(a), Values::I128(b)) => a[row] == b[other_row],
            (Values::F64(a), Values::F64(b)) => same_float(a[row], b[other_row]),
            (Values::F32(a), Values::F32(b)) => {
                same_float(f64::from(a[row]), f64::from(b[other_row]))
            }
            (Values::Bool(a), Values::Bool(b)) => a.value(row) == b.value(other_row),
            (Values::Interval(a), Values::Interval(b)) => a[row] == b[other_row],
            (Values::List(a, a_items), Values::List(b, b_items)) => {
                let (a, b) = (range(a, row), range(b, other_row));
                a.len() == b.len() && a.zip(b).all(|(i, j)| a_items.equals(i, b_items, j))
            }
            (Values::Struct(a), Values::Struct(b)) => {
                a.iter().zip(b).all(|(a, b)| a.equals(row, b, other_row))
            }
            (Values::Null, Values::Null) => true,
            _ => unreachable!("a column keeps its type"),
        }
    }
}

fn same_float(a: f64, b: f64) -> bool {
    canonical_float(a).to_bits() == canonical_float(b).to_bits()
}

/// The bytes of one row.
pub(crate) fn slice<'a>(offsets: &OffsetBuffer<i32>, bytes: &'a Buffer, row: usize) -> &'a [u8] {
    &bytes.as_slice()[range(offsets, row)]
}

/// The items of one row.
pub(crate) fn range(offsets: &OffsetBuffer<i32>, row: usize) -> std::ops::Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

/// Whether two rows agree in every column.
pub(crate) fn rows_equal(a: &[Column], row: usize, b: &[Column], other_row: usize) -> bool {
    a.iter().zip(b).all(|(a, b)| a.equals(row, b, other_row))
}
