//! What a split was to read and could not, because it was gone: where the stage accepts that, reading goes on behind
//! it.
//!
//! Word defined here: *gap*, a part of a split that is passed over.
//! Invariant: a gap is decided once. It is durable before anything behind it is read, so no crash can make it smaller
//! or larger once a row has come from behind it.

use std::fmt;

use segue_types::{Epoch, Position};
use serde::{Deserialize, Serialize};

/// A part of a split that is passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub from: Position,
    /// Exclusive: the first position that is still there, or the end of what was to be read.
    pub to: Position,
    /// How many records it had at most, where positions tell.
    pub records: Option<u64>,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.records {
            Some(1) => f.write_str("1 record")?,
            Some(records) => write!(f, "{records} records")?,
            None => f.write_str("records")?,
        }
        write!(f, " from {} up to {} had expired and were passed over", self.from, self.to)
    }
}

/// All that a split passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    pub count: u32,
    /// `None` where the positions of one of them did not tell.
    pub records: Option<u64>,
    pub last: Option<Gap>,
    /// The epoch that the last one belongs to.
    pub(crate) recorded_in: Option<Epoch>,
}

impl Gaps {
    pub(crate) fn add(&mut self, gap: Gap, open: Epoch) {
        let before = if self.count == 0 { Some(0) } else { self.records };
        self.records = before.zip(gap.records).map(|(before, more)| before.saturating_add(more));
        self.count = self.count.saturating_add(1);
        self.last = Some(gap);
        self.recorded_in = Some(open);
    }
}
