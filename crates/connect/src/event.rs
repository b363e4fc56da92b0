//! What a split reader delivers: rows with the position after them, progress without rows, the end.
//!
//! Progress is separate from rows: transaction markers, compacted gaps and empty windows move a position although
//! nothing becomes visible, and whoever waits for a position would wait for ever if rows alone moved it.

use segue_types::{Changes, Position};

/// One delivery of a [`crate::SplitReader`], in the split's order.
#[derive(Clone, Debug)]
pub enum ReadEvent {
    Rows(Rows),
    /// Everything before `next` was read; none of it was visible.
    Progress {
        next: Position,
    },
    /// The split is complete. `at` is its end, exclusive. Nothing follows.
    Done {
        at: Position,
    },
}

/// Rows, and where reading goes on after them.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Of the projected schema.
    pub changes: Changes,
    pub next: Position,
    /// Records between the last event and `next` that could not be decoded.
    pub rejected: Vec<Rejected>,
    /// Bytes of input behind these rows, for rates and for the bound of the queue.
    pub bytes: usize,
}

/// How much lies between two positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// At most so many.
    Records(u64),
    /// Of input, as [`Rows::bytes`] counts it.
    Bytes(u64),
}

/// A record that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Where the record is (not the position after it).
    pub position: Position,
    /// The record, cut to [`Rejected::PAYLOAD_BYTES_MAX`].
    pub payload: Vec<u8>,
    pub reason: String,
}

impl Rejected {
    /// How much of a rejected record is kept.
    pub const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
}
