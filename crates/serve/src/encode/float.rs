//! Floats as PostgreSQL prints them: the shortest digits that read back as the same value, with an exponent
//! where the value is below 1e-4 or has more integer digits than the type can hold exactly. RisingWave writes more of
//! them without an exponent.

use std::fmt::Write;
use std::ops::Range;

use bytes::BytesMut;

use super::Forms;

/// Writes a `real`.
pub(super) fn write_f32(value: f32, forms: Forms, out: &mut BytesMut) {
    if let Some(word) = special(f64::from(value)) {
        out.extend_from_slice(word.as_bytes());
        return;
    }
    let plain = match forms {
        Forms::PostgreSql => -4..6,
        Forms::RisingWave => -6..13,
    };
    layout(&format!("{value:e}"), &plain, out);
}

/// Writes a `double precision`.
pub(super) fn write_f64(value: f64, forms: Forms, out: &mut BytesMut) {
    if let Some(word) = special(value) {
        out.extend_from_slice(word.as_bytes());
        return;
    }
    let plain = match forms {
        Forms::PostgreSql => -4..15,
        Forms::RisingWave => -5..16,
    };
    layout(&format!("{value:e}"), &plain, out);
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

/// Lays out Rust's `-d.ddde±x`; exponents in `plain` are not written.
fn layout(scientific: &str, plain: &Range<i32>, out: &mut BytesMut) {
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} prints an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} prints a number");
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    out.extend_from_slice(sign.as_bytes());
    if !plain.contains(&exponent) {
        let mark = if exponent < 0 { '-' } else { '+' };
        write!(out, "{mantissa}e{mark}{:02}", exponent.abs()).expect("a buffer takes all");
        return;
    }
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(digits.as_bytes());
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.extend_from_slice(digits.as_bytes());
        out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
    } else {
        out.extend_from_slice(&digits.as_bytes()[..whole]);
        out.extend_from_slice(b".");
        out.extend_from_slice(&digits.as_bytes()[whole..]);
    }
}
