//! Values from seed and row number, a column at a time.
//!
//! The mixing function and the way each type uses it are part of what a position means: changing
//! them changes rows that were already read.

use std::sync::Arc;

use arrow::array::types::IntervalMonthDayNano;
use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, StringBuilder,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field};

const DAY_US: i64 = 86_400_000_000;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789ab";

/// What a [`Generator::Past`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Day,
    Microsecond,
}

/// How the values of one column are made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Generator {
    /// `start`, one more per row; in units of the type's scale, of which `unit` make one.
    Sequence {
        start: i128,
        unit: i128,
        rows: Option<u64>,
    },
    /// From `min` to `min + width`, both included, in units of the type's scale.
    Uniform {
        min: i128,
        width: u64,
    },
    /// From `min` up to `min + width`.
    Float {
        min: f64,
        width: f64,
    },
    Boolean,
    Text {
        length: usize,
    },
    Bytes {
        length: usize,
    },
    Uuid,
    Json,
    TimeOfDay,
    Interval,
    /// At most `past_us` before the base, which is the time of pinning when it is not given.
    Past {
        base_us: Option<i64>,
        past_us: i64,
        unit: TimeUnit,
    },
}

/// Numbers of rows over all splits: `first`, `first + stride`, …
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowNumbers {
    pub(crate) first: u64,
    pub(crate) stride: u64,
    pub(crate) len: usize,
}

impl RowNumbers {
    fn iter(self) -> impl ExactSizeIterator<Item = u64> {
        (0..self.len).map(move |index| self.first + index as u64 * self.stride)
    }
}

/// SplitMix64's finisher: every bit of the result depends on every bit of the input.
#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The `word`-th random word of a row.
#[inline]
fn random(seed: u64, row: u64, word: u64) -> u64 {
    let golden = 0x9e37_79b9_7f4a_7c15_u64;
    mix(mix(seed.wrapping_add(golden)).wrapping_add(row.wrapping_mul(golden))
        ^ word.wrapping_mul(golden))
}

/// A number from 0 to `width`, both included.
#[inline]
fn below(bits: u64, width: u64) -> u64 {
    ((u128::from(bits) * (u128::from(width) + 1)) >> 64) as u64
}

impl Generator {
    /// After how many rows a sequence ends.
    pub(crate) fn rows(&self) -> Option<u64> {
        match self {
            Generator::Sequence { rows, .. } => *rows,
            _ => None,
        }
    }

    /// The column's values for these rows.
    pub(crate) fn generate(
        &self,
        field: &Field,
        seed: u64,
        pinned_us: i64,
        numbers: RowNumbers,
    ) -> ArrayRef {
        let words = move || numbers.iter().map(move |row| random(seed, row, 0));
        match self {
            Generator::Sequence { start, unit, .. } => {
                let (start, unit) = (*start, *unit);
                numeric(field, numbers.iter().map(|row| start + i128::from(row) * unit))
            }
            Generator::Uniform { min, width } => {
                let (min, width) = (*min, *width);
                numeric(field, words().map(|bits| min + i128::from(below(bits, width))))
            }
            Generator::Float { min, width } => {
                let unit = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
                float(field, words().map(|bits| min + width * unit(bits)))
            }
            Generator::Boolean => {
                Arc::new(words().map(|bits| Some(bits >> 63 == 1)).collect::<BooleanArray>())
            }
            Generator::Text { length } => text(seed, numbers, *length),
            Generator::Bytes { length } => bytes(seed, numbers, *length),
            Generator::Uuid => uuids(seed, numbers),
            Generator::Json => {
                let mut values = StringBuilder::new();
                words().for_each(|bits| {
                    values.append_value(format!("{{\"v\": {}}}", below(bits, 999)))
                });
                Arc::new(values.finish())
            }
            Generator::TimeOfDay => {
                let times = words().map(|bits| below(bits, DAY_US as u64 - 1) as i64);
                Arc::new(Time64MicrosecondArray::from_iter_values(times))
            }
            Generator::Interval => {
                let nanos = words().map(|bits| below(bits, 86_399) as i64 * 1_000_000_000);
                Arc::new(IntervalMonthDayNanoArray::from_iter_values(
                    nanos.map(|nanos| IntervalMonthDayNano::new(0, 0, nanos)),
                ))
            }
            Generator::Past { base_us, past_us, unit } => {
                let (base, past) = (base_us.unwrap_or(pinned_us), *past_us as u64);
                past_times(field, *unit, words().map(move |bits| base - below(bits, past) as i64))
            }
        }
    }
}

/// Integers in the type of the column; a continuous sequence wraps around at the end of its type.
fn numeric(field: &Field, values: impl Iterator<Item = i128>) -> ArrayRef {
    match field.data_type() {
        DataType::Int16 => Arc::new(Int16Array::from_iter_values(values.map(|v| v as i16))),
        DataType::Int32 => Arc::new(Int32Array::from_iter_values(values.map(|v| v as i32))),
        DataType::Int64 => Arc::new(Int64Array::from_iter_values(values.map(|v| v as i64))),
        DataType::Decimal128(..) => Arc::new(
            Decimal128Array::from_iter_values(values).with_data_type(field.data_type().clone()),
        ),
        _ => float(field, values.map(|v| v as f64)),
    }
}

fn float(field: &Field, values: impl Iterator<Item = f64>) -> ArrayRef {
    match field.data_type() {
        DataType::Float32 => Arc::new(Float32Array::from_iter_values(values.map(|v| v as f32))),
        _ => Arc::new(Float64Array::from_iter_values(values)),
    }
}

fn past_times(field: &Field, unit: TimeUnit, times_us: impl Iterator<Item = i64>) -> ArrayRef {
    match unit {
        TimeUnit::Day => {
            Arc::new(Date32Array::from_iter_values(times_us.map(|us| us.div_euclid(DAY_US) as i32)))
        }
        TimeUnit::Microsecond => Arc::new(
            TimestampMicrosecondArray::from_iter_values(times_us)
                .with_data_type(field.data_type().clone()),
        ),
    }
}

/// Fills `out` with random bytes of a row.
fn fill(seed: u64, row: u64, out: &mut [u8]) {
    for (word, chunk) in out.chunks_mut(8).enumerate() {
        let bytes = random(seed, row, word as u64).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

fn text(seed: u64, numbers: RowNumbers, length: usize) -> ArrayRef {
    let mut values = StringBuilder::with_capacity(numbers.len, numbers.len * length);
    let mut buffer = vec![0; length];
    for row in numbers.iter() {
        fill(seed, row, &mut buffer);
        buffer.iter_mut().for_each(|byte| *byte = ALPHABET[usize::from(*byte & 63)]);
        values.append_value(std::str::from_utf8(&buffer).expect("the alphabet is ASCII"));
    }
    Arc::new(values.finish())
}

fn bytes(seed: u64, numbers: RowNumbers, length: usize) -> ArrayRef {
    let mut values = BinaryBuilder::with_capacity(numbers.len, numbers.len * length);
    let mut buffer = vec![0; length];
    for row in numbers.iter() {
        fill(seed, row, &mut buffer);
        values.append_value(&buffer);
    }
    Arc::new(values.finish())
}

fn uuids(seed: u64, numbers: RowNumbers) -> ArrayRef {
    let mut values = StringBuilder::with_capacity(numbers.len, numbers.len * 36);
    for row in numbers.iter() {
        let (high, low) = (random(seed, row, 0), random(seed, row, 1));
        values.append_value(format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff,
        ));
    }
    Arc::new(values.finish())
}
