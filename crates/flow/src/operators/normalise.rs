//! The normaliser: puts and removals by key become the removal of the old row and the addition of the new one.
//!
//! Within a step the last change of a key decides, in the order of arrival. A put of what is there already, and the
//! removal of what is not, change nothing: deliveries may repeat. It holds the newest row of each key.

mod resolve;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use segue_types::{Changes, Op};

use super::StoredRows;
use crate::blob::BlobOwner;
use crate::delta::Delta;
use crate::error::StepError;
use crate::key::{Column, Index, hash_columns, rows_equal};
use crate::rows::Rows;
use crate::spec::Conflict;

#[derive(Debug)]
pub(crate) struct Normalise {
    place: String,
    conflict: Conflict,
    pub(crate) stored: StoredRows,
}

/// What a key's row is after some of the step's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// As it was before the step, if it was.
    Untouched,
    Gone,
    /// The row at this place of the step's changes.
    Now(u32),
}

/// One key of the step.
#[derive(Debug)]
struct KeyChange {
    /// The first change that names it.
    first: u32,
    hash: u64,
    outcome: Outcome,
}

impl Normalise {
    pub(crate) fn new(
        place: String,
        owner: BlobOwner,
        conflict: Conflict,
        rows: Rows,
    ) -> Normalise {
        Normalise { place, conflict, stored: StoredRows { rows, owner } }
    }

    pub(crate) fn step(&mut self, changes: &[Changes]) -> Result<Vec<Delta>, StepError> {
        if changes.iter().all(|change| change.rows.num_rows() == 0) {
            return Ok(Vec::new());
        }
        let batches = changes.iter().map(|change| &change.rows);
        let rows = concat_batches(self.stored.rows.schema(), batches).map_err(|error| {
            StepError::Schema { place: self.place.clone(), reason: error.to_string() }
        })?;
        let delta = match &self.conflict {
            Conflict::Resolve(resolution) => {
                self.resolve(changes, &rows, resolution).map_err(|error| StepError::Compute {
                    place: self.place.clone(),
                    source: error.into(),
                })?
            }
            Conflict::Overwrite | Conflict::DoNothing => {
                let columns = self.stored.rows.identity_of(&rows);
                let hashes = hash_columns(&columns, rows.num_rows());
                let keys = self.fold(changes, &columns, hashes)?;
                self.difference(&rows, &columns, &keys)
            }
        };
        self.stored.rows.apply(&delta, &self.place)?;
        Ok(if delta.is_empty() { Vec::new() } else { vec![delta] })
    }

    /// The keys of the step and what becomes of each.
    fn fold(
        &self,
        changes: &[Changes],
        columns: &[Column],
        hashes: Vec<u64>,
    ) -> Result<Vec<KeyChange>, StepError> {
        let mut keys: Vec<KeyChange> = Vec::with_capacity(hashes.len());
        let mut index = Index::with_capacity(hashes.len());
        let stored =
            (self.conflict == Conflict::DoNothing).then(|| self.stored.rows.find(columns, &hashes));
        let ops = changes
            .iter()
            .flat_map(|change| (0..change.rows.num_rows()).map(|row| change.ops.get(row)));
        for (row, (op, hash)) in ops.zip(hashes).enumerate() {
            let op = op.ok_or_else(|| StepError::Schema {
                place: self.place.clone(),
                reason: "an op code that is none".to_owned(),
            })?;
            let same =
                |key: u32| rows_equal(columns, keys[key as usize].first as usize, columns, row);
            let place = index.find_or_insert(hash, keys.len() as u32, same).unwrap_or_else(|| {
                keys.push(KeyChange { first: row as u32, hash, outcome: Outcome::Untouched });
                keys.len() as u32 - 1
            });
            let outcome = &mut keys[place as usize].outcome;
            let exists = || match outcome {
                Outcome::Untouched => stored.as_ref().is_some_and(|stored| stored.is_found(row)),
                Outcome::Gone => false,
                Outcome::Now(_) => true,
            };
            match op {
                Op::Insert if self.conflict == Conflict::DoNothing && exists() => {}
                Op::Insert | Op::Put => *outcome = Outcome::Now(row as u32),
                Op::Remove | Op::Retract => *outcome = Outcome::Gone,
            }
        }
        keys.retain(|key| key.outcome != Outcome::Untouched);
        Ok(keys)
    }

    fn difference(&self, rows: &RecordBatch, columns: &[Column], keys: &[KeyChange]) -> Delta {
        let firsts = keys.iter().map(|key| key.first).collect::<UInt32Array>();
        let key_rows = take_record_batch(rows, &firsts).expect("keys name rows of the step");
        let key_columns = self.stored.rows.identity_of(&key_rows);
        debug_assert_eq!(key_columns.len(), columns.len());
        let hashes = keys.iter().map(|key| key.hash).collect::<Vec<_>>();
        let found = self.stored.rows.find(&key_columns, &hashes);

        let old_places = (0..keys.len()).filter(|place| found.is_found(*place)).collect::<Vec<_>>();
        let old = self.stored.rows.rows_at(&found, &old_places);
        let mut removed = Vec::with_capacity(old_places.len());
        let mut added = Vec::with_capacity(keys.len());
        let (all_old, all_new) = (all_columns(&old), all_columns(rows));
        let mut old_row = 0;
        for (place, key) in keys.iter().enumerate() {
            let before = found.is_found(place).then(|| {
                old_row += 1;
                old_row - 1
            });
            match (before, key.outcome) {
                (Some(before), Outcome::Now(after))
                    if rows_equal(&all_old, before, &all_new, after as usize) => {}
                (before, outcome) => {
                    removed.extend(before.map(|before| before as u32));
                    if let Outcome::Now(after) = outcome {
                        added.push(after);
                    }
                }
            }
        }
        let removed =
            take_record_batch(&old, &UInt32Array::from(removed)).expect("rows of the batch");
        let added = take_record_batch(rows, &UInt32Array::from(added)).expect("rows of the step");
        Delta::replacing(&removed, &added)
    }
}

fn all_columns(rows: &RecordBatch) -> Vec<Column> {
    rows.columns().iter().map(Column::new).collect()
}
