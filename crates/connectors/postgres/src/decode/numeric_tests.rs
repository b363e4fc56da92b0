//! The numeric decoder against the decimal text that PostgreSQL would print, written out by hand and by
//! chance.

use proptest::prelude::{any, prop_assert_eq, proptest};

use super::{Decimal, Excess};

/// The wire form of a decimal text, made the way PostgreSQL does: groups of four around the point, zero
/// groups at both ends left out.
fn wire(text: &str) -> Vec<u8> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (0x4000_u16, digits),
        None => (0, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = format!("{}{whole}", "0".repeat((4 - whole.len() % 4) % 4));
    let padded = format!("{fraction}{}", "0".repeat((4 - fraction.len() % 4) % 4));
    let mut weight = i16::try_from(whole.len() / 4).expect("a short text") - 1;
    let digits = format!("{whole}{padded}");
    let mut groups: Vec<u16> = (0..digits.len() / 4)
        .map(|group| digits[group * 4..group * 4 + 4].parse().expect("four digits"))
        .collect();
    while groups.first() == Some(&0) {
        groups.remove(0);
        weight -= 1;
    }
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let mut bytes = Vec::new();
    bytes.extend(u16::try_from(groups.len()).expect("few groups").to_be_bytes());
    bytes.extend(if groups.is_empty() { 0 } else { weight }.to_be_bytes());
    bytes.extend(sign.to_be_bytes());
    bytes.extend(u16::try_from(fraction.len()).expect("a short text").to_be_bytes());
    bytes.extend(groups.iter().flat_map(|group| group.to_be_bytes()));
    bytes
}

fn decode(text: &str, precision: u8, scale: i8) -> Result<i128, String> {
    let decimal = Decimal { precision, scale, excess: Excess::Rounded };
    decimal.decode(&wire(text)).map_err(|fault| fault.reason)
}

#[test]
fn values_are_exact_or_rounded_half_away_from_zero() {
    for (text, precision, scale, expected) in [
        ("0", 12, 2, 0),
        ("0.00", 12, 2, 0),
        ("1", 12, 2, 100),
        ("-1.5", 12, 2, -150),
        ("123456789.12", 12, 2, 12_345_678_912),
        ("10000", 12, 2, 1_000_000),
        ("100000000", 12, 2, 10_000_000_000),
        ("0.005", 12, 2, 1),
        ("-0.005", 12, 2, -1),
        ("0.00499999", 12, 2, 0),
        ("0.0049", 12, 2, 0),
        ("0.00005", 12, 4, 1),
        ("0.00004999", 12, 4, 0),
        ("0.000000005", 12, 4, 0),
        ("9999.99995", 12, 4, 100_000_000),
        ("2.5", 12, 0, 3),
        ("-2.5", 12, 0, -3),
        ("12345", 12, 3, 12_345_000),
        ("99999999999999999999999999999999999999", 38, 0, 10_i128.pow(38) - 1),
        ("-0.00000000000000000000000000000000000001", 38, 38, -1),
        ("123456789012345678901234567890", 38, 2, 12_345_678_901_234_567_890_123_456_789_000),
    ] {
        assert_eq!(decode(text, precision, scale), Ok(expected), "{text}");
    }
    let long = format!("0.{}", "3".repeat(300));
    assert_eq!(decode(&long, 12, 2), Ok(33));
}

#[test]
fn what_does_not_fit_is_refused_also_when_rounding_makes_it_so() {
    for (text, precision, scale) in [
        ("10000000000", 12, 2),
        ("9999999999.995", 12, 2),
        ("100000000000000000000000000000000000000", 38, 0),
        ("1000000000000000000000000000000000000000000000000000000000", 38, 0),
        ("99999999999999999999999999999999999999.5", 38, 0),
        ("1", 38, 38),
    ] {
        let reason = decode(text, precision, scale).expect_err(text);
        assert!(reason.contains(&format!("numeric({precision},{scale})")), "{reason}");
    }
}

#[test]
fn digits_beyond_a_scale_that_nobody_declared_are_refused_and_zeros_are_not() {
    let decimal = Decimal { precision: 38, scale: 10, excess: Excess::Refused };
    assert_eq!(decimal.decode(&wire("1.500000000000000000")).ok(), Some(15_000_000_000));
    assert_eq!(decimal.decode(&wire("0.0000000001")).ok(), Some(1));
    for text in ["0.00000000001", "0.3333333333333333", "0.00000000000000000001"] {
        assert!(decimal.decode(&wire(text)).is_err(), "{text}");
    }
}

#[test]
fn nan_and_the_infinities_are_refused_by_their_names() {
    let decimal = Decimal { precision: 12, scale: 2, excess: Excess::Rounded };
    for (sign, name) in [(0xC000_u16, "NaN"), (0xD000, " Infinity"), (0xF000, "-Infinity")] {
        let mut bytes = vec![0; 8];
        bytes[4..6].copy_from_slice(&sign.to_be_bytes());
        let fault = decimal.decode(&bytes).expect_err(name);
        assert!(
            fault.reason.contains(name) && fault.hint.contains("double precision"),
            "{fault:?}"
        );
    }
    assert!(decimal.decode(&[0, 1, 0, 0, 0, 0, 0, 0]).is_err(), "a digit is missing");
    assert!(decimal.decode(&[]).is_err());
}

proptest! {
    #[test]
    fn every_decimal_comes_back_in_a_scale_that_holds_it(
        value in -(10_i128.pow(30))..10_i128.pow(30), scale in 0_u32..20, wider in 0_u32..8,
    ) {
        let unit = 10_i128.pow(scale);
        let magnitude = value.abs();
        let (whole, fraction) = (magnitude / unit, magnitude % unit);
        let sign = if value < 0 { "-" } else { "" };
        let text = match scale {
            0 => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{fraction:0width$}", width = scale as usize),
        };
        let target = i8::try_from(scale + wider).expect("at most 27");
        prop_assert_eq!(decode(&text, 38, target), Ok(value * 10_i128.pow(wider)));
    }

    #[test]
    fn rounding_is_what_integers_say(value in any::<i64>(), dropped in 1_u32..15) {
        let unit = 10_i128.pow(dropped);
        let magnitude = i128::from(value).abs();
        let rounded = (magnitude + unit / 2) / unit * i128::from(value.signum());
        let text = format!(
            "{}{}.{:0width$}",
            if value < 0 { "-" } else { "" },
            magnitude / unit,
            magnitude % unit,
            width = dropped as usize,
        );
        prop_assert_eq!(decode(&text, 38, 0), Ok(rounded));
    }
}
