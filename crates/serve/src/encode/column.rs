//! A column ready to be written: its canonical array, downcast once, and what Arrow alone cannot tell.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, PrimitiveArray, StringArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use postgres_types::Type;
use segue_types::UserError;

use super::canonical::canonical;
use crate::pg_type::pg_type_of;

/// A column's values.
pub(super) enum Values {
    Boolean(BooleanArray),
    SmallInt(PrimitiveArray<Int16Type>),
    Integer(PrimitiveArray<Int32Type>),
    BigInt(PrimitiveArray<Int64Type>),
    Real(PrimitiveArray<Float32Type>),
    Double(PrimitiveArray<Float64Type>),
    Numeric { values: PrimitiveArray<Decimal128Type>, scale: i8, trim: bool },
    Text(StringArray),
    Uuid(StringArray),
    Jsonb(StringArray),
    Bytea(BinaryArray),
    Date(PrimitiveArray<Date32Type>),
    Time(PrimitiveArray<Time64MicrosecondType>),
    Timestamp(PrimitiveArray<TimestampMicrosecondType>),
    Timestamptz(PrimitiveArray<TimestampMicrosecondType>),
    Interval(PrimitiveArray<IntervalMonthDayNanoType>),
    List { items: Box<Column>, offsets: OffsetBuffer<i32> },
    Record(Vec<Column>),
}

/// A column, downcast.
pub(crate) struct Column {
    pub(super) values: Values,
    pub(super) ty: Type,
    nulls: Option<NullBuffer>,
}

impl Column {
    /// Downcasts a column.
    pub(crate) fn new(field: &Field, array: &ArrayRef) -> Result<Column, UserError> {
        let array = canonical(field, array)?;
        let ty = pg_type_of(field);
        Ok(Column { values: downcast(field, &ty, &array)?, ty, nulls: array.logical_nulls() })
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

fn downcast(field: &Field, ty: &Type, array: &ArrayRef) -> Result<Values, UserError> {
    Ok(match array.data_type() {
        DataType::Boolean => Values::Boolean(array.as_boolean().clone()),
        DataType::Int16 => Values::SmallInt(array.as_primitive().clone()),
        DataType::Int32 => Values::Integer(array.as_primitive().clone()),
        DataType::Int64 => Values::BigInt(array.as_primitive().clone()),
        DataType::Float32 => Values::Real(array.as_primitive().clone()),
        DataType::Float64 => Values::Double(array.as_primitive().clone()),
        DataType::Decimal128(precision, scale) => Values::Numeric {
            values: array.as_primitive().clone(),
            scale: *scale,
            // `numeric` without precision shows as many digits as the value has.
            trim: *precision == 38 && *scale == 10,
        },
        DataType::Utf8 => text_values(ty, array.as_string::<i32>().clone()),
        DataType::Binary => Values::Bytea(array.as_binary::<i32>().clone()),
        DataType::Date32 => Values::Date(array.as_primitive().clone()),
        DataType::Time64(_) => Values::Time(array.as_primitive().clone()),
        DataType::Timestamp(_, None) => Values::Timestamp(array.as_primitive().clone()),
        DataType::Timestamp(_, Some(_)) => Values::Timestamptz(array.as_primitive().clone()),
        DataType::Interval(_) => Values::Interval(array.as_primitive().clone()),
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            Values::List {
                items: Box::new(Column::new(item, list.values())?),
                offsets: list.offsets().clone(),
            }
        }
        DataType::Struct(members) => Values::Record(
            members
                .iter()
                .zip(array.as_struct().columns())
                .map(|(member, values)| Column::new(member, values))
                .collect::<Result<_, _>>()?,
        ),
        other => {
            return Err(UserError::internal(format!(
                "column \"{}\" of type {other} is not canonical",
                field.name()
            )));
        }
    })
}

fn text_values(ty: &Type, values: StringArray) -> Values {
    match *ty {
        Type::UUID => Values::Uuid(values),
        Type::JSONB => Values::Jsonb(values),
        _ => Values::Text(values),
    }
}
