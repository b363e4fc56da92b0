//! Sums that can be taken back: exact integers, and doubles that do not drift.
//!
//! A double sum is kept as an unevaluated pair (high, low), about 106 bits, with NaN and the infinities
//! counted apart, so that
//! taking one back leaves the rest as it was. When the last value goes the pair is reset to an exact zero.

use hashbrown::HashMap;

use super::groups::grow_to;

/// Sums of integers and of unscaled decimals: in 64 bits until one needs more.
#[derive(Debug)]
pub(super) enum IntegerSums {
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
}

impl Default for IntegerSums {
    fn default() -> IntegerSums {
        IntegerSums::Narrow(Vec::new())
    }
}

impl IntegerSums {
    /// Wraps at 128 bits, which taking the values back undoes; a sum of more than 38 digits is not shown.
    pub(super) fn add(&mut self, slot: usize, value: i128, weight: i64) {
        if let IntegerSums::Narrow(sums) = self {
            let change = i64::try_from(value).ok().and_then(|value| value.checked_mul(weight));
            if let Some(sum) = change.and_then(|change| sums[slot].checked_add(change)) {
                sums[slot] = sum;
                return;
            }
        }
        let sum = &mut self.widened()[slot];
        *sum = sum.wrapping_add(value.wrapping_mul(i128::from(weight)));
    }

    fn widened(&mut self) -> &mut [i128] {
        if let IntegerSums::Narrow(sums) = self {
            *self = IntegerSums::Wide(sums.iter().map(|sum| i128::from(*sum)).collect());
        }
        match self {
            IntegerSums::Wide(sums) => sums,
            IntegerSums::Narrow(_) => unreachable!("just widened"),
        }
    }

    pub(super) fn value(&self, slot: usize) -> i128 {
        match self {
            IntegerSums::Narrow(sums) => i128::from(sums[slot]),
            IntegerSums::Wide(sums) => sums[slot],
        }
    }

    pub(super) fn set(&mut self, slot: usize, sum: i128) {
        match (&mut *self, i64::try_from(sum)) {
            (IntegerSums::Narrow(sums), Ok(sum)) => sums[slot] = sum,
            _ => self.widened()[slot] = sum,
        }
    }

    pub(super) fn resize(&mut self, slots: usize) {
        match self {
            IntegerSums::Narrow(sums) => grow_to(sums, slots, 0),
            IntegerSums::Wide(sums) => grow_to(sums, slots, 0),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            IntegerSums::Narrow(sums) => sums.capacity() * 8,
            IntegerSums::Wide(sums) => sums.capacity() * 16,
        }
    }
}

/// Sums of doubles.
#[derive(Debug, Default)]
pub(super) struct FloatSums {
    pub(super) pairs: Vec<(f64, f64)>,
    /// How many NaN, +Inf and −Inf a slot has; most have none.
    pub(super) specials: HashMap<u32, [i64; 3]>,
}

impl FloatSums {
    pub(super) fn add(&mut self, slot: u32, value: f64, weight: i64) {
        if !value.is_finite() {
            let kind = if value.is_nan() { 0 } else { 1 + usize::from(value < 0.0) };
            let counts = self.specials.entry(slot).or_default();
            counts[kind] += weight;
            if *counts == [0; 3] {
                self.specials.remove(&slot);
            }
            return;
        }
        let pair = &mut self.pairs[slot as usize];
        match weight {
            1 => *pair = add_double(*pair, value),
            -1 => *pair = add_double(*pair, -value),
            _ => {
                let factor = weight as f64;
                let product = value * factor;
                *pair = add_double(*pair, product);
                *pair = add_double(*pair, value.mul_add(factor, -product));
            }
        }
    }

    /// The sum as a double.
    pub(super) fn value(&self, slot: u32) -> f64 {
        match self.specials.get(&slot) {
            None => {
                let (high, low) = self.pairs[slot as usize];
                high + low
            }
            Some([0, 0, _]) => f64::NEG_INFINITY,
            Some([0, _, 0]) => f64::INFINITY,
            Some(_) => f64::NAN,
        }
    }

    /// To be called when no value is left.
    pub(super) fn reset(&mut self, slot: u32) {
        self.pairs[slot as usize] = (0.0, 0.0);
        self.specials.remove(&slot);
    }
}

/// Knuth's two-sum, then renormalised: what rounding loses goes into the low part.
fn add_double((high, low): (f64, f64), value: f64) -> (f64, f64) {
    let sum = high + value;
    let shadow = sum - high;
    let lost = (high - (sum - shadow)) + (value - shadow);
    let low = low + lost;
    let renormalised = sum + low;
    (renormalised, low - (renormalised - sum))
}

#[cfg(test)]
mod tests {
    use super::{FloatSums, IntegerSums};

    #[test]
    fn integer_sums_outgrow_64_bits_and_come_back() {
        let mut sums = IntegerSums::default();
        sums.resize(2);
        sums.add(0, i64::MAX.into(), 1);
        sums.add(1, 5, -3);
        assert!(matches!(sums, IntegerSums::Narrow(_)));
        sums.add(0, 1, 1);
        assert_eq!((sums.value(0), sums.value(1)), (i128::from(i64::MAX) + 1, -15));
        sums.add(0, i64::MAX.into(), -1);
        sums.add(1, 10_i128.pow(30), 1);
        assert_eq!((sums.value(0), sums.value(1)), (1, 10_i128.pow(30) - 15));
        let mut sums = IntegerSums::default();
        sums.resize(1);
        sums.add(0, i64::MAX.into(), 2);
        assert_eq!(sums.value(0), 2 * i128::from(i64::MAX), "a weight may be what is too much");
    }

    #[test]
    fn taking_back_a_huge_value_leaves_the_small_ones_as_they_were() {
        let mut sums = FloatSums { pairs: vec![(0.0, 0.0)], ..FloatSums::default() };
        sums.add(0, 0.1, 1);
        sums.add(0, 1e17, 1);
        sums.add(0, 0.2, 1);
        sums.add(0, 1e17, -1);
        assert_eq!(sums.value(0), 0.1 + 0.2);
    }

    #[test]
    fn nan_and_the_infinities_can_be_taken_back() {
        let mut sums = FloatSums { pairs: vec![(0.0, 0.0)], ..FloatSums::default() };
        sums.add(0, 1.5, 1);
        sums.add(0, f64::INFINITY, 1);
        assert_eq!(sums.value(0), f64::INFINITY);
        sums.add(0, f64::NEG_INFINITY, 2);
        assert!(sums.value(0).is_nan());
        sums.add(0, f64::INFINITY, -1);
        assert_eq!(sums.value(0), f64::NEG_INFINITY);
        sums.add(0, f64::NAN, 1);
        assert!(sums.value(0).is_nan());
        sums.add(0, f64::NAN, -1);
        sums.add(0, f64::NEG_INFINITY, -2);
        assert_eq!(sums.value(0), 1.5);
    }
}
