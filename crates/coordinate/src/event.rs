//! What happens to a consumer, and what it wants done.
//!
//! Words defined here: *assignment*, *report*, *verdict*, *effect*.
//! Invariant: every report of work names its assignment, so a late one is recognized without a clock.

use segue_types::{Epoch, Generation, Position, SplitId, StageIndex};

use crate::{Failure, Gap, Lead, SplitPlan};

/// Names one piece of work that was handed out: one opening of a split, one discovery of a stage, one
/// handoff. Work that is handed out again gets a new name, so reports of the former holder are stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Assignment {
    pub generation: Generation,
    /// Grows with each assignment of the generation.
    pub number: u64,
}

/// Where a message stands among those of its assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub assignment: Assignment,
    /// Counts the assignment's messages from 1: a reader numbers everything it pushes, in its own
    /// order.
    pub sequence: u64,
}

/// Something that happened. Everything belongs to the epoch that is open when it is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// One whole listing of a stage. A split that is missing from it has been removed.
    Discovered {
        report: Report,
        stage: StageIndex,
        splits: Vec<SplitPlan>,
        sealed: bool,
    },
    /// Everything before `next` was read, and its rows, if any, were applied in this step.
    Progressed {
        report: Report,
        stage: StageIndex,
        split: SplitId,
        next: Position,
    },
    /// The rows that were applied last of a split say that earlier ones than this are not expected any more.
    Timed {
        stage: StageIndex,
        split: SplitId,
        watermark: i64,
    },
    /// A step is over: the watermark moves as far as it may.
    Stepped {
        history: History,
    },
    /// The split is complete; `at` is its end, exclusive.
    SplitDone {
        report: Report,
        stage: StageIndex,
        split: SplitId,
        at: Position,
    },
    /// The reader stopped although its split is not complete. It is opened again from where it was.
    ReaderEnded {
        report: Report,
        stage: StageIndex,
        split: SplitId,
    },
    /// What the reader was to deliver next is gone, and the stage accepts that. The reader has ended; the split is
    /// opened again behind the gap.
    Skipped {
        report: Report,
        stage: StageIndex,
        split: SplitId,
        gap: Gap,
    },
    /// The reader was polled and empty for the idle time. Its next report makes it active again.
    Idle {
        assignment: Assignment,
        stage: StageIndex,
        split: SplitId,
    },
    /// The answer to [`Effect::ResolveHandoff`]: the full start positions of `stage`.
    HandoffResolved {
        assignment: Assignment,
        stage: StageIndex,
        starts: Vec<(SplitId, Position)>,
    },
    /// The answer to [`Effect::CheckStarts`]: the pinned starts still hold.
    StartsChecked {
        assignment: Assignment,
        stage: StageIndex,
    },
    /// Work failed for good, or the engine gave the consumer up. `message` is free of secrets.
    Failed {
        by: FailedBy,
        stage: StageIndex,
        message: String,
        retriable: bool,
    },
    /// The open epoch was closed as `epoch`; what happens next belongs to the one after it.
    EpochSealed {
        epoch: Epoch,
    },
    /// Everything up to `epoch` is durable. Epochs that were merged are told by their last.
    EpochDurable {
        epoch: Epoch,
    },
    /// Where the leader stands, at a step boundary; for followers alone.
    Led {
        lead: Lead,
    },
    /// All work moves to new holders.
    Reassigned {
        generation: Generation,
    },
    Pause,
    /// Reads on, also after a failure.
    Resume,
    /// Ends the consumer for good.
    Cancel,
}

/// Whether the rows of bounded stages come in the order of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// They do not: while such a stage is read, the watermark stands.
    #[default]
    Unordered,
    /// They do, within each split.
    Ordered,
}

/// Whose failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedBy {
    /// The holder of this assignment; stale when it no longer holds.
    Work(Assignment),
    Engine,
}

/// Whether a report counts. The engine asks before it applies the report's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Apply,
    /// An earlier report of the same assignment has not come yet: keep this one and offer it again.
    Early,
    /// It was applied before: drop it.
    Duplicate,
    /// Its assignment no longer holds: drop it.
    Stale,
}

/// Something to do. Effects are carried out in order; one that is lost in a crash comes again out of
/// [`crate::recover`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// List the stage's splits, again and again, until the stage is closed or, being bounded, has
    /// reported itself sealed.
    Discover { assignment: Assignment, stage: StageIndex },
    /// Start a reader at `from`, up to `until` exclusive.
    OpenSplit {
        assignment: Assignment,
        stage: StageIndex,
        split: SplitId,
        from: Position,
        until: Option<Position>,
    },
    /// Stop the split's reader; what it still has under way is not wanted.
    CloseSplit { stage: StageIndex, split: SplitId },
    /// Stop everything that runs for the stage: readers, discovery.
    CloseStage { stage: StageIndex },
    /// Derive where `to` starts from what `from` covered; `ends` is the exclusive end of each of
    /// its splits. A handoff by query or by columns takes its own answer instead of `ends`.
    ResolveHandoff {
        assignment: Assignment,
        from: StageIndex,
        to: StageIndex,
        ends: Vec<(SplitId, Position)>,
    },
    /// Check identity, existence and retention of pinned starts, before they are relied on.
    CheckStarts { assignment: Assignment, stage: StageIndex, starts: Vec<(SplitId, Position)> },
    /// Everything before these positions is durable and may be released upstream.
    Acknowledge { stage: StageIndex, positions: Vec<(SplitId, Position)> },
    /// Every stage is complete, durably.
    Completed,
    /// The consumer stands still until [`Event::Resume`].
    Fail { failure: Failure },
}
