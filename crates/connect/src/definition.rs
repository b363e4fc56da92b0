//! A read definition: a configured read with everything symbolic resolved. Stored before the first byte is read;
//! recovery reads it and never resolves again.

use segue_types::{Boundedness, Position, SplitId};
use serde::{Deserialize, Serialize};

use crate::HandoffKind;

/// A frozen read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadDefinition {
    /// What the positions point into: cluster and topic id, system identifier, manifest digest. Two reads with
    /// the same identity read the same log.
    pub identity: String,
    pub boundedness: Boundedness,
    /// The initial splits. For a bounded read with `sealed`, all there will ever be.
    pub splits: Vec<SplitDefinition>,
    /// The set of splits is known and can no longer grow.
    pub sealed: bool,
    /// What the user should know of how the read was resolved: why a bound lies where nobody would expect it.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Frozen facts that only the connector understands.
    pub private: serde_json::Value,
}

/// One split of a frozen read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitDefinition {
    pub id: SplitId,
    pub start: SplitStart,
    /// The position at which the split is complete; `None` in a continuous read.
    pub bound: Option<Position>,
    /// Splits of the same stage that must be done, durably, before this one starts.
    pub after: Vec<SplitId>,
}

/// Where a split starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitStart {
    At(Position),
    /// The handoff record will say, when the predecessor is complete.
    FromHandoff,
}

/// What one round of discovery found. A split that is missing from it has been removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration {
    pub splits: Vec<SplitDefinition>,
    pub sealed: bool,
}

/// What a complete stage covered, as its successor needs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    pub kind: HandoffKind,
    /// The predecessor's identity. For [`HandoffKind::LogEnds`] it must equal the successor's.
    pub identity: String,
    /// Split → next position to read, in the successor's terms.
    pub ends: Vec<(SplitId, Position)>,
}
