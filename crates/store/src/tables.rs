//! The tables of the redb file and their keys: big-endian and of fixed width, so that byte order is key
//! order.
//!
//! docs/format.md shows the same list; a test compares them.

use std::fmt::Write;

use redb::TableDefinition;
use segue_types::{ConsumerId, Epoch, ObjectId, OperatorId, StageIndex};

/// One table. All hold byte keys and records.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The widths in bytes of the integers that make up a key; empty for a key that is text.
    pub(crate) key: &'static [usize],
}

pub(crate) const META: Table = Table { name: "meta", key: &[] };
pub(crate) const OBJECTS: Table = Table { name: "objects", key: &[4] };
pub(crate) const CONSUMERS: Table = Table { name: "consumers", key: &[8] };
pub(crate) const CAPTURES: Table = Table { name: "captures", key: &[4, 2] };
pub(crate) const STATE_BASE: Table = Table { name: "state_base", key: &[8, 1, 4] };
pub(crate) const STATE_DELTA: Table = Table { name: "state_delta", key: &[8, 1, 8, 4, 4] };
pub(crate) const DEAD_LETTERS: Table = Table { name: "dead_letters", key: &[8] };
pub(crate) const CHECKPOINTS: Table = Table { name: "checkpoints", key: &[8] };

/// Objects that are gone, and whose readings have left something in an external system.
pub(crate) const RELEASES: Table = Table { name: "releases", key: &[4] };

pub(crate) const META_FORMAT: &[u8] = b"format";
pub(crate) const META_CURRENT: &[u8] = b"current";

/// An operator's id is the id of its object, then its place in the object's dataflow.
const OPERATOR_INDEX_BITS: u32 = 16;

impl Table {
    pub(crate) fn definition(&self) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
        TableDefinition::new(self.name)
    }

    /// A key as messages show it: `5`, `(327680, 3, 0)`, `"format"`.
    pub(crate) fn show_key(&self, key: &[u8]) -> String {
        if self.key.is_empty() {
            return format!("\"{}\"", key.escape_ascii());
        }
        let Some(parts) = self.split_key(key) else {
            return format!("0x{}", hex(key));
        };
        match &parts[..] {
            [one] => one.to_string(),
            parts => {
                let parts: Vec<String> = parts.iter().map(u64::to_string).collect();
                format!("({})", parts.join(", "))
            }
        }
    }

    /// The integers of a key. `None` when its length is wrong.
    pub(crate) fn split_key(&self, key: &[u8]) -> Option<Vec<u64>> {
        if key.len() != self.key.iter().sum::<usize>() {
            return None;
        }
        let mut rest = key;
        let parts = self.key.iter().map(|width| {
            let (part, tail) = rest.split_at(*width);
            rest = tail;
            part.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
        });
        Some(parts.collect())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes every write");
        text
    })
}

pub(crate) fn object_key(id: ObjectId) -> [u8; 4] {
    id.0.to_be_bytes()
}

pub(crate) fn consumer_key(id: ConsumerId) -> [u8; 8] {
    id.0.to_be_bytes()
}

pub(crate) fn epoch_key(epoch: Epoch) -> [u8; 8] {
    epoch.0.to_be_bytes()
}

pub(crate) fn capture_key(object: ObjectId, stage: StageIndex) -> [u8; 6] {
    let mut key = [0; 6];
    key[..4].copy_from_slice(&object.0.to_be_bytes());
    key[4..].copy_from_slice(&stage.0.to_be_bytes());
    key
}

/// What a state blob belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) operator: OperatorId,
    pub(crate) group: u8,
}

pub(crate) fn base_key(owner: Owner, part: u32) -> [u8; 13] {
    let mut key = [0; 13];
    key[..8].copy_from_slice(&owner.operator.0.to_be_bytes());
    key[8] = owner.group;
    key[9..].copy_from_slice(&part.to_be_bytes());
    key
}

/// `sequence` tells the blobs of one epoch apart, in the order in which they were given.
pub(crate) fn delta_key(owner: Owner, epoch: Epoch, sequence: u32, part: u32) -> [u8; 25] {
    let mut key = [0; 25];
    key[..8].copy_from_slice(&owner.operator.0.to_be_bytes());
    key[8] = owner.group;
    key[9..17].copy_from_slice(&epoch.0.to_be_bytes());
    key[17..21].copy_from_slice(&sequence.to_be_bytes());
    key[21..].copy_from_slice(&part.to_be_bytes());
    key
}

/// The object that an operator belongs to.
pub(crate) fn object_of(operator: OperatorId) -> ObjectId {
    let object = operator.0 >> OPERATOR_INDEX_BITS;
    ObjectId(u32::try_from(object).expect("an operator id is made from a 32-bit object id"))
}

/// The first and the last operator that an object can have.
pub(crate) fn operators_of(object: ObjectId) -> (OperatorId, OperatorId) {
    let first = u64::from(object.0) << OPERATOR_INDEX_BITS;
    (OperatorId(first), OperatorId(first | ((1 << OPERATOR_INDEX_BITS) - 1)))
}

#[cfg(test)]
mod tests {
    use segue_types::{Epoch, ObjectId, OperatorId, StageIndex};

    use super::*;

    #[test]
    fn keys_sort_as_their_parts_do_and_are_shown_as_numbers() {
        let owner = |operator, group| Owner { operator: OperatorId(operator), group };
        let keys = [
            delta_key(owner(1, 0), Epoch(2), 0, 0),
            delta_key(owner(1, 0), Epoch(2), 0, 1),
            delta_key(owner(1, 0), Epoch(2), 1, 0),
            delta_key(owner(1, 0), Epoch(256), 0, 0),
            delta_key(owner(1, 1), Epoch(1), 0, 0),
            delta_key(owner(256, 0), Epoch(1), 0, 0),
        ];
        assert!(keys.is_sorted());
        assert_eq!(STATE_DELTA.show_key(&keys[3]), "(1, 0, 256, 0, 0)");
        assert_eq!(STATE_BASE.show_key(&base_key(owner(7, 3), 9)), "(7, 3, 9)");
        assert_eq!(CAPTURES.show_key(&capture_key(ObjectId(5), StageIndex(1))), "(5, 1)");
        assert_eq!(OBJECTS.show_key(&object_key(ObjectId(5))), "5");
        assert_eq!(OBJECTS.show_key(&[1, 2]), "0x0102");
        assert_eq!(META.show_key(META_FORMAT), "\"format\"");
    }

    #[test]
    fn the_operators_of_neighbouring_objects_do_not_overlap() {
        let (_, last) = operators_of(ObjectId(4));
        let (first, _) = operators_of(ObjectId(5));
        assert_eq!(last.0 + 1, first.0);
        assert_eq!((object_of(last), object_of(first)), (ObjectId(4), ObjectId(5)));
    }

    #[test]
    fn the_documented_tables_are_the_tables() {
        let page = include_str!("../../../docs/format.md");
        let all = [
            META,
            OBJECTS,
            CONSUMERS,
            CAPTURES,
            STATE_BASE,
            STATE_DELTA,
            DEAD_LETTERS,
            CHECKPOINTS,
            RELEASES,
        ];
        for table in &all {
            assert!(page.contains(&format!("| `{}` |", table.name)), "{} is missing", table.name);
        }
        assert_eq!(page.lines().filter(|line| line.starts_with("| `")).count(), all.len());
    }
}
