//! How far a watermark may move, and which splits hold it back. The clock is the engine's; the states are decided here.
//!
//! Words defined here: *active*, *idle*, *finished* (of a split), *held* (of the consumer).
//! Invariant: between two stages the watermark is held. Raised to the end of time it would make the
//! next stage's rows late; idle it would let other inputs run ahead of them.
//! A stage that ends is history, which need not come in the order of its times: unless it is said to, the watermark
//! stands while such a stage is read. Invariant: it never falls.

use segue_types::{Boundedness, SplitId, StageIndex};

use crate::live::Idleness;
use crate::{ConsumerState, History, Mode};

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

/// How far the watermark of a consumer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    Nothing,
    /// Microseconds since 1970.
    Time(i64),
    /// No row comes any more.
    End,
}

/// How far the watermark has come, as of the last step.
pub fn watermark(state: &ConsumerState) -> Reached {
    if is_finished(state) {
        return Reached::End;
    }
    state.watermark.map_or(Reached::Nothing, Reached::Time)
}

fn is_finished(state: &ConsumerState) -> bool {
    let is_last = state.current_stage().as_usize() + 1 == state.stages.len();
    state.mode == Mode::Running && is_last && state.current().drained_in().is_some()
}

impl ConsumerState {
    /// Takes note of a split's own watermark.
    pub(crate) fn timed(&mut self, split: &SplitId, watermark: i64) {
        let stage = self.current_stage();
        let Some(timed) = self.stage_mut(stage).splits.get_mut(split) else { return };
        if timed.watermark < Some(watermark) {
            timed.watermark = Some(watermark);
            self.live.changed(split);
            self.touch();
        }
    }

    /// Moves the watermark as far as the splits let it.
    pub(crate) fn move_watermark(&mut self, history: History) {
        let is_history = self.current().boundedness == Boundedness::Bounded;
        if is_history && history == History::Unordered {
            return;
        }
        let status = watermark_status(self);
        let free = match status.consumer {
            Watermark::Active => self.least_active(&status),
            // Nobody holds it back, so it goes where it would have gone if all had come as far as the first.
            Watermark::Idle => self.greatest(),
            // History that is in order has come as far as its last row, whichever step saw that.
            Watermark::Held if is_history && self.is_read_up() => self.greatest(),
            Watermark::Held | Watermark::Finished => None,
        };
        if self.watermark < free {
            self.watermark = free;
            self.touch();
        }
    }

    /// What no active split holds back; `None` while one of them has not said anything.
    fn least_active(&self, status: &WatermarkStatus) -> Option<i64> {
        let active = status.splits.iter().filter(|(_, status)| *status == SplitWatermark::Active);
        let each = active.map(|(id, _)| self.current().splits[id].watermark);
        each.min().flatten()
    }

    /// Whether all that is listed of the current stage was read.
    fn is_read_up(&self) -> bool {
        let splits = &self.current().splits;
        self.mode == Mode::Running && splits.values().all(|split| split.done_in().is_some())
    }

    /// Over all splits of all stages that were read.
    fn greatest(&self) -> Option<i64> {
        let splits = self.stages.iter().flat_map(|stage| stage.splits.values());
        splits.filter_map(|split| split.watermark).max()
    }
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
