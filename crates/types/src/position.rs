//! A *position* is the NEXT thing to read in a split: exclusive, durable, printable, owned by its connector.
//!
//! Only the connector can read one or compare two; the rest of Segue stores and carries them.
//! Which log a position points into is said by the `identity` of the read it belongs to.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where reading goes on. Text, so that it can be stored, shown in `segue.splits` and pasted into `START AT`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(Arc<str>);

impl Position {
    /// A position from the connector's own text.
    pub fn new(text: impl Into<Arc<str>>) -> Position {
        Position(text.into())
    }

    /// The connector's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a connector answers when asked to compare two positions of one split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionOrder {
    Less,
    Equal,
    Greater,
    /// The two do not point into one order, for example after a log was re-created.
    Incomparable,
}

impl From<std::cmp::Ordering> for PositionOrder {
    fn from(order: std::cmp::Ordering) -> PositionOrder {
        match order {
            std::cmp::Ordering::Less => PositionOrder::Less,
            std::cmp::Ordering::Equal => PositionOrder::Equal,
            std::cmp::Ordering::Greater => PositionOrder::Greater,
        }
    }
}
