//! Rows that come when their time has been passed: *late* ones. What is closed behind them stays as it is.
//!
//! A row is late by the mark before the step: those that come in the same step as the mark still count.

use arrow::array::{Array, BooleanArray};
use arrow::compute::filter_record_batch;

use super::super::Operator;
use crate::delta::Delta;
use crate::error::StepError;
use crate::mark::{Mark, Moved, micros};

/// The rows of a delta that are not late; counts those that are and would have been added. Without a time a row is
/// neither early nor late, and `without` says whether it stays.
pub(crate) fn split_late(
    delta: &Delta,
    column: usize,
    mark: Mark,
    without: Untimed,
    late: &mut u64,
) -> Delta {
    let times = micros(delta.rows().column(column));
    let stays = |row: usize| match times.is_null(row) {
        true => without == Untimed::Stay,
        false => !mark.has_passed(times.value(row)),
    };
    let stay = (0..delta.len()).map(stays).collect::<Vec<_>>();
    if stay.iter().all(|stays| *stays) {
        return delta.clone();
    }
    let gone = stay.iter().enumerate().filter(|(_, stays)| !**stays);
    *late += gone.map(|(row, _)| delta.weight(row).max(0).cast_unsigned()).sum::<u64>();
    let mask = BooleanArray::from(stay);
    let rows = filter_record_batch(delta.rows(), &mask).expect("a mask as long as the batch");
    let Some(weights) = delta.weights() else { return Delta::inserts(rows) };
    let kept = weights.iter().zip(mask.values()).filter(|(_, stays)| *stays);
    Delta::weighted(rows, kept.map(|(weight, _)| *weight).collect())
}

/// What becomes of rows without a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untimed {
    Stay,
    Go,
}

#[derive(Debug)]
pub(crate) struct DropLate {
    column: usize,
    late: u64,
}

impl DropLate {
    pub(crate) fn new(column: usize) -> DropLate {
        DropLate { column, late: 0 }
    }
}

impl Operator for DropLate {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let mark = Moved::of(inputs[1]).before;
        let mut kept = Vec::with_capacity(inputs[0].len());
        for delta in inputs[0] {
            kept.push(split_late(delta, self.column, mark, Untimed::Stay, &mut self.late));
        }
        kept.retain(|delta| !delta.is_empty());
        Ok(kept)
    }

    fn late_rows(&self) -> u64 {
        self.late
    }
}
