//! From accumulated state to the value that SQL shows.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanBufferBuilder, Int64Array, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int64Type, i256,
};

use super::accumulator::{Accumulator, State, with_extremum};
use super::extremum::{End, Multisets};
use super::ordered::Ordered;
use crate::spec::AggregateFunction;

/// One output column.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) function: AggregateFunction,
    /// `None`: the weight of the group itself.
    pub(super) accumulator: Option<usize>,
    pub(super) result_type: DataType,
}

/// The greatest unscaled value of a numeric.
const NUMERIC_MAX: i128 = 10_i128.pow(38) - 1;

impl Output {
    /// The values of the groups at `slots`; adds results that have no room in their type, shown as NULL, to `errors`.
    pub(super) fn finish(
        &self,
        weights: &[i64],
        accumulators: &[Accumulator],
        slots: &[u32],
        errors: &mut u64,
    ) -> ArrayRef {
        let Some(accumulator) = self.accumulator.map(|accumulator| &accumulators[accumulator])
        else {
            return counts_of(weights, slots);
        };
        match (&accumulator.state, self.function) {
            (
                State::Count(counts) | State::IntegerSum(_, counts) | State::FloatSum(_, counts),
                AggregateFunction::Count,
            ) => counts_of(counts.of(weights), slots),
            (State::IntegerSum(sums, counts), AggregateFunction::Sum) => {
                let value = |slot: usize| Some(sums.value(slot));
                self.integers(counts.of(weights), slots, value, errors)
            }
            (State::IntegerSum(sums, counts), _) => {
                let digits = self.scale() - scale_of(&accumulator.argument_type);
                let digits = u32::try_from(digits).expect("no fewer digits than the argument has");
                let (factor, counts) = (10_i128.pow(digits), counts.of(weights));
                let value = |slot: usize| average(sums.value(slot), counts[slot], factor);
                self.integers(counts, slots, value, errors)
            }
            (State::FloatSum(sums, counts), function) => {
                let counts = counts.of(weights);
                let divisor = |slot: u32| match function {
                    AggregateFunction::Avg => counts[slot as usize] as f64,
                    _ => 1.0,
                };
                let value = |slot: &u32| {
                    (counts[*slot as usize] != 0).then(|| sums.value(*slot) / divisor(*slot))
                };
                self.floats(slots.iter().map(value))
            }
            (state, function) => {
                let end = if function == AggregateFunction::Min { End::Min } else { End::Max };
                with_extremum!(state,
                    best(best) => {
                        let values = slots.iter().map(|slot| best.value(*slot));
                        Ordered::column(values.collect(), &self.result_type)
                    },
                    multiset(sets) => ends(sets, slots, end, &self.result_type),
                    _ => unreachable!("the sums are above"))
            }
        }
    }

    fn scale(&self) -> i8 {
        scale_of(&self.result_type)
    }

    fn integers(
        &self,
        counts: &[i64],
        slots: &[u32],
        value: impl Fn(usize) -> Option<i128>,
        errors: &mut u64,
    ) -> ArrayRef {
        let max = if self.result_type == DataType::Int64 { i64::MAX.into() } else { NUMERIC_MAX };
        let min = if self.result_type == DataType::Int64 { i64::MIN.into() } else { -NUMERIC_MAX };
        let values = slots.iter().map(|slot| {
            let slot = *slot as usize;
            if counts[slot] == 0 {
                return None;
            }
            let value = value(slot).filter(|value| (min..=max).contains(value));
            *errors += u64::from(value.is_none());
            value
        });
        match self.result_type {
            DataType::Int64 => {
                Arc::new(optional::<Int64Type>(values.map(|value| value.map(|v| v as i64))))
            }
            _ => {
                let array = optional::<Decimal128Type>(values);
                Arc::new(array.with_data_type(self.result_type.clone()))
            }
        }
    }

    fn floats(&self, values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
        match self.result_type {
            DataType::Float32 => {
                Arc::new(optional::<Float32Type>(values.map(|value| value.map(|v| v as f32))))
            }
            _ => Arc::new(optional::<Float64Type>(values)),
        }
    }
}

/// An array without a NULL buffer where nothing is NULL, as nearly always.
fn optional<T: ArrowPrimitiveType>(
    values: impl Iterator<Item = Option<T::Native>>,
) -> PrimitiveArray<T> {
    let mut held = Vec::with_capacity(values.size_hint().0);
    let mut missing = Vec::new();
    for value in values {
        if value.is_none() {
            missing.push(held.len());
        }
        held.push(value.unwrap_or_default());
    }
    let nulls = (!missing.is_empty()).then(|| {
        let mut valid = BooleanBufferBuilder::new(held.len());
        valid.append_n(held.len(), true);
        missing.iter().for_each(|row| valid.set_bit(*row, false));
        NullBuffer::new(valid.finish())
    });
    PrimitiveArray::new(held.into(), nulls)
}

fn counts_of(counts: &[i64], slots: &[u32]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(slots.iter().map(|slot| counts[*slot as usize])))
}

fn ends<V: Ordered>(
    sets: &Multisets<V>,
    slots: &[u32],
    end: End,
    data_type: &DataType,
) -> ArrayRef {
    V::column(slots.iter().map(|slot| sets.groups[*slot as usize].end(end)).collect(), data_type)
}

fn scale_of(data_type: &DataType) -> i8 {
    if let DataType::Decimal128(_, scale) = data_type { *scale } else { 0 }
}

/// sum · factor / count, rounded half away from zero as PostgreSQL does.
fn average(sum: i128, count: i64, factor: i128) -> Option<i128> {
    if count == 0 {
        return None;
    }
    let narrow = (i64::try_from(sum), i64::try_from(factor));
    let (Ok(sum), Ok(factor), 1..) = (narrow.0, narrow.1, count) else {
        return wide_average(sum, count, factor);
    };
    let half = count.unsigned_abs().div_ceil(2);
    // The integral part first: what is left is less than the count, so that both divisions mostly fit into 64 bits. One
    // of 128 bits is a call, not an instruction.
    let whole = i128::from(sum / count) * i128::from(factor);
    let scaled = i128::from(sum % count) * i128::from(factor);
    let part = match i64::try_from(scaled) {
        Ok(scaled) => {
            let (part, rest) = (scaled / count, scaled % count);
            i128::from(part + if rest.unsigned_abs() >= half { sum.signum() } else { 0 })
        }
        Err(_) => {
            let (part, rest) = (scaled / i128::from(count), scaled % i128::from(count));
            part + if rest.unsigned_abs() >= half.into() { sum.signum().into() } else { 0 }
        }
    };
    Some(whole + part)
}

fn wide_average(sum: i128, count: i64, factor: i128) -> Option<i128> {
    let scaled = i256::from_i128(sum).checked_mul(i256::from_i128(factor))?;
    let count = i256::from_i128(count.into());
    let (quotient, rest) = (scaled.checked_div(count)?, scaled.checked_rem(count)?);
    let up = rest.wrapping_abs().checked_add(rest.wrapping_abs())? >= count;
    let one = if up { i256::from_i128(sum.signum()) } else { i256::ZERO };
    quotient.checked_add(one)?.to_i128()
}

#[cfg(test)]
mod tests {
    fn average(sum: i128, count: i64, digits: u32) -> Option<i128> {
        super::average(sum, count, 10_i128.pow(digits))
    }

    #[test]
    fn averages_round_half_away_from_zero_and_survive_wide_sums() {
        assert_eq!(average(5, 2, 0), Some(3));
        assert_eq!(average(-5, 2, 0), Some(-3));
        assert_eq!(average(10, 3, 4), Some(33333));
        assert_eq!(average(20, 3, 4), Some(66667));
        let wide = 10_i128.pow(30);
        assert_eq!(average(wide, 7, 16), None, "46 digits have no room");
        assert_eq!(average(wide, 1_000_000_000, 16), Some(10_i128.pow(37)));
        // A rest whose digits need more than 64 bits.
        assert_eq!(average(9_999, 10_000, 16), Some(9_999_000_000_000_000));
        assert_eq!(average(-2, 3, 16), Some(-6_666_666_666_666_667));
    }
}
