//! The entry points: `verdict`, `decide`, `recover`.
//!
//! Invariant: an event that does not count changes nothing but a counter.

use segue_types::{Epoch, Generation, Position, SplitId};

use crate::advance::{acknowledge, acknowledge_all, advance, close};
use crate::live::{Idleness, Live};
use crate::state::Place;
use crate::{Cause, ConsumerState, Effect, Event, FailedBy, Failure, Gap, Mode, Verdict};

/// Whether the event counts. The engine asks this before it applies the rows that came with a
/// report; what does not count must not be applied either.
pub fn verdict(state: &ConsumerState, event: &Event) -> Verdict {
    let live = &state.live;
    let held = |holds: bool| if holds { Verdict::Apply } else { Verdict::Stale };
    match event {
        Event::Progressed { report, stage, split, .. }
        | Event::SplitDone { report, stage, split, .. }
        | Event::ReaderEnded { report, stage, split }
        | Event::Skipped { report, stage, split, .. } => {
            if *stage == state.current_stage() {
                live.judge_reader(split, *report)
            } else {
                Verdict::Stale
            }
        }
        Event::Discovered { report, .. } => live.judge_discovery(*report),
        Event::Idle { assignment, split, .. } => {
            held(live.readers.get(split).is_some_and(|reader| reader.assignment == *assignment))
        }
        Event::HandoffResolved { assignment, .. } | Event::StartsChecked { assignment, .. } => {
            held(live.handoff == Some(*assignment))
        }
        Event::Failed { by: FailedBy::Work(assignment), .. } => held(live.holds(*assignment)),
        Event::Timed { stage, .. } => held(*stage == state.current_stage()),
        Event::Failed { by: FailedBy::Engine, .. }
        | Event::Stepped { .. }
        | Event::EpochSealed { .. }
        | Event::EpochDurable { .. }
        | Event::Led { .. }
        | Event::Reassigned { .. }
        | Event::Pause
        | Event::Resume
        | Event::Cancel => Verdict::Apply,
    }
}

/// The next state, and what is to be done, in order.
///
/// # Panics If the caller breaks the protocol: a stored state that was not recovered, an epoch that
/// runs backwards.
pub fn decide(mut state: ConsumerState, event: Event) -> (ConsumerState, Vec<Effect>) {
    assert!(state.live.is_attached(), "a stored state is recovered before it decides");
    let verdict = verdict(&state, &event);
    let mut effects = Vec::new();
    if verdict == Verdict::Apply {
        apply(&mut state, event, &mut effects);
    } else {
        state.live.count_dropped(verdict);
    }
    (state, effects)
}

/// A stored state, brought back to life after a crash or a restart.
///
/// `generation` is greater than any that was ever handed out, also by a process whose last epochs
/// were lost: the store counts its openings durably. `durable` is the last epoch of the store.
///
/// # Panics
/// If the state is not one that `decide` could have left.
pub fn recover(
    mut state: ConsumerState,
    generation: Generation,
    durable: Epoch,
) -> (ConsumerState, Vec<Effect>) {
    assert!(generation > state.generation, "a generation is not handed out twice");
    assert!(state.changed_in <= durable, "a stored state is part of a durable epoch");
    state.live = Live::after(durable);
    state.generation = generation;
    if matches!(&state.mode, Mode::Failed(failure) if failure.is_retriable()) {
        state.mode = Mode::Running;
    }
    state.touch();
    state.check_invariants();
    let mut effects = Vec::new();
    if state.mode != Mode::Cancelled {
        acknowledge_all(&mut state, &mut effects);
    }
    advance(&mut state, &mut effects);
    (state, effects)
}

fn apply(state: &mut ConsumerState, event: Event, effects: &mut Vec<Effect>) {
    match event {
        Event::Progressed { split, next, .. } => return progressed(state, &split, next),
        Event::Idle { split, .. } => return idle(state, &split),
        Event::Timed { split, watermark, .. } => return state.timed(&split, watermark),
        Event::Stepped { history } => return state.move_watermark(history),
        Event::EpochSealed { epoch } => return sealed(state, epoch),
        Event::EpochDurable { epoch } => return durable(state, epoch, effects),
        // Nothing is due before this end is durable, so there is no need to look.
        Event::SplitDone { split, at, .. } => return split_done(state, &split, at),
        Event::Skipped { split, gap, .. } => return skipped(state, &split, gap),
        Event::ReaderEnded { split, .. } => {
            state.live.readers.remove(&split);
        }
        Event::Discovered { report, stage, splits, sealed } => {
            state.discovered(report, stage, splits, sealed, effects);
        }
        Event::HandoffResolved { stage, starts, .. } => {
            state.handoff_resolved(stage, starts, effects);
        }
        Event::StartsChecked { stage, .. } => state.starts_checked(stage),
        Event::Failed { stage, message, retriable, .. } => {
            let cause = Cause::Reported { message, retriable };
            let failure = Failure { stage, cause, epoch: state.live.open };
            fail(state, failure, effects);
        }
        Event::Led { lead } => state.led(lead, effects),
        Event::Reassigned { generation } => {
            assert!(generation > state.generation, "a generation is not handed out twice");
            close(state, effects);
            state.generation = generation;
            state.reshape();
        }
        Event::Pause => stop(state, Mode::Paused, effects),
        Event::Cancel => stop(state, Mode::Cancelled, effects),
        Event::Resume => resume(state),
    }
    advance(state, effects);
}

fn progressed(state: &mut ConsumerState, split: &SplitId, next: Position) {
    let reader = state.live.readers.get_mut(split).expect("the verdict found the reader");
    reader.applied += 1;
    reader.idleness = Idleness::Active;
    state.live.moved(split, &next);
    place(state, split, Place::Next(next));
    state.touch();
}

fn split_done(state: &mut ConsumerState, split: &SplitId, at: Position) {
    state.live.readers.remove(split);
    state.live.moved(split, &at);
    if state.is_meeting() {
        state.round_done(split);
        place(state, split, Place::Next(at));
        return state.touch();
    }
    let epoch = state.live.open;
    place(state, split, Place::Done { at, epoch });
    state.reshape();
}

fn place(state: &mut ConsumerState, split: &SplitId, place: Place) {
    let stage = state.current_stage();
    let split = state.stage_mut(stage).splits.get_mut(split).expect("readers have known splits");
    assert!(matches!(split.place, Place::Next(_)), "only a split that is being read moves");
    split.place = place;
}

/// The reader is gone; the next one opens when this is durable.
fn skipped(state: &mut ConsumerState, id: &SplitId, gap: Gap) {
    state.live.readers.remove(id);
    state.live.moved(id, &gap.to);
    place(state, id, Place::Next(gap.to.clone()));
    let (stage, open) = (state.current_stage(), state.live.open);
    let split = state.stage_mut(stage).splits.get_mut(id).expect("it was just placed");
    split.gaps.add(gap, open);
    state.reshape();
}

fn idle(state: &mut ConsumerState, split: &SplitId) {
    let reader = state.live.readers.get_mut(split).expect("the verdict found the reader");
    reader.idleness = Idleness::Idle;
}

fn sealed(state: &mut ConsumerState, epoch: Epoch) {
    assert_eq!(epoch, state.live.open, "epochs are sealed one after the other, by every consumer");
    state.live.seal(epoch);
}

fn durable(state: &mut ConsumerState, epoch: Epoch, effects: &mut Vec<Effect>) {
    assert!(epoch < state.live.open, "an epoch is sealed before it is durable");
    let before = state.live.durable;
    if epoch <= before {
        return;
    }
    let positions = state.live.make_durable(epoch);
    if state.mode == Mode::Cancelled {
        return;
    }
    acknowledge(state, positions, effects);
    // Where only positions moved there is nothing that waited for this epoch.
    if state.live.shaped_in > before {
        advance(state, effects);
    }
}

fn stop(state: &mut ConsumerState, mode: Mode, effects: &mut Vec<Effect>) {
    let ends = state.mode == Mode::Cancelled || state.mode == mode;
    if !ends {
        close(state, effects);
        if state.is_meeting() && mode == Mode::Paused {
            state.part();
        }
        state.mode = mode;
        state.reshape();
    }
}

fn resume(state: &mut ConsumerState) {
    match state.mode {
        Mode::Paused | Mode::Failed(_) => {
            state.mode = Mode::Running;
            state.reshape();
        }
        Mode::Running | Mode::Cancelled => {}
    }
}

/// Stands still with a reason. A consumer that already does, or that was told to, keeps its own.
pub(crate) fn fail(state: &mut ConsumerState, failure: Failure, effects: &mut Vec<Effect>) {
    if state.mode == Mode::Running {
        close(state, effects);
        state.mode = Mode::Failed(failure.clone());
        state.reshape();
        effects.push(Effect::Fail { failure });
    }
}
