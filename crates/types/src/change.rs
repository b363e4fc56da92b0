//! *Changes*: rows from outside and what each does to the relation, before they are deltas.

use arrow_array::{RecordBatch, UInt8Array};

use crate::Op;

/// Rows from a reader or a statement, and what each does.
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
    /// Whether no row adds anything.
    pub fn removes_only(&self) -> bool {
        match self {
            Ops::Insert | Ops::Put => false,
            Ops::Each(codes) => codes
                .values()
                .iter()
                .all(|code| matches!(Op::from_code(*code), Some(Op::Remove | Op::Retract))),
        }
    }

    /// The op of one row; `None` for a code that is none.
    pub fn get(&self, row: usize) -> Option<Op> {
        match self {
            Ops::Insert => Some(Op::Insert),
            Ops::Put => Some(Op::Put),
            Ops::Each(codes) => Op::from_code(codes.value(row)),
        }
    }
}
