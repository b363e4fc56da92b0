//! Versions: what a relation held at the end of one step, for as long as anybody holds on to it.
//!
//! A version is the chunks and their masks of that moment. The hash index is shared with the writer, who goes
//! on: a row found
//! there counts only if this version's own chunk has it alive under the same key. At most one row per key is alive in
//! a version, so whichever row passes that test is the one.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use arrow::array::{Array, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, interleave_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;

use super::chunk::{ChunkData, Mask, RowId};
use super::index::SharedIndex;
use super::{Identity, Rows};
use crate::key::{Column, hash_columns, rows_equal};

/// An immutable snapshot of a relation. Cheap to clone, usable from any thread.
#[derive(Clone, Debug)]
pub struct RelationVersion {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    schema: SchemaRef,
    key: Vec<usize>,
    /// By chunk number.
    chunks: Vec<Option<(Arc<ChunkData>, Arc<Mask>)>>,
    row_count: usize,
    index: Arc<SharedIndex>,
    /// While it lives, the index keeps the rows that this version sees.
    _pin: Arc<()>,
}

/// The versions of one relation that may still be in use.
#[derive(Debug, Default)]
pub(super) struct Versions {
    number: u64,
    pins: VecDeque<(u64, Weak<()>)>,
    newest: Option<RelationVersion>,
}

impl Versions {
    /// The number that the next version will have.
    pub(super) fn next_number(&self) -> u64 {
        self.number + 1
    }

    /// A new version's number becomes the newest; returns its pin and the oldest number that is still in use.
    fn advance(&mut self) -> (Arc<()>, u64) {
        self.newest = None;
        self.number += 1;
        let pin = Arc::new(());
        self.pins.push_back((self.number, Arc::downgrade(&pin)));
        while self.pins.front().is_some_and(|(_, pin)| pin.strong_count() == 0) {
            self.pins.pop_front();
        }
        let (oldest, _) = self.pins.front().expect("the newest is pinned");
        (pin, *oldest)
    }
}

impl Rows {
    /// What the relation holds now.
    pub(crate) fn version(&mut self) -> RelationVersion {
        let unchanged = self.chunks.iter().flatten().all(|chunk| chunk.mask.is_some());
        if let Some(newest) = &self.versions.newest
            && unchanged
            && newest.inner.row_count == self.row_count
        {
            return newest.clone();
        }
        let (pin, oldest) = self.versions.advance();
        self.index.write().exhume(oldest);
        let chunks = self
            .chunks
            .iter_mut()
            .map(|chunk| chunk.as_mut().map(|chunk| (Arc::clone(&chunk.data), chunk.publish())));
        let inner = Inner {
            schema: Arc::clone(&self.schema),
            key: if let Identity::Key(key) = &self.identity { key.clone() } else { Vec::new() },
            chunks: chunks.collect(),
            row_count: self.row_count,
            index: Arc::clone(&self.index),
            _pin: pin,
        };
        let version = RelationVersion { inner: Arc::new(inner) };
        self.versions.newest = Some(version.clone());
        version
    }
}

impl RelationVersion {
    /// The relation's columns, all of them nullable.
    pub fn schema(&self) -> &SchemaRef {
        &self.inner.schema
    }

    /// The columns by which [`RelationVersion::lookup`] finds rows; empty if there is no key.
    pub fn key(&self) -> &[usize] {
        &self.inner.key
    }

    /// How many rows it holds, copies counted.
    pub fn row_count(&self) -> usize {
        self.inner.row_count
    }

    /// Its rows, at most 8192 (and the copies among them) at a time, filtered as they are asked for.
    pub fn batches(&self) -> impl Iterator<Item = RecordBatch> + Send + use<> {
        let inner = Arc::clone(&self.inner);
        (0..inner.chunks.len()).filter_map(move |number| inner.batch(number))
    }

    /// The rows whose key is one of `keys`, in their order; keys that are not there are left out, as is a
    /// key with a NULL in it. `None` if the columns are not of this relation's key types.
    pub fn lookup(&self, keys: &RecordBatch) -> Option<RecordBatch> {
        let inner = &self.inner;
        let expected = inner.key.iter().map(|column| inner.schema.field(*column).data_type());
        let given = keys.columns().iter().map(|column| column.data_type());
        if inner.key.is_empty() || !expected.eq(given) {
            return None;
        }
        let columns = keys.columns().iter().map(Column::new).collect::<Vec<_>>();
        let hashes = hash_columns(&columns, keys.num_rows());
        let index = inner.index.read();
        let found = (0..keys.num_rows())
            .filter(|row| columns.iter().all(|c| !c.is_null(*row)))
            .filter_map(|row| {
                let same = |slot: u32| inner.is_row(RowId(slot), &columns, row);
                index
                    .current
                    .find(hashes[row], same)
                    .or_else(|| index.graveyard.find(hashes[row], same))
            });
        let found = found.map(RowId).collect::<Vec<_>>();
        drop(index);
        Some(inner.gather(&found))
    }
}

impl Inner {
    fn batch(&self, number: usize) -> Option<RecordBatch> {
        let (data, mask) = self.chunks[number].as_ref()?;
        let batch = match &mask.copies {
            Some(copies) => {
                let rows = (0..copies.len()).filter(|row| mask.alive.value(*row));
                let rows =
                    rows.flat_map(|row| std::iter::repeat_n(row as u32, copies[row] as usize));
                let rows = rows.collect::<UInt32Array>();
                take_record_batch(&data.batch, &rows).expect("rows are within the chunk")
            }
            None if mask.alive.count_set_bits() == data.batch.num_rows() => data.batch.clone(),
            None => {
                let alive = BooleanArray::new(mask.alive.clone(), None);
                filter_record_batch(&data.batch, &alive).expect("a mask is as long as its chunk")
            }
        };
        (batch.num_rows() > 0).then_some(batch)
    }

    fn is_row(&self, id: RowId, columns: &[Column], row: usize) -> bool {
        let Some(Some((data, mask))) = self.chunks.get(id.chunk()) else { return false };
        id.row() < mask.alive.len()
            && mask.alive.value(id.row())
            && rows_equal(&data.identity, id.row(), columns, row)
    }

    fn gather(&self, ids: &[RowId]) -> RecordBatch {
        if ids.is_empty() {
            return RecordBatch::new_empty(Arc::clone(&self.schema));
        }
        let chunk =
            |id: &RowId| self.chunks[id.chunk()].as_ref().expect("only seen rows are found");
        let batches = ids.iter().map(|id| &chunk(id).0.batch).collect::<Vec<_>>();
        let places = ids.iter().enumerate().map(|(i, id)| (i, id.row())).collect::<Vec<_>>();
        interleave_record_batch(&batches, &places)
            .expect("all chunks of a relation have one schema")
    }
}
