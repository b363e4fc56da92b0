//! Byte strings and uuids.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::ValueError;
use crate::columns::ByteValues;

/// `\x` and hex digits, as PostgreSQL prints; anything else is base64, as JSON producers write
/// bytes.
pub(super) fn append_bytea(values: &mut ByteValues, text: &str) -> Result<(), ValueError> {
    match text.strip_prefix("\\x") {
        Some(digits) => append_hex(&mut values.bytes, digits.as_bytes())
            .ok_or_else(|| ValueError::invalid(text, "bytea"))?,
        None => STANDARD
            .decode_vec(text, &mut values.bytes)
            .map_err(|_| ValueError::invalid(text, "bytea"))?,
    }
    values.push(b"")
}

/// PostgreSQL's escape format: `\\\\` is a backslash, `\\ooo` a byte in octal, anything else itself.
pub(super) fn append_escaped(values: &mut ByteValues, text: &str) -> Result<(), ValueError> {
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, taken) = match (first, after) {
            (b'\\', [b'\\', ..]) => (b'\\', 2),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), 4)
            }
            (b'\\', _) => return Err(ValueError::invalid(text, "bytea")),
            (byte, _) => (*byte, 1),
        };
        values.bytes.push(byte);
        rest = &rest[taken..];
    }
    values.push(b"")
}

/// Blanks may stand between two bytes.
fn append_hex(bytes: &mut Vec<u8>, digits: &[u8]) -> Option<()> {
    let mut rest = digits.trim_ascii_start();
    while let [high, low, after @ ..] = rest {
        bytes.push(hex_digit(*high)? << 4 | hex_digit(*low)?);
        rest = after.trim_ascii_start();
    }
    rest.is_empty().then_some(())
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// PostgreSQL's uuid input (braces, any case, hyphens after every fourth digit or nowhere),
/// stored as 36 lower-case characters so that equal values are equal texts.
pub(super) fn append_uuid(values: &mut ByteValues, text: &str) -> Result<(), ValueError> {
    let canonical = parse_uuid(text).ok_or_else(|| ValueError::invalid(text, "uuid"))?;
    values.push(&canonical)
}

fn parse_uuid(text: &str) -> Option<[u8; 36]> {
    let trimmed = text.trim_ascii();
    let body = match trimmed.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => trimmed,
    };
    let mut canonical = [b'-'; 36];
    let mut at = 0;
    let mut digits = 0;
    let mut hyphen_allowed = false;
    for byte in body.bytes() {
        if byte == b'-' && hyphen_allowed {
            hyphen_allowed = false;
            continue;
        }
        if !byte.is_ascii_hexdigit() || digits == 32 {
            return None;
        }
        if matches!(digits, 8 | 12 | 16 | 20) {
            at += 1;
        }
        canonical[at] = byte.to_ascii_lowercase();
        at += 1;
        digits += 1;
        hyphen_allowed = digits % 4 == 0 && digits < 32;
    }
    (digits == 32).then_some(canonical)
}

#[cfg(test)]
mod tests {
    use super::{append_bytea, append_escaped, parse_uuid};
    use crate::columns::ByteValues;

    #[test]
    fn bytes_come_as_hex_or_base64() {
        let bytes = |text: &str| {
            let mut values = ByteValues::default();
            append_bytea(&mut values, text).map(|()| values.bytes)
        };
        assert_eq!(bytes("\\xDEad"), Ok(vec![0xde, 0xad]));
        assert_eq!(bytes("\\x DE ad "), Ok(vec![0xde, 0xad]));
        assert_eq!(bytes("\\x"), Ok(vec![]));
        assert_eq!(bytes("aGk="), Ok(b"hi".to_vec()));
        assert!(["\\xabc", "\\xzz", "a", "!!!!"].iter().all(|text| bytes(text).is_err()));
    }

    #[test]
    fn a_literal_of_bytes_may_be_escaped() {
        let bytes = |text: &str| {
            let mut values = ByteValues::default();
            append_escaped(&mut values, text).map(|()| values.bytes)
        };
        assert_eq!(bytes("ab\\\\c\\001"), Ok(b"ab\\c\x01".to_vec()));
        assert!(["\\", "\\9", "\\400"].iter().all(|text| bytes(text).is_err()));
    }

    #[test]
    fn every_spelling_of_a_uuid_becomes_one_text() {
        let canonical = *b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(parse_uuid(text), Some(canonical), "{text}");
        }
        for text in [
            "",
            "a0eebc99",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g",
            "a0e-ebc999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-",
            "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a112",
        ] {
            assert_eq!(parse_uuid(text), None, "{text}");
        }
    }
}
