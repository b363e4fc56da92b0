//! Sums that can be taken back: exact integers, and doubles that do not drift.
//!
//! A double sum is kept as an unevaluated pair (high, low), about 106 bits, with NaN and the infinities
//! counted apart, so that
//! taking one back leaves the rest as it was. When the last value goes the pair is reset to an exact zero.

use hashbrown::HashMap;

/// Sums of integers and of unscaled decimals.
#[derive(Debug, Default)]
pub(super) struct IntegerSums {
    pub(super) sums: Vec<i128>,
}

impl IntegerSums {
    /// Wraps at 128 bits, which taking the values back undoes; a sum of more than 38 digits is not shown.
    pub(super) fn add(&mut self, slot: usize, value: i128, weight: i64) {
        self.sums[slot] = self.sums[slot].wrapping_add(value.wrapping_mul(i128::from(weight)));
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
    use super::FloatSums;

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
