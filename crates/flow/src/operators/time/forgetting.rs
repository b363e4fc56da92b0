//! Operators whose rows go when their time has been passed: nothing that comes will ask for them again. What was put
//! out stays.
//!
//! Looking for rows that can go costs as much as there are rows, so where there are many it is done when a good part of
//! the times has been passed.
//! Invariant: rows that come behind the watermark do not get here; nor do rows that take back what has gone.

use segue_types::StateBlob;

use crate::blob::SealedBlob;
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::mark::{Mark, Moved, Times, micros};
use crate::operators::{Operator, OperatorState, StateSize};
use crate::spec::End;

/// Where there are no more rows than these, all that can go does at once.
const FEW_ROWS: usize = 1024;
/// Of the times that are held this part is to be passed, where there are many.
const PART: i64 = 4;

/// An operator of which rows can go.
pub(crate) trait Forget: Operator {
    /// Drops the rows of an input of which the time in `column` is over; returns what is left.
    fn forget(
        &mut self,
        input: usize,
        column: usize,
        is_over: &dyn Fn(i64) -> bool,
    ) -> Result<Times, StepError>;
}

/// Whether it is time to look for rows that can go.
fn is_due(held: Times, mark: Mark, later_us: i64) -> bool {
    let Some((first, last)) = held.range else { return false };
    let part = if held.rows <= FEW_ROWS { 0 } else { last.saturating_sub(first) / PART };
    mark.has_passed(first.saturating_add(part).saturating_add(later_us))
}

pub(crate) struct Forgetting {
    operator: Box<dyn Forget>,
    /// By input; `None` where rows stay.
    ends: Vec<Option<End>>,
    held: Vec<Times>,
    /// Whether what is held has to be looked at first.
    is_loaded: bool,
}

impl Forgetting {
    pub(crate) fn new(operator: Box<dyn Forget>, ends: Vec<Option<End>>) -> Forgetting {
        let held = vec![Times::default(); ends.len()];
        Forgetting { operator, ends, held, is_loaded: false }
    }

    fn note(&mut self, inputs: &[&[Delta]]) {
        for ((deltas, end), held) in inputs.iter().zip(&self.ends).zip(&mut self.held) {
            let Some(End { column, .. }) = end else { continue };
            for delta in *deltas {
                held.add(&micros(delta.rows().column(*column)));
            }
        }
    }

    fn close(&mut self, mark: Mark) -> Result<(), StepError> {
        for (input, end) in self.ends.iter().enumerate() {
            let Some(End { column, later_us }) = *end else { continue };
            if self.is_loaded || is_due(self.held[input], mark, later_us) {
                let is_over = |time: i64| mark.has_passed(time.saturating_add(later_us));
                self.held[input] = self.operator.forget(input, column, &is_over)?;
            }
        }
        self.is_loaded = false;
        Ok(())
    }
}

impl Operator for Forgetting {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let (marks, inputs) = inputs.split_last().expect("the watermark is the last input");
        self.note(inputs);
        let output = self.operator.step(inputs)?;
        self.close(Moved::of(marks).after)?;
        Ok(output)
    }

    fn expression_errors(&self) -> u64 {
        self.operator.expression_errors()
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl Forgetting {
    fn inner(&mut self) -> &mut dyn OperatorState {
        self.operator.state().expect("an operator that forgets has something to forget")
    }
}

impl OperatorState for Forgetting {
    fn seal(&mut self) -> Vec<SealedBlob> {
        self.inner().seal()
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        self.inner().bases()
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.is_loaded = true;
        self.inner().load(blobs)
    }

    fn contents(&mut self) -> Vec<Delta> {
        unreachable!("what was put out outlives its rows")
    }

    fn size(&mut self) -> StateSize {
        self.inner().size()
    }
}
