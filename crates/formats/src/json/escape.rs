//! The escapes of JSON strings.

/// The length of the well-formed escape that `bytes` begins with. Two halves of a surrogate pair
/// count as one; half a pair is not well formed, because it is no character.
pub(super) fn check(bytes: &[u8]) -> Option<usize> {
    decode(bytes).map(|(_, len)| len)
}

/// The character of the escape that `bytes` begins with, and its length.
fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let plain = match bytes.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return decode_unicode(bytes),
        _ => return None,
    };
    Some((plain, 2))
}

fn decode_unicode(bytes: &[u8]) -> Option<(char, usize)> {
    let first = hex4(bytes.get(2..6)?)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    let second = bytes.get(6..12).filter(|low| low.starts_with(b"\\u"))?;
    let second = hex4(&second[2..])?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, 12))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, byte| Some(value << 4 | char::from(*byte).to_digit(16)?))
}

/// Appends the characters of a string token that was checked.
pub(super) fn unescape(raw: &str, out: &mut Vec<u8>) {
    let mut rest = raw.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (character, len) = decode(&rest[at..]).expect("the scanner checked every escape");
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[at + len..];
    }
    out.extend_from_slice(rest);
}

/// The characters of a string token that was checked.
pub(super) fn unescaped(raw: &str) -> String {
    let mut bytes = Vec::with_capacity(raw.len());
    unescape(raw, &mut bytes);
    String::from_utf8(bytes).expect("characters and slices of a str are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::{check, unescaped};

    #[test]
    fn escapes_become_their_characters() {
        assert_eq!(unescaped(r#"a\"\\\/\b\f\n\r\té\ud83d\ude00z"#), "a\"\\/\u{8}\u{c}\n\r\té😀z");
        for half in [r"\ud83d", r"\ud83dx", r"\ud83d\u0041", r"\ude00", r"\u12g4", r"\"] {
            assert_eq!(check(half.as_bytes()), None, "{half}");
        }
    }
}
