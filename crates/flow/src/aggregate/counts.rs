//! How many rows of a group count: those whose argument is not NULL and whose filter is true.
//!
//! Where all rows do, which is usual, that is the group's weight, and nothing is held.

use super::groups::grow_to;

/// By slot.
#[derive(Debug)]
pub(super) enum Counts {
    /// The weights of the groups: no row has come that does not count.
    Weights,
    Own(Vec<i64>),
}

impl Counts {
    /// The counts, given the weights of the groups.
    pub(super) fn of<'a>(&'a self, weights: &'a [i64]) -> &'a [i64] {
        match self {
            Counts::Weights => weights,
            Counts::Own(counts) => counts,
        }
    }

    /// From now on counts that are their own, so far the `weights`.
    pub(super) fn own(&mut self, weights: &[i64]) -> &mut Vec<i64> {
        if let Counts::Weights = self {
            *self = Counts::Own(weights.to_vec());
        }
        match self {
            Counts::Own(counts) => counts,
            Counts::Weights => unreachable!("just made"),
        }
    }

    pub(super) fn resize(&mut self, slots: usize) {
        if let Counts::Own(counts) = self {
            grow_to(counts, slots, 0);
        }
    }

    pub(super) fn reset(&mut self, slot: u32) {
        if let Counts::Own(counts) = self {
            counts[slot as usize] = 0;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Counts::Weights => 0,
            Counts::Own(counts) => counts.capacity() * 8,
        }
    }
}
