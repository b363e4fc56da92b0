//! EMIT ON WINDOW CLOSE: rows are held back until the watermark has passed their time, then put out, once and for all.
//!
//! What changes of a row while it waits is nobody's business. What comes when its time has been passed is late, and
//! dropped; so is a row without a time, for it would wait for ever.

use arrow::datatypes::SchemaRef;

use super::late::{Untimed, split_late};
use super::waiting::Waiting;
use crate::blob::BlobOwner;
use crate::delta::Delta;
use crate::error::StepError;
use crate::mark::Moved;
use crate::operators::{Operator, OperatorState};

#[derive(Debug)]
pub(crate) struct Withhold {
    column: usize,
    waiting: Waiting,
    late: u64,
}

impl Withhold {
    pub(crate) fn new(
        place: String,
        owner: BlobOwner,
        schema: &SchemaRef,
        column: usize,
    ) -> Withhold {
        Withhold { column, waiting: Waiting::new(place, owner, schema, column), late: 0 }
    }
}

impl Operator for Withhold {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let Moved { before, after } = Moved::of(inputs[1]);
        if let Some(delta) = Delta::sum(inputs[0]) {
            let delta = delta.consolidated();
            self.waiting.apply(&split_late(
                &delta,
                self.column,
                before,
                Untimed::Go,
                &mut self.late,
            ))?;
        }
        Ok(self.waiting.take(|time| after.has_passed(time))?.into_iter().collect())
    }

    fn late_rows(&self) -> u64 {
        self.late
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(&mut self.waiting)
    }
}
