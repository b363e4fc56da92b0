//! The groups of an aggregate: key → slot, typed where one integer is the key, canonical bytes elsewhere.
//!
//! Slots are dense and reused; each holds its weight (the rows in the group), its vnode and its marks.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use xxhash_rust::xxh3::xxh3_64;

use crate::key::{
    Column, GROUPS, Index, NO_SLOT, decode_column, encode_row, group_of, hash_i64, vnode_of,
};
use crate::rows::{IndexState, SharedIndex};

/// The slot was touched in this step.
pub(super) const TOUCHED: u8 = 1;
/// The group is stored.
pub(super) const STORED: u8 = 2;

/// Keys and weights of all groups.
#[derive(Debug)]
pub(super) struct Groups {
    types: Vec<DataType>,
    keys: Keys,
    /// Shared with those who look up rows of the relation.
    index: Arc<SharedIndex>,
    /// Rows in the group; 0 for a slot without one.
    pub(super) weights: Vec<i64>,
    pub(super) vnodes: Vec<u8>,
    pub(super) marks: Vec<u8>,
    free: Vec<u32>,
    live: usize,
}

#[derive(Debug)]
enum Keys {
    /// No key columns: the one group.
    Single,
    Integers {
        values: Vec<i64>,
        null: Option<u32>,
    },
    /// Encodings in one arena: where a slot's begins, and its length. A slot without a group has the first one there,
    /// which is that of NULLs.
    Bytes {
        arena: Vec<u8>,
        spans: Vec<(u64, u32)>,
        dead_bytes: usize,
    },
}

fn is_integer(data_type: &DataType) -> bool {
    use DataType::{Date32, Int16, Int32, Int64, Time64, Timestamp};
    matches!(
        data_type,
        Int16
            | Int32
            | Int64
            | Date32
            | Time64(TimeUnit::Microsecond)
            | Timestamp(TimeUnit::Microsecond, _)
    )
}

impl Groups {
    pub(super) fn new(types: Vec<DataType>) -> Groups {
        let keys = match types.as_slice() {
            [] => Keys::Single,
            [one] if is_integer(one) => Keys::Integers { values: Vec::new(), null: None },
            _ => Keys::Bytes { arena: vec![0; types.len()], spans: Vec::new(), dead_bytes: 0 },
        };
        Groups {
            types,
            keys,
            index: Arc::default(),
            weights: Vec::new(),
            vnodes: Vec::new(),
            marks: Vec::new(),
            free: Vec::new(),
            live: 0,
        }
    }

    /// How many slots there are, in use or not.
    pub(super) fn slots(&self) -> usize {
        self.weights.len()
    }

    /// How many groups there are.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn is_single(&self) -> bool {
        matches!(self.keys, Keys::Single)
    }

    pub(super) fn index(&self) -> &Arc<SharedIndex> {
        &self.index
    }

    /// Whether the slot has a group.
    pub(super) fn is_live(&self, slot: u32) -> bool {
        self.weights[slot as usize] > 0 || self.is_single()
    }

    /// The slot of each row's key; new keys get one.
    pub(super) fn probe(&mut self, columns: &[Column], rows: usize) -> Vec<u32> {
        match self.keys {
            Keys::Single => {
                if self.weights.is_empty() {
                    self.push_slot(vnode_of(xxh3_64(&[])));
                }
                vec![0; rows]
            }
            Keys::Integers { .. } => self.probe_integers(&columns[0]),
            Keys::Bytes { .. } => self.probe_bytes(columns, rows),
        }
    }

    fn probe_integers(&mut self, column: &Column) -> Vec<u32> {
        let wanted = column.integers().expect("an integer key");
        let hashes = wanted.iter().map(|value| hash_i64(*value)).collect::<Vec<_>>();
        let Keys::Integers { values, .. } = &self.keys else { unreachable!("an integer key") };
        let same = |slot: u32, row: usize| values[slot as usize] == wanted[row];
        let mut slots = self.index.read().current.find_all(&hashes, same);
        if column.nulls().is_none() && !slots.contains(&NO_SLOT) {
            return slots;
        }
        let index = Arc::clone(&self.index);
        let mut index = index.write();
        index.current.reserve(slots.iter().filter(|slot| **slot == NO_SLOT).count());
        for (row, slot) in slots.iter_mut().enumerate() {
            if column.is_null(row) {
                *slot = self.null_slot();
            } else if *slot == NO_SLOT {
                *slot = self.integer_slot(&mut index.current, hashes[row], wanted[row]);
            }
        }
        slots
    }

    /// The slot of a key that was not there when the rows were looked up.
    fn integer_slot(&mut self, index: &mut Index, hash: u64, value: i64) -> u32 {
        let Keys::Integers { values, .. } = &self.keys else { unreachable!("an integer key") };
        // The NULL group's slot is not in the index, so its placeholder is never compared.
        if let Some(slot) = index.find(hash, |slot| values[slot as usize] == value) {
            return slot;
        }
        let slot = self.new_slot(vnode_of(hash));
        let Keys::Integers { values, .. } = &mut self.keys else { unreachable!("an integer key") };
        grow_to(values, slot as usize + 1, 0);
        values[slot as usize] = value;
        index.insert(hash, slot);
        slot
    }

    fn null_slot(&mut self) -> u32 {
        if let Keys::Integers { null: Some(slot), .. } = &self.keys {
            return *slot;
        }
        let slot = self.new_slot(vnode_of(xxh3_64(&[0])));
        let Keys::Integers { values, null } = &mut self.keys else {
            unreachable!("an integer key")
        };
        grow_to(values, slot as usize + 1, 0);
        *null = Some(slot);
        slot
    }

    fn probe_bytes(&mut self, columns: &[Column], rows: usize) -> Vec<u32> {
        let mut wanted = Vec::with_capacity(rows * 16);
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        for row in 0..rows {
            encode_row(columns, row, &mut wanted);
            ends.push(wanted.len());
        }
        let key_of = |row: usize| &wanted[ends[row]..ends[row + 1]];
        let hashes = (0..rows).map(|row| xxh3_64(key_of(row))).collect::<Vec<_>>();
        let Keys::Bytes { arena, spans, .. } = &self.keys else { unreachable!("a byte key") };
        let same = |slot: u32, row: usize| span(arena, spans[slot as usize]) == key_of(row);
        let mut slots = self.index.read().current.find_all(&hashes, same);
        let missing = slots.iter().filter(|slot| **slot == NO_SLOT).count();
        if missing == 0 {
            return slots;
        }
        let index = Arc::clone(&self.index);
        let mut index = index.write();
        index.current.reserve(missing);
        for (row, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| **slot == NO_SLOT) {
            *slot = self.bytes_slot(&mut index.current, hashes[row], key_of(row));
        }
        slots
    }

    /// The slot of a key that was not there when the rows were looked up.
    fn bytes_slot(&mut self, index: &mut Index, hash: u64, key: &[u8]) -> u32 {
        let Keys::Bytes { arena, spans, .. } = &self.keys else { unreachable!("a byte key") };
        if let Some(slot) = index.find(hash, |slot| span(arena, spans[slot as usize]) == key) {
            return slot;
        }
        let slot = self.new_slot(vnode_of(hash));
        let Keys::Bytes { arena, spans, .. } = &mut self.keys else { unreachable!("a byte key") };
        grow_to(spans, slot as usize + 1, (0, 0));
        spans[slot as usize] = (arena.len() as u64, key.len() as u32);
        arena.extend_from_slice(key);
        index.insert(hash, slot);
        slot
    }

    fn new_slot(&mut self, vnode: u8) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.live += 1;
                self.vnodes[slot as usize] = vnode;
                slot
            }
            None => self.push_slot(vnode),
        }
    }

    fn push_slot(&mut self, vnode: u8) -> u32 {
        let slot =
            u32::try_from(self.weights.len()).expect("an aggregate has less than 2^32 groups");
        self.live += 1;
        let slots = self.weights.len() + 1;
        grow_to(&mut self.weights, slots, 0);
        grow_to(&mut self.vnodes, slots, vnode);
        grow_to(&mut self.marks, slots, 0);
        slot
    }

    /// Forgets the groups; their slots may be given to others. `buried` is told of each with its hash.
    pub(super) fn release(
        &mut self,
        slots: &[u32],
        mut buried: impl FnMut(&mut IndexState, u64, u32),
    ) {
        if slots.is_empty() {
            return;
        }
        let index = Arc::clone(&self.index);
        let mut index = index.write();
        for slot in slots {
            if let Some(hash) = self.release_key(*slot) {
                let found = index.current.remove(hash, |other| other == *slot);
                found.expect("a group is indexed");
                buried(&mut index, hash, *slot);
            }
            self.marks[*slot as usize] = 0;
            self.free.push(*slot);
            self.live -= 1;
        }
        drop(index);
        self.compact();
    }

    /// Forgets the key of a slot; returns the hash that it is indexed under.
    fn release_key(&mut self, slot: u32) -> Option<u64> {
        assert_eq!(self.weights[slot as usize], 0, "a group dies when its last row goes");
        match &mut self.keys {
            Keys::Single => unreachable!("the group of an aggregate without keys never dies"),
            Keys::Integers { null, .. } if *null == Some(slot) => {
                *null = None;
                None
            }
            Keys::Integers { values, .. } => Some(hash_i64(values[slot as usize])),
            Keys::Bytes { arena, spans, dead_bytes } => {
                let at = &mut spans[slot as usize];
                let hash = xxh3_64(span(arena, *at));
                *dead_bytes += at.1 as usize;
                *at = (0, self.types.len() as u32);
                Some(hash)
            }
        }
    }

    /// Rewrites the arena once most of it belongs to nobody.
    fn compact(&mut self) {
        let Keys::Bytes { arena, spans, dead_bytes } = &mut self.keys else { return };
        if *dead_bytes * 2 <= arena.len() || arena.len() < 1 << 16 {
            return;
        }
        let mut compacted = Vec::with_capacity(arena.len() - *dead_bytes);
        compacted.resize(self.types.len(), 0);
        for at in spans.iter_mut().filter(|(start, _)| *start > 0) {
            let start = compacted.len() as u64;
            compacted.extend_from_slice(span(arena, *at));
            at.0 = start;
        }
        (*arena, *dead_bytes) = (compacted, 0);
    }

    /// The key columns of the groups at `slots`.
    pub(super) fn key_columns(&self, slots: &[u32]) -> Vec<ArrayRef> {
        match &self.keys {
            Keys::Single => Vec::new(),
            Keys::Integers { values, null } => {
                let values: Int64Array = match null {
                    None => {
                        slots.iter().map(|slot| values[*slot as usize]).collect::<Vec<_>>().into()
                    }
                    Some(null) => slots
                        .iter()
                        .map(|slot| (slot != null).then(|| values[*slot as usize]))
                        .collect(),
                };
                vec![integers(values, &self.types[0])]
            }
            Keys::Bytes { arena, spans, .. } => {
                let mut keys =
                    slots.iter().map(|slot| span(arena, spans[*slot as usize])).collect::<Vec<_>>();
                self.types.iter().map(|data_type| decode_column(data_type, &mut keys)).collect()
            }
        }
    }

    /// The slots in use.
    pub(super) fn live_slots(&self) -> Vec<u32> {
        (0..self.slots() as u32).filter(|slot| self.is_live(*slot)).collect()
    }

    /// The slots in use of the vnode groups that are wanted, in order.
    pub(super) fn live_of(&self, wanted: &[bool; GROUPS]) -> Vec<u32> {
        let is_wanted = |slot: &u32| {
            wanted[usize::from(group_of(self.vnodes[*slot as usize]))] && self.is_live(*slot)
        };
        (0..self.slots() as u32).filter(is_wanted).collect()
    }

    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let keys = match &self.keys {
            Keys::Single => 0,
            Keys::Integers { values, .. } => values.capacity() * 8,
            Keys::Bytes { arena, spans, .. } => arena.capacity() + spans.capacity() * 16,
        };
        let slots = self.weights.capacity() * 8 + self.vnodes.capacity() + self.marks.capacity();
        keys + slots + self.index.bytes() + self.free.capacity() * 4
    }
}

/// Makes `values` as long as that; grows by an eighth, since doubling would leave half of the memory unused.
pub(super) fn grow_to<T: Clone>(values: &mut Vec<T>, len: usize, value: T) {
    if len > values.capacity() {
        values.reserve_exact((len - values.len()).max(values.len() / 8).max(64));
    }
    if len > values.len() {
        values.resize(len, value);
    }
}

fn span(arena: &[u8], (start, length): (u64, u32)) -> &[u8] {
    let start = start as usize;
    &arena[start..start + length as usize]
}

/// 64-bit values back in the type of their column.
fn integers(values: Int64Array, data_type: &DataType) -> ArrayRef {
    let narrowed = match data_type {
        DataType::Int16 => cast(&values, &DataType::Int16),
        DataType::Int32 => cast(&values, &DataType::Int32),
        DataType::Date32 => cast(&values, &DataType::Int32).and_then(|days| cast(&days, data_type)),
        _ => return Arc::new(values).reinterpreted(data_type),
    };
    narrowed.expect("it was widened from this type")
}

/// Same bits, another 64-bit type.
trait Reinterpret {
    fn reinterpreted(self, data_type: &DataType) -> ArrayRef;
}

impl Reinterpret for Arc<Int64Array> {
    fn reinterpreted(self, data_type: &DataType) -> ArrayRef {
        if *data_type == DataType::Int64 {
            return self;
        }
        let data = arrow::array::Array::to_data(&*self).into_builder().data_type(data_type.clone());
        arrow::array::make_array(data.build().expect("both types are 64 bits wide"))
    }
}
