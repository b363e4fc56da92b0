//! A follower: a consumer that reads history for itself and then meets the live one, split by split.
//!
//! ```text
//!  split of the last stage   backfilling(next, until the leader's position) ──▶ met ──▶ (all met: merged)
//!                                 ▲        │ the leader has moved on
//!                                 └────────┘ after some rounds its rows are held for one
//! ```
//!
//! Words defined here: *leader* (the live consumer of a source), *follower*, *lead* (what a follower
//! is told of its leader at a step boundary), *round* (one reading up to where the leader stood),
//! *met* (from here on the leader's rows of the split are the follower's too).
//!
//! Invariants:
//! - Positions are compared for equality alone: a round ends exactly where the leader stood, because its
//!   reader is clipped there. No delivered row is ever compared, so records that nobody sees (markers,
//!   compacted gaps) cannot keep the two apart.
//! - A follower lists nothing and activates nothing by itself in the last stage: splits and starts
//!   are the leader's. A split that the leader finds is met at once, since neither has read any of it.
//! - What is met and what the leader has read are written in the same epoch.

use std::collections::{BTreeMap, BTreeSet};

use segue_types::{Epoch, Generation, Position, SplitId, StageIndex};
use serde::{Deserialize, Serialize};

use crate::live::Live;
use crate::state::{Place, Split};
use crate::{ConsumerState, Effect, Mode, SplitPlan, SplitStart};

/// How many rounds a follower tries to catch up with a leader that keeps running. Each is shorter than
/// the one before if the follower is faster; if it is not, only holding the leader helps.
const ROUNDS_FREE_MAX: u32 = 2;

/// Whether a consumer is the one that others meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    #[default]
    Leads,
    Follows,
}

/// The leader as of one step boundary; there is none before its last stage is active, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    pub extent: Extent,
    pub splits: BTreeMap<SplitId, LedSplit>,
    /// What the next lead is to be counted from.
    pub revision: u64,
}

/// How much of the leader a lead tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of its splits.
    Whole,
    /// Those that moved since the lead before.
    Moved,
}

/// One split of the leader's last stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedSplit {
    pub start: Position,
    /// The next position that the leader will read.
    pub next: Position,
    pub bound: Option<Position>,
    pub after: Vec<SplitId>,
    pub listed: Listed,
    /// The split's own watermark.
    pub watermark: Option<i64>,
}

/// Whether the system still has the split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    There,
    Removed,
}

/// All of what a leader's followers are to be told.
pub fn lead(leader: &ConsumerState) -> Option<Lead> {
    lead_since(leader, 0)
}

/// What a follower is to be told that has taken the lead of this revision, of the same process; 0 for one that has
/// taken none.
pub fn lead_since(leader: &ConsumerState, since: u64) -> Option<Lead> {
    let stage = leader.current();
    if !leader.is_in_last_stage() || !leader.is_durable(stage.activated_in) {
        return None;
    }
    let led = |(id, split): (&SplitId, &Split)| {
        let SplitStart::At(start) = split.start.clone() else {
            unreachable!("an active stage knows all starts")
        };
        let next = split.position().expect("a leader has a position in every split").clone();
        let listed = if split.removed_in.is_some() { Listed::Removed } else { Listed::There };
        let (bound, after) = (split.bound.clone(), split.after.clone());
        let watermark = split.watermark;
        (id.clone(), LedSplit { start, next, bound, after, listed, watermark })
    };
    let revision = leader.live.revision;
    if since < leader.live.reshaped_at {
        let splits = stage.splits.iter().map(led).collect();
        return Some(Lead { extent: Extent::Whole, splits, revision });
    }
    let moved = leader.live.revisions.iter().filter(|(_, changed)| **changed > since);
    let splits = moved.filter_map(|(id, _)| stage.splits.get_key_value(id)).map(led).collect();
    Some(Lead { extent: Extent::Moved, splits, revision })
}

/// The revision of the lead that a follower has taken; 0 if it has none.
pub fn led_by(follower: &ConsumerState) -> u64 {
    follower.live.lead.as_ref().map_or(0, |lead| lead.revision)
}

/// The leader's splits whose rows must wait until this follower has met them.
pub fn held(follower: &ConsumerState) -> BTreeSet<SplitId> {
    let is_held = |id: &&SplitId| {
        let place = follower.current().splits.get(*id).map(|split| &split.place);
        follower.live.rounds[*id] >= ROUNDS_FREE_MAX && matches!(place, Some(Place::Next(_)))
    };
    match follower.is_meeting() && follower.mode == Mode::Running {
        true => follower.live.rounds.keys().filter(is_held).cloned().collect(),
        false => BTreeSet::new(),
    }
}

/// Whether the leader's rows of this split are the follower's too.
pub fn has_met(follower: &ConsumerState, split: &SplitId) -> bool {
    let split = follower.current().splits.get(split);
    follower.is_meeting() && split.is_some_and(|split| matches!(split.place, Place::Met { .. }))
}

/// Whether nothing is left that the follower would have to read for itself, as of the lead it was told last. A split
/// that left the listing unread keeps the two apart: it may come back.
pub fn has_met_all(follower: &ConsumerState) -> bool {
    let is_met = |id: &SplitId| has_met(follower, id);
    follower.mode == Mode::Running
        && follower.is_meeting()
        && follower.is_durable(follower.current().activated_in)
        && follower.live.lead.as_ref().is_some_and(|lead| lead.splits.keys().all(is_met))
}

impl ConsumerState {
    /// A consumer that will meet `leader`s rows; otherwise as [`ConsumerState::new`].
    pub fn follower(
        generation: Generation,
        open: Epoch,
        plans: Vec<crate::StagePlan>,
    ) -> ConsumerState {
        let mut state = ConsumerState::new(generation, open, plans);
        state.role = Role::Follows;
        state
    }

    /// A paused follower that stands where the leader stands: what one of the leader's readers becomes when it
    /// alone is paused. Resumed, it reads what it missed and meets the leader again.
    ///
    /// # Panics
    /// If the leader is not in its last stage yet: there is nothing to meet it by.
    pub fn parted(leader: &ConsumerState, generation: Generation) -> ConsumerState {
        assert!(lead(leader).is_some(), "only a leader in its last stage can be met again");
        let mut state = leader.clone();
        let mut live = Live::after(leader.live.durable);
        live.open = leader.live.open;
        live.shaped_in = leader.live.open;
        live.durable_positions = leader.live.durable_positions.clone();
        (state.live, state.role) = (live, Role::Follows);
        (state.mode, state.generation) = (Mode::Paused, generation);
        state.changed_in = leader.live.open;
        // A split that is done is done for whoever takes its rows from the leader.
        let open = leader.live.open;
        for split in state.stage_mut(leader.current_stage()).splits.values_mut() {
            if let Place::Done { .. } = split.place {
                split.place = Place::Met { epoch: open };
            }
        }
        state.check_invariants();
        state
    }

    /// Whether it leads or follows.
    pub fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn is_in_last_stage(&self) -> bool {
        self.current_stage().as_usize() + 1 == self.stages.len()
    }

    /// Whether it is a follower on the stage where it meets its leader.
    pub(crate) fn is_meeting(&self) -> bool {
        self.role == Role::Follows && self.is_in_last_stage()
    }

    /// The starts of the last stage, for a follower that is about to enter it; `None` while the leader is not there.
    pub(crate) fn led_starts(&self) -> Option<Vec<(SplitId, Position)>> {
        let lead = self.live.lead.as_ref()?;
        Some(lead.splits.iter().map(|(id, led)| (id.clone(), led.start.clone())).collect())
    }

    /// Takes note of where the leader stands, and of what is met by that.
    pub(crate) fn led(&mut self, lead: Lead, effects: &mut Vec<Effect>) {
        assert_eq!(self.role, Role::Follows, "a leader is not led");
        let may_meet = self.mode == Mode::Running
            && self.is_meeting()
            && self.is_durable(self.current().activated_in);
        self.live.led_in_vain.extend(lead.splits.keys().cloned());
        let known = match (self.live.lead.take(), lead.extent) {
            (Some(mut known), Extent::Moved) => {
                known.splits.extend(lead.splits);
                Lead { revision: lead.revision, ..known }
            }
            (None, Extent::Moved) => panic!("what moved is told to those who know the rest"),
            (_, Extent::Whole) => lead,
        };
        if may_meet {
            // What is met and has not moved is as it was.
            let mut due = std::mem::take(&mut self.live.led_in_vain);
            let is_met = |split: &Split| matches!(split.place, Place::Met { .. });
            let unmet = self.current().splits.iter().filter(|(_, split)| !is_met(split));
            due.extend(unmet.map(|(id, _)| id.clone()));
            for id in due {
                if let Some(led) = known.splits.get(&id) {
                    self.meet(&id, led, effects);
                }
            }
        }
        self.live.lead = Some(known);
    }

    fn meet(&mut self, id: &SplitId, led: &LedSplit, effects: &mut Vec<Effect>) {
        let (stage, open) = (self.current_stage(), self.live.open);
        if !self.current().splits.contains_key(id) {
            self.stage_mut(stage).splits.insert(id.clone(), led.split(id, open));
            self.reshape();
        }
        let is_met = |id| match self.current().splits.get(id) {
            Some(split) => matches!(split.place, Place::Met { .. }),
            None => true,
        };
        let is_free = led.after.iter().all(is_met);
        let split = self.stage_mut(stage).splits.get_mut(id).expect("it was just made sure");
        if matches!(split.place, Place::Met { .. }) {
            // Whose rows come from the leader has the leader's watermark.
            split.watermark = split.watermark.max(led.watermark);
        }
        match (&split.place, led.listed) {
            // Met before its predecessors, its rows would come before theirs.
            (Place::Next(next), _) if *next == led.next && is_free => {
                split.place = Place::Met { epoch: open };
                split.removed_in = None;
                self.live.rounds.remove(id);
                self.close_meeting(stage, id, effects);
            }
            (Place::Next(_), Listed::Removed) if split.removed_in.is_none() => {
                split.removed_in = Some(open);
                self.close_meeting(stage, id, effects);
            }
            (Place::Next(_), Listed::There) if split.removed_in.is_some() => {
                split.removed_in = None;
                self.reshape();
            }
            _ => {}
        }
    }

    fn close_meeting(&mut self, stage: StageIndex, id: &SplitId, effects: &mut Vec<Effect>) {
        if self.live.readers.remove(id).is_some() {
            effects.push(Effect::CloseSplit { stage, split: id.clone() });
        }
        self.reshape();
    }

    /// A round is over: the reader came to where the leader stood when it was opened.
    pub(crate) fn round_done(&mut self, split: &SplitId) {
        *self.live.rounds.entry(split.clone()).or_default() += 1;
    }

    /// How far a follower may read a split now; `None` when there is nothing to read.
    pub(crate) fn round_until(&self, id: &SplitId, next: &Position) -> Option<Position> {
        let led = self.live.lead.as_ref()?.splits.get(id)?;
        (led.listed == Listed::There && led.next != *next).then(|| led.next.clone())
    }

    /// A paused follower takes nothing from its leader: its splits stand where the leader's do.
    pub(crate) fn part(&mut self) {
        let Some(lead) = self.live.lead.take() else { return };
        let stage = self.current_stage();
        for (id, split) in &mut self.stage_mut(stage).splits {
            if let (Place::Met { .. }, Some(led)) = (&split.place, lead.splits.get(id)) {
                split.place = Place::Next(led.next.clone());
            }
        }
        self.live.rounds.clear();
    }
}

impl LedSplit {
    /// The split as a follower that has not heard of it takes it: both begin at its start.
    fn split(&self, id: &SplitId, open: Epoch) -> Split {
        let plan = SplitPlan {
            id: id.clone(),
            start: SplitStart::At(self.start.clone()),
            bound: self.bound.clone(),
            after: self.after.clone(),
        };
        Split::new(plan, open)
    }
}
