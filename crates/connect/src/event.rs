//! What a split reader delivers: rows with the position after them, progress without rows, the end.
//!
//! Progress is separate from rows: transaction markers, compacted gaps and empty windows move a position although
//! nothing becomes visible, and whoever waits for a position would wait for ever if rows alone moved it.

use arrow::array::{RecordBatch, UInt8Array};
use segue_types::{Op, Position};

/// One delivery of a [`crate::SplitReader`], in the split's order.
#[derive(Clone, Debug)]
pub enum ReadEvent {
    Rows(Rows),
    /// Everything before `next` was read; none of it was visible.
    Progress { next: Position },
    /// The split is complete. `at` is its end, exclusive. Nothing follows.
    Done { at: Position },
}

/// Rows, and where reading goes on after them.
#[derive(Clone, Debug)]
pub struct Rows {
    pub changes: Changes,
    pub next: Position,
    /// Records between the last event and `next` that could not be decoded.
    pub rejected: Vec<Rejected>,
    /// Bytes of input behind these rows, for rates and for the bound of the queue.
    pub bytes: usize,
}

/// Rows of the projected schema and what each does.
#[derive(Clone, Debug)]
pub struct Changes {
    pub rows: RecordBatch,
    pub ops: Ops,
}

/// What each row of a batch does. The uniform cases carry no column.
#[derive(Clone, Debug)]
pub enum Ops {
    /// All [`Op::Insert`].
    Insert,
    /// All [`Op::Put`].
    Put,
    /// One [`Op`] code per row.
    Each(UInt8Array),
}

impl Ops {
    /// The op of row `row`.
    ///
    /// # Panics
    /// If the column holds a code that is none: connectors build it from [`Op`] alone.
    pub fn get(&self, row: usize) -> Op {
        match self {
            Ops::Insert => Op::Insert,
            Ops::Put => Op::Put,
            Ops::Each(codes) => Op::from_code(codes.value(row)).expect("codes are made from Op"),
        }
    }
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
