//! Rows that the clock lets in, or out: `time <= now()`, `time > now()`.
//!
//! Only the rows that the clock will still change are held, by their time: those that wait to come in, or those that
//! are in and will go. So a tick costs what it changes. A row without a time is never in.

use arrow::array::{Array, BooleanArray};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::SchemaRef;

use super::waiting::{Waiting, negated};
use crate::blob::BlobOwner;
use crate::delta::Delta;
use crate::error::StepError;
use crate::mark::{Mark, Moved, micros};
use crate::operators::{Operator, OperatorState};
use crate::spec::Shown;

#[derive(Debug)]
pub(crate) struct Temporal {
    column: usize,
    shown: Shown,
    waiting: Waiting,
}

impl Temporal {
    pub(crate) fn new(
        place: String,
        owner: BlobOwner,
        schema: &SchemaRef,
        column: usize,
        shown: Shown,
    ) -> Temporal {
        Temporal { column, shown, waiting: Waiting::new(place, owner, schema, column) }
    }

    /// The rows whose time the clock has come to, and those that are ahead of it.
    fn split(&self, delta: &Delta, now: Mark) -> [Delta; 2] {
        let times = micros(delta.rows().column(self.column));
        let is_past = |time: Option<i64>| time.map(|time| has_come(now, time));
        let past = times.iter().map(is_past).collect::<BooleanArray>();
        let ahead = not(&past).expect("a mask has a complement");
        [past, ahead].map(|mask| picked(delta, &mask))
    }
}

/// Whether it is this time already.
fn has_come(now: Mark, time: i64) -> bool {
    matches!(now, Mark::At(now) if time <= now)
}

/// The rows for which `mask` is true, and neither false nor NULL.
fn picked(delta: &Delta, mask: &BooleanArray) -> Delta {
    let rows = filter_record_batch(delta.rows(), mask).expect("a mask as long as the batch");
    let is_picked = |row: &usize| mask.is_valid(*row) && mask.value(*row);
    let weights = (0..delta.len()).filter(is_picked).map(|row| delta.weight(row));
    Delta::weighted(rows, weights.collect())
}

impl Operator for Temporal {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let now = Moved::of(inputs[1]).after;
        let due = self.waiting.take(|time| has_come(now, time))?;
        let mut out = Vec::new();
        out.extend(match self.shown {
            Shown::From => due,
            Shown::Until => due.map(|due| negated(&due)),
        });
        if let Some(delta) = Delta::sum(inputs[0]) {
            let [past, ahead] = self.split(&delta.consolidated(), now);
            self.waiting.apply(&ahead)?;
            out.push(match self.shown {
                Shown::From => past,
                Shown::Until => ahead,
            });
        }
        out.retain(|delta| !delta.is_empty());
        Ok(match Delta::sum(&out) {
            Some(sum) if out.len() > 1 => {
                let sum = sum.consolidated();
                if sum.is_empty() { Vec::new() } else { vec![sum] }
            }
            _ => out,
        })
    }

    fn due(&self) -> Option<i64> {
        self.waiting.first()
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(&mut self.waiting)
    }
}
