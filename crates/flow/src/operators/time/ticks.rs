//! Rows that time itself brings: one at a start, and one at every step after it, each when the clock has come to it.
//!
//! It holds nothing: which rows were put out is told by where the clock was before the step.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;

use crate::delta::Delta;
use crate::error::StepError;
use crate::mark::{Mark, Moved};
use crate::operators::Operator;

#[derive(Debug)]
pub(crate) struct Ticks {
    start_us: i64,
    step_us: i64,
    schema: SchemaRef,
    /// The first that is still to come.
    next_us: i64,
}

impl Ticks {
    pub(crate) fn new(start_us: i64, step_us: i64, schema: SchemaRef) -> Ticks {
        assert!(step_us > 0, "the planner lets time go forwards");
        Ticks { start_us, step_us, schema, next_us: start_us }
    }

    /// The first one that the clock has not come to.
    fn after(&self, clock: Mark) -> i64 {
        match clock {
            Mark::At(now) if now >= self.start_us => {
                let steps = (now - self.start_us) / self.step_us + 1;
                self.start_us.saturating_add(steps.saturating_mul(self.step_us))
            }
            _ => self.start_us,
        }
    }
}

impl Operator for Ticks {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let Moved { before, after } = Moved::of(inputs[0]);
        let (first, end) = (self.after(before), self.after(after));
        self.next_us = end;
        if first >= end {
            return Ok(Vec::new());
        }
        let step = usize::try_from(self.step_us).expect("a step is positive");
        let times = (first..end).step_by(step).collect::<Vec<_>>();
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times));
        let times = cast(&times, self.schema.field(0).data_type()).expect("a time of another zone");
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), vec![times]);
        Ok(vec![Delta::inserts(rows.expect("one column of times"))])
    }

    fn due(&self) -> Option<i64> {
        Some(self.next_us)
    }
}
