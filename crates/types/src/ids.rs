//! Ids are newtypes, so that a split of one stage is never taken for a split of another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! numeric_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

numeric_id!(
    /// A catalog object (source, table, view, materialized view). Never reused; its PostgreSQL OID
    /// is derived from it, so both survive a restart.
    ObjectId(u32)
);
numeric_id!(
    /// One reading of a source.
    ConsumerId(u64)
);
numeric_id!(
    /// A statement that outlives its connection: a blocking or background CREATE.
    JobId(u64)
);
numeric_id!(
    /// An operator that keeps state; the first part of every state blob's key.
    OperatorId(u64)
);
numeric_id!(
    /// The place of a stage within its source, counted from 0.
    StageIndex(u16)
);
numeric_id!(
    /// A step boundary that was made durable. Epoch 0 is the empty database.
    Epoch(u64)
);
numeric_id!(
    /// Grows each time a consumer's work is re-assigned; reports that carry an older one are dropped.
    Generation(u64)
);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

impl Generation {
    /// The generation after this one.
    #[must_use]
    pub fn next(self) -> Generation {
        Generation(self.0 + 1)
    }
}

impl StageIndex {
    /// The stage after this one.
    #[must_use]
    pub fn next(self) -> StageIndex {
        StageIndex(self.0 + 1)
    }

    /// As an index into the source's list of stages.
    pub fn as_usize(self) -> usize {
        usize::from(self.0)
    }
}

/// The unit of reading inside a stage that has its own order: a partition, a file, a chunk list.
/// The connector chooses the text; it is printable and unique within its stage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SplitId(Arc<str>);

impl SplitId {
    /// A split id from the connector's own text.
    pub fn new(text: impl Into<Arc<str>>) -> SplitId {
        SplitId(text.into())
    }

    /// The connector's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SplitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
