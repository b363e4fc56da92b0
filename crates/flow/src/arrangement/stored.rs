//! How an arrangement is stored: per vnode group of the key the rows that went, then the rows that came.
//!
//! A delta's first part holds rows to remove with all their copies, its second the rows that are there now with a last
//! column of copies, which replaces what was there before. A base has the second part alone.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use segue_types::{BlobKind, StateBlob};

use super::{Arrangement, DIRTY, STORED};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::RestoreError;
use crate::key::{GROUPS, group_of, vnode_of};

const COPIES: &str = "copies";

type ByGroup<T> = [Vec<T>; GROUPS];

impl Arrangement {
    /// What changed since the last seal.
    pub(crate) fn seal(&mut self, owner: &BlobOwner) -> Vec<SealedBlob> {
        let came = self.take_dirty();
        let went = self.take_removed();
        let mut blobs = Vec::new();
        for group in 0..GROUPS {
            if came[group].is_empty() && went[group].num_rows() == 0 {
                continue;
            }
            let parts = vec![went[group].clone(), self.stored_rows(&came[group])];
            blobs.push(owner.seal(group as u8, BlobKind::Delta, parts));
        }
        let rebased = self.sizes.rebased(&blobs);
        if rebased != [false; GROUPS] {
            let all = self.by_group(self.live());
            for blob in blobs.iter_mut().filter(|blob| rebased[usize::from(blob.group)]) {
                let rows = self.stored_rows(&all[usize::from(blob.group)]);
                *blob = owner.seal(blob.group, BlobKind::Base, vec![rows]);
            }
        }
        blobs.iter().for_each(|blob| self.sizes.sealed(blob));
        blobs
    }

    /// All rows, those of each vnode group that has any as one base.
    pub(crate) fn bases(&self, owner: &BlobOwner) -> Vec<SealedBlob> {
        let all = self.by_group(self.live());
        let filled = all.iter().enumerate().filter(|(_, rows)| !rows.is_empty());
        let base = |(group, slots): (usize, &Vec<u32>)| {
            owner.seal(group as u8, BlobKind::Base, vec![self.stored_rows(slots)])
        };
        filled.map(base).collect()
    }

    fn by_group(&self, slots: impl Iterator<Item = u32>) -> ByGroup<u32> {
        let mut groups = ByGroup::default();
        for slot in slots {
            groups[usize::from(group_of(self.vnodes[slot as usize]))].push(slot);
        }
        groups
    }

    /// The slots of rows that are not stored as they are; from now on they are.
    fn take_dirty(&mut self) -> ByGroup<u32> {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.retain(|slot| {
            let marks = &mut self.marks[*slot as usize];
            let is_dirty = *marks & DIRTY != 0;
            *marks &= !DIRTY;
            is_dirty && self.weights[*slot as usize] > 0
        });
        dirty.iter().for_each(|slot| self.marks[*slot as usize] |= STORED);
        self.by_group(dirty.into_iter())
    }

    fn take_removed(&mut self) -> Vec<RecordBatch> {
        let mut groups = vec![Vec::new(); GROUPS];
        for (rows, vnodes) in std::mem::take(&mut self.removed) {
            let mut taken = ByGroup::<u32>::default();
            for (row, vnode) in vnodes.iter().enumerate() {
                taken[usize::from(group_of(*vnode))].push(row as u32);
            }
            for (group, taken) in taken.into_iter().enumerate() {
                if !taken.is_empty() {
                    let rows = take_record_batch(&rows, &UInt32Array::from(taken));
                    groups[group].push(rows.expect("rows are within the batch"));
                }
            }
        }
        let join = |batches: Vec<RecordBatch>| {
            concat_batches(&self.schema, &batches).expect("all are rows of this arrangement")
        };
        groups.into_iter().map(join).collect()
    }

    fn stored_rows(&self, slots: &[u32]) -> RecordBatch {
        let rows = self.gather(slots);
        let copies = slots.iter().map(|slot| self.weights[*slot as usize]).collect::<UInt32Array>();
        let mut columns = rows.columns().to_vec();
        columns.push(Arc::new(copies) as ArrayRef);
        RecordBatch::try_new(self.stored_schema(), columns).expect("one count per row")
    }

    fn stored_schema(&self) -> SchemaRef {
        let copies = Arc::new(Field::new(COPIES, DataType::UInt32, false));
        Arc::new(Schema::new(
            self.schema.fields().iter().cloned().chain([copies]).collect::<Vec<_>>(),
        ))
    }

    /// Takes over stored blobs: for each group its base, then its deltas in their order.
    pub(crate) fn load(
        &mut self,
        owner: &BlobOwner,
        blobs: &[StateBlob],
    ) -> Result<(), RestoreError> {
        for blob in blobs {
            let damaged = |reason: &str| RestoreError::Blob {
                operator: blob.operator.0,
                group: blob.group,
                reason: reason.to_owned(),
            };
            let parts = owner.read(blob)?;
            let (went, came) = match (blob.kind, parts.as_slice()) {
                (BlobKind::Base, [came]) => (None, came),
                (BlobKind::Delta, [went, came]) => (Some(went), came),
                _ => return Err(damaged("it has the wrong number of parts")),
            };
            if let Some(went) = went {
                self.unload(went).ok_or_else(|| damaged("it removes what is not there"))?;
            }
            self.load_rows(came, blob.group)
                .ok_or_else(|| damaged("its rows are not of this operator"))?;
            self.sizes.loaded(blob);
        }
        // What was just read is stored, and nothing of it changed.
        self.dirty.clear();
        self.removed.clear();
        let live = self.live().collect::<Vec<_>>();
        live.into_iter().for_each(|slot| self.marks[slot as usize] = STORED);
        Ok(())
    }

    /// Removes rows with all their copies.
    fn unload(&mut self, rows: &RecordBatch) -> Option<()> {
        if rows.num_rows() == 0 {
            return Some(());
        }
        let located = self.locate(rows);
        let weight = |slot: &Option<u32>| slot.map(|slot| -self.weight(slot));
        let weights = located.slots.iter().map(weight).collect::<Option<Vec<_>>>()?;
        let delta = Delta::weighted(rows.clone(), weights.into());
        self.apply(&delta, &located, "a stored arrangement").ok()?;
        self.settle();
        Some(())
    }

    fn load_rows(&mut self, stored: &RecordBatch, group: u8) -> Option<()> {
        let types = |schema: &Schema| {
            schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
        };
        if types(&stored.schema()) != types(&self.stored_schema()) {
            return None;
        }
        let width = self.schema.fields().len();
        let rows = stored.project(&(0..width).collect::<Vec<_>>()).ok()?;
        let copies = stored.column(width).as_primitive::<UInt32Type>();
        let located = self.locate(&rows);
        if located.keys.hashes.iter().any(|hash| group_of(vnode_of(*hash)) != group) {
            return None;
        }
        // What is there already was stored with another count: the newer one holds.
        let there = |slot: &Option<u32>| slot.map_or(0, |slot| self.weight(slot));
        let weights = located.slots.iter().zip(copies.values());
        let weights = weights.map(|(slot, count)| i64::from(*count) - there(slot));
        let weights = weights.collect::<Vec<_>>();
        let changed = (0..weights.len() as u32).filter(|row| weights[*row as usize] != 0);
        let changed = changed.collect::<UInt32Array>();
        let delta = if changed.len() == weights.len() {
            Delta::weighted(rows, weights.into())
        } else {
            let rows = take_record_batch(&rows, &changed).ok()?;
            Delta::weighted(rows, weights.into_iter().filter(|weight| *weight != 0).collect())
        };
        let located = self.locate(delta.rows());
        self.apply(&delta, &located, "a stored arrangement").ok()?;
        Some(())
    }
}
