//! Which splits hold the watermark back. The clock is the engine's; the states are decided here.
//!
//! Words defined here: *active*, *idle*, *finished* (of a split), *held* (of the consumer).
//! Invariant: between two stages the watermark is held. Raised to the end of time it would make the
//! next stage's rows late; idle it would let other inputs run ahead of them.

use segue_types::{SplitId, StageIndex};

use crate::live::Idleness;
use crate::{ConsumerState, Mode};

/// The watermark of one consumer, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatermarkStatus {
    pub consumer: Watermark,
    /// The current stage's splits that are listed.
    pub stage: StageIndex,
    pub splits: Vec<(SplitId, SplitWatermark)>,
}

/// How the consumer's watermark moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watermark {
    /// With the least of the active splits.
    Active,
    /// Not at all, until the next stage's first splits are registered or reading goes on.
    Held,
    /// It constrains nobody.
    Idle,
    /// To the end of time.
    Finished,
}

/// How one split takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitWatermark {
    /// Also one that waits, or that the engine does not poll now: its rows are still to come.
    Active,
    /// It was polled and empty for the idle time.
    Idle,
    Finished,
}

/// The watermark status as of the running step.
pub fn watermark_status(state: &ConsumerState) -> WatermarkStatus {
    let stage = state.current_stage();
    let splits: Vec<(SplitId, SplitWatermark)> = (state.current().splits.iter())
        .filter(|(_, split)| split.removed_in.is_none())
        .map(|(id, split)| {
            let status = match state.live.readers.get(id) {
                _ if split.done_in().is_some() => SplitWatermark::Finished,
                Some(reader) if reader.idleness == Idleness::Idle => SplitWatermark::Idle,
                _ => SplitWatermark::Active,
            };
            (id.clone(), status)
        })
        .collect();
    WatermarkStatus { consumer: consumer(state, stage, &splits), stage, splits }
}

fn consumer(
    state: &ConsumerState,
    stage: StageIndex,
    splits: &[(SplitId, SplitWatermark)],
) -> Watermark {
    let is_first = stage == StageIndex(0);
    let is_last = stage.as_usize() + 1 == state.stages.len();
    let has = |wanted| splits.iter().any(|(_, status)| *status == wanted);
    if state.mode != Mode::Running {
        Watermark::Held
    } else if is_last && state.current().drained_in().is_some() {
        Watermark::Finished
    } else if has(SplitWatermark::Active) {
        Watermark::Active
    } else if has(SplitWatermark::Idle) {
        Watermark::Idle
    } else if is_last && (is_first || !splits.is_empty()) {
        // Nothing to read and nothing before it: an empty pattern constrains nobody.
        Watermark::Idle
    } else {
        Watermark::Held
    }
}
