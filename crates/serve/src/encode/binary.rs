//! Values in PostgreSQL's binary format, as drivers ask for them.

use std::ops::Range;

use bytes::{BufMut, BytesMut};

use super::column::{Column, Values};
use super::datetime::{POSTGRES_EPOCH_DAYS, POSTGRES_EPOCH_US};
use super::{Format, Style, numeric, write_field};

/// Writes the value of a row that is not NULL.
pub(super) fn write(column: &Column, row: usize, style: &Style, out: &mut BytesMut) {
    match &column.values {
        Values::Boolean(values) => out.put_u8(values.value(row).into()),
        Values::SmallInt(values) => out.put_i16(values.value(row)),
        Values::Integer(values) => out.put_i32(values.value(row)),
        Values::BigInt(values) => out.put_i64(values.value(row)),
        Values::Real(values) => out.put_f32(values.value(row)),
        Values::Double(values) => out.put_f64(values.value(row)),
        Values::Numeric { values, scale, trim } => {
            numeric::write_binary(values.value(row), *scale, *trim, out);
        }
        Values::Text(values) => out.extend_from_slice(values.value(row).as_bytes()),
        Values::Uuid(values) => uuid(values.value(row), out),
        Values::Jsonb(values) => {
            out.put_u8(1);
            out.extend_from_slice(values.value(row).as_bytes());
        }
        Values::Bytea(values) => out.extend_from_slice(values.value(row)),
        Values::Date(values) => out.put_i32(values.value(row).saturating_sub(POSTGRES_EPOCH_DAYS)),
        Values::Time(values) => out.put_i64(values.value(row)),
        Values::Timestamp(values) | Values::Timestamptz(values) => {
            out.put_i64(values.value(row).saturating_sub(POSTGRES_EPOCH_US));
        }
        Values::Interval(values) => {
            let value = values.value(row);
            out.put_i64(value.nanoseconds / 1_000);
            out.put_i32(value.days);
            out.put_i32(value.months);
        }
        Values::List { items, offsets } => {
            list(items, offsets[row] as usize..offsets[row + 1] as usize, style, out);
        }
        Values::Record(members) => record(members, row, style, out),
    }
}

/// The 16 bytes of the hexadecimal digits. Stored UUIDs have been checked; what a query put together
/// has not, and its missing digits read as zero.
fn uuid(text: &str, out: &mut BytesMut) {
    let value = text
        .bytes()
        .filter_map(|c| char::from(c).to_digit(16))
        .take(32)
        .fold(0_u128, |sum, digit| (sum << 4) | u128::from(digit));
    out.put_u128(value);
}

/// Number of dimensions, flag for NULLs, element type, then length and lower bound of each dimension, then the
/// elements. PostgreSQL has no arrays of lists that differ in length: of those one dimension with all elements is left.
fn list(items: &Column, range: Range<usize>, style: &Style, out: &mut BytesMut) {
    let mut lengths = vec![range.len()];
    let mut is_even = true;
    let (mut items, mut ranges) = (items, vec![range]);
    while let Values::List { items: inner, offsets } = &items.values {
        let at = |item: usize| offsets[item] as usize..offsets[item + 1] as usize;
        ranges = ranges.into_iter().flat_map(|range| range.map(at)).collect();
        let length = ranges.first().map_or(0, Range::len);
        is_even &= ranges.iter().all(|range| range.len() == length);
        lengths.push(length);
        items = inner;
    }
    let count: usize = ranges.iter().map(Range::len).sum();
    if count == 0 {
        lengths.clear();
    } else if !is_even {
        lengths = vec![count];
    }
    let elements = || ranges.iter().cloned().flatten();
    out.put_i32(lengths.len() as i32);
    out.put_i32(i32::from(elements().any(|item| items.is_null(item))));
    out.put_u32(items.ty.oid());
    for length in lengths {
        out.put_i32(length as i32);
        out.put_i32(1);
    }
    for item in elements() {
        write_field(items, Format::Binary, item, style, out);
    }
}

fn record(members: &[Column], row: usize, style: &Style, out: &mut BytesMut) {
    out.put_i32(members.len() as i32);
    for member in members {
        out.put_u32(member.ty.oid());
        write_field(member, Format::Binary, row, style, out);
    }
}
