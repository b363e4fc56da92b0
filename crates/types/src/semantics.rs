//! What the rows of a stage mean, whether its read ends, and what a handoff promises.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What one row of a stage says about the relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowSemantics {
    /// An event: it happened, and it is never taken back.
    Append,
    /// One row per key: a snapshot.
    State,
    /// Key → whole row, or key → deleted.
    Upsert,
    /// Insert, update, delete, with before image or by key.
    Changelog,
}

impl RowSemantics {
    /// All four, in the order of the compatibility table.
    pub const ALL: [RowSemantics; 4] =
        [RowSemantics::Append, RowSemantics::State, RowSemantics::Upsert, RowSemantics::Changelog];

    /// The word of SQL, docs and system relations.
    pub fn as_str(self) -> &'static str {
        match self {
            RowSemantics::Append => "append",
            RowSemantics::State => "state",
            RowSemantics::Upsert => "upsert",
            RowSemantics::Changelog => "changelog",
        }
    }
}

impl fmt::Display for RowSemantics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a configured read ends. A property of the read, not of the connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundedness {
    Bounded,
    Continuous,
}

impl fmt::Display for Boundedness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Boundedness::Bounded => "bounded",
            Boundedness::Continuous => "continuous",
        })
    }
}

/// What is promised across a handoff, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Continuity {
    /// Derived by the adapters: no gap, no overlap.
    Exact,
    /// Derived at or before the true boundary; the overlap is reconciled by key.
    Covering,
    /// Stated by the user or the exporter; existence, identity and retention are checked.
    Declared,
    /// May lose or repeat; only with ALLOW GAP or ALLOW OVERLAP.
    Weak,
}

impl fmt::Display for Continuity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Continuity::Exact => "exact",
            Continuity::Covering => "covering",
            Continuity::Declared => "declared",
            Continuity::Weak => "weak",
        })
    }
}

/// What one row that a connector delivers does to the relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// The row is added.
    Insert = 0,
    /// The row becomes the one row of its key.
    Put = 1,
    /// The row of this key goes; only the key columns are filled, the others are NULL.
    Remove = 2,
    /// This whole row is taken back.
    Retract = 3,
}

impl Op {
    /// The op of a stored code. `None` for a code that no version of Segue has written.
    pub fn from_code(code: u8) -> Option<Op> {
        [Op::Insert, Op::Put, Op::Remove, Op::Retract].into_iter().find(|op| *op as u8 == code)
    }
}
