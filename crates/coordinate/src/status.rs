//! Questions that others ask of a state: rows for `segue.stages` and `segue.splits`, and whether a
//! statement that waits for the consumer may return.
//!
//! Invariant: what decides over a waiting statement looks at durable facts only.

use std::collections::BTreeMap;
use std::fmt;

use segue_types::{Boundedness, Epoch, Position, PositionOrder, SplitId, StageIndex};

use crate::advance::is_ready;
use crate::state::{Place, Split};
use crate::{ConsumerState, Gaps, Mode, SplitStart};

/// One row of `segue.stages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageStatus {
    pub stage: StageIndex,
    pub phase: StagePhase,
    pub boundedness: Boundedness,
    pub splits: usize,
    pub splits_done: usize,
    /// The epoch of its activation record.
    pub activated_in: Option<Epoch>,
    /// The epoch that contains its end, once that is durable.
    pub completed_in: Option<Epoch>,
}

/// The life of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StagePhase {
    Planned,
    Reading,
    Sealed,
    Drained,
    Committed,
    /// The next stage is active.
    Activated,
}

impl fmt::Display for StagePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StagePhase::Planned => "planned",
            StagePhase::Reading => "reading",
            StagePhase::Sealed => "sealed",
            StagePhase::Drained => "drained",
            StagePhase::Committed => "committed",
            StagePhase::Activated => "activated",
        })
    }
}

/// One row of `segue.splits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitStatus {
    pub stage: StageIndex,
    pub split: SplitId,
    pub phase: SplitPhase,
    pub start: Option<Position>,
    /// The next position to read; the end of a split that is done.
    pub position: Option<Position>,
    pub bound: Option<Position>,
    pub done_in: Option<Epoch>,
    /// What it passed over because it was gone.
    pub gaps: Gaps,
}

/// The life of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitPhase {
    /// On its stage's activation, on its predecessors, or on its own record.
    Waiting,
    Reading,
    /// A follower reads up to where its leader stands.
    Backfilling,
    /// The leader's rows are this follower's too.
    Met,
    Done,
    Removed,
}

impl fmt::Display for SplitPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SplitPhase::Waiting => "waiting",
            SplitPhase::Reading => "reading",
            SplitPhase::Backfilling => "backfilling",
            SplitPhase::Met => "met",
            SplitPhase::Done => "done",
            SplitPhase::Removed => "removed",
        })
    }
}

/// Whether the consumer reads, and if not, why.
pub fn mode(state: &ConsumerState) -> &Mode {
    &state.mode
}

/// Whether every stage is complete, durably.
pub fn is_complete(state: &ConsumerState) -> bool {
    let is_last = state.current_stage().as_usize() + 1 == state.stages.len();
    is_last && state.is_durable(state.current().drained_in())
}

/// Whether every bounded stage is complete, durably: the source is at the end of its history.
pub fn bounded_stages_complete(state: &ConsumerState) -> bool {
    let current = state.current();
    is_complete(state)
        || current.boundedness == Boundedness::Continuous && state.is_durable(current.activated_in)
}

/// The stages, in order.
pub fn stage_status(state: &ConsumerState) -> Vec<StageStatus> {
    (0..state.stages.len())
        .map(|index| {
            let index = StageIndex(u16::try_from(index).expect("stages are counted in 16 bits"));
            let stage = state.stage(index);
            let drained = stage.drained_in();
            StageStatus {
                stage: index,
                phase: stage_phase(state, index),
                boundedness: stage.boundedness,
                splits: stage.splits.len(),
                splits_done: stage.splits.values().filter(|s| s.done_in().is_some()).count(),
                activated_in: stage.activated_in,
                completed_in: drained.filter(|epoch| state.live.is_durable(*epoch)),
            }
        })
        .collect()
}

fn stage_phase(state: &ConsumerState, index: StageIndex) -> StagePhase {
    let stage = state.stage(index);
    let next = state.stages.get(index.as_usize() + 1);
    if !state.is_durable(stage.activated_in) {
        StagePhase::Planned
    } else if next.is_some_and(|next| state.is_durable(next.activated_in)) {
        StagePhase::Activated
    } else if state.is_durable(stage.drained_in()) {
        StagePhase::Committed
    } else if stage.drained_in().is_some() {
        StagePhase::Drained
    } else if stage.sealed_in.is_some() {
        StagePhase::Sealed
    } else {
        StagePhase::Reading
    }
}

/// The splits of every stage, by stage and name.
pub fn split_status(state: &ConsumerState) -> Vec<SplitStatus> {
    let mut rows = Vec::new();
    for status in stage_status(state) {
        for (id, split) in &state.stage(status.stage).splits {
            rows.push(SplitStatus {
                stage: status.stage,
                split: id.clone(),
                phase: split_phase(state, status.stage, split),
                start: match &split.start {
                    SplitStart::At(start) => Some(start.clone()),
                    SplitStart::FromHandoff => None,
                },
                position: split.position().cloned(),
                bound: split.bound.clone(),
                done_in: split.done_in(),
                gaps: split.gaps.clone(),
            });
        }
    }
    rows
}

fn split_phase(state: &ConsumerState, stage: StageIndex, split: &Split) -> SplitPhase {
    match split.place {
        _ if split.removed_in.is_some() => SplitPhase::Removed,
        Place::Done { .. } => SplitPhase::Done,
        Place::Met { .. } => SplitPhase::Met,
        Place::Next(_) if state.is_meeting() && stage == state.current_stage() => {
            SplitPhase::Backfilling
        }
        Place::Next(_) if state.is_durable(state.stage(stage).activated_in) => {
            if is_ready(state, stage, split) { SplitPhase::Reading } else { SplitPhase::Waiting }
        }
        Place::Next(_) | Place::Unknown => SplitPhase::Waiting,
    }
}

/// The next position of each split of a stage, as of the running step; splits whose start is not known
/// yet are missing.
pub fn positions(state: &ConsumerState, stage: StageIndex) -> BTreeMap<SplitId, Position> {
    (state.stage(stage).splits.iter())
        .filter_map(|(id, split)| Some((id.clone(), split.position()?.clone())))
        .collect()
}

/// Whether every target of a stage is passed, durably. A split that is done, or gone, or whose stage is
/// complete, has passed any; one that is not known yet has passed none. What a follower has met is as far as
/// its leader is.
pub fn reached(
    state: &ConsumerState,
    leader: Option<&ConsumerState>,
    stage: StageIndex,
    targets: &[(SplitId, Position)],
    compare: impl Fn(&Position, &Position) -> PositionOrder,
) -> bool {
    let is_met = |split: &Split| match split.place {
        Place::Met { epoch } => state.live.is_durable(epoch),
        _ => false,
    };
    state.is_durable(state.stage(stage).activated_in)
        && targets.iter().all(|(id, target)| {
            let met = state.stage(stage).splits.get(id).is_some_and(is_met);
            let reader = if met { leader } else { Some(state) };
            reader.is_some_and(|reader| has_passed(reader, stage, id, |at| compare(at, target)))
        })
}

/// Whether one split has come as far as `compare` asks, durably.
fn has_passed(
    state: &ConsumerState,
    stage: StageIndex,
    id: &SplitId,
    compare: impl Fn(&Position) -> PositionOrder,
) -> bool {
    let is_left = stage < state.current_stage();
    let Some(split) = state.stage(stage).splits.get(id) else { return is_left };
    let is_over = state.is_durable(split.done_in()) || state.is_durable(split.removed_in);
    let start = match &split.start {
        SplitStart::At(start) if state.live.is_durable(split.found_in) => Some(start),
        SplitStart::At(_) | SplitStart::FromHandoff => None,
    };
    let durable = state.live.durable_positions.get(id).or(start);
    let passed =
        |position| matches!(compare(position), PositionOrder::Equal | PositionOrder::Greater);
    is_left || is_over || durable.is_some_and(passed)
}
