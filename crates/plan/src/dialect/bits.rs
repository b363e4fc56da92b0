//! Bits and bytes of bytea, and its texts: `get_bit`, `set_bit`, `get_byte`, `set_byte`, `bit_count`, `crc32`,
//! `crc32c`, `encode`, `decode`.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryBuilder, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use base64::Engine;
use base64::alphabet::STANDARD as STANDARD_ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use segue_types::{SqlState, SqlType};

use super::general::{self, failed};

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let integer: general::Returns = |_| Ok(general::typed(&SqlType::Integer));
    let bigint: general::Returns = |_| Ok(general::typed(&SqlType::BigInt));
    let text: general::Returns = |_| Ok(general::typed(&SqlType::Text));
    vec![
        general::function("get_bit", at_place, integer, |columns, _| got(columns, Part::Bit)),
        general::function("get_byte", at_place, integer, |columns, _| got(columns, Part::Byte)),
        general::function("set_bit", to_value, bytea, |columns, _| set(columns, Part::Bit)),
        general::function("set_byte", to_value, bytea, |columns, _| set(columns, Part::Byte)),
        general::function("bit_count", bytes, bigint, |columns, _| {
            let ones = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(byte.count_ones())).sum();
            let values = columns[0].as_binary::<i32>().iter();
            Ok(Arc::new(values.map(|value| value.map(ones)).collect::<Int64Array>()))
        }),
        general::function("crc32", bytea_alone, bigint, |columns, _| {
            Ok(checksums(columns, 0xEDB8_8320))
        }),
        general::function("crc32c", bytea_alone, bigint, |columns, _| {
            Ok(checksums(columns, 0x82F6_3B78))
        }),
        general::function("bit_length", bytes_or_text, integer, |columns, _| bit_length(columns)),
        general::function("encode", bytes_and_format, text, |columns, _| encoded(columns)),
        general::function("decode", two_texts, bytea, |columns, _| decoded(columns)),
    ]
}

fn bytea(_: &[FieldRef]) -> Result<FieldRef> {
    Ok(general::typed(&SqlType::Bytea))
}

fn is_bytes(ty: &DataType) -> bool {
    matches!(ty, DataType::Binary | DataType::Null) || general::is_text(ty)
}

fn bytes(given: &[DataType]) -> Option<Vec<DataType>> {
    matches!(given, [value] if is_bytes(value)).then(|| vec![DataType::Binary])
}

fn bytea_alone(given: &[DataType]) -> Option<Vec<DataType>> {
    matches!(given, [DataType::Binary | DataType::Null]).then(|| vec![DataType::Binary])
}

fn bytes_or_text(given: &[DataType]) -> Option<Vec<DataType>> {
    match given {
        [DataType::Binary] => Some(vec![DataType::Binary]),
        [ty] if is_bytes(ty) => Some(vec![DataType::Utf8]),
        _ => None,
    }
}

fn at_place(given: &[DataType]) -> Option<Vec<DataType>> {
    let fits = matches!(given, [value, place] if is_bytes(value) && place.is_integer());
    fits.then(|| vec![DataType::Binary, DataType::Int64])
}

fn to_value(given: &[DataType]) -> Option<Vec<DataType>> {
    let [value, place, new] = given else { return None };
    let fits = is_bytes(value) && place.is_integer() && new.is_integer();
    fits.then(|| vec![DataType::Binary, DataType::Int64, DataType::Int64])
}

pub(super) fn bytes_and_format(given: &[DataType]) -> Option<Vec<DataType>> {
    let fits = matches!(given, [value, format] if is_bytes(value) && is_bytes(format));
    fits.then(|| vec![DataType::Binary, DataType::Utf8])
}

fn two_texts(given: &[DataType]) -> Option<Vec<DataType>> {
    let fits = given.len() == 2 && given.iter().all(|ty| general::is_text(ty) || ty.is_null());
    fits.then(|| vec![DataType::Utf8; 2])
}

/// Cyclic redundancy checks of 32 bits, by their polynomial with its bits reversed.
fn checksums(columns: &[ArrayRef], polynomial: u32) -> ArrayRef {
    let check = |bytes: &[u8]| {
        let rest = bytes.iter().fold(u32::MAX, |rest, byte| {
            (0..8).fold(rest ^ u32::from(*byte), |rest, _| {
                if rest & 1 == 1 { rest >> 1 ^ polynomial } else { rest >> 1 }
            })
        });
        i64::from(!rest)
    };
    let values = columns[0].as_binary::<i32>().iter();
    Arc::new(values.map(|value| value.map(check)).collect::<Int64Array>())
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Bit,
    Byte,
}

/// The place of the byte that a bit or byte is in.
fn byte_at(bytes: &[u8], place: i64, part: Part) -> Result<usize> {
    let count = bytes.len() * if part == Part::Bit { 8 } else { 1 };
    match usize::try_from(place) {
        Ok(at) if at < count => Ok(if part == Part::Bit { at / 8 } else { at }),
        _ => {
            let last = count.cast_signed() - 1;
            let message = format!("index {place} out of valid range, 0..{last}");
            Err(failed(SqlState::ARRAY_SUBSCRIPT, message))
        }
    }
}

fn bit_length(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let bits = |bytes: &[u8]| i32::try_from(bytes.len() * 8).unwrap_or(i32::MAX);
    let lengths: Int32Array = match columns[0].data_type() {
        DataType::Binary => columns[0].as_binary::<i32>().iter().map(|v| v.map(bits)).collect(),
        _ => {
            let texts = columns[0].as_string::<i32>().iter();
            texts.map(|text| text.map(|text| bits(text.as_bytes()))).collect()
        }
    };
    Ok(Arc::new(lengths))
}

fn got(columns: &[ArrayRef], part: Part) -> Result<ArrayRef> {
    let places = columns[1].as_primitive::<Int64Type>();
    let values = columns[0].as_binary::<i32>().iter().zip(places).map(|(bytes, place)| {
        let Some((bytes, place)) = bytes.zip(place) else { return Ok(None) };
        let byte = i32::from(bytes[byte_at(bytes, place, part)?]);
        Ok(Some(if part == Part::Bit { byte >> (place % 8) & 1 } else { byte }))
    });
    Ok(Arc::new(values.collect::<Result<Int32Array>>()?))
}

fn set(columns: &[ArrayRef], part: Part) -> Result<ArrayRef> {
    let [places, news] = [1, 2].map(|at| columns[at].as_primitive::<Int64Type>());
    let mut values = BinaryBuilder::new();
    for ((bytes, place), new) in columns[0].as_binary::<i32>().iter().zip(places).zip(news) {
        let Some(((bytes, place), new)) = bytes.zip(place).zip(new) else {
            values.append_null();
            continue;
        };
        let at = byte_at(bytes, place, part)?;
        let mut bytes = bytes.to_vec();
        if part == Part::Byte {
            // The low byte counts, as in PostgreSQL.
            bytes[at] = new.to_le_bytes()[0];
        } else {
            let bit = 1 << (place % 8);
            bytes[at] = match new {
                0 => bytes[at] & !bit,
                1 => bytes[at] | bit,
                _ => {
                    let error = failed(SqlState::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1");
                    return Err(error);
                }
            };
        }
        values.append_value(bytes);
    }
    Ok(Arc::new(values.finish()))
}

/// The three formats of PostgreSQL.
#[derive(Clone, Copy)]
enum Format {
    Hex,
    Base64,
    Escape,
}

fn format(name: &str) -> Result<Format> {
    match name.to_ascii_lowercase().as_str() {
        "hex" => Ok(Format::Hex),
        "base64" => Ok(Format::Base64),
        "escape" => Ok(Format::Escape),
        _ => {
            let message = format!("unrecognized encoding: \"{name}\"");
            Err(failed(SqlState::INVALID_PARAMETER_VALUE, message))
        }
    }
}

fn encoded(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let formats = columns[1].as_string::<i32>();
    let texts = columns[0].as_binary::<i32>().iter().zip(formats).map(|(bytes, name)| {
        let Some((bytes, name)) = bytes.zip(name) else { return Ok(None) };
        Ok(Some(match format(name)? {
            Format::Hex => hex(bytes),
            Format::Base64 => base64(bytes),
            Format::Escape => escaped(bytes),
        }))
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

fn decoded(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut values = BinaryBuilder::new();
    for (text, name) in columns[0].as_string::<i32>().iter().zip(columns[1].as_string::<i32>()) {
        let Some((text, name)) = text.zip(name) else {
            values.append_null();
            continue;
        };
        let (bytes, kind) = match format(name)? {
            Format::Hex => (of_hex(text), "hexadecimal data"),
            Format::Base64 => (of_base64(text), "base64 sequence"),
            Format::Escape => (of_escaped(text), "input syntax for type bytea"),
        };
        let bytes = bytes.ok_or_else(|| {
            failed(SqlState::INVALID_PARAMETER_VALUE, format!("invalid {kind}: \"{text}\""))
        })?;
        values.append_value(bytes);
    }
    Ok(Arc::new(values.finish()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}

fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|c| !c.is_ascii_whitespace()).map(|c| c.to_digit(16));
    let digits = digits.collect::<Option<Vec<u32>>>()?;
    let byte = |pair: &[u32]| match pair {
        [high, low] => u8::try_from(high * 16 + low).ok(),
        _ => None,
    };
    digits.chunks(2).map(byte).collect()
}

/// Bytes that are not printable in three octal digits, and `\` twice.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0 | 128.. => write!(text, "\\{byte:03o}").expect("a String takes all"),
            byte => text.push(char::from(*byte)),
        }
    }
    text
}

fn of_escaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match (first, after) {
            (b'\\', [b'\\', ..]) => {
                rest = &after[1..];
                b'\\'
            }
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', ..]) => {
                rest = &after[3..];
                (high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0')
            }
            (b'\\', _) => return None,
            _ => *first,
        });
    }
    Some(bytes)
}

/// PostgreSQL breaks its lines here.
const LINE_MAX: usize = 76;

fn base64(bytes: &[u8]) -> String {
    let line = |place| place % LINE_MAX == 0 && place > 0;
    let digits = STANDARD.encode(bytes);
    let mut text = String::with_capacity(digits.len());
    for (place, digit) in digits.chars().enumerate() {
        if line(place) {
            text.push('\n');
        }
        text.push(digit);
    }
    text
}

/// What is left over in the last digit is not looked at, as in PostgreSQL.
fn of_base64(text: &str) -> Option<Vec<u8>> {
    let lenient = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let digits = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<_>>();
    GeneralPurpose::new(&STANDARD_ALPHABET, lenient).decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::{Part, base64, byte_at, escaped, of_base64, of_escaped, of_hex};

    #[test]
    fn texts_of_bytes_are_postgresqls() {
        for bytes in [&b""[..], b"a", b"ab", b"abc", &[0, 255, b'\\', 7]] {
            assert_eq!(of_base64(&base64(bytes)).as_deref(), Some(bytes));
            assert_eq!(of_escaped(&escaped(bytes)).as_deref(), Some(bytes));
        }
        assert_eq!(base64(b"123\0\x01"), "MTIzAAE=");
        assert_eq!(base64(&[0; 60]).find('\n'), Some(76));
        assert_eq!(of_base64("MTIz/A+="), Some(vec![0x31, 0x32, 0x33, 0xfc, 0x0f]));
        assert_eq!(escaped(&[0xc3, 0xb1, b'a']), "\\303\\261a");
        assert_eq!(
            (of_base64("abc"), of_base64("a==="), of_hex("123"), of_escaped("\\9")),
            Default::default()
        );
        assert_eq!(of_hex("de AD"), Some(vec![0xde, 0xad]));
    }

    #[test]
    fn bits_are_counted_from_the_lowest_of_the_first_byte() {
        assert_eq!(byte_at(&[0; 5], 39, Part::Bit).ok(), Some(4));
        assert!(
            byte_at(&[0; 5], 40, Part::Bit).is_err() && byte_at(&[0; 5], 5, Part::Byte).is_err()
        );
        assert!(byte_at(&[0; 5], -1, Part::Bit).is_err());
    }
}
