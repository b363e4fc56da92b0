//! From builders to Arrow arrays, without copying values.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, StringArray,
    StructArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use super::bytes::{offsets, take};
use super::{ByteValues, Column, Values};

/// Values that become an Arrow buffer as they are.
fn buffer<T: arrow::datatypes::ArrowNativeType>(values: &mut Vec<T>) -> ScalarBuffer<T> {
    ScalarBuffer::from(take(values))
}

fn text(values: &mut ByteValues, nulls: Option<NullBuffer>) -> ArrayRef {
    let (offsets, bytes) = values.finish();
    // SAFETY: the bytes of every row were taken from a `str` as a whole, so each row is valid
    // UTF-8, and the offsets are ascending ends within `bytes`.
    Arc::new(unsafe { StringArray::new_unchecked(offsets, bytes, nulls) })
}

impl Column {
    /// Takes all rows out as an array of `field`'s type.
    ///
    /// # Panics
    /// If `field` is not the one that the column was made for.
    pub fn finish(&mut self, field: &Field) -> ArrayRef {
        let nulls = self.validity.finish();
        match &mut self.values {
            Values::Boolean(v) => Arc::new(BooleanArray::new(BooleanBuffer::from(take(v)), nulls)),
            Values::SmallInt(v) => Arc::new(Int16Array::new(buffer(v), nulls)),
            Values::Integer(v) => Arc::new(Int32Array::new(buffer(v), nulls)),
            Values::BigInt(v) => Arc::new(Int64Array::new(buffer(v), nulls)),
            Values::Real(v) => Arc::new(Float32Array::new(buffer(v), nulls)),
            Values::Double(v) => Arc::new(Float64Array::new(buffer(v), nulls)),
            Values::Numeric { values, .. } => Arc::new(
                Decimal128Array::new(buffer(values), nulls)
                    .with_data_type(field.data_type().clone()),
            ),
            Values::Text(v) | Values::Uuid(v) | Values::Jsonb(v) => text(v, nulls),
            Values::Bytea(v) => {
                let (offsets, bytes) = v.finish();
                Arc::new(BinaryArray::new(offsets, bytes, nulls))
            }
            Values::Date(v) => Arc::new(Date32Array::new(buffer(v), nulls)),
            Values::Time(v) => Arc::new(Time64MicrosecondArray::new(buffer(v), nulls)),
            Values::Timestamp(v) | Values::Timestamptz(v) => Arc::new(
                TimestampMicrosecondArray::new(buffer(v), nulls)
                    .with_data_type(field.data_type().clone()),
            ),
            Values::Interval(v) => Arc::new(IntervalMonthDayNanoArray::new(buffer(v), nulls)),
            Values::Array { ends, items } => {
                let DataType::List(item) = field.data_type() else {
                    panic!("an array column was finished as {}", field.data_type())
                };
                let items = items.finish(item);
                Arc::new(ListArray::new(Arc::clone(item), offsets(&take(ends)), items, nulls))
            }
            Values::Struct { len, members } => {
                let DataType::Struct(fields) = field.data_type() else {
                    panic!("a struct column was finished as {}", field.data_type())
                };
                let len = std::mem::take(len);
                let arrays =
                    members.iter_mut().zip(fields).map(|(column, field)| column.finish(field));
                let arrays = arrays.collect();
                Arc::new(
                    StructArray::try_new_with_length(fields.clone(), arrays, nulls, len)
                        .expect("all members have one length"),
                )
            }
        }
    }
}
