//! What a consumer is told at its start: its stages as plain data.
//!
//! Words defined here: *pinned* (a start that was resolved and stored at CREATE), *planned split*.

use segue_types::{Boundedness, Position, SplitId};
use serde::{Deserialize, Serialize};

/// One stage, as its pinned read definition describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePlan {
    /// Every stage but the last is bounded.
    pub boundedness: Boundedness,
    pub start: StageStart,
    /// The initial splits.
    pub splits: Vec<SplitPlan>,
    /// These are all the splits there will ever be. Without meaning in a continuous stage.
    pub sealed: bool,
}

/// Who says where a stage starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStart {
    /// The definition does; it is only checked again before the activation.
    Pinned,
    /// The predecessor's end does (log ends, query, columns); resolved once, when that end is durable.
    Handoff,
}

/// One split, as pinned or as discovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPlan {
    pub id: SplitId,
    pub start: SplitStart,
    /// The position at which the split is complete, where that is known beforehand.
    pub bound: Option<Position>,
    /// Splits of the same stage that must be done, durably, before this one starts. One that the
    /// stage has never heard of is no constraint: a parent may have left the listing long ago.
    pub after: Vec<SplitId>,
}

/// Where a split starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitStart {
    At(Position),
    FromHandoff,
}
