//! Arrangement: a multiset of rows that are found by their key, the state of joins and recomputed partitions.
//!
//! Words: a *slot* is the number of one distinct row, which it keeps until the row goes; its *weight* is how many
//! copies there are. The slots of one key form a *chain*. Rows lie in chunks and may move between them; slots do not.
//! Invariant: a slot is in its key's chain and in both indexes exactly while its weight is not 0. The data of a row
//! that went can be read until [`Arrangement::settle`], so that a step can still say what it took back.

mod chunks;
mod stored;

use arrow::array::{AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{filter, take_record_batch};
use arrow::datatypes::{Int64Type, SchemaRef};

use crate::blob::StoredSizes;
use crate::delta::Delta;
use crate::error::StepError;
use crate::key::{BLOCK, Column, Index, NO_SLOT, hash_columns, rows_equal, vnode_of};
use crate::mark::{Times, micros};
use crate::rows::nullable;
use chunks::Chunks;

/// No slot: the end of a chain.
const NONE: u32 = NO_SLOT;
/// The row is stored as it is now, or as it was.
const STORED: u8 = 1;
/// The row is not stored as it is now.
const DIRTY: u8 = 2;

/// Rows by key.
#[derive(Debug)]
pub(crate) struct Arrangement {
    schema: SchemaRef,
    key: Vec<usize>,
    chunks: Chunks,
    /// By slot.
    next: Vec<u32>,
    previous: Vec<u32>,
    weights: Vec<u32>,
    vnodes: Vec<u8>,
    marks: Vec<u8>,
    free: Vec<u32>,
    /// The first slot of each key's chain.
    by_key: Index,
    /// `None` where rows never go: then equal rows may have slots of their own.
    by_row: Option<Index>,
    row_count: usize,
    /// Slots whose rows went in this step.
    dying: Vec<u32>,
    /// Slots marked dirty since the last seal; one may be here twice, or no longer dirty.
    dirty: Vec<u32>,
    /// Stored rows that must go, with their vnodes.
    removed: Vec<(RecordBatch, Vec<u8>)>,
    sizes: StoredSizes,
}

/// What may happen to the rows of an arrangement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// They come and stay.
    Come,
    ComeAndGo,
}

/// The keys of a batch, ready to be looked for.
#[derive(Debug)]
pub(crate) struct Keys {
    columns: Vec<Column>,
    hashes: Vec<u64>,
}

impl Keys {
    pub(crate) fn of(rows: &RecordBatch, key: &[usize]) -> Keys {
        let columns = Column::of(rows, key);
        let hashes = hash_columns(&columns, rows.num_rows());
        Keys { columns, hashes }
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    pub(crate) fn hash(&self, row: usize) -> u64 {
        self.hashes[row]
    }

    /// Whether some column of a row's key is NULL.
    pub(crate) fn has_null(&self, row: usize) -> bool {
        self.columns.iter().any(|column| column.is_null(row))
    }
}

/// The rows of a delta as an arrangement sees them.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) keys: Keys,
    row_hashes: Vec<u64>,
    /// Where each row is, if it is there.
    pub(crate) slots: Vec<Option<u32>>,
}

impl Arrangement {
    pub(crate) fn new(schema: &SchemaRef, key: Vec<usize>, changes: Changes) -> Arrangement {
        let schema = nullable(schema);
        Arrangement {
            chunks: Chunks::new(&schema, &key),
            schema,
            key,
            next: Vec::new(),
            previous: Vec::new(),
            weights: Vec::new(),
            vnodes: Vec::new(),
            marks: Vec::new(),
            free: Vec::new(),
            by_key: Index::default(),
            by_row: (changes == Changes::ComeAndGo).then(Index::default),
            row_count: 0,
            dying: Vec::new(),
            dirty: Vec::new(),
            removed: Vec::new(),
            sizes: StoredSizes::default(),
        }
    }

    pub(crate) fn key(&self) -> &[usize] {
        &self.key
    }

    /// How many slots there are, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.weights.len()
    }

    /// How many rows, copies counted.
    pub(crate) fn row_count(&self) -> usize {
        self.row_count
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let per_slot = 4 + 4 + 4 + 1 + 1;
        self.chunks.bytes()
            + self.weights.capacity() * per_slot
            + self.by_key.bytes()
            + self.by_row.as_ref().map_or(0, Index::bytes)
    }

    /// Copies of the row at `slot`.
    pub(crate) fn weight(&self, slot: u32) -> i64 {
        i64::from(self.weights[slot as usize])
    }

    /// The slots in use.
    pub(crate) fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.weights.len() as u32).filter(|slot| self.weights[*slot as usize] > 0)
    }

    /// The first slot of the chain of each key, or [`NO_SLOT`].
    pub(crate) fn heads(&self, keys: &Keys) -> Vec<u32> {
        let touch = |slot: u32| self.chunks.touch_key(slot) ^ u64::from(self.next[slot as usize]);
        let same = |slot: u32, row: usize| self.chunks.key_is(slot, &keys.columns, row);
        self.by_key.find_touching(&keys.hashes, touch, same)
    }

    /// Looks at the key of the row at `slot`, so that it is in the cache when it is compared.
    pub(crate) fn touch_key(&self, slot: u32) -> u64 {
        self.chunks.touch_key(slot)
    }

    /// Whether the row at `slot` has the key of `row`.
    pub(crate) fn has_key(&self, slot: u32, keys: &Keys, row: usize) -> bool {
        self.chunks.key_is(slot, &keys.columns, row)
    }

    /// The slots of a chain, from its first one on.
    pub(crate) fn chain(&self, mut slot: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::from_fn(move || {
            let found = slot;
            (found != NONE).then(|| {
                slot = self.next[found as usize];
                found
            })
        })
    }

    /// Where the rows of a delta are now.
    pub(crate) fn locate(&self, rows: &RecordBatch) -> Located {
        let keys = Keys::of(rows, &self.key);
        let Some(by_row) = &self.by_row else {
            return Located { keys, row_hashes: Vec::new(), slots: vec![None; rows.num_rows()] };
        };
        let all = rows.columns().iter().map(Column::new).collect::<Vec<_>>();
        let row_hashes = hash_columns(&all, rows.num_rows());
        let touch = |slot: u32| self.chunks.touch_row(slot);
        let same = |slot: u32, row: usize| self.chunks.row_is(slot, &all, row);
        let slots = by_row.find_touching(&row_hashes, touch, same);
        let slots = slots.into_iter().map(|slot| (slot != NO_SLOT).then_some(slot)).collect();
        Located { keys, row_hashes, slots }
    }

    /// Adds a consolidated delta that was just located; returns the slot of each of its rows.
    pub(crate) fn apply(
        &mut self,
        delta: &Delta,
        located: &Located,
        place: &str,
    ) -> Result<Vec<u32>, StepError> {
        let negative = || StepError::NegativeMultiplicity { place: place.to_owned() };
        let mut slots = Vec::with_capacity(delta.len());
        let mut fresh = Vec::new();
        for row in 0..delta.len() {
            let weight = delta.weight(row);
            let slot = match located.slots[row] {
                Some(slot) => {
                    let before = self.weight(slot);
                    let after = u32::try_from(before + weight).map_err(|_| negative())?;
                    self.set_weight(slot, after);
                    if after == 0 {
                        self.unlink(slot, located.keys.hashes[row], located.row_hashes[row]);
                    }
                    slot
                }
                None => {
                    let weight = u32::try_from(weight).map_err(|_| negative())?;
                    let slot = self.new_slot();
                    self.vnodes[slot as usize] = vnode_of(located.keys.hashes[row]);
                    self.set_weight(slot, weight);
                    fresh.push((row as u32, slot));
                    slot
                }
            };
            slots.push(slot);
        }
        self.add_rows(delta.rows(), &fresh, located);
        Ok(slots)
    }

    /// Stores the rows of new slots and makes them findable.
    fn add_rows(&mut self, rows: &RecordBatch, fresh: &[(u32, u32)], located: &Located) {
        if fresh.is_empty() {
            return;
        }
        let taken = fresh.iter().map(|(row, _)| *row).collect::<UInt32Array>();
        let batch = take_record_batch(rows, &taken).expect("rows are within the delta");
        self.chunks.add(&batch, fresh.iter().map(|(_, slot)| *slot).collect());
        for block in fresh.chunks(BLOCK) {
            self.warm(block, located);
            block.iter().for_each(|(row, slot)| self.link(*row as usize, *slot, located));
        }
    }

    /// Brings into the cache what linking these rows will need.
    fn warm(&self, fresh: &[(u32, u32)], located: &Located) {
        let hashes =
            |of: &[u64]| fresh.iter().map(|(row, _)| of[*row as usize]).collect::<Vec<_>>();
        let touch =
            |slot: u32| self.chunks.touch_key(slot) ^ u64::from(self.previous[slot as usize]);
        self.by_key.warm(&hashes(&located.keys.hashes), touch);
        if let Some(by_row) = &self.by_row {
            by_row.warm(&hashes(&located.row_hashes), |_| 0);
        }
    }

    /// Makes the row of a new slot findable.
    fn link(&mut self, row: usize, slot: u32, located: &Located) {
        let same = |other: u32| self.chunks.key_is(other, &located.keys.columns, row);
        let head = self.by_key.replace(located.keys.hashes[row], slot, same).unwrap_or(NONE);
        self.next[slot as usize] = head;
        self.previous[slot as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = slot;
        }
        if let Some(by_row) = &mut self.by_row {
            by_row.insert(located.row_hashes[row], slot);
        }
    }

    fn set_weight(&mut self, slot: u32, weight: u32) {
        let at = slot as usize;
        self.row_count = self.row_count - self.weights[at] as usize + weight as usize;
        self.weights[at] = weight;
        if self.marks[at] & DIRTY == 0 {
            self.marks[at] |= DIRTY;
            self.dirty.push(slot);
        }
    }

    fn new_slot(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        let slot = self.weights.len() as u32;
        assert!(slot != NONE, "an arrangement holds less than 2^32 rows");
        self.next.push(NONE);
        self.previous.push(NONE);
        self.weights.push(0);
        self.vnodes.push(0);
        self.marks.push(0);
        self.chunks.reserve_slot();
        slot
    }

    /// Takes the slot out of its chain and the indexes.
    fn unlink(&mut self, slot: u32, key_hash: u64, row_hash: u64) {
        let (next, previous) = (self.next[slot as usize], self.previous[slot as usize]);
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        match (previous, next) {
            (NONE, NONE) => {
                self.by_key.remove(key_hash, |other| other == slot).expect("a chain is indexed");
            }
            (NONE, next) => {
                let replaced = self.by_key.replace(key_hash, next, |other| other == slot);
                assert_eq!(replaced, Some(slot), "a chain is indexed by its first slot");
            }
            (previous, next) => self.next[previous as usize] = next,
        }
        let by_row = self.by_row.as_mut().expect("only rows that may go do");
        by_row.remove(row_hash, |other| other == slot).expect("a row is indexed");
        self.dying.push(slot);
    }

    /// The rows at `slots`, in their order.
    pub(crate) fn gather(&self, slots: &[u32]) -> RecordBatch {
        self.chunks.gather(slots)
    }

    /// Ends a step: the rows that went in it are forgotten.
    pub(crate) fn settle(&mut self) {
        let dying = std::mem::take(&mut self.dying);
        if dying.is_empty() {
            return;
        }
        let stored = dying.iter().filter(|slot| self.marks[**slot as usize] & STORED != 0);
        let stored = stored.copied().collect::<Vec<_>>();
        if !stored.is_empty() {
            let vnodes = stored.iter().map(|slot| self.vnodes[*slot as usize]).collect();
            self.removed.push((self.gather(&stored), vnodes));
        }
        for slot in &dying {
            self.marks[*slot as usize] = 0;
        }
        self.chunks.forget(&dying);
        self.free.extend(dying);
    }

    /// The same with nothing in it, rows of which may go.
    pub(crate) fn forgetful(self) -> Arrangement {
        assert!(self.weights.is_empty(), "nothing has come yet");
        Arrangement { by_row: Some(Index::default()), ..self }
    }

    /// Takes the rows out of which the time in `column` `is_over`; returns their slots, whose data can be read until
    /// [`Arrangement::settle`], and what is left.
    pub(crate) fn forget(
        &mut self,
        column: usize,
        is_over: &dyn Fn(i64) -> bool,
    ) -> (Vec<u32>, Times) {
        let mut gone = Vec::new();
        let mut left = Times::default();
        let live = self.live().collect::<Vec<_>>();
        for slots in live.chunks(crate::rows::CHUNK_ROWS) {
            let times = micros(self.gather(slots).column(column));
            let over = times.iter().map(|time| time.is_some_and(is_over)).collect::<Vec<_>>();
            let stays = over.iter().map(|over| Some(!over)).collect::<BooleanArray>();
            let stay = filter(&times, &stays).expect("a mask as long as the column");
            left.add(stay.as_primitive::<Int64Type>());
            gone.extend(slots.iter().zip(over).filter(|(_, over)| *over).map(|(slot, _)| *slot));
        }
        for slots in gone.chunks(crate::rows::CHUNK_ROWS) {
            let located = self.locate(&self.gather(slots));
            for (row, slot) in slots.iter().enumerate() {
                self.set_weight(*slot, 0);
                self.unlink(*slot, located.keys.hashes[row], located.row_hashes[row]);
            }
        }
        (gone, left)
    }

    /// All rows, in pieces.
    pub(crate) fn contents(&self) -> Vec<Delta> {
        let slots = self.live().collect::<Vec<_>>();
        let pieces = slots.chunks(crate::rows::CHUNK_ROWS);
        pieces.map(|slots| self.delta_of(slots)).collect()
    }

    /// The rows at `slots` with their weights.
    pub(crate) fn delta_of(&self, slots: &[u32]) -> Delta {
        let weights = slots.iter().map(|slot| self.weight(*slot)).collect();
        Delta::weighted(self.gather(slots), weights)
    }
}

/// Whether a row of one batch is a row of another, column by column.
fn same_row(a: &[Column], row: usize, b: &[Column], other: usize) -> bool {
    rows_equal(a, row, b, other)
}

#[cfg(test)]
mod tests;
