//! Numeric, exactly from its digits: never through a float. More fraction digits than the scale
//! round half away from zero, as PostgreSQL does.

use segue_types::SqlType;

use crate::ValueError;

/// The digits of a decimal number and where its point lies.
struct Digits<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Digits<'a> {
    /// `[+-]digits[.digits][e[+-]digits]` with at least one digit before the exponent.
    fn parse(text: &'a str) -> Option<Digits<'a>> {
        let bytes = text.as_bytes();
        let (negative, rest) = match bytes {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, bytes),
        };
        let (whole, rest) = split_digits(rest);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => split_digits(rest),
            _ => (&rest[..0], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', exponent @ ..] => parse_exponent(exponent)?,
            _ => return None,
        };
        Some(Digits { negative, whole, fraction, exponent })
    }

    fn digit(&self, index: usize) -> u8 {
        let byte = match index.checked_sub(self.whole.len()) {
            None => self.whole.get(index),
            Some(index) => self.fraction.get(index),
        };
        byte.map_or(0, |byte| byte - b'0')
    }

    /// The value in units of `10^-scale`. `None` when it needs more than 38 digits.
    fn scaled(&self, scale: i8) -> Option<i128> {
        let len = self.whole.len() + self.fraction.len();
        let first = (0..len).find(|index| self.digit(*index) != 0);
        let Some(first) = first else { return Some(0) };
        let kept = self.whole.len() as i64 + self.exponent + i64::from(scale);
        let Ok(kept) = usize::try_from(kept) else { return Some(0) };
        if kept > first + 38 {
            return None;
        }
        let mut value = 0_i128;
        for index in first..kept {
            value = value * 10 + i128::from(self.digit(index));
        }
        if self.digit(kept) >= 5 {
            value += 1;
        }
        Some(if self.negative { -value } else { value })
    }
}

fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    bytes.split_at(end)
}

/// Exponents beyond what any length of digits could make up for are cut.
fn parse_exponent(bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
    Some(if text.starts_with('-') { -size } else { size })
}

/// The value of `text` in units of `10^-scale`.
pub(crate) fn parse_numeric(text: &str, precision: u8, scale: i8) -> Result<i128, ValueError> {
    if let Some(value) = parse_short(text.as_bytes(), precision, scale) {
        return Ok(value);
    }
    let digits = Digits::parse(text).ok_or_else(|| ValueError::invalid(text, "numeric"))?;
    let limit = 10_i128.pow(u32::from(precision));
    match digits.scaled(scale) {
        Some(value) if value.abs() < limit => Ok(value),
        _ => Err(ValueError::out_of_range(text, SqlType::Numeric { precision, scale })),
    }
}

/// The common case in machine words: at most 18 digits in all, no exponent, nothing to round.
#[inline]
fn parse_short(bytes: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    let scale = usize::try_from(scale).ok()?;
    let mut value = 0_u64;
    let mut point = digits.len();
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + u64::from(byte - b'0'),
            b'.' if point == digits.len() && at > 0 => point = at + 1,
            _ => return None,
        }
    }
    let missing = scale.checked_sub(digits.len() - point)?;
    if digits.len() + missing > 18 || digits.len() + missing > usize::from(precision) {
        return None;
    }
    let value = (value * 10_u64.pow(missing as u32)) as i128;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::parse_numeric;

    #[test]
    fn values_are_exact_and_round_half_away_from_zero() {
        let cases = [
            ("0.1", 2, 10),
            ("-0.005", 2, -1),
            ("0.005", 2, 1),
            ("0.0049999999999999999999999", 2, 0),
            ("12345678901234567890.123456", 6, 12345678901234567890123456),
            ("1e3", 2, 100_000),
            ("1.5E-1", 2, 15),
            (".5", 0, 1),
            ("5.", 0, 5),
            ("+7", 1, 70),
            ("0e999999999999999999999", 2, 0),
            ("1e-999999999999999999999", 2, 0),
            ("0.05", 0, 0),
        ];
        for (text, scale, value) in cases {
            assert_eq!(parse_numeric(text, 38, scale), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_never_cut() {
        assert_eq!(parse_numeric("9999.994", 6, 2), Ok(999_999));
        for text in ["9999.995", "10000", "1e5", "1e999999999999", "-10000"] {
            let error = parse_numeric(text, 6, 2).expect_err("seven digits");
            assert_eq!(error.to_string(), format!("\"{text}\" is out of range for numeric(6,2)"));
        }
        let nines = "9".repeat(38);
        assert!(parse_numeric(&nines, 38, 0).is_ok());
        assert!(parse_numeric(&format!("{nines}.5"), 38, 0).is_err());
        assert!(parse_numeric(&"9".repeat(39), 38, 0).is_err());
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", ".", "-", "abc", "1.2.3", "1e", "1e+", "NaN", "0x1", "1 "] {
            assert!(parse_numeric(text, 38, 10).is_err(), "{text}");
        }
    }
}
