//! Numerics straight from their 128 bits, in text and in PostgreSQL's binary base 10,000.

use bytes::{BufMut, BytesMut};

/// The decimal digits of a number, `scale` of them after the point.
struct Digits {
    /// ASCII digits, at least `scale + 1` of them.
    bytes: [u8; 80],
    start: usize,
    scale: usize,
}

impl Digits {
    fn new(value: i128, scale: i8) -> Digits {
        let mut digits = Digits { bytes: [b'0'; 80], start: 80, scale: scale.max(0) as usize };
        // A negative scale means zeros before the point that are not stored.
        digits.start -= (-i32::from(scale)).max(0) as usize;
        let mut rest = value.unsigned_abs();
        while rest > 0 {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        digits.start = digits.start.min(80 - digits.scale - 1);
        digits
    }

    fn whole(&self) -> &[u8] {
        &self.bytes[self.start..80 - self.scale]
    }

    fn fraction(&self) -> &[u8] {
        &self.bytes[80 - self.scale..]
    }
}

/// Which digits of a fraction are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fraction {
    All,
    /// Without zeros at its end.
    Trimmed,
    /// As RisingWave writes a quotient: trimmed, but one digit gets a zero.
    Quotient,
}

/// Writes the number in text.
pub(super) fn write_text(value: i128, scale: i8, written: Fraction, out: &mut BytesMut) {
    let digits = Digits::new(value, scale);
    if value < 0 {
        out.put_u8(b'-');
    }
    out.extend_from_slice(digits.whole());
    let mut fraction = digits.fraction();
    while written != Fraction::All && fraction.last() == Some(&b'0') {
        fraction = &fraction[..fraction.len() - 1];
    }
    if written == Fraction::Quotient && fraction.len() == 1 {
        fraction = &digits.fraction()[..2];
    }
    if !fraction.is_empty() {
        out.put_u8(b'.');
        out.extend_from_slice(fraction);
    }
}

/// Writes the number in binary: count, weight, sign, display scale, then base-10,000 groups.
pub(super) fn write_binary(mut value: i128, mut scale: i8, trim: bool, out: &mut BytesMut) {
    while trim && scale > 0 && value % 10 == 0 {
        value /= 10;
        scale -= 1;
    }
    let digits = Digits::new(value, scale);
    let (whole, fraction) = (digits.whole(), digits.fraction());
    let mut groups = Vec::with_capacity(24);
    let head = whole.len() % 4;
    if head > 0 {
        groups.push(group(&whole[..head]));
    }
    groups.extend(whole[head..].chunks(4).map(group));
    let mut weight = groups.len() as i16 - 1;
    // The last group of the fraction is filled with zeros on its right.
    groups.extend(fraction.chunks(4).map(|c| group(c) * 10_i16.pow(4 - c.len() as u32)));

    let leading = groups.iter().take_while(|g| **g == 0).count();
    weight -= leading as i16;
    groups.drain(..leading);
    while groups.last() == Some(&0) {
        groups.pop();
    }
    out.put_i16(groups.len() as i16);
    out.put_i16(if groups.is_empty() { 0 } else { weight });
    out.put_u16(if value < 0 { 0x4000 } else { 0 });
    out.put_i16(digits.scale as i16);
    for group in groups {
        out.put_i16(group);
    }
}

fn group(digits: &[u8]) -> i16 {
    digits.iter().fold(0, |sum, digit| sum * 10 + i16::from(digit - b'0'))
}
