//! What the rows of one side were given by a temporal join, so that the same is taken back with them.
//!
//! Rows are told apart by all their columns, and kept by those that they are joined by, so that they stay with what
//! they meet. Of equal rows that met different ones, those that go take with them as many as they had on average; with
//! the last of them everything goes.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use segue_types::StateBlob;

use super::Held;
use super::StateSize;
use crate::arrangement::{Arrangement, Changes, Keys};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::key::{Column, rows_equal};

#[derive(Debug)]
pub(crate) struct Given {
    rows: Held,
    /// What was put out; the columns of that side are the first.
    output: Held,
    /// How many columns that side has.
    width: usize,
}

impl Given {
    /// `key` is what the side is joined by.
    pub(crate) fn new(
        (side, key): (&SchemaRef, &[usize]),
        output: &SchemaRef,
        owners: [BlobOwner; 2],
    ) -> Given {
        let width = side.fields().len();
        let key = if key.is_empty() { (0..width).collect() } else { key.to_vec() };
        let [of_rows, of_output] = owners;
        let held = |schema: &SchemaRef, owner| Held {
            rows: Arrangement::new(schema, key.clone(), Changes::ComeAndGo),
            owner,
        };
        Given { rows: held(side, of_rows), output: held(output, of_output), width }
    }

    /// For each row the slots of `held` that begin with its columns.
    fn slots_of(&self, held: &Arrangement, rows: &RecordBatch) -> Vec<Vec<u32>> {
        let keys = Keys::of(rows, held.key());
        let candidates = held.heads(&keys).into_iter().map(|head| held.chain(head).collect());
        let mut slots: Vec<Vec<u32>> = candidates.collect();
        let all = (0..self.width).collect::<Vec<_>>();
        let kept = Column::of(&held.gather(&slots.concat()), &all);
        let wanted = Column::of(rows, &all);
        let mut place = 0;
        for (row, slots) in slots.iter_mut().enumerate() {
            slots.retain(|_| {
                place += 1;
                rows_equal(&kept, place - 1, &wanted, row)
            });
        }
        slots
    }

    /// The rows that go out of a consolidated delta, and those that come; what goes takes back is put out.
    pub(crate) fn take_back(&self, delta: &Delta, schema: &SchemaRef) -> (Option<Delta>, Delta) {
        let (gone, come): (Vec<u32>, Vec<u32>) =
            (0..delta.len() as u32).partition(|row| delta.weight(*row as usize) < 0);
        let come = delta.take(&come.into());
        if gone.is_empty() {
            return (None, come);
        }
        let gone = delta.take(&gone.into());
        let held = self.slots_of(&self.rows.rows, gone.rows());
        let given = self.slots_of(&self.output.rows, gone.rows());
        let (mut slots, mut weights) = (Vec::new(), Vec::new());
        for (row, (held, given)) in held.into_iter().zip(given).enumerate() {
            let held: i64 = held.into_iter().map(|slot| self.rows.rows.weight(slot)).sum();
            let total: i64 = given.iter().map(|slot| self.output.rows.weight(*slot)).sum();
            let part = total * -gone.weight(row);
            let mut rest = if held == 0 { 0 } else { (part + held - 1) / held };
            for slot in given {
                let weight = self.output.rows.weight(slot).min(rest);
                if weight > 0 {
                    slots.push(slot);
                    weights.push(-weight);
                    rest -= weight;
                }
            }
        }
        let rows = self.output.rows.gather(&slots);
        let rows = RecordBatch::try_new(SchemaRef::clone(schema), rows.columns().to_vec());
        let rows = rows.expect("it was put out");
        (Some(Delta::weighted(rows, weights.into())), come)
    }

    /// Takes note of a step: the changes of the side, and what was put out for them.
    pub(crate) fn note(
        &mut self,
        side: &Delta,
        output: &[Delta],
        place: &str,
    ) -> Result<(), StepError> {
        apply(&mut self.rows.rows, side, place)?;
        match Delta::sum(output) {
            Some(output) => apply(&mut self.output.rows, &output.consolidated(), place),
            None => Ok(()),
        }
    }

    fn held(&mut self) -> [&mut Held; 2] {
        [&mut self.rows, &mut self.output]
    }

    pub(crate) fn seal(&mut self) -> Vec<SealedBlob> {
        self.held().into_iter().flat_map(|held| held.rows.seal(&held.owner)).collect()
    }

    pub(crate) fn bases(&self) -> Vec<SealedBlob> {
        let held = [&self.rows, &self.output];
        held.into_iter().flat_map(|held| held.rows.bases(&held.owner)).collect()
    }

    pub(crate) fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        for held in self.held() {
            let own = blobs.iter().filter(|blob| blob.operator == held.owner.operator);
            held.rows.load(&held.owner, &own.cloned().collect::<Vec<_>>())?;
        }
        Ok(())
    }

    pub(crate) fn size(&self) -> StateSize {
        let of = |held: &Held| StateSize { rows: held.rows.row_count(), bytes: held.rows.bytes() };
        [&self.rows, &self.output].into_iter().map(of).sum()
    }
}

fn apply(rows: &mut Arrangement, delta: &Delta, place: &str) -> Result<(), StepError> {
    if delta.is_empty() {
        return Ok(());
    }
    let located = rows.locate(delta.rows());
    rows.apply(delta, &located, place)?;
    rows.settle();
    Ok(())
}
