//! The canonical Arrow types: what a query may compute is wider than what the writers know, so whole
//! columns are cast to the nearest type that they know.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use segue_types::{SqlState, UserError};

/// The type whose writer shows values of `ty`; `None` when there is none.
pub(super) fn canonical_type(ty: &DataType) -> Option<DataType> {
    Some(match ty {
        DataType::Null | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Float16 => DataType::Float32,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Interval(_) | DataType::Duration(_) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::Dictionary(_, value) => canonical_type(value)?,
        DataType::RunEndEncoded(_, value) => canonical_type(value.data_type())?,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => DataType::List(canonical_field(item)?),
        DataType::Struct(members) => {
            DataType::Struct(members.iter().map(canonical_field).collect::<Option<_>>()?)
        }
        DataType::Boolean
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(_, _)
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32 => ty.clone(),
        _ => return None,
    })
}

fn canonical_field(field: &Arc<Field>) -> Option<Arc<Field>> {
    let ty = canonical_type(field.data_type())?;
    if ty == *field.data_type() {
        return Some(Arc::clone(field));
    }
    Some(Arc::new(field.as_ref().clone().with_data_type(ty)))
}

/// The column in its canonical type.
pub(super) fn canonical(field: &Field, array: &ArrayRef) -> Result<ArrayRef, UserError> {
    let unsupported = || {
        UserError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("column \"{}\" has a type that cannot be sent to a client", field.name()),
        )
        .with_detail(format!("The type is {}.", array.data_type()))
    };
    let ty = canonical_type(array.data_type()).ok_or_else(unsupported)?;
    if ty == *array.data_type() {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &ty, &options).map_err(|error| {
        UserError::new(SqlState::DATETIME_OVERFLOW, format!("value out of range: {error}"))
    })
}
