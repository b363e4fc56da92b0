//! The consumer's state: what is stored with each epoch, and the live half that is not.
//!
//! Words defined here: *current stage* (the last one that was activated), *drained in* (the epoch
//! in which the last fact that completes a stage was recorded), *place* (where a split stands).
//! Invariant: every fact that something waits for carries the epoch it was recorded in; it holds
//! durably when that epoch is durable. Nothing derived is stored.

use std::collections::BTreeMap;

use segue_types::{Boundedness, Epoch, Generation, Position, SplitId, StageIndex};
use serde::{Deserialize, Serialize};

use crate::live::{Dropped, Live};
use crate::{
    Assignment, Cause, Contradiction, Failure, Gaps, Role, SplitPlan, SplitStart, StagePlan,
    StageStart,
};

/// One consumer. Serialized, it is the record that belongs to the epoch at whose end it is taken; read
/// back, it must go through [`crate::recover`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConsumerState {
    version: FormatVersion,
    pub(crate) generation: Generation,
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) role: Role,
    pub(crate) changed_in: Epoch,
    pub(crate) stages: Vec<Stage>,
    /// How far the watermark has come, in microseconds since 1970; it never falls.
    #[serde(default)]
    pub(crate) watermark: Option<i64>,
    #[serde(skip)]
    pub(crate) live: Live,
}

/// Whether the consumer reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Running,
    Paused,
    Failed(Failure),
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stage {
    pub boundedness: Boundedness,
    pub start: StageStart,
    /// Since when the set of splits is closed.
    pub sealed_in: Option<Epoch>,
    /// The activation record: from here on every split of the stage has a start. Splits found in
    /// this very epoch are the initial ones; the first discovery is finished with it.
    pub activated_in: Option<Epoch>,
    pub splits: BTreeMap<SplitId, Split>,
    /// Starts that the handoff gave to splits that no definition describes yet: which bound and which
    /// predecessors they have is known when they are listed.
    pub starts: BTreeMap<SplitId, Position>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Split {
    pub found_in: Epoch,
    pub start: SplitStart,
    pub place: Place,
    pub bound: Option<Position>,
    pub after: Vec<SplitId>,
    /// Since when the listing lacks it. A tombstone: if the split comes back, reading goes on at
    /// its place.
    pub removed_in: Option<Epoch>,
    /// The split's own watermark, as of the rows that were applied.
    #[serde(default)]
    pub watermark: Option<i64>,
    #[serde(default)]
    pub gaps: Gaps,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// The handoff will say.
    Unknown,
    Next(Position),
    /// The leader's place is this follower's.
    Met {
        epoch: Epoch,
    },
    Done {
        at: Position,
        epoch: Epoch,
    },
}

/// The format of the stored record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
struct FormatVersion;

impl FormatVersion {
    const CURRENT: u16 = 1;
}

impl From<FormatVersion> for u16 {
    fn from(FormatVersion: FormatVersion) -> u16 {
        FormatVersion::CURRENT
    }
}

impl TryFrom<u16> for FormatVersion {
    type Error = String;

    fn try_from(version: u16) -> Result<FormatVersion, String> {
        if version == FormatVersion::CURRENT {
            Ok(FormatVersion)
        } else {
            Err(format!(
                "consumer record has version {version}, expected {}",
                FormatVersion::CURRENT
            ))
        }
    }
}

impl ConsumerState {
    /// A consumer that is created in epoch `open`. It asks for nothing until that epoch is durable,
    /// so that what was pinned is stored before the first byte is read.
    ///
    /// # Panics
    /// If the plan breaks what the planner guarantees: at least one stage, all but the last bounded,
    /// the first one pinned, distinct splits, no cycle among them.
    pub fn new(generation: Generation, open: Epoch, plans: Vec<StagePlan>) -> ConsumerState {
        assert!(open > Epoch(0), "epoch 0 is the empty database");
        let mut stages: Vec<Stage> =
            plans.into_iter().map(|plan| Stage::planned(plan, open)).collect();
        let first = stages.first_mut().expect("a consumer has at least one stage");
        first.activated_in = Some(open);
        let durable = Epoch(open.0 - 1);
        let live = Live::after(durable);
        let version = FormatVersion;
        let mode = Mode::Running;
        let role = Role::Leads;
        let state = ConsumerState {
            version,
            generation,
            mode,
            role,
            changed_in: open,
            stages,
            watermark: None,
            live,
        };
        state.check_invariants();
        state
    }

    /// The last epoch in which the stored content changed: the state must be written with it.
    pub fn changed_in(&self) -> Epoch {
        self.changed_in
    }

    /// Whether the next decision waits for the open epoch to become durable, so that it pays to
    /// seal it soon.
    pub fn wants_seal(&self) -> bool {
        self.live.shaped_in >= self.live.open
    }

    /// The generation of the assignments that hold.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The stage that is read now, or was read last.
    pub fn current_stage(&self) -> StageIndex {
        let activated = self.stages.iter().filter(|stage| stage.activated_in.is_some()).count();
        let last =
            activated.checked_sub(1).expect("the first stage is activated from the beginning");
        StageIndex(u16::try_from(last).expect("stages are counted in 16 bits"))
    }

    /// Reports that did not count, since the process started.
    pub fn dropped(&self) -> Dropped {
        self.live.dropped
    }

    pub(crate) fn stage(&self, stage: StageIndex) -> &Stage {
        self.stages.get(stage.as_usize()).expect("stage indexes come from the consumer's own plan")
    }

    pub(crate) fn stage_mut(&mut self, stage: StageIndex) -> &mut Stage {
        self.stages
            .get_mut(stage.as_usize())
            .expect("stage indexes come from the consumer's own plan")
    }

    pub(crate) fn current(&self) -> &Stage {
        self.stage(self.current_stage())
    }

    pub(crate) fn is_durable(&self, epoch: Option<Epoch>) -> bool {
        epoch.is_some_and(|epoch| self.live.is_durable(epoch))
    }

    pub(crate) fn assign(&mut self) -> Assignment {
        self.live.assign(self.generation)
    }

    /// A position changed in the open epoch.
    pub(crate) fn touch(&mut self) {
        self.changed_in = self.live.open;
    }

    /// More than a position changed in the open epoch.
    pub(crate) fn reshape(&mut self) {
        self.touch();
        self.live.all_changed();
        self.live.shaped_in = self.live.open;
    }

    pub(crate) fn contradict(&self, stage: StageIndex, contradiction: Contradiction) -> Failure {
        Failure { stage, cause: Cause::Contradiction(contradiction), epoch: self.live.open }
    }
}

impl Stage {
    fn planned(plan: StagePlan, open: Epoch) -> Stage {
        let bounded = plan.boundedness == Boundedness::Bounded;
        let count = plan.splits.len();
        let splits: BTreeMap<SplitId, Split> = plan
            .splits
            .into_iter()
            .map(|split| (split.id.clone(), Split::new(split, open)))
            .collect();
        assert_eq!(splits.len(), count, "split ids are unique within a stage");
        Stage {
            boundedness: plan.boundedness,
            start: plan.start,
            sealed_in: (bounded && plan.sealed).then_some(open),
            activated_in: None,
            splits,
            starts: BTreeMap::new(),
        }
    }

    /// The epoch in which the stage became complete; `None` while it is not. A stage without splits
    /// is complete as soon as it is sealed and activated.
    pub fn drained_in(&self) -> Option<Epoch> {
        let mut last = self.sealed_in?.max(self.activated_in?);
        for split in self.splits.values() {
            last = last.max(split.done_in()?);
        }
        Some(last)
    }

    /// A split of a cycle of predecessors, if there is one.
    pub fn cycle(&self) -> Option<&SplitId> {
        let mut waiting: BTreeMap<&SplitId, &Split> = (self.splits.iter())
            .filter(|(_, split)| !split.after.is_empty() && split.done_in().is_none())
            .collect();
        loop {
            let blocked: BTreeMap<&SplitId, &Split> = (waiting.iter())
                .filter(|(_, split)| split.after.iter().any(|id| waiting.contains_key(id)))
                .map(|(id, split)| (*id, *split))
                .collect();
            if blocked.len() == waiting.len() {
                return blocked.keys().next().copied();
            }
            waiting = blocked;
        }
    }
}

impl Split {
    pub fn new(plan: SplitPlan, open: Epoch) -> Split {
        let place = match &plan.start {
            SplitStart::At(start) => Place::Next(start.clone()),
            SplitStart::FromHandoff => Place::Unknown,
        };
        let SplitPlan { id: _, start, bound, after } = plan;
        let (removed_in, watermark, gaps) = (None, None, Gaps::default());
        Split { found_in: open, start, place, bound, after, removed_in, watermark, gaps }
    }

    /// The next position to read; the end of a split that is done.
    pub fn position(&self) -> Option<&Position> {
        match &self.place {
            Place::Unknown | Place::Met { .. } => None,
            Place::Next(next) => Some(next),
            Place::Done { at, .. } => Some(at),
        }
    }

    pub fn done_in(&self) -> Option<Epoch> {
        match &self.place {
            Place::Done { epoch, .. } => Some(*epoch),
            Place::Unknown | Place::Next(_) | Place::Met { .. } => None,
        }
    }
}
