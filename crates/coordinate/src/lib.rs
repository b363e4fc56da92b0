//! The life of one consumer, as a pure function: `decide(state, event) -> (state, effects)`.
//!
//! A *consumer* is one reading of a source: it walks the source's stages in order. This crate
//! decides what is read from where, when a stage is complete and when the next one may start. It
//! has no clock, no I/O, no randomness and no connector type; the same events always give the same
//! state.
//!
//! ```text
//!  stage   planned ──▶ reading ──▶ sealed ──▶ drained ──▶ committed ──▶ activated(next)
//!             ▲           │          │ set of     │ every      │ the epoch    │ the next stage's
//!             │           │          │ splits     │ split      │ of both is   │ activation record
//!             │           │          │ closed     │ done       │ durable      │ is durable
//!             └───────────┼──────────┼────────────┼────────────┴── handoff ───┘
//!                         ▼          ▼            ▼      resolved once, stored as starts
//!  split   waiting ──▶ reading(next, until) ──▶ done(at)
//!             │ its own record and              │ kept: a split that is listed again
//!             │ its predecessors                ▼ is not read again
//!             │ are durable                  removed (a tombstone that keeps the position)
//! ```
//!
//! A consumer that is paused, failed or cancelled has no work handed out; its stages and splits
//! stay where they are. Resume, a new generation and recovery hand everything out again, under new
//! assignments.
//!
//! Words defined here: *assignment* (one piece of work handed out: a reader, a discovery, a
//! handoff), *report* (a numbered message of an assignment), *open epoch* (the one that the running
//! step belongs to).
//!
//! # How the engine drives it
//!
//! 1. [`ConsumerState::new`] in the epoch that creates the consumer, or [`recover`] from the stored
//!    state.
//! 2. The step thread takes a report from its queue and asks [`verdict`]. On [`Verdict::Apply`] it
//!    applies the rows and calls [`decide`] in the same step; otherwise the rows are not applied.
//! 3. At a step boundary it calls `decide(EpochSealed)` for every consumer, and writes the state in
//!    that epoch's transaction if [`ConsumerState::changed_in`] names it. So the stored state is
//!    exactly what that epoch's data contains. [`ConsumerState::wants_seal`] says that something
//!    waits for this boundary.
//! 4. When the transaction is durable it calls `decide(EpochDurable)`. Every effect that depends on a
//!    durable fact comes out here.
//!
//! At every step boundary it tells each follower where its leader stands ([`lead_since`], [`Event::Led`]), keeps
//! back the leader's reports of splits that are [`held`], and gives the leader's rows of a split also to
//! the followers that [`has_met`] it. A follower that [`has_met_all`] is merged into its leader.
//!
//! What is left to the engine, since it needs a clock or a connector: a reader tries again by
//! itself after a transient error, from where it was and with its numbering going on, and only then
//! reports [`Event::ReaderEnded`] or [`Event::Failed`]; discovery repeats at its own pace; the
//! number of readers that really run at a time is bounded.
//!
//! # Invariants
//!
//! - What is opened, was durable: a stage's activation, a split's record, the ends of its predecessors, the
//!   gap that its reader leaves behind.
//! - Signals are derived: `advance` compares what should run with what runs. No effect exists only
//!   because an event happened, so nothing is lost in a crash and [`recover`] needs no second path.
//! - A stage is complete only when it is bounded, sealed, every split is done, and that is durable.
//! - Order of positions is never decided here: it comes from the numbers that reports carry.
//! - A done split is never read again; an acknowledgment never passes the last durable epoch.

mod advance;
mod decide;
mod discovery;
mod error;
mod event;
mod follow;
mod gap;
mod handoff;
mod invariants;
mod live;
mod plan;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod watermark;

pub use decide::{decide, recover, verdict};
pub use error::{Cause, Contradiction, Failure};
pub use event::{Assignment, Effect, Event, FailedBy, History, Report, Verdict};
pub use follow::{
    Extent, Lead, LedSplit, Listed, Role, has_met, has_met_all, held, lead, lead_since, led_by,
};
pub use gap::{Gap, Gaps};
pub use live::Dropped;
pub use plan::{SplitPlan, SplitStart, StagePlan, StageStart};
pub use state::{ConsumerState, Mode};
pub use status::{
    SplitPhase, SplitStatus, StagePhase, StageStatus, bounded_stages_complete, is_complete, mode,
    positions, reached, split_status, stage_status,
};
pub use watermark::{
    Reached, SplitWatermark, Watermark, WatermarkStatus, watermark, watermark_status,
};
