//! A watermark that arrives from outside, and the least of several.
//!
//! Invariant: a watermark never falls, also not over a restart: what arrives behind it is not looked at.

use arrow::datatypes::SchemaRef;
use segue_types::StateBlob;

use crate::arrangement::{Arrangement, Changes};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::mark::{Mark, Moved};
use crate::operators::{Operator, OperatorState, StateSize};
use crate::rows::nullable;

#[derive(Debug)]
pub(crate) struct Watermark {
    place: String,
    schema: SchemaRef,
    mark: Mark,
    /// The mark as a row, unless nothing is known.
    held: Arrangement,
    owner: BlobOwner,
}

impl Watermark {
    pub(crate) fn new(place: String, owner: BlobOwner, schema: &SchemaRef) -> Watermark {
        let schema = nullable(schema);
        let held = Arrangement::new(&schema, Vec::new(), Changes::ComeAndGo);
        Watermark { place, schema, mark: Mark::Unknown, held, owner }
    }

    fn hold(&mut self, mark: Mark) -> Result<(), StepError> {
        let row = |mark: Mark| Mark::rows(&[mark], &self.schema);
        let delta = match self.mark {
            Mark::Unknown => Delta::inserts(row(mark)),
            former => Delta::replacing(&row(former), &row(mark)),
        };
        let located = self.held.locate(delta.rows());
        self.held.apply(&delta, &located, &self.place)?;
        self.held.settle();
        self.mark = mark;
        Ok(())
    }
}

impl Operator for Watermark {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let before = self.mark;
        let arrived = inputs[0].iter().flat_map(|delta| Mark::of(delta.rows()));
        let after = arrived.fold(before, Mark::max);
        if after > before {
            self.hold(after)?;
        }
        Ok(vec![Moved { before, after }.delta(&self.schema)])
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl OperatorState for Watermark {
    fn seal(&mut self) -> Vec<SealedBlob> {
        self.held.seal(&self.owner)
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        self.held.bases(&self.owner)
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.held.load(&self.owner, blobs)?;
        let held = self.held.contents();
        self.mark = held.iter().flat_map(|delta| Mark::of(delta.rows())).max().unwrap_or_default();
        Ok(())
    }

    fn contents(&mut self) -> Vec<Delta> {
        unreachable!("no relation is derived from a watermark")
    }

    fn size(&mut self) -> StateSize {
        StateSize { rows: self.held.row_count(), bytes: self.held.bytes() }
    }
}

/// The least of several watermarks: what none of them has passed.
#[derive(Debug)]
pub(crate) struct Least {
    schema: SchemaRef,
}

impl Least {
    pub(crate) fn new(schema: &SchemaRef) -> Least {
        Least { schema: nullable(schema) }
    }
}

impl Operator for Least {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let least = inputs.iter().map(|deltas| Moved::of(deltas)).reduce(|one, other| Moved {
            before: one.before.min(other.before),
            after: one.after.min(other.after),
        });
        let least = least.expect("the planner takes the least of at least one");
        Ok(vec![least.delta(&self.schema)])
    }
}
