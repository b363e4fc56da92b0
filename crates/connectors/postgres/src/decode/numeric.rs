//! PostgreSQL's `numeric` on the wire → `Decimal128`, exactly.
//!
//! The wire has digits of base 10,000, the weight of the first, a sign and a display scale that says
//! nothing about the value. Invariant: a value is exact, or rounded half away from zero as PostgreSQL
//! rounds on assignment, or refused; never cut.

use segue_types::SqlState;

use super::fault::{Fault, fixed, take};

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;
/// Decimal digits in one digit of the wire.
const GROUP_DIGITS: i32 = 4;

/// What becomes of digits beyond the column's scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The user declared the scale: round as PostgreSQL does on assignment.
    Rounded,
    /// The scale is only our stand-in for a `numeric` without one: PostgreSQL would have kept the digits.
    Refused,
}

/// A column's decimal type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    pub(crate) precision: u8,
    pub(crate) scale: i8,
    pub(crate) excess: Excess,
}

impl Decimal {
    /// The unscaled value of `bytes`.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<i128, Box<Fault>> {
        let mut rest = bytes;
        let count = u16::from_be_bytes(take(&mut rest)?);
        let weight = i16::from_be_bytes(take(&mut rest)?);
        let sign = u16::from_be_bytes(take(&mut rest)?);
        let _display_scale: [u8; 2] = take(&mut rest)?;
        if matches!(sign, NAN | INFINITY | NEGATIVE_INFINITY) {
            return Err(special(sign));
        }
        if rest.len() != usize::from(count) * 2 || !matches!(sign, 0 | NEGATIVE) {
            return Err(Fault::malformed(bytes));
        }
        let magnitude = self.magnitude(rest, i32::from(weight))?;
        if magnitude >= 10_i128.pow(u32::from(self.precision)) {
            return Err(self.overflow());
        }
        Ok(if sign == NEGATIVE { -magnitude } else { magnitude })
    }

    /// `digits` in units of the scale.
    fn magnitude(self, digits: &[u8], weight: i32) -> Result<i128, Box<Fault>> {
        let mut sum = 0_i128;
        // The power of ten, in units of the scale, of the group that was added last.
        let mut power = GROUP_DIGITS * (weight + 1) + i32::from(self.scale);
        for (index, group) in digits.chunks_exact(2).enumerate() {
            let group = i128::from(u16::from_be_bytes(fixed(group)?));
            power -= GROUP_DIGITS;
            if power >= 0 {
                sum = self.shifted(sum, 4)?.checked_add(group).ok_or_else(|| self.overflow())?;
                continue;
            }
            let rest_is_zero = digits[(index + 1) * 2..].iter().all(|byte| *byte == 0);
            return self.rounded(sum, group, -power, rest_is_zero);
        }
        self.shifted(sum, u32::try_from(power.max(0)).expect("not negative"))
    }

    /// `sum` with the part of `group` that lies above the unit, where `below` digits of it lie below.
    fn rounded(
        self,
        sum: i128,
        group: i128,
        below: i32,
        rest_is_zero: bool,
    ) -> Result<i128, Box<Fault>> {
        let below = below.unsigned_abs();
        // A group wholly below the first digit after the unit is too small to round up.
        let (whole, dropped, unit) = if below > GROUP_DIGITS.unsigned_abs() {
            (sum, group, i128::MAX)
        } else {
            let unit = 10_i128.pow(below);
            let kept = self.shifted(sum, GROUP_DIGITS.unsigned_abs() - below)?;
            (kept.checked_add(group / unit).ok_or_else(|| self.overflow())?, group % unit, unit)
        };
        if self.excess == Excess::Refused && !(dropped == 0 && rest_is_zero) {
            return Err(Fault::new(
                SqlState::NUMERIC_OUT_OF_RANGE,
                format!("a numeric value has more than {} digits after the point", self.scale),
                "Declare a precision and scale, as in numeric(38,20), or round the column in the query.",
            ));
        }
        Ok(if dropped >= unit - unit / 2 { whole + 1 } else { whole })
    }

    fn shifted(self, sum: i128, digits: u32) -> Result<i128, Box<Fault>> {
        if sum == 0 {
            return Ok(0);
        }
        let factor = 10_i128.checked_pow(digits);
        factor.and_then(|factor| sum.checked_mul(factor)).ok_or_else(|| self.overflow())
    }

    fn overflow(self) -> Box<Fault> {
        Fault::new(
            SqlState::NUMERIC_OUT_OF_RANGE,
            format!("a numeric value does not fit numeric({},{})", self.precision, self.scale),
            "Declare a greater precision, up to 38, or cast to double precision or text in the query.",
        )
    }
}

fn special(sign: u16) -> Box<Fault> {
    let name = match sign {
        NAN => "NaN",
        INFINITY => "Infinity",
        _ => "-Infinity",
    };
    Fault::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        format!("numeric {name} has no place in a numeric column"),
        "Cast the column to double precision in the query and declare it so, or filter such rows.",
    )
}

#[cfg(test)]
#[path = "numeric_tests.rs"]
mod tests;
