//! jsonb as PostgreSQL stores and prints it: keys sorted by length and then bytes, the last of
//! equal keys holds,
//! `": "` and `", "` between, numbers without exponent. Equal values become equal texts.

use std::borrow::Cow;

use super::escape;
use super::scanner::{Malformed, Scanner};

/// How many digits an exponent may add to a number, as in PostgreSQL's numeric.
const EXPONENT_MAX: i64 = 16_383;

enum Node<'a> {
    Word(&'a str),
    Number(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// The jsonb text of a JSON text.
pub fn normalise_jsonb(text: &str) -> Result<String, crate::ValueError> {
    let mut bytes = Vec::with_capacity(text.len());
    normalise(text, &mut bytes).map_err(|_| crate::ValueError::invalid(text, "jsonb"))?;
    Ok(String::from_utf8(bytes).expect("normalised JSON is made of strs"))
}

/// Appends the jsonb text of a JSON text. After an error, `out` may hold a part.
pub(crate) fn normalise(text: &str, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut scanner = Scanner::new(text);
    let node = parse(&mut scanner, 0)?;
    scanner.end()?;
    node.write(out);
    Ok(())
}

fn parse<'a>(scanner: &mut Scanner<'a>, depth: usize) -> Result<Node<'a>, Malformed> {
    Ok(match scanner.peek_token() {
        b'"' => {
            scanner.advance();
            Node::Text(parse_text(scanner)?)
        }
        b'{' => parse_object(scanner, depth)?,
        b'[' => {
            let depth = scanner.open(depth)?;
            let mut items = Vec::new();
            if scanner.peek_token() == b']' {
                scanner.advance();
                return Ok(Node::Array(items));
            }
            loop {
                items.push(parse(scanner, depth)?);
                if !scanner.another(b']')? {
                    break Node::Array(items);
                }
            }
        }
        b'-' | b'0'..=b'9' => {
            let number = scanner.number()?.text;
            if exponent_of(number).is_some_and(|exponent| exponent.abs() > EXPONENT_MAX) {
                return Err(scanner.malformed("number out of range"));
            }
            Node::Number(number)
        }
        _ => {
            let start = scanner.at();
            scanner.skip_value(depth)?;
            Node::Word(scanner.since(start))
        }
    })
}

fn parse_text<'a>(scanner: &mut Scanner<'a>) -> Result<Cow<'a, str>, Malformed> {
    let raw = scanner.string()?;
    if !raw.escaped {
        return Ok(Cow::Borrowed(raw.text));
    }
    let text = escape::unescaped(raw.text);
    // PostgreSQL has no text with a zero byte.
    if text.contains('\0') { Err(scanner.malformed("\\u0000")) } else { Ok(Cow::Owned(text)) }
}

fn parse_object<'a>(scanner: &mut Scanner<'a>, depth: usize) -> Result<Node<'a>, Malformed> {
    let depth = scanner.open(depth)?;
    let mut fields = Vec::new();
    if scanner.peek_token() == b'}' {
        scanner.advance();
        return Ok(Node::Object(fields));
    }
    loop {
        scanner.expect(b'"', "expected a field name")?;
        let name = parse_text(scanner)?;
        scanner.expect(b':', "expected a colon")?;
        fields.push((name, parse(scanner, depth)?));
        if !scanner.another(b'}')? {
            break;
        }
    }
    // Stable, and from the back, so that the last of equal keys is the first that is met and kept.
    fields.reverse();
    fields.sort_by(|(a, _), (b, _)| (a.len(), a.as_bytes()).cmp(&(b.len(), b.as_bytes())));
    fields.dedup_by(|later, kept| later.0 == kept.0);
    Ok(Node::Object(fields))
}

impl Node<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Node::Word(word) => out.extend_from_slice(word.as_bytes()),
            Node::Number(number) => write_number(number, out),
            Node::Text(text) => write_text(text, out),
            Node::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.extend_from_slice(b", ");
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Node::Object(fields) => {
                out.push(b'{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.extend_from_slice(b", ");
                    }
                    write_text(name, out);
                    out.extend_from_slice(b": ");
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..=0x1f => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(escaped);
    }
    out.push(b'"');
}

fn exponent_of(number: &str) -> Option<i64> {
    let (_, exponent) = number.split_once(['e', 'E'])?;
    // Digits alone can make it fail: then it is far out of range.
    Some(exponent.parse().unwrap_or(i64::MAX))
}

/// A number as PostgreSQL's numeric prints it: no exponent, no sign on zero, written fraction
/// digits kept.
fn write_number(number: &str, out: &mut Vec<u8>) {
    let (mantissa, _) = number.split_once(['e', 'E']).unwrap_or((number, ""));
    let exponent = exponent_of(number).unwrap_or(0);
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let point = whole.len() as i64 + exponent;
    let digit = |index: i64| {
        usize::try_from(index).ok().and_then(|index| digits.get(index)).copied().unwrap_or(b'0')
    };
    if negative && digits.iter().any(|digit| *digit != b'0') {
        out.push(b'-');
    }
    let first = (0..point).find(|index| digit(*index) != b'0').unwrap_or((point - 1).max(0));
    if point <= 0 {
        out.push(b'0');
    } else {
        out.extend((first..point).map(digit));
    }
    let fraction_len = fraction.len() as i64 - exponent;
    if fraction_len > 0 {
        out.push(b'.');
        out.extend((point..point + fraction_len).map(digit));
    }
}

#[cfg(test)]
mod tests {
    use super::normalise_jsonb;

    #[test]
    fn jsonb_prints_as_postgresql_prints_it() {
        // The right sides are what PostgreSQL 15 answers to `SELECT '…'::jsonb`.
        let cases = [
            (r#"{"bb":1,"a":2,"a":3,"aa":[1,{}, []]}"#, r#"{"a": 3, "aa": [1, {}, []], "bb": 1}"#),
            (" [ true,false , null ] ", "[true, false, null]"),
            (r#""\u00e9\/\n\u001f""#, "\"é/\\n\\u001f\""),
            ("1.50", "1.50"),
            ("1e2", "100"),
            ("1.5E-3", "0.0015"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("12.5e1", "125"),
            ("0e5", "0"),
            ("0.05e1", "0.5"),
            ("1.2345e2", "123.45"),
        ];
        for (json, jsonb) in cases {
            assert_eq!(normalise_jsonb(json).as_deref(), Ok(jsonb), "{json}");
            assert_eq!(normalise_jsonb(jsonb).as_deref(), Ok(jsonb), "again {json}");
        }
    }

    #[test]
    fn what_postgresql_refuses_is_refused() {
        for json in ["", "{", "1e99999", "\"\\u0000\"", "'a'", "1 2"] {
            assert!(normalise_jsonb(json).is_err(), "{json}");
        }
    }
}
