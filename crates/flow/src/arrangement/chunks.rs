//! Where the rows of an arrangement lie: chunks of columns, and for each slot its chunk and row.
//!
//! Small chunks are joined once there are many, and chunks that are mostly dead are copied together; both change the
//! places of slots and nothing else.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, interleave_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;

use super::same_row;
use crate::key::Column;
use crate::rows::CHUNK_ROWS;

/// The slot of a row that is dead.
const DEAD: u32 = u32::MAX;
/// As many small chunks may wait to be joined.
const SMALL_CHUNKS: usize = 16;

#[derive(Debug)]
pub(super) struct Chunks {
    schema: SchemaRef,
    key: Vec<usize>,
    chunks: Vec<Option<Chunk>>,
    free: Vec<usize>,
    /// Chunks with less than half of [`CHUNK_ROWS`] rows.
    small: Vec<usize>,
    /// By slot: chunk and row.
    places: Vec<(u32, u32)>,
    bytes: usize,
}

#[derive(Debug)]
struct Chunk {
    batch: RecordBatch,
    columns: Vec<Column>,
    key: Vec<Column>,
    /// The slot of each row.
    slots: Vec<u32>,
    alive: usize,
    bytes: usize,
}

impl Chunks {
    pub(super) fn new(schema: &SchemaRef, key: &[usize]) -> Chunks {
        Chunks {
            schema: SchemaRef::clone(schema),
            key: key.to_vec(),
            chunks: Vec::new(),
            free: Vec::new(),
            small: Vec::new(),
            places: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.places.capacity() * 8
    }

    pub(super) fn reserve_slot(&mut self) {
        self.places.push((0, 0));
    }

    fn chunk(&self, number: u32) -> &Chunk {
        self.chunks[number as usize].as_ref().expect("a place is in a chunk that is there")
    }

    /// Whether the key of the row at `slot` is that of `row`.
    pub(super) fn key_is(&self, slot: u32, key: &[Column], row: usize) -> bool {
        let (chunk, place) = self.places[slot as usize];
        same_row(&self.chunk(chunk).key, place as usize, key, row)
    }

    /// Looks at what [`Chunks::key_is`] will look at.
    pub(super) fn touch_key(&self, slot: u32) -> u64 {
        let (chunk, place) = self.places[slot as usize];
        touch(&self.chunk(chunk).key, place)
    }

    /// Looks at what [`Chunks::row_is`] will look at.
    pub(super) fn touch_row(&self, slot: u32) -> u64 {
        let (chunk, place) = self.places[slot as usize];
        touch(&self.chunk(chunk).columns, place)
    }

    /// Whether the row at `slot` is `row` in every column.
    pub(super) fn row_is(&self, slot: u32, columns: &[Column], row: usize) -> bool {
        let (chunk, place) = self.places[slot as usize];
        same_row(&self.chunk(chunk).columns, place as usize, columns, row)
    }

    /// Adds rows, each under its slot.
    pub(super) fn add(&mut self, batch: &RecordBatch, slots: Vec<u32>) {
        assert_eq!(batch.num_rows(), slots.len(), "one slot per row");
        // The arrangement's own names and nullability, whatever computed the rows.
        let options =
            arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = SchemaRef::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options)
            .expect("the planner gave the operator the types of its input");
        self.place(batch, slots);
        if self.small.len() > SMALL_CHUNKS {
            let small = std::mem::take(&mut self.small);
            self.join(&small);
        }
    }

    fn place(&mut self, batch: RecordBatch, slots: Vec<u32>) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(None);
            self.chunks.len() - 1
        });
        for (row, slot) in slots.iter().enumerate() {
            self.places[*slot as usize] = (number as u32, row as u32);
        }
        if slots.len() < CHUNK_ROWS / 2 {
            self.small.push(number);
        }
        let columns = batch.columns().iter().map(Column::new).collect::<Vec<_>>();
        let key = self.key.iter().map(|column| columns[*column].clone()).collect();
        let bytes = batch.get_array_memory_size() + slots.len() * 4;
        self.bytes += bytes;
        let alive = slots.len();
        self.chunks[number] = Some(Chunk { batch, columns, key, slots, alive, bytes });
    }

    /// The living rows of the chunks `numbers` become one chunk.
    fn join(&mut self, numbers: &[usize]) {
        let mut batches = Vec::with_capacity(numbers.len());
        let mut slots = Vec::new();
        for number in numbers {
            let chunk = self.chunks[*number].take().expect("only chunks that are there are joined");
            self.bytes -= chunk.bytes;
            self.free.push(*number);
            let living =
                (0..chunk.slots.len() as u32).filter(|row| chunk.slots[*row as usize] != DEAD);
            let living = living.collect::<Vec<_>>();
            slots.extend(living.iter().map(|row| chunk.slots[*row as usize]));
            batches.push(match living.len() == chunk.slots.len() {
                true => chunk.batch,
                false => take_record_batch(&chunk.batch, &UInt32Array::from(living))
                    .expect("rows are within the chunk"),
            });
        }
        if slots.is_empty() {
            return;
        }
        let batch = concat_batches(&self.schema, &batches).expect("all chunks have one schema");
        self.place(batch, slots);
    }

    /// The rows of `slots` are dead; what is mostly dead is copied together.
    pub(super) fn forget(&mut self, slots: &[u32]) {
        let mut touched = Vec::new();
        for slot in slots {
            let (number, row) = self.places[*slot as usize];
            let chunk = self.chunks[number as usize].as_mut().expect("its rows were alive");
            chunk.slots[row as usize] = DEAD;
            chunk.alive -= 1;
            if touched.last() != Some(&(number as usize)) {
                touched.push(number as usize);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|number| {
            let chunk = self.chunks[*number].as_ref().expect("it just lost a row");
            chunk.alive * 2 < chunk.slots.len()
        });
        if !touched.is_empty() {
            self.small.retain(|number| !touched.contains(number));
            self.join(&touched);
        }
    }

    /// The rows at `slots`, in their order.
    pub(super) fn gather(&self, slots: &[u32]) -> RecordBatch {
        if slots.is_empty() {
            return RecordBatch::new_empty(SchemaRef::clone(&self.schema));
        }
        let mut batches = Vec::new();
        let mut ordinals = vec![usize::MAX; self.chunks.len()];
        let places = slots.iter().map(|slot| {
            let (number, row) = self.places[*slot as usize];
            let ordinal = &mut ordinals[number as usize];
            if *ordinal == usize::MAX {
                *ordinal = batches.len();
                batches.push(&self.chunk(number).batch);
            }
            (*ordinal, row as usize)
        });
        let places = places.collect::<Vec<_>>();
        if let [batch] = batches.as_slice() {
            let rows = places.iter().map(|(_, row)| *row as u32).collect::<UInt32Array>();
            return take_record_batch(batch, &rows).expect("rows are within the chunk");
        }
        interleave_record_batch(&batches, &places).expect("all chunks have one schema")
    }
}

fn touch(columns: &[Column], row: u32) -> u64 {
    columns.iter().fold(0, |all, column| all ^ column.touch(row as usize))
}
