//! GROUP BY a time that has a watermark: a group whose time was passed will never change, so its state goes and
//! its result stays.
//!
//! Invariant: rows whose time has been passed do not come in: they would make a group anew that was there before.

use arrow::array::Array;
use segue_types::StateBlob;

use super::Aggregate;
use crate::blob::SealedBlob;
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::mark::{Mark, Moved, micros};
use crate::operators::{Operator, OperatorState, StateSize, Untimed, split_late};

#[derive(Debug)]
pub(crate) struct Windowed {
    aggregate: Aggregate,
    /// The key that is a time.
    window: usize,
    /// No open group is earlier.
    first_open: Option<i64>,
    late: u64,
}

impl Windowed {
    pub(crate) fn new(aggregate: Aggregate, window: usize) -> Windowed {
        assert!(window < aggregate.keys.len(), "the window is a key");
        Windowed { aggregate, window, first_open: None, late: 0 }
    }

    /// Rows that are in time.
    fn accept(&mut self, delta: &Delta, mark: Mark) -> Delta {
        let column = self.aggregate.keys[self.window];
        let kept = split_late(delta, column, mark, Untimed::Stay, &mut self.late);
        let first = arrow::compute::min(&micros(kept.rows().column(column)));
        self.first_open = self.first_open.into_iter().chain(first).min();
        kept
    }

    /// Forgets the groups that the watermark has passed, without a word.
    fn close(&mut self, mark: Mark) {
        if !self.first_open.is_some_and(|first| mark.has_passed(first)) {
            return;
        }
        let aggregate = &mut self.aggregate;
        let slots = aggregate.groups.live_slots();
        let times = micros(&aggregate.groups.key_columns(&slots)[self.window]);
        let is_closed = |row: &usize| times.is_valid(*row) && mark.has_passed(times.value(*row));
        let closed = (0..slots.len()).filter(is_closed).map(|row| slots[row]);
        let closed = closed.collect::<Vec<_>>();
        closed.iter().for_each(|slot| aggregate.groups.weights[*slot as usize] = 0);
        aggregate.accumulators.iter_mut().for_each(|one| one.settle(&closed, &closed));
        aggregate.bury(&closed);
        let open = times.iter().flatten().filter(|time| !mark.has_passed(*time));
        self.first_open = open.min();
    }
}

impl Operator for Windowed {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let Moved { before, after } = Moved::of(inputs[1]);
        let rows = inputs[0].iter().map(|delta| self.accept(delta, before)).collect::<Vec<_>>();
        let output = self.aggregate.step(&[&rows])?;
        self.close(after);
        Ok(output)
    }

    fn expression_errors(&self) -> u64 {
        self.aggregate.expression_errors()
    }

    fn late_rows(&self) -> u64 {
        self.late
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl OperatorState for Windowed {
    fn seal(&mut self) -> Vec<SealedBlob> {
        self.aggregate.seal()
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        self.aggregate.bases()
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.aggregate.load(blobs)?;
        let groups = &self.aggregate.groups;
        let keys = groups.key_columns(&groups.live_slots());
        self.first_open = arrow::compute::min(&micros(&keys[self.window]));
        Ok(())
    }

    fn contents(&mut self) -> Vec<Delta> {
        unreachable!("results outlive their groups")
    }

    fn size(&mut self) -> StateSize {
        self.aggregate.size()
    }
}
