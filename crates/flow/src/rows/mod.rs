//! Rows of a relation: chunks with alive masks, a hash index over what identifies a row, immutable versions.
//!
//! An update is a tombstone and an append; chunks that are mostly dead are copied together. Three kinds of
//! [`Identity`]: by key (at most one row each), by whole row (a multiset: one stored row and its copies), or
//! none (append-only).
//! Readers hold a [`RelationVersion`]; the writer goes on without them (see `version.rs` for how lookups stay right).

mod bits;
mod chunk;
mod dense;
mod index;
mod seal;
mod version;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{interleave_record_batch, take_record_batch};
use arrow::datatypes::{Schema, SchemaRef};

pub(crate) use bits::Bits;
pub(crate) use chunk::CHUNK_ROWS;
pub(crate) use dense::{DenseRows, RowSource};
pub(crate) use index::{IndexState, SharedIndex};
pub use version::RelationVersion;

use crate::blob::StoredSizes;
use crate::delta::Delta;
use crate::error::StepError;
use crate::key::{Column, hash_columns, hash_in_group, rows_equal, vnode_of};
use chunk::{Chunk, RowId};
use version::Versions;

/// What tells one row from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// At most one row per value of these columns.
    Key(Vec<usize>),
    /// Equal rows are told apart by nothing: they are counted.
    Row,
    /// Rows are never removed, so nobody asks. They are stored in these vnode groups.
    None(Range<u8>),
}

/// The rows of one relation, with their writer's bookkeeping.
#[derive(Debug)]
pub(crate) struct Rows {
    schema: SchemaRef,
    identity: Identity,
    /// The columns of the identity.
    columns: Vec<usize>,
    chunks: Vec<Option<Chunk>>,
    free: Vec<usize>,
    /// The chunk that grows.
    tail: Option<usize>,
    row_count: usize,
    index: Arc<SharedIndex>,
    versions: Versions,
    /// Rows that are stored and must go, with their vnodes.
    removed: Vec<(RecordBatch, Vec<u8>)>,
    sizes: StoredSizes,
}

impl Rows {
    pub(crate) fn new(schema: &SchemaRef, identity: Identity) -> Rows {
        let schema = nullable(schema);
        let columns = match &identity {
            Identity::Key(key) => key.clone(),
            Identity::Row => (0..schema.fields().len()).collect(),
            Identity::None(_) => Vec::new(),
        };
        Rows {
            schema,
            identity,
            columns,
            chunks: Vec::new(),
            free: Vec::new(),
            tail: None,
            row_count: 0,
            index: Arc::default(),
            versions: Versions::default(),
            removed: Vec::new(),
            sizes: StoredSizes::default(),
        }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn row_count(&self) -> usize {
        self.row_count
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().flatten().map(|chunk| chunk.bytes + chunk.len() * 2);
        chunks.sum::<usize>() + self.index.bytes()
    }

    /// The columns that identify a row, of a batch of this relation.
    pub(crate) fn identity_of(&self, rows: &RecordBatch) -> Vec<Column> {
        Column::of(rows, &self.columns)
    }

    /// Adds and removes the rows of a consolidated delta.
    pub(crate) fn apply(&mut self, delta: &Delta, place: &str) -> Result<(), StepError> {
        if delta.is_empty() {
            return Ok(());
        }
        let columns = self.identity_of(delta.rows());
        let hashes = match &self.identity {
            Identity::None(groups) => self.spread_hashes(groups, delta.len()),
            _ => hash_columns(&columns, delta.len()),
        };
        let removals = self.remove_all(delta, &columns, &hashes, place)?;
        self.note_removed(&removals);
        self.add_all(delta, &columns, &hashes, place)?;
        self.compact(&removals.killed);
        Ok(())
    }

    /// Without a key any vnode will do, as long as a row keeps it: chunk after chunk, so that an epoch touches few.
    fn spread_hashes(&self, groups: &Range<u8>, rows: usize) -> Vec<u64> {
        let group = |row: usize| {
            let chunk = (self.row_count + row) / CHUNK_ROWS;
            groups.start + (chunk % groups.len()) as u8
        };
        (0..rows).map(|row| hash_in_group(group(row))).collect()
    }

    fn remove_all(
        &mut self,
        delta: &Delta,
        columns: &[Column],
        hashes: &[u64],
        place: &str,
    ) -> Result<Removals, StepError> {
        let mut removals = Removals::default();
        let Some(weights) = delta.weights() else { return Ok(removals) };
        let index = Arc::clone(&self.index);
        let mut index = index.write();
        for (row, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight < 0) {
            if matches!(self.identity, Identity::None(_)) {
                return Err(StepError::NotAppendOnly { place: place.to_owned() });
            }
            let negative = || StepError::NegativeMultiplicity { place: place.to_owned() };
            let taken = u32::try_from(-weight).map_err(|_| negative())?;
            let same = |slot: u32| self.is_row(RowId(slot), columns, row);
            let id = index.current.find(hashes[row], same).map(RowId).ok_or_else(negative)?;
            let chunk = self.chunks[id.chunk()].as_mut().expect("the index names live chunks");
            let left = chunk.copies_of(id.row()).checked_sub(taken).ok_or_else(negative)?;
            if !chunk.unsealed.get(id.row()) {
                removals.sealed.push((id, vnode_of(hashes[row])));
            }
            self.row_count -= taken as usize;
            if left > 0 {
                chunk.set_copies(id.row(), left);
                chunk.unsealed.set(id.row(), true);
                continue;
            }
            index.current.remove(hashes[row], |slot| slot == id.0).expect("it was just found");
            self.kill(id, hashes[row], &mut index);
            removals.killed.push(id);
        }
        Ok(removals)
    }

    fn kill(&mut self, id: RowId, hash: u64, index: &mut IndexState) {
        let chunk = self.chunks[id.chunk()].as_mut().expect("only live rows die");
        assert!(chunk.alive.get(id.row()), "a row dies once");
        chunk.alive.set(id.row(), false);
        chunk.alive_count -= 1;
        chunk.unsealed.set(id.row(), false);
        chunk.mask = None;
        if id.row() < chunk.published {
            index.bury(hash, id.0, self.versions.next_number());
        }
    }

    fn is_row(&self, id: RowId, columns: &[Column], row: usize) -> bool {
        let chunk = self.chunks[id.chunk()].as_ref().expect("the index names live chunks");
        rows_equal(&chunk.data.identity, id.row(), columns, row)
    }

    /// Keeps what the next seal needs of stored rows that are gone or changed.
    fn note_removed(&mut self, removals: &Removals) {
        if removals.sealed.is_empty() {
            return;
        }
        let ids = removals.sealed.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        let rows =
            self.gather(&ids).project(&self.columns).expect("the identity is within the schema");
        self.removed.push((rows, removals.sealed.iter().map(|(_, vnode)| *vnode).collect()));
    }

    fn add_all(
        &mut self,
        delta: &Delta,
        columns: &[Column],
        hashes: &[u64],
        place: &str,
    ) -> Result<(), StepError> {
        let mut added = Vec::with_capacity(delta.len());
        let mut copies = Vec::new();
        for row in (0..delta.len()).filter(|row| delta.weight(*row) > 0) {
            match &self.identity {
                Identity::Key(_) if delta.weight(row) != 1 => {
                    return Err(StepError::DuplicateKey { place: place.to_owned() });
                }
                Identity::Key(_) => added.push(row as u32),
                Identity::None(_) => {
                    added.extend(std::iter::repeat_n(row as u32, delta.weight(row) as usize))
                }
                Identity::Row => {
                    if !self.add_copies(delta, columns, hashes, row) {
                        added.push(row as u32);
                        copies.push(delta.weight(row) as u32);
                    }
                }
            }
        }
        let ids = self.append(delta.rows(), &added, hashes);
        for (id, count) in ids.iter().zip(copies).filter(|(_, count)| *count > 1) {
            self.chunks[id.chunk()].as_mut().expect("just made").set_copies(id.row(), count);
            self.row_count += count as usize - 1;
        }
        self.index_rows(&ids, &added, columns, hashes, place)
    }

    /// More copies of a row that is there already; false if it is not.
    fn add_copies(
        &mut self,
        delta: &Delta,
        columns: &[Column],
        hashes: &[u64],
        row: usize,
    ) -> bool {
        let same = |slot: u32| self.is_row(RowId(slot), columns, row);
        let Some(id) = self.index.write().current.find(hashes[row], same).map(RowId) else {
            return false;
        };
        let chunk = self.chunks[id.chunk()].as_mut().expect("the index names live chunks");
        if !chunk.unsealed.get(id.row()) {
            chunk.unsealed.set(id.row(), true);
            self.note_removed(&Removals {
                sealed: vec![(id, vnode_of(hashes[row]))],
                killed: Vec::new(),
            });
        }
        let chunk = self.chunks[id.chunk()].as_mut().expect("the index names live chunks");
        let more = delta.weight(row) as u32;
        let count = chunk
            .copies_of(id.row())
            .checked_add(more)
            .expect("a relation holds less than 2^32 rows");
        chunk.set_copies(id.row(), count);
        self.row_count += more as usize;
        true
    }

    fn index_rows(
        &mut self,
        ids: &[RowId],
        rows: &[u32],
        columns: &[Column],
        hashes: &[u64],
        place: &str,
    ) -> Result<(), StepError> {
        if matches!(self.identity, Identity::None(_)) {
            return Ok(());
        }
        let index = Arc::clone(&self.index);
        let mut index = index.write();
        for (id, row) in ids.iter().zip(rows) {
            let row = *row as usize;
            let same = |slot: u32| self.is_row(RowId(slot), columns, row);
            if index.current.find_or_insert(hashes[row], id.0, same).is_some() {
                return Err(StepError::DuplicateKey { place: place.to_owned() });
            }
        }
        Ok(())
    }

    /// Appends the rows at `taken`, without indexing them.
    fn append(&mut self, rows: &RecordBatch, taken: &[u32], hashes: &[u64]) -> Vec<RowId> {
        let mut ids = Vec::with_capacity(taken.len());
        let mut rest = taken;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(CHUNK_ROWS));
            let indices = UInt32Array::from(now.to_vec());
            let batch = take_record_batch(rows, &indices).expect("rows are within the batch");
            // The relation's own names and nullability, whatever computed the rows.
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec())
                .expect("the planner gave the relation the types of its output");
            let vnodes = now.iter().map(|row| vnode_of(hashes[*row as usize])).collect::<Vec<_>>();
            self.append_batch(batch, &vnodes, &mut ids);
            rest = later;
        }
        self.row_count += taken.len();
        ids
    }

    fn append_batch(&mut self, batch: RecordBatch, vnodes: &[u8], ids: &mut Vec<RowId>) {
        let rows = batch.num_rows();
        let tail = self.tail.and_then(|tail| Some((tail, self.chunks[tail].as_mut()?)));
        let (number, first) = match tail {
            Some((number, chunk)) if rows < CHUNK_ROWS / 2 && chunk.len() + rows <= CHUNK_ROWS => {
                let first = chunk.len();
                chunk.extend(&batch, &self.columns, vnodes);
                (number, first)
            }
            _ => {
                let number = self.free.pop().unwrap_or_else(|| {
                    self.chunks.push(None);
                    self.chunks.len() - 1
                });
                self.chunks[number] = Some(Chunk::new(batch, &self.columns, vnodes));
                self.tail = Some(number);
                (number, 0)
            }
        };
        ids.extend((first..first + rows).map(|row| RowId::new(number, row)));
    }

    /// The rows at `ids`, in their order.
    fn gather(&self, ids: &[RowId]) -> RecordBatch {
        let mut batches = Vec::new();
        let mut ordinals = vec![usize::MAX; self.chunks.len()];
        let places = ids.iter().map(|id| {
            let ordinal = &mut ordinals[id.chunk()];
            if *ordinal == usize::MAX {
                *ordinal = batches.len();
                let chunk = self.chunks[id.chunk()]
                    .as_ref()
                    .expect("only rows of live chunks are asked for");
                batches.push(&chunk.data.batch);
            }
            (*ordinal, id.row())
        });
        let places = places.collect::<Vec<_>>();
        if places.is_empty() {
            return RecordBatch::new_empty(Arc::clone(&self.schema));
        }
        interleave_record_batch(&batches, &places)
            .expect("all chunks of a relation have one schema")
    }

    /// Copies the living rows out of chunks that are mostly dead, and drops those.
    fn compact(&mut self, killed: &[RowId]) {
        let mut touched = killed.iter().map(|id| id.chunk()).collect::<Vec<_>>();
        touched.sort_unstable();
        touched.dedup();
        for number in touched {
            let chunk = self.chunks[number].as_ref().expect("it just lost a row");
            if Some(number) != self.tail && chunk.alive_count * 2 < chunk.len() {
                self.move_rows(number);
            }
        }
    }

    fn move_rows(&mut self, number: usize) {
        let chunk = self.chunks[number].take().expect("it just lost a row");
        let rows = chunk.alive.ones().map(|row| row as u32).collect::<Vec<_>>();
        let hashes = hash_columns(&chunk.data.identity, chunk.len());
        self.row_count -= rows.len();
        let ids = self.append(&chunk.data.batch, &rows, &hashes);
        let index = Arc::clone(&self.index);
        let mut index = index.write();
        for (id, row) in ids.iter().zip(rows) {
            let (row, hash) = (row as usize, hashes[row as usize]);
            let old = RowId::new(number, row);
            index
                .current
                .replace(hash, id.0, |slot| slot == old.0)
                .expect("a living row is indexed");
            if row < chunk.published {
                index.bury(hash, old.0, self.versions.next_number());
            }
            let moved = self.chunks[id.chunk()].as_mut().expect("just made");
            moved.unsealed.set(id.row(), chunk.unsealed.get(row));
            if chunk.copies_of(row) > 1 {
                moved.set_copies(id.row(), chunk.copies_of(row));
            }
        }
        self.free.push(number);
    }

    /// All rows, in chunks.
    pub(crate) fn contents(&mut self) -> Vec<Delta> {
        self.version().batches().map(Delta::inserts).collect()
    }

    /// For each key the row that is there now.
    pub(crate) fn find(&self, columns: &[Column], hashes: &[u64]) -> FoundRows {
        let index = self.index.read();
        let find = |(row, hash): (usize, &u64)| {
            index.current.find(*hash, |slot| self.is_row(RowId(slot), columns, row)).map(RowId)
        };
        FoundRows { ids: hashes.iter().enumerate().map(find).collect() }
    }

    /// The rows found at `places`.
    pub(crate) fn rows_at(&self, found: &FoundRows, places: &[usize]) -> RecordBatch {
        let ids =
            places.iter().map(|place| found.ids[*place].expect("only found rows are asked for"));
        self.gather(&ids.collect::<Vec<_>>())
    }
}

/// The schema without NOT NULL: a constraint is checked where rows come from, and a removal by key has NULLs.
pub(crate) fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Where the rows of a batch of keys are, until the next change.
#[derive(Debug)]
pub(crate) struct FoundRows {
    ids: Vec<Option<RowId>>,
}

impl FoundRows {
    pub(crate) fn is_found(&self, place: usize) -> bool {
        self.ids[place].is_some()
    }
}

#[derive(Debug, Default)]
struct Removals {
    killed: Vec<RowId>,
    /// Those that are stored, with their vnodes.
    sealed: Vec<(RowId, u8)>,
}
