//! Booleans, integers and floats.

use std::str::FromStr;

use super::numeric::parse_numeric;
use crate::ValueError;

/// An integer type of SQL.
pub(crate) trait Int: TryFrom<i64> + FromStr {}
impl Int for i16 {}
impl Int for i32 {}
impl Int for i64 {}

/// `12`, `+12`, `-12`, with blanks around.
pub(super) fn parse_int<T: Int>(text: &str, ty: &str) -> Result<T, ValueError> {
    let trimmed = text.trim_ascii();
    trimmed.parse().map_err(|_| {
        let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            ValueError::out_of_range(trimmed, ty)
        } else {
            ValueError::invalid(text, ty)
        }
    })
}

/// A JSON number as an integer: also `1.0` and `1e3`, which are integers by value, but not `1.5`.
pub(crate) fn int_of_json<T: Int>(text: &str, ty: &str) -> Result<T, ValueError> {
    if let Ok(value) = text.parse() {
        return Ok(value);
    }
    // One digit of scale is enough to see a fraction only if it is not rounded away: 38 digits
    // hold every integer of SQL and 19 fraction digits.
    let scaled = parse_numeric(text, 38, 19).map_err(|_| ValueError::out_of_range(text, ty))?;
    let unit = 10_i128.pow(19);
    if scaled % unit != 0 {
        return Err(ValueError::invalid(text, ty));
    }
    i64::try_from(scaled / unit)
        .ok()
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| ValueError::out_of_range(text, ty))
}

/// PostgreSQL's float input: decimal numbers, `NaN`, `Infinity`, `inf`; too large is an error,
/// not infinity.
pub(super) fn parse_float<T>(text: &str, ty: &str) -> Result<T, ValueError>
where
    T: FromStr + Into<f64> + Copy,
{
    let trimmed = text.trim_ascii();
    let value: T = trimmed.parse().map_err(|_| ValueError::invalid(text, ty))?;
    if value.into().is_infinite() && trimmed.bytes().any(|b| b.is_ascii_digit()) {
        return Err(ValueError::out_of_range(trimmed, ty));
    }
    Ok(value)
}

/// Powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// A JSON number as a double. `None` when it is too large for one.
///
/// Mantissas below 2^53 with few fraction digits, that is, money and measurements, are one
/// division of two exactly held numbers and so correctly rounded (Clinger's fast path); all
/// others go the long way.
#[inline]
pub(crate) fn float64_of_json(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    if digits.len() <= 16 {
        let mut mantissa = 0_u64;
        let mut point = digits.len();
        let mut plain = true;
        for (at, byte) in digits.iter().enumerate() {
            match byte {
                b'0'..=b'9' => mantissa = mantissa * 10 + u64::from(byte - b'0'),
                b'.' => point = at + 1,
                _ => {
                    plain = false;
                    break;
                }
            }
        }
        if plain && mantissa < 1 << 53 {
            let value = mantissa as f64 / EXACT_POWERS[digits.len() - point];
            return Some(if negative { -value } else { value });
        }
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// PostgreSQL's boolean input: unique prefixes of true, false, yes, no, on, off, and 1, 0.
pub(super) fn parse_boolean(text: &str) -> Result<bool, ValueError> {
    let trimmed = text.trim_ascii();
    let prefix_of = |word: &str, at_least: usize| {
        let len = trimmed.len();
        len >= at_least && word.get(..len).is_some_and(|start| start.eq_ignore_ascii_case(trimmed))
    };
    if prefix_of("true", 1) || prefix_of("yes", 1) || prefix_of("on", 2) || trimmed == "1" {
        Ok(true)
    } else if prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || trimmed == "0" {
        Ok(false)
    } else {
        Err(ValueError::invalid(text, "boolean"))
    }
}

#[cfg(test)]
mod tests {
    use super::{float64_of_json, int_of_json, parse_boolean, parse_float, parse_int};

    #[test]
    fn integers_are_read_with_sign_and_blanks_and_never_wrap() {
        assert_eq!(parse_int::<i16>(" -32768 ", "smallint"), Ok(-32768));
        assert_eq!(parse_int::<i64>("+9223372036854775807", "bigint"), Ok(i64::MAX));
        let error = parse_int::<i16>("32768", "smallint").expect_err("one too many");
        assert_eq!(error.to_string(), "\"32768\" is out of range for smallint");
        for wrong in ["", "1.0", "0x10", "1 2", "+-1", "١"] {
            assert!(parse_int::<i64>(wrong, "bigint").is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_numbers_are_integers_when_their_value_is_one() {
        assert_eq!(int_of_json::<i32>("1.0", "integer"), Ok(1));
        assert_eq!(int_of_json::<i32>("-12e2", "integer"), Ok(-1200));
        assert_eq!(int_of_json::<i64>("922337203685477580.7e1", "bigint"), Ok(i64::MAX));
        assert!(int_of_json::<i64>("1.5", "bigint").is_err());
        assert!(int_of_json::<i64>("9223372036854775808", "bigint").is_err());
        assert!(int_of_json::<i64>("1e400", "bigint").is_err());
    }

    #[test]
    fn floats_follow_postgresql() {
        assert!(parse_float::<f64>("NaN", "x").is_ok_and(f64::is_nan));
        assert_eq!(parse_float::<f64>("-Infinity", "x"), Ok(f64::NEG_INFINITY));
        assert_eq!(parse_float::<f32>(" 1.5e3 ", "x"), Ok(1500.0));
        assert!(parse_float::<f64>("1e400", "x").is_err());
        assert!(parse_float::<f64>("1,5", "x").is_err());
    }

    #[test]
    fn the_fast_way_to_a_double_is_the_slow_way() {
        for text in
            ["0", "-0.0", "12.34", "9007199254740991", "0.1", "123456789012.25", "1e22", "-5"]
        {
            let slow: f64 = text.parse().expect("a float");
            let fast = float64_of_json(text).expect("a float");
            assert_eq!(slow.to_bits(), fast.to_bits(), "{text}");
        }
        assert_eq!(float64_of_json("1e999"), None);
    }

    #[test]
    fn booleans_take_postgresqls_spellings() {
        assert!(["t", "TRUE", "y", "on", "1"].iter().all(|text| parse_boolean(text) == Ok(true)));
        assert!(["f", "fals", "NO", "of", "0"].iter().all(|text| parse_boolean(text) == Ok(false)));
        assert!(["", "o", "truex", "2"].iter().all(|text| parse_boolean(text).is_err()));
    }
}
