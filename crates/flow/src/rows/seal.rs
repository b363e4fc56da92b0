//! How a relation's rows are stored: per vnode group the identities that went, then the rows that came.
//!
//! A delta's first part holds the identities (key columns, or whole rows) to remove, its second the rows to
//! add, with a last
//! column of copies where rows are counted. Loading removes first: a key that went and came back is in both.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};

use super::chunk::{Chunk, RowId};
use super::{Identity, Rows};
use segue_types::{BlobKind, StateBlob};

use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::RestoreError;
use crate::key::{Column, GROUPS, group_of, hash_columns, hash_in_group, vnode_of};

const COPIES: &str = "copies";

type ByGroup<T> = [Vec<T>; GROUPS];

impl Rows {
    /// Text of all that the stored layout depends on besides the columns.
    pub(crate) fn layout(&self) -> String {
        match &self.identity {
            Identity::None(_) => "None".to_owned(),
            identity => format!("{identity:?}"),
        }
    }

    /// What changed since the last seal.
    pub(crate) fn seal(&mut self, owner: &BlobOwner) -> Vec<SealedBlob> {
        let came = self.rows_by_group(&[true; GROUPS], |chunk| chunk.unsealed.ones().collect());
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
            let all = self.rows_by_group(&rebased, |chunk| chunk.alive.ones().collect());
            for blob in blobs.iter_mut().filter(|blob| rebased[usize::from(blob.group)]) {
                let rows = self.stored_rows(&all[usize::from(blob.group)]);
                *blob = owner.seal(blob.group, BlobKind::Base, vec![rows]);
            }
        }
        blobs.iter().for_each(|blob| self.sizes.sealed(blob));
        self.chunks.iter_mut().flatten().for_each(|chunk| chunk.unsealed.clear());
        blobs
    }

    /// All rows, those of each vnode group that has any as one base.
    pub(crate) fn bases(&self, owner: &BlobOwner) -> Vec<SealedBlob> {
        let all = self.rows_by_group(&[true; GROUPS], |chunk| chunk.alive.ones().collect());
        let filled = all.iter().enumerate().filter(|(_, rows)| !rows.is_empty());
        let base = |(group, rows): (usize, &Vec<RowId>)| {
            owner.seal(group as u8, BlobKind::Base, vec![self.stored_rows(rows)])
        };
        filled.map(base).collect()
    }

    fn rows_by_group(
        &self,
        wanted: &[bool; GROUPS],
        rows: impl Fn(&Chunk) -> Vec<usize>,
    ) -> ByGroup<RowId> {
        let mut groups = ByGroup::default();
        for (number, chunk) in self.chunks.iter().enumerate() {
            let Some(chunk) = chunk else { continue };
            for row in rows(chunk) {
                let group = usize::from(group_of(chunk.vnodes[row]));
                if wanted[group] {
                    groups[group].push(RowId::new(number, row));
                }
            }
        }
        groups
    }

    /// Identities that went, by group, without those that are back: a row that comes replaces the one of its key.
    fn take_removed(&mut self) -> Vec<RecordBatch> {
        let schema = Arc::new(
            self.schema.project(&self.columns).expect("the identity is within the schema"),
        );
        let mut groups = vec![Vec::new(); GROUPS];
        for (rows, vnodes) in std::mem::take(&mut self.removed) {
            let found = matches!(self.identity, Identity::Key(_)).then(|| {
                let columns = rows.columns().iter().map(Column::new).collect::<Vec<_>>();
                self.find(&columns, &hash_columns(&columns, rows.num_rows()))
            });
            let mut taken = ByGroup::<u32>::default();
            for (row, vnode) in vnodes.iter().enumerate() {
                if found.as_ref().is_none_or(|found| !found.is_found(row)) {
                    taken[usize::from(group_of(*vnode))].push(row as u32);
                }
            }
            for (group, taken) in
                taken.into_iter().enumerate().filter(|(_, taken)| !taken.is_empty())
            {
                let indices = UInt32Array::from(taken);
                groups[group]
                    .push(take_record_batch(&rows, &indices).expect("rows are within the batch"));
            }
        }
        let join =
            |batches: Vec<RecordBatch>| concat_batches(&schema, &batches).expect("one schema");
        groups.into_iter().map(join).collect()
    }

    fn stored_rows(&self, ids: &[RowId]) -> RecordBatch {
        let rows = self.gather(ids);
        if self.identity != Identity::Row {
            return rows;
        }
        let chunk =
            |id: &RowId| self.chunks[id.chunk()].as_ref().expect("only living rows are stored");
        let copies = ids.iter().map(|id| chunk(id).copies_of(id.row())).collect::<UInt32Array>();
        let mut columns = rows.columns().to_vec();
        columns.push(Arc::new(copies) as ArrayRef);
        RecordBatch::try_new(self.stored_schema(), columns).expect("one count per row")
    }

    fn stored_schema(&self) -> SchemaRef {
        let counted = self.identity == Identity::Row;
        let copies = counted.then(|| Arc::new(Field::new(COPIES, DataType::UInt32, false)));
        Arc::new(Schema::new(
            self.schema.fields().iter().cloned().chain(copies).collect::<Vec<_>>(),
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
                self.unload(went);
            }
            self.load_rows(came, blob.group)
                .ok_or_else(|| damaged("its rows are not of this relation"))?;
            self.sizes.loaded(blob);
        }
        self.removed.clear();
        self.chunks.iter_mut().flatten().for_each(|chunk| chunk.unsealed.clear());
        Ok(())
    }

    fn unload(&mut self, identities: &RecordBatch) {
        let columns = identities.columns().iter().map(Column::new).collect::<Vec<_>>();
        self.unload_found(&columns, &hash_columns(&columns, identities.num_rows()));
    }

    /// Removes the rows of these identities, all copies of each.
    fn unload_found(&mut self, columns: &[Column], hashes: &[u64]) {
        let index = Arc::clone(&self.index);
        let mut index = index.write();
        let mut killed = Vec::new();
        for (row, hash) in hashes.iter().enumerate() {
            let same = |slot: u32| self.is_row(RowId(slot), columns, row);
            let Some(id) = index.current.remove(*hash, same).map(RowId) else { continue };
            let chunk = self.chunks[id.chunk()].as_ref().expect("the index names live chunks");
            self.row_count -= chunk.copies_of(id.row()) as usize;
            self.kill(id, *hash, &mut index);
            killed.push(id);
        }
        drop(index);
        self.compact(&killed);
    }

    fn load_rows(&mut self, stored: &RecordBatch, group: u8) -> Option<()> {
        let fields = self.schema.fields().len();
        let types = |schema: &Schema| {
            schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
        };
        if types(&stored.schema()) != types(&self.stored_schema()) {
            return None;
        }
        let rows = stored.project(&(0..fields).collect::<Vec<_>>()).ok()?;
        let columns = self.identity_of(&rows);
        let hashes = match &self.identity {
            // A smaller number of workers gives the rest of the groups to others.
            Identity::None(_) => vec![hash_in_group(group); rows.num_rows()],
            _ => hash_columns(&columns, rows.num_rows()),
        };
        if hashes.iter().any(|hash| group_of(vnode_of(*hash)) != group) {
            return None;
        }
        if !matches!(self.identity, Identity::None(_)) {
            self.unload_found(&columns, &hashes);
        }
        let delta = match &self.identity {
            Identity::Row => {
                let copies = stored.column(fields).as_primitive::<UInt32Type>();
                Delta::weighted(
                    rows,
                    copies.values().iter().map(|count| i64::from(*count)).collect(),
                )
            }
            _ => Delta::inserts(rows),
        };
        self.add_all(&delta, &columns, &hashes, "a stored relation").ok()
    }
}
