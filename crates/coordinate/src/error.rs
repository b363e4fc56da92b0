//! Why a consumer stands still: a failure that somebody reported, or an event that contradicts the
//! state.
//!
//! Word defined here: *contradiction*, what the outside says and what the state knows cannot both
//! be true. It is the connector's or the external system's doing, never a reason to panic.

use segue_types::{Epoch, Position, SplitId, StageIndex};
use serde::{Deserialize, Serialize};

/// The stored reason of [`crate::Mode::Failed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{cause}")]
pub struct Failure {
    pub stage: StageIndex,
    pub cause: Cause,
    /// The epoch that was open when it happened.
    pub epoch: Epoch,
}

impl Failure {
    /// Whether reading again may help without anybody's doing. A restart tries such a failure again.
    pub fn is_retriable(&self) -> bool {
        matches!(self.cause, Cause::Reported { retriable: true, .. })
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The engine or a connector said so; the text is free of secrets.
    #[error("{message}")]
    Reported { message: String, retriable: bool },
    #[error(transparent)]
    Contradiction(Contradiction),
}

/// An event that the state rules out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Contradiction {
    /// A sealed stage's set of splits can no longer grow.
    #[error("split \"{split}\" appeared after the seal of its stage")]
    SplitAfterSeal { split: SplitId },
    /// A split left the listing although its rows, or those of its successors, are still owed.
    #[error("split \"{split}\" vanished before it was done")]
    Vanished { split: SplitId },
    /// Neither the handoff nor the discovery says where the split starts.
    #[error("split \"{split}\" has no start")]
    NoStart { split: SplitId },
    /// A bound is decided once.
    #[error("the bound of split \"{split}\" changed from {stored} to {found}")]
    BoundChanged { split: SplitId, stored: Position, found: Position },
    /// No split of a cycle could ever start.
    #[error("split \"{split}\" waits for itself through its predecessors")]
    Cycle { split: SplitId },
}
