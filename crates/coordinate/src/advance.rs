//! From the state to the work: what should run and does not is handed out, what may be released is
//! released.
//!
//! Invariant: `advance` may be called at any time and any number of times; it looks at facts that
//! are durable and at who holds what, never at which event came before. So a signal cannot get
//! lost, and recovery is the same call.

use std::collections::BTreeMap;

use segue_types::{Boundedness, Position, SplitId, StageIndex};

use crate::live::{Discovery, Idleness, Reader, Told};
use crate::state::{Place, Split, Stage};
use crate::{ConsumerState, Effect, Mode, Role, StageStart};

/// Hands out all work that is due.
pub(crate) fn advance(state: &mut ConsumerState, effects: &mut Vec<Effect>) {
    let stage = state.current_stage();
    if state.mode != Mode::Running || !state.is_durable(state.stage(stage).activated_in) {
        return;
    }
    if state.is_durable(state.stage(stage).drained_in()) {
        leave(state, stage, effects);
    } else {
        discover(state, stage, effects);
        open_splits(state, stage, effects);
    }
}

/// Takes all work back. The stage is closed also where nothing is known to run: a discovery that ended
/// by itself may still hold a connection.
pub(crate) fn close(state: &mut ConsumerState, effects: &mut Vec<Effect>) {
    effects.push(Effect::CloseStage { stage: state.current_stage() });
    state.live.revoke_all();
}

/// Releases upstream what has become durable.
pub(crate) fn acknowledge(
    state: &ConsumerState,
    positions: BTreeMap<SplitId, Position>,
    effects: &mut Vec<Effect>,
) {
    // A follower releases nothing: what it has read may be all that another one still needs.
    if !positions.is_empty() && state.role == Role::Leads {
        let positions = positions.into_iter().collect();
        effects.push(Effect::Acknowledge { stage: state.current_stage(), positions });
    }
}

/// Releases everything again: whether it was released before a crash is not known.
pub(crate) fn acknowledge_all(state: &mut ConsumerState, effects: &mut Vec<Effect>) {
    let moved = |split: &Split| match (&split.start, &split.place) {
        (_, Place::Unknown | Place::Met { .. }) => None,
        (crate::SplitStart::At(start), Place::Next(next)) if start == next => None,
        (_, Place::Next(position) | Place::Done { at: position, .. }) => Some(position.clone()),
    };
    let positions: BTreeMap<SplitId, Position> = (state.current().splits.iter())
        .filter_map(|(id, split)| Some((id.clone(), moved(split)?)))
        .collect();
    state.live.durable_positions = positions.clone();
    acknowledge(state, positions, effects);
}

/// The stage is committed: its work ends, and the next one's start is asked for.
fn leave(state: &mut ConsumerState, stage: StageIndex, effects: &mut Vec<Effect>) {
    assert!(state.live.readers.is_empty(), "a complete stage is not read");
    if state.live.told == Told::Nothing {
        state.live.discovery = None;
        state.live.told = Told::StageClosed;
        let rest = state.live.make_rest_durable();
        acknowledge(state, rest, effects);
        effects.push(Effect::CloseStage { stage });
    }
    let is_last = stage.as_usize() + 1 == state.stages.len();
    if is_last {
        if state.live.told != Told::Completed {
            state.live.told = Told::Completed;
            effects.push(Effect::Completed);
        }
    } else if state.live.handoff.is_none() {
        hand_over(state, stage, effects);
    }
}

fn hand_over(state: &mut ConsumerState, stage: StageIndex, effects: &mut Vec<Effect>) {
    let to = stage.next();
    let is_last = to.as_usize() + 1 == state.stages.len();
    if state.role == Role::Follows && is_last {
        // It waits until the leader is there: the starts that the leader found are the starts.
        let Some(starts) = state.led_starts() else { return };
        let assignment = state.assign();
        state.live.handoff = Some(assignment);
        effects.push(Effect::CheckStarts { assignment, stage: to, starts });
        return;
    }
    let assignment = state.assign();
    state.live.handoff = Some(assignment);
    effects.push(match state.stage(to).start {
        StageStart::Handoff => {
            let ends = located(state.stage(stage));
            Effect::ResolveHandoff { assignment, from: stage, to, ends }
        }
        StageStart::Pinned => {
            Effect::CheckStarts { assignment, stage: to, starts: located(state.stage(to)) }
        }
    });
}

fn located(stage: &Stage) -> Vec<(SplitId, Position)> {
    let located = |(id, split): (&SplitId, &Split)| Some((id.clone(), split.position()?.clone()));
    stage.splits.iter().filter_map(located).collect()
}

fn discover(state: &mut ConsumerState, stage: StageIndex, effects: &mut Vec<Effect>) {
    let is_open = match state.stage(stage).boundedness {
        Boundedness::Bounded => state.stage(stage).sealed_in.is_none(),
        // A follower's splits are its leader's.
        Boundedness::Continuous => !state.is_meeting(),
    };
    if is_open && state.live.discovery.is_none() {
        let assignment = state.assign();
        state.live.discovery = Some(Discovery { assignment, applied: 0 });
        effects.push(Effect::Discover { assignment, stage });
    }
}

fn open_splits(state: &mut ConsumerState, stage: StageIndex, effects: &mut Vec<Effect>) {
    let due: Vec<(SplitId, Position, Option<Position>)> = (state.stage(stage).splits.iter())
        .filter(|(id, split)| !state.live.readers.contains_key(id) && is_ready(state, stage, split))
        .filter_map(|(id, split)| match &split.place {
            Place::Next(next) if state.is_meeting() => {
                Some((id.clone(), next.clone(), Some(state.round_until(id, next)?)))
            }
            Place::Next(next) => Some((id.clone(), next.clone(), split.bound.clone())),
            Place::Unknown | Place::Met { .. } | Place::Done { .. } => None,
        })
        .collect();
    for (split, from, until) in due {
        let assignment = state.assign();
        let reader = Reader { assignment, applied: 0, idleness: Idleness::Active };
        state.live.readers.insert(split.clone(), reader);
        effects.push(Effect::OpenSplit { assignment, stage, split, from, until });
    }
}

/// Whether everything that must be durable before the split's first row is.
pub(crate) fn is_ready(state: &ConsumerState, stage: StageIndex, split: &Split) -> bool {
    let splits = &state.stage(stage).splits;
    split.removed_in.is_none()
        && state.live.is_durable(split.found_in)
        && split.gaps.recorded_in.is_none_or(|epoch| state.live.is_durable(epoch))
        && (split.after.iter()).filter_map(|id| splits.get(id)).all(|predecessor| {
            // What is met and not done holds its successors back at the leader.
            matches!(predecessor.place, Place::Met { .. })
                || state.is_durable(predecessor.done_in())
        })
}
