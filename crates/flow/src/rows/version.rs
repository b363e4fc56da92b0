//! Versions: what a relation held at the end of one step, for as long as anybody holds on to it.
//!
//! A version is the chunks and their masks of that moment. The hash index is shared with the writer, who goes
//! on: a row found
//! there counts only if this version's own chunk has it alive under the same key. At most one row per key is alive in
//! a version, so whichever row passes that test is the one.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use arrow::array::{BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, interleave_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;

use super::chunk::{Chunk, ChunkData, Mask, Patch, RowId};
use super::index::SharedIndex;
use super::{Identity, Rows};
use crate::key::{Column, hash_columns, rows_equal};
use crate::workers::shard_of_hash;

/// An immutable snapshot of a relation. Cheap to clone, usable from any thread.
#[derive(Clone, Debug)]
pub struct RelationVersion {
    /// By shard; at least one.
    shards: Arc<[Arc<Shard>]>,
}

/// What one shard of the relation held.
#[derive(Debug)]
struct Shard {
    schema: SchemaRef,
    key: Vec<usize>,
    /// By chunk number.
    chunks: Vec<Option<SeenChunk>>,
    row_count: usize,
    index: Arc<SharedIndex>,
    /// While it lives, the index keeps the rows that this version sees.
    _pin: Arc<()>,
}

/// A chunk as a version sees it.
#[derive(Debug)]
pub(super) struct SeenChunk {
    pub(super) data: Arc<ChunkData>,
    /// Rows in the place of those in `data`, the newest last.
    pub(super) patches: Vec<Arc<Patch>>,
    pub(super) mask: Arc<Mask>,
}

/// The versions of one relation that may still be in use.
#[derive(Debug, Default)]
pub(super) struct Versions {
    number: u64,
    pin: Arc<()>,
    pins: VecDeque<(u64, Weak<()>)>,
    newest: Option<RelationVersion>,
}

impl Versions {
    /// The number that the next version will have.
    pub(super) fn next_number(&self) -> u64 {
        self.number + 1
    }

    pub(super) fn newest(&self) -> Option<&RelationVersion> {
        self.newest.as_ref()
    }

    /// Begins a new version; returns the oldest number that is still in use.
    pub(super) fn advance(&mut self) -> u64 {
        self.newest = None;
        self.number += 1;
        self.pin = Arc::new(());
        self.pins.push_back((self.number, Arc::downgrade(&self.pin)));
        self.oldest()
    }

    /// The oldest number that is still in use; there is one after the first version.
    pub(super) fn oldest(&mut self) -> u64 {
        while self.pins.front().is_some_and(|(_, pin)| pin.strong_count() == 0) {
            self.pins.pop_front();
        }
        self.pins.front().expect("the newest is pinned").0
    }

    /// Makes the version that was begun.
    pub(super) fn publish(
        &mut self,
        schema: SchemaRef,
        key: Vec<usize>,
        chunks: Vec<Option<SeenChunk>>,
        index: Arc<SharedIndex>,
    ) -> RelationVersion {
        let row_count = chunks.iter().flatten().map(SeenChunk::row_count).sum();
        let pin = std::mem::take(&mut self.pin);
        let shard = Shard { schema, key, chunks, row_count, index, _pin: pin };
        let version = RelationVersion { shards: Arc::new([Arc::new(shard)]) };
        self.newest = Some(version.clone());
        version
    }
}

impl SeenChunk {
    fn row_count(&self) -> usize {
        match &self.mask.copies {
            None => self.mask.alive.count_set_bits(),
            Some(copies) => self.mask.alive.set_indices().map(|row| copies[row] as usize).sum(),
        }
    }

    /// Where the row at a place is.
    fn locate(&self, row: usize) -> (&ChunkData, usize) {
        for patch in self.patches.iter().rev() {
            if let Ok(place) = patch.places.binary_search(&(row as u16)) {
                return (&patch.data, place);
            }
        }
        (&self.data, row)
    }

    /// The living rows out of base and patches.
    fn patched(&self) -> RecordBatch {
        let mut sources = vec![&self.data.batch];
        let mut places = (0..self.mask.alive.len()).map(|row| (0, row)).collect::<Vec<_>>();
        for patch in &self.patches {
            for (at, row) in patch.places.iter().enumerate() {
                places[usize::from(*row)] = (sources.len(), at);
            }
            sources.push(&patch.data.batch);
        }
        let living = self.mask.alive.set_indices().map(|row| places[row]).collect::<Vec<_>>();
        interleave_record_batch(&sources, &living).expect("all rows of a relation have one schema")
    }

    fn living(&self) -> RecordBatch {
        let (batch, mask) = (&self.data.batch, &self.mask);
        match &mask.copies {
            _ if !self.patches.is_empty() => self.patched(),
            Some(copies) => {
                let rows = (0..copies.len()).filter(|row| mask.alive.value(*row));
                let rows =
                    rows.flat_map(|row| std::iter::repeat_n(row as u32, copies[row] as usize));
                let rows = rows.collect::<UInt32Array>();
                take_record_batch(batch, &rows).expect("rows are within the chunk")
            }
            None if mask.alive.count_set_bits() == batch.num_rows() => batch.clone(),
            None => {
                let alive = BooleanArray::new(mask.alive.clone(), None);
                filter_record_batch(batch, &alive).expect("a mask is as long as its chunk")
            }
        }
    }
}

impl Rows {
    /// What the relation holds now.
    pub(crate) fn version(&mut self) -> RelationVersion {
        let unchanged = self.chunks.iter().flatten().all(|chunk| chunk.mask.is_some());
        if let Some(newest) = &self.versions.newest
            && unchanged
            && newest.row_count() == self.row_count
        {
            let newest = newest.clone();
            // Former versions may have gone since the newest was made.
            let oldest = self.versions.oldest();
            self.index.write().exhume(oldest);
            return newest;
        }
        let oldest = self.versions.advance();
        self.index.write().exhume(oldest);
        let seen = |chunk: &mut Chunk| SeenChunk {
            data: Arc::clone(&chunk.data),
            patches: Vec::new(),
            mask: chunk.publish(),
        };
        let chunks = self.chunks.iter_mut().map(|chunk| chunk.as_mut().map(seen)).collect();
        let key = if let Identity::Key(key) = &self.identity { key.clone() } else { Vec::new() };
        let (schema, index) = (Arc::clone(&self.schema), Arc::clone(&self.index));
        let version = self.versions.publish(schema, key, chunks, index);
        assert_eq!(version.row_count(), self.row_count, "a version sees every row");
        version
    }
}

impl RelationVersion {
    /// What the shards of one relation hold, in their order.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn of_shards(versions: &[RelationVersion]) -> RelationVersion {
        assert!(!versions.is_empty(), "a relation has a shard");
        let shards = versions.iter().flat_map(|version| version.shards.iter().cloned());
        RelationVersion { shards: shards.collect() }
    }

    /// The relation's columns, all of them nullable.
    pub fn schema(&self) -> &SchemaRef {
        &self.shards[0].schema
    }

    /// The columns by which [`RelationVersion::lookup`] finds rows; empty if there is no key.
    pub fn key(&self) -> &[usize] {
        &self.shards[0].key
    }

    /// How many rows it holds, copies counted.
    pub fn row_count(&self) -> usize {
        self.shards.iter().map(|shard| shard.row_count).sum()
    }

    /// Its rows, at most 8192 (and the copies among them) at a time, filtered as they are asked for.
    pub fn batches(&self) -> impl Iterator<Item = RecordBatch> + Send + use<> {
        let shards = Arc::clone(&self.shards);
        (0..shards.len()).flat_map(move |number| {
            let shard = Arc::clone(&shards[number]);
            (0..shard.chunks.len()).filter_map(move |chunk| shard.batch(chunk))
        })
    }

    /// The rows whose key is one of `keys`, in their order; keys that are not there are left out, as is a
    /// key with a NULL in it. `None` if the columns are not of this relation's key types.
    pub fn lookup(&self, keys: &RecordBatch) -> Option<RecordBatch> {
        let expected = self.key().iter().map(|column| self.schema().field(*column).data_type());
        let given = keys.columns().iter().map(|column| column.data_type());
        if self.key().is_empty() || !expected.eq(given) {
            return None;
        }
        let columns = keys.columns().iter().map(Column::new).collect::<Vec<_>>();
        let hashes = hash_columns(&columns, keys.num_rows());
        let indexes = self.shards.iter().map(|shard| shard.index.read()).collect::<Vec<_>>();
        let found = (0..keys.num_rows())
            .filter(|row| columns.iter().all(|c| !c.is_null(*row)))
            .filter_map(|row| {
                let number = shard_of_hash(hashes[row], self.shards.len());
                let same = |slot: u32| self.shards[number].is_row(RowId(slot), &columns, row);
                let (index, hash) = (&indexes[number], hashes[row]);
                let slot = index.current.find(hash, same);
                let slot = slot.or_else(|| index.graveyard.find(hash, same));
                slot.map(|slot| (number, RowId(slot)))
            });
        let found = found.collect::<Vec<_>>();
        drop(indexes);
        Some(self.gather(&found))
    }

    /// The rows at these places, (shard, row), in their order.
    fn gather(&self, ids: &[(usize, RowId)]) -> RecordBatch {
        if ids.is_empty() {
            return RecordBatch::new_empty(Arc::clone(self.schema()));
        }
        let locate = |(number, id): &(usize, RowId)| {
            let chunk = self.shards[*number].chunks[id.chunk()].as_ref();
            chunk.expect("only seen rows are found").locate(id.row())
        };
        let found = ids.iter().map(locate).collect::<Vec<_>>();
        let batches = found.iter().map(|(data, _)| &data.batch).collect::<Vec<_>>();
        let places = found.iter().enumerate().map(|(i, (_, row))| (i, *row)).collect::<Vec<_>>();
        interleave_record_batch(&batches, &places)
            .expect("all chunks of a relation have one schema")
    }
}

impl Shard {
    fn batch(&self, number: usize) -> Option<RecordBatch> {
        let batch = self.chunks[number].as_ref()?.living();
        (batch.num_rows() > 0).then_some(batch)
    }

    fn is_row(&self, id: RowId, columns: &[Column], row: usize) -> bool {
        let Some(Some(chunk)) = self.chunks.get(id.chunk()) else { return false };
        let is_equal =
            |(data, place): (&ChunkData, usize)| rows_equal(&data.identity, place, columns, row);
        chunk.mask.sees(id.row()) && is_equal(chunk.locate(id.row()))
    }
}
