//! Places in a partition: `ledger:entry:batch index` of the next message, in that order.
//!
//! A ledger's id is never given out twice, so a place of a topic that was deleted is found in no other.

use std::fmt;

use segue_connect::ConnectError;
use segue_types::{Position, SplitId, SqlState, UserError};

use crate::wire::MessageId;

/// How the protocol writes -1.
const NONE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) ledger: u64,
    pub(crate) entry: u64,
    pub(crate) index: u32,
}

impl Place {
    pub(crate) const fn of_entry(ledger: u64, entry: u64) -> Place {
        Place { ledger, entry, index: 0 }
    }

    /// The place after the entry `id`, of which the entry may be -1; `None` when there is no such ledger.
    pub(crate) fn after(id: &MessageId) -> Option<Place> {
        (id.ledger != NONE).then(|| Place::of_entry(id.ledger, id.entry.wrapping_add(1)))
    }

    pub(crate) fn parse(text: &str) -> Option<Place> {
        let mut parts = text.split(':');
        let (ledger, entry) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let index = parts.next().map_or(Some(0), |index| index.parse().ok())?;
        let signed = i64::try_from(ledger).is_ok() && i64::try_from(entry).is_ok();
        (signed && parts.next().is_none()).then_some(Place { ledger, entry, index })
    }

    pub(crate) fn position(self) -> Position {
        Position::new(self.to_string())
    }

    /// As the start of a subscription that includes the entry.
    pub(crate) fn start(self) -> MessageId {
        let index = i32::try_from(self.index).unwrap_or(i32::MAX);
        MessageId { ledger: self.ledger, entry: self.entry, batch_index: Some(index) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.ledger, self.entry, self.index)
    }
}

/// The start of a subscription that includes everything that is left.
pub(crate) fn earliest() -> MessageId {
    MessageId { ledger: NONE, entry: NONE, batch_index: None }
}

/// The place of a position.
pub(crate) fn place_of(position: &Position) -> Result<Place, ConnectError> {
    place_in(position.as_str())
}

/// The place that a text spells.
pub(crate) fn place_in(text: &str) -> Result<Place, ConnectError> {
    Place::parse(text).ok_or_else(|| {
        value(
            format!("\"{text}\" is not a position of a Pulsar topic"),
            "Give ledger:entry, or ledger:entry:index in a batch, of the next message to read.",
        )
    })
}

/// The split of a partition.
pub(crate) fn split_of(partition: u32) -> SplitId {
    SplitId::new(partition.to_string())
}

/// The partition of a split.
pub(crate) fn partition_of(split: &SplitId) -> Result<u32, ConnectError> {
    split.as_str().parse().map_err(|_| {
        value(
            format!("\"{split}\" is not a Pulsar partition"),
            "Give its number; a topic without partitions is \"0\".",
        )
    })
}

fn value(message: String, hint: &str) -> ConnectError {
    ConnectError::Value(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::{NONE, Place};
    use crate::wire::MessageId;

    #[test]
    fn a_place_comes_back_from_its_text_and_nothing_else_is_one() {
        let place = Place { ledger: 12, entry: 3, index: 7 };
        assert_eq!(Place::parse(&place.to_string()), Some(place));
        assert_eq!(Place::parse("12:3"), Some(Place::of_entry(12, 3)));
        for text in ["", "1", "1:", ":1", "1:2:3:4", "a:1", "-1:0", "18446744073709551615:0"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }

    #[test]
    fn places_are_ordered_by_ledger_then_entry_then_index() {
        let places = ["1:9:9", "2:0:0", "2:0:1", "2:1:0", "10:0:0"];
        let places: Vec<Place> = places.iter().filter_map(|text| Place::parse(text)).collect();
        assert!(places.is_sorted() && places.len() == 5);
    }

    #[test]
    fn the_place_after_nothing_is_the_ledgers_beginning() {
        let id = |ledger, entry| MessageId { ledger, entry, batch_index: None };
        assert_eq!(Place::after(&id(4, NONE)), Some(Place::of_entry(4, 0)));
        assert_eq!(Place::after(&id(4, 6)), Some(Place::of_entry(4, 7)));
        assert_eq!(Place::after(&id(NONE, NONE)), None);
    }
}
