//! A chunk: at most [`CHUNK_ROWS`] rows in columns, and which of them are alive.
//!
//! Rows never change and never move within a chunk; the last chunk of a relation grows by being replaced with a
//! longer copy, so that a row keeps its number and older versions keep their columns.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use arrow::compute::concat_batches;

use super::bits::Bits;
use crate::key::Column;

/// Rows of a full chunk. A row id has 13 bits for the row.
pub(crate) const CHUNK_ROWS: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 13;

/// A row of a relation: chunk number and row within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowId(pub(super) u32);

impl RowId {
    pub(super) fn new(chunk: usize, row: usize) -> RowId {
        assert!(row < CHUNK_ROWS, "row {row} of a chunk");
        assert!(chunk + 1 < 1 << (32 - CHUNK_BITS), "a relation holds less than 2^32 rows");
        RowId((chunk << CHUNK_BITS | row) as u32)
    }

    pub(super) fn chunk(self) -> usize {
        (self.0 >> CHUNK_BITS) as usize
    }

    pub(super) fn row(self) -> usize {
        self.0 as usize & (CHUNK_ROWS - 1)
    }
}

/// The columns of a chunk and views of those that identify a row.
#[derive(Debug)]
pub(super) struct ChunkData {
    pub(super) batch: RecordBatch,
    pub(super) identity: Vec<Column>,
}

impl ChunkData {
    pub(super) fn new(batch: RecordBatch, identity: &[usize]) -> ChunkData {
        ChunkData { identity: Column::of(&batch, identity), batch }
    }
}

/// Newer rows at some places of a chunk, by place.
#[derive(Debug)]
pub(super) struct Patch {
    pub(super) places: Vec<u16>,
    pub(super) data: ChunkData,
}

/// Which rows of a chunk a version sees, and how often.
#[derive(Debug)]
pub(super) struct Mask {
    pub(super) alive: BooleanBuffer,
    /// Copies of each row, where a row may be there more than once.
    pub(super) copies: Option<Vec<u32>>,
}

impl Mask {
    pub(super) fn sees(&self, row: usize) -> bool {
        row < self.alive.len() && self.alive.value(row)
    }
}

/// A chunk as its relation's writer sees it.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) data: Arc<ChunkData>,
    pub(super) alive: Bits,
    pub(super) alive_count: usize,
    /// `None` while every row is there once.
    pub(super) copies: Option<Vec<u32>>,
    /// Rows that are not stored, or not as they are now.
    pub(super) unsealed: Bits,
    pub(super) vnodes: Vec<u8>,
    /// Rows that some version may see: those before this one.
    pub(super) published: usize,
    /// What the newest version sees, until a row dies or comes.
    pub(super) mask: Option<Arc<Mask>>,
    pub(super) bytes: usize,
}

impl Chunk {
    pub(super) fn new(batch: RecordBatch, identity: &[usize], vnodes: &[u8]) -> Chunk {
        let rows = batch.num_rows();
        assert_eq!(rows, vnodes.len(), "one vnode per row");
        let bytes = batch.get_array_memory_size();
        let mut chunk = Chunk {
            data: Arc::new(ChunkData::new(batch, identity)),
            alive: Bits::default(),
            alive_count: rows,
            copies: None,
            unsealed: Bits::default(),
            vnodes: vnodes.to_vec(),
            published: 0,
            mask: None,
            bytes,
        };
        chunk.alive.extend(rows, true);
        chunk.unsealed.extend(rows, true);
        chunk
    }

    /// Adds rows behind those that are there.
    pub(super) fn extend(&mut self, batch: &RecordBatch, identity: &[usize], vnodes: &[u8]) {
        let joined = concat_batches(batch.schema_ref(), [&self.data.batch, batch])
            .expect("all chunks of a relation have one schema");
        self.bytes = joined.get_array_memory_size();
        self.data = Arc::new(ChunkData::new(joined, identity));
        self.alive.extend(batch.num_rows(), true);
        self.unsealed.extend(batch.num_rows(), true);
        self.alive_count += batch.num_rows();
        self.vnodes.extend_from_slice(vnodes);
        if let Some(copies) = &mut self.copies {
            copies.extend(std::iter::repeat_n(1, batch.num_rows()));
        }
        self.mask = None;
    }

    pub(super) fn len(&self) -> usize {
        self.data.batch.num_rows()
    }

    pub(super) fn copies_of(&self, row: usize) -> u32 {
        self.copies.as_ref().map_or(1, |copies| copies[row])
    }

    pub(super) fn set_copies(&mut self, row: usize, count: u32) {
        let len = self.len();
        self.copies.get_or_insert_with(|| vec![1; len])[row] = count;
        self.mask = None;
    }

    /// What a version taken now sees.
    pub(super) fn publish(&mut self) -> Arc<Mask> {
        self.published = self.len();
        let mask = self.mask.get_or_insert_with(|| {
            Arc::new(Mask { alive: self.alive.snapshot(), copies: self.copies.clone() })
        });
        Arc::clone(mask)
    }
}
