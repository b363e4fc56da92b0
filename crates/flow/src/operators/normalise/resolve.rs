//! Rows of one key that meet are resolved: NULL may keep what was there, and an older version loses.
//!
//! A row of a key is put together column by column: for each, the row that gave it, of those that are stored and those
//! of the step. Versions are compared in the order of their columns; a row with a NULL among them loses to any row that
//! is there. A removal takes whatever there is.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take, take_record_batch};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows as SortableRows, SortField};
use segue_types::{Changes, Op};

use super::{Normalise, all_columns};
use crate::delta::Delta;
use crate::key::{Column, Index, hash_columns, rows_equal};
use crate::spec::{Nulls, Resolution};

/// Where each column of a key's row comes from; `None` when there is no row.
type Sources = Option<Vec<u32>>;

/// One key of the step.
struct KeyRow {
    /// The first change that names it, among the step's.
    first: u32,
    /// The row that is stored.
    before: Option<u32>,
    now: Sources,
}

/// The stored rows of the step's keys, then the step's rows.
struct Candidates<'a> {
    resolution: &'a Resolution,
    columns: Vec<Column>,
    versions: Option<SortableRows>,
}

impl Candidates<'_> {
    /// What a key's row is when the row at `new` meets it.
    fn meet(&self, before: &Sources, new: u32) -> Sources {
        let width = self.columns.len();
        let Some(before) = before else { return Some(vec![new; width]) };
        if !self.wins(before, new) {
            return Some(before.clone());
        }
        let keeps = self.resolution.nulls == Nulls::KeepFormer;
        let column = |(column, former): (&Column, &u32)| match keeps && column.is_null(new as usize)
        {
            true => *former,
            false => new,
        };
        Some(self.columns.iter().zip(before).map(column).collect())
    }

    fn wins(&self, before: &[u32], new: u32) -> bool {
        let Some(versions) = &self.versions else { return true };
        let of_version = &self.resolution.versions;
        // Versions win together, so all of them are of one row.
        let former = before[of_version[0]] as usize;
        let has_null = of_version.iter().any(|column| self.columns[*column].is_null(new as usize));
        !has_null && versions.row(new as usize) >= versions.row(former)
    }
}

impl Normalise {
    /// The difference that a step's changes make where rows of one key are resolved.
    pub(super) fn resolve(
        &self,
        changes: &[Changes],
        rows: &RecordBatch,
        resolution: &Resolution,
    ) -> Result<Delta, ArrowError> {
        let keys = self.stored.rows.identity_of(rows);
        let hashes = hash_columns(&keys, rows.num_rows());
        let found = self.stored.rows.find(&keys, &hashes);
        let mut rows_of_keys: Vec<KeyRow> = Vec::new();
        let mut index = Index::with_capacity(hashes.len());
        let mut stored = Vec::new();
        let mut key_of = Vec::with_capacity(hashes.len());
        for (row, hash) in hashes.iter().enumerate() {
            let same =
                |key: u32| rows_equal(&keys, rows_of_keys[key as usize].first as usize, &keys, row);
            let place = index.find_or_insert(*hash, rows_of_keys.len() as u32, same);
            key_of.push(place.unwrap_or(rows_of_keys.len() as u32));
            if place.is_none() {
                let before = found.is_found(row).then(|| {
                    stored.push(row);
                    stored.len() as u32 - 1
                });
                rows_of_keys.push(KeyRow { first: row as u32, before, now: None });
            }
        }
        let old = self.stored.rows.rows_at(&found, &stored);
        let all = concat_batches(self.stored.rows.schema(), [&old, rows])?;
        let candidates = candidates(&all, resolution)?;
        for key in &mut rows_of_keys {
            key.now = key.before.map(|before| vec![before; all.num_columns()]);
        }
        let ops = changes
            .iter()
            .flat_map(|change| (0..change.rows.num_rows()).map(|row| change.ops.get(row)));
        for (row, (op, key)) in ops.zip(key_of).enumerate() {
            let key = &mut rows_of_keys[key as usize];
            key.now = match op {
                Some(Op::Insert | Op::Put) => {
                    candidates.meet(&key.now, (old.num_rows() + row) as u32)
                }
                Some(Op::Remove | Op::Retract) => None,
                None => return Err(ArrowError::SchemaError("an op code that is none".to_owned())),
            };
        }
        difference(&old, &all, &rows_of_keys)
    }
}

fn candidates<'a>(
    all: &RecordBatch,
    resolution: &'a Resolution,
) -> Result<Candidates<'a>, ArrowError> {
    let versions = match resolution.versions.as_slice() {
        [] => None,
        versions => {
            let arrays = versions.iter().map(|place| Arc::clone(all.column(*place)));
            let arrays = arrays.collect::<Vec<ArrayRef>>();
            let fields = arrays.iter().map(|array| SortField::new(array.data_type().clone()));
            Some(RowConverter::new(fields.collect())?.convert_columns(&arrays)?)
        }
    };
    Ok(Candidates { resolution, columns: all_columns(all), versions })
}

/// The rows that went and those that came, where they are not the same.
fn difference(old: &RecordBatch, all: &RecordBatch, keys: &[KeyRow]) -> Result<Delta, ArrowError> {
    let there = keys.iter().filter_map(|key| key.now.as_ref());
    let there = there.collect::<Vec<_>>();
    let column = |place: usize| {
        let sources = there.iter().map(|sources| sources[place]).collect::<UInt32Array>();
        take(all.column(place), &sources, None)
    };
    let columns = (0..all.num_columns()).map(column).collect::<Result<Vec<_>, _>>()?;
    let new = RecordBatch::try_new(all.schema(), columns)?;
    let (old_columns, new_columns) = (all_columns(old), all_columns(&new));
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let mut place = 0;
    for key in keys {
        let after = key.now.as_ref().map(|_| {
            place += 1;
            place - 1
        });
        match (key.before, after) {
            (Some(before), Some(after))
                if rows_equal(&old_columns, before as usize, &new_columns, after as usize) => {}
            (before, after) => {
                removed.extend(before);
                added.extend(after.map(|after| after as u32));
            }
        }
    }
    let removed = take_record_batch(old, &UInt32Array::from(removed))?;
    let added = take_record_batch(&new, &UInt32Array::from(added))?;
    Ok(Delta::replacing(&removed, &added))
}
