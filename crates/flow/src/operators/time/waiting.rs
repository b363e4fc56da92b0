//! Rows that wait for their time: an arrangement, and which of its rows are due when.
//!
//! Invariant: the rows by time are those of the arrangement, so that what is due is found without looking at the rest.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::SchemaRef;
use segue_types::StateBlob;

use crate::arrangement::{Arrangement, Changes};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::mark::micros;
use crate::operators::{OperatorState, StateSize};

#[derive(Debug)]
pub(super) struct Waiting {
    place: String,
    column: usize,
    rows: Arrangement,
    owner: BlobOwner,
    by_time: BTreeMap<i64, BTreeSet<u32>>,
}

impl Waiting {
    pub(super) fn new(
        place: String,
        owner: BlobOwner,
        schema: &SchemaRef,
        column: usize,
    ) -> Waiting {
        let rows = Arrangement::new(schema, vec![column], Changes::ComeAndGo);
        Waiting { place, column, rows, owner, by_time: BTreeMap::new() }
    }

    /// Rows that come, and rows among those that wait that go.
    ///
    /// # Panics
    /// If one of them has no time.
    pub(super) fn apply(&mut self, delta: &Delta) -> Result<(), StepError> {
        if delta.is_empty() {
            return Ok(());
        }
        let located = self.rows.locate(delta.rows());
        let slots = self.rows.apply(delta, &located, &self.place)?;
        self.sort_in(&slots);
        self.rows.settle();
        Ok(())
    }

    fn sort_in(&mut self, slots: &[u32]) {
        let times = micros(self.rows.gather(slots).column(self.column));
        for (slot, time) in slots.iter().zip(&times) {
            let time = time.expect("only rows with a time wait");
            let due = self.by_time.entry(time).or_default();
            match self.rows.weight(*slot) {
                0 => due.remove(slot),
                _ => due.insert(*slot),
            };
            if due.is_empty() {
                self.by_time.remove(&time);
            }
        }
    }

    /// Takes out the rows whose times are due, with their weights.
    pub(super) fn take(
        &mut self,
        is_due: impl Fn(i64) -> bool,
    ) -> Result<Option<Delta>, StepError> {
        let due = self.by_time.iter().take_while(|(time, _)| is_due(**time));
        let slots = due.flat_map(|(_, slots)| slots.iter().copied()).collect::<Vec<_>>();
        if slots.is_empty() {
            return Ok(None);
        }
        let taken = self.rows.delta_of(&slots);
        self.apply(&negated(&taken))?;
        Ok(Some(taken))
    }

    /// The earliest time that a row waits for.
    pub(super) fn first(&self) -> Option<i64> {
        self.by_time.keys().next().copied()
    }
}

/// The state of the operators that let rows wait. Their relation is derived from it only where the rows that are held
/// are those that were put out.
impl OperatorState for Waiting {
    fn seal(&mut self) -> Vec<SealedBlob> {
        self.rows.seal(&self.owner)
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        self.rows.bases(&self.owner)
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.rows.load(&self.owner, blobs)?;
        let slots = self.rows.live().collect::<Vec<_>>();
        slots.chunks(crate::rows::CHUNK_ROWS).for_each(|slots| self.sort_in(slots));
        Ok(())
    }

    fn contents(&mut self) -> Vec<Delta> {
        self.rows.contents()
    }

    fn size(&mut self) -> StateSize {
        let rows = self.rows.row_count();
        // A place in an ordered set: a number and its share of a node.
        StateSize { rows, bytes: self.rows.bytes() + rows * 16 }
    }
}

/// The same rows, taken back.
pub(super) fn negated(delta: &Delta) -> Delta {
    let weights = (0..delta.len()).map(|row| -delta.weight(row)).collect();
    Delta::weighted(delta.rows().clone(), weights)
}
