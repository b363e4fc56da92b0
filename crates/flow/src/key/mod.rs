//! Canonical keys: one byte string per distinct row, its hash, its vnode.
//!
//! Encoding, version [`KEY_CODEC_VERSION`], column after column: `0` for NULL, else `1` and the value.
//! Integers, dates,
//! times and timestamps: 8 bytes little-endian of the value widened to 64 bits, so that keys of different width join.
//! Booleans: 1 byte. Numeric: 16 bytes little-endian of the unscaled value. Floats: 8 bytes of the value
//! widened to double, with
//! one zero and one NaN. Text and bytea: 4 bytes of length, then the bytes. Interval: months, days, nanoseconds.
//! Lists: 4 bytes of length, then the items; structs: the members, each with its own NULL byte.
//!
//! The hash is xxh3 (64 bits, no seed) of the encoding; the *vnode* is its top byte; a *group* is 16
//! neighbouring vnodes.
//! Stored state depends on all of this: a change needs a new version.

pub(crate) mod column;
mod decode;
mod index;

use arrow::array::RecordBatch;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use column::{Column, rows_equal};
pub(crate) use decode::{can_decode, decode_column};
pub(crate) use index::{BLOCK, Index, NO_SLOT};

use column::{Values, canonical_float, range, slice};

/// Written into every state blob.
pub const KEY_CODEC_VERSION: u8 = 1;
/// How finely keys are spread over workers.
pub const VNODES: usize = 256;
/// How finely state is stored.
pub const GROUPS: usize = 16;

/// The vnode of a hash.
pub fn vnode_of(hash: u64) -> u8 {
    (hash >> 56) as u8
}

/// The vnode group of a vnode.
pub fn group_of(vnode: u8) -> u8 {
    vnode / (VNODES / GROUPS) as u8
}

/// Some hash whose vnode is of this group.
pub(crate) fn hash_in_group(group: u8) -> u64 {
    (u64::from(group) * (VNODES / GROUPS) as u64) << 56
}

/// The stable hash of each row's key: the top byte is its vnode.
pub fn hash_rows(rows: &RecordBatch, key: &[usize]) -> Vec<u64> {
    hash_columns(&Column::of(rows, key), rows.num_rows())
}

/// The hash of each row.
pub(crate) fn hash_columns(columns: &[Column], rows: usize) -> Vec<u64> {
    if let [column] = columns
        && matches!(column.values(), Values::I64(_) | Values::I32(_) | Values::I16(_))
    {
        return (0..rows).map(|row| hash_integer(column, row)).collect();
    }
    let mut scratch = Vec::with_capacity(64);
    (0..rows)
        .map(|row| {
            scratch.clear();
            encode_row(columns, row, &mut scratch);
            xxh3_64(&scratch)
        })
        .collect()
}

fn hash_integer(column: &Column, row: usize) -> u64 {
    match column.integer(row) {
        Some(value) if !column.is_null(row) => hash_i64(value),
        _ => xxh3_64(&[0]),
    }
}

/// The hash of a single integer key.
pub(crate) fn hash_i64(value: i64) -> u64 {
    let mut encoded = [1; 9];
    encoded[1..].copy_from_slice(&value.to_le_bytes());
    xxh3_64(&encoded)
}

/// Appends the canonical encoding of one row.
pub(crate) fn encode_row(columns: &[Column], row: usize, out: &mut Vec<u8>) {
    for column in columns {
        encode_value(column, row, out);
    }
}

fn encode_value(column: &Column, row: usize, out: &mut Vec<u8>) {
    if column.is_null(row) {
        out.push(0);
        return;
    }
    out.push(1);
    match column.values() {
        Values::Null => unreachable!("every row of a null column is NULL"),
        Values::Bool(values) => out.push(u8::from(values.value(row))),
        Values::I16(values) => out.extend_from_slice(&i64::from(values[row]).to_le_bytes()),
        Values::I32(values) => out.extend_from_slice(&i64::from(values[row]).to_le_bytes()),
        Values::I64(values) => out.extend_from_slice(&values[row].to_le_bytes()),
        Values::I128(values) => out.extend_from_slice(&values[row].to_le_bytes()),
        Values::F32(values) => encode_float(f64::from(values[row]), out),
        Values::F64(values) => encode_float(values[row], out),
        Values::Interval(values) => {
            out.extend_from_slice(&values[row].months.to_le_bytes());
            out.extend_from_slice(&values[row].days.to_le_bytes());
            out.extend_from_slice(&values[row].nanoseconds.to_le_bytes());
        }
        Values::Bytes(offsets, bytes) => {
            let bytes = slice(offsets, bytes, row);
            encode_length(bytes.len(), out);
            out.extend_from_slice(bytes);
        }
        Values::List(offsets, items) => {
            let items_of_row = range(offsets, row);
            encode_length(items_of_row.len(), out);
            items_of_row.for_each(|item| encode_value(items, item, out));
        }
        Values::Struct(members) => members.iter().for_each(|member| encode_value(member, row, out)),
    }
}

fn encode_float(value: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(&canonical_float(value).to_bits().to_le_bytes());
}

fn encode_length(length: usize, out: &mut Vec<u8>) {
    let length = u32::try_from(length).expect("Arrow offsets have 31 bits");
    out.extend_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests;
