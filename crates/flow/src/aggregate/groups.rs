//! The groups of an aggregate: key → slot, typed where one integer is the key, canonical bytes elsewhere.
//!
//! Slots are dense and reused; each holds its weight (the rows in the group), its vnode and its marks.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use xxhash_rust::xxh3::xxh3_64;

use crate::key::{Column, GROUPS, Index, decode_column, encode_row, group_of, hash_i64, vnode_of};

/// The slot was touched in this step.
pub(super) const TOUCHED: u8 = 1;
/// The group is not stored as it is now.
pub(super) const DIRTY: u8 = 2;
/// The group is stored.
pub(super) const STORED: u8 = 4;

/// Keys and weights of all groups.
#[derive(Debug)]
pub(super) struct Groups {
    types: Vec<DataType>,
    keys: Keys,
    index: Index,
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
    /// Encodings in one arena; `starts[slot]` is where a slot's begins, its length with it.
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
            _ => Keys::Bytes { arena: Vec::new(), spans: Vec::new(), dead_bytes: 0 },
        };
        Groups {
            types,
            keys,
            index: Index::default(),
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

    /// The slot of each row's key; new keys get one.
    pub(super) fn probe(&mut self, columns: &[Column], rows: usize, slots: &mut Vec<u32>) {
        slots.clear();
        slots.reserve(rows);
        match self.keys {
            Keys::Single => {
                if self.weights.is_empty() {
                    self.push_slot(vnode_of(xxh3_64(&[])));
                }
                slots.resize(rows, 0);
            }
            Keys::Integers { .. } => {
                let column = &columns[0];
                for row in 0..rows {
                    let value = (!column.is_null(row))
                        .then(|| column.integer(row).expect("an integer key"));
                    slots.push(self.probe_integer(value));
                }
            }
            Keys::Bytes { .. } => {
                let mut scratch = Vec::with_capacity(64);
                for row in 0..rows {
                    scratch.clear();
                    encode_row(columns, row, &mut scratch);
                    slots.push(self.probe_bytes(&scratch));
                }
            }
        }
    }

    fn probe_integer(&mut self, value: Option<i64>) -> u32 {
        let Keys::Integers { values, null } = &mut self.keys else {
            unreachable!("an integer key")
        };
        let Some(value) = value else {
            return null.unwrap_or_else(|| {
                let slot = self.new_slot(vnode_of(xxh3_64(&[0])));
                let Keys::Integers { values, null } = &mut self.keys else { unreachable!() };
                values.resize(values.len().max(slot as usize + 1), 0);
                *null = Some(slot);
                slot
            });
        };
        let hash = hash_i64(value);
        // The NULL group's slot is not in the index, so its placeholder is never compared.
        if let Some(slot) = self.index.find(hash, |slot| values[slot as usize] == value) {
            return slot;
        }
        let slot = self.new_slot(vnode_of(hash));
        let Keys::Integers { values, .. } = &mut self.keys else { unreachable!("an integer key") };
        values.resize(values.len().max(slot as usize + 1), 0);
        values[slot as usize] = value;
        self.index.insert(hash, slot);
        slot
    }

    fn probe_bytes(&mut self, key: &[u8]) -> u32 {
        let hash = xxh3_64(key);
        let Keys::Bytes { arena, spans, .. } = &self.keys else { unreachable!("a byte key") };
        if let Some(slot) = self.index.find(hash, |slot| span(arena, spans[slot as usize]) == key) {
            return slot;
        }
        let slot = self.new_slot(vnode_of(hash));
        let Keys::Bytes { arena, spans, .. } = &mut self.keys else { unreachable!("a byte key") };
        spans.resize(spans.len().max(slot as usize + 1), (0, 0));
        spans[slot as usize] = (arena.len() as u64, key.len() as u32);
        arena.extend_from_slice(key);
        self.index.insert(hash, slot);
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
        self.weights.push(0);
        self.vnodes.push(vnode);
        self.marks.push(0);
        slot
    }

    /// Forgets the group; its slot may be given to another.
    pub(super) fn release(&mut self, slot: u32) {
        assert_eq!(self.weights[slot as usize], 0, "a group dies when its last row goes");
        match &mut self.keys {
            Keys::Single => unreachable!("the group of an aggregate without keys never dies"),
            Keys::Integers { null, .. } if *null == Some(slot) => *null = None,
            Keys::Integers { values, .. } => {
                let hash = hash_i64(values[slot as usize]);
                self.index.remove(hash, |other| other == slot).expect("a group is indexed");
            }
            Keys::Bytes { arena, spans, dead_bytes } => {
                let key = span(arena, spans[slot as usize]);
                self.index.remove(xxh3_64(key), |other| other == slot).expect("a group is indexed");
                *dead_bytes += key.len();
                spans[slot as usize] = (0, 0);
            }
        }
        self.marks[slot as usize] = 0;
        self.free.push(slot);
        self.live -= 1;
        self.compact();
    }

    /// Rewrites the arena once most of it belongs to nobody.
    fn compact(&mut self) {
        let Keys::Bytes { arena, spans, dead_bytes } = &mut self.keys else { return };
        if *dead_bytes * 2 <= arena.len() || arena.len() < 1 << 16 {
            return;
        }
        let mut compacted = Vec::with_capacity(arena.len() - *dead_bytes);
        for at in spans.iter_mut() {
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
        let mut free = vec![false; self.slots()];
        self.free.iter().for_each(|slot| free[*slot as usize] = true);
        (0..self.slots() as u32).filter(|slot| !free[*slot as usize]).collect()
    }

    /// `slots`, dealt out to their vnode groups.
    pub(super) fn by_group(&self, slots: &[u32]) -> [Vec<u32>; GROUPS] {
        let mut groups = [const { Vec::new() }; GROUPS];
        for slot in slots {
            groups[usize::from(group_of(self.vnodes[*slot as usize]))].push(*slot);
        }
        groups
    }

    /// The slots in use of the vnode groups that are wanted.
    pub(super) fn live_of(&self, wanted: &[bool; GROUPS]) -> [Vec<u32>; GROUPS] {
        let mut free = vec![false; self.slots()];
        self.free.iter().for_each(|slot| free[*slot as usize] = true);
        let mut groups = [const { Vec::new() }; GROUPS];
        for (slot, vnode) in self.vnodes.iter().enumerate() {
            let group = usize::from(group_of(*vnode));
            if wanted[group] && !free[slot] {
                groups[group].push(slot as u32);
            }
        }
        groups
    }

    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let keys = match &self.keys {
            Keys::Single => 0,
            Keys::Integers { values, .. } => values.capacity() * 8,
            Keys::Bytes { arena, spans, .. } => arena.capacity() + spans.capacity() * 16,
        };
        keys + self.index.bytes() + self.weights.capacity() * 8 + self.vnodes.capacity() * 2
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
