//! The half of a consumer that dies with the process: who holds which work, and which epochs are
//! under way.
//!
//! Invariant: nothing here is stored, and all of it is rebuilt by `recover` from what is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use segue_types::{Epoch, Generation, Position, SplitId};

use crate::{Assignment, Lead, Report, Verdict};

/// One that commits and one that fills up behind it; further ones merge.
const EPOCHS_IN_FLIGHT_MAX: usize = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// What the running step belongs to. Epoch 0, the empty database, is never open: it marks a
    /// state that was read from the store and not yet recovered.
    pub open: Epoch,
    pub durable: Epoch,
    /// The last epoch in which anything but a position changed.
    pub shaped_in: Epoch,
    /// The number of the last assignment.
    assigned: u64,
    /// The readers of the current stage.
    pub readers: BTreeMap<SplitId, Reader>,
    pub discovery: Option<Discovery>,
    /// The handoff to the stage after the current one.
    pub handoff: Option<Assignment>,
    /// The current stage's completion was made known.
    pub told: Told,
    /// Positions that moved in the open epoch.
    moved: BTreeMap<SplitId, Position>,
    in_flight: VecDeque<(Epoch, BTreeMap<SplitId, Position>)>,
    /// The current stage's durable positions, of splits that ever moved.
    pub durable_positions: BTreeMap<SplitId, Position>,
    /// Where the leader stood last, for a follower.
    pub lead: Option<Lead>,
    /// Counts what followers have to learn of, since the process started.
    pub revision: u64,
    /// The revision in which more than single splits changed.
    pub reshaped_at: u64,
    /// The last revision of each split that changed by itself since then.
    pub revisions: BTreeMap<SplitId, u64>,
    /// Splits of the lead that moved while nothing could be met.
    pub led_in_vain: BTreeSet<SplitId>,
    /// Rounds of a follower, by split that is not met.
    pub rounds: BTreeMap<SplitId, u32>,
    pub dropped: Dropped,
}

/// Reports that did not count, since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    pub stale: u64,
    pub duplicate: u64,
    pub early: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub assignment: Assignment,
    /// The number of the last report that was applied.
    pub applied: u64,
    pub idleness: Idleness,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idleness {
    Active,
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Discovery {
    pub assignment: Assignment,
    pub applied: u64,
}

/// How much of the current stage's end went out as effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Told {
    #[default]
    Nothing,
    StageClosed,
    Completed,
}

impl Live {
    /// The live half of a state that is durable up to `durable`.
    pub fn after(durable: Epoch) -> Live {
        let open = durable.next();
        let (revision, reshaped_at) = (1, 1);
        Live { open, durable, shaped_in: open, revision, reshaped_at, ..Live::default() }
    }

    pub fn is_attached(&self) -> bool {
        self.open > Epoch(0)
    }

    pub fn is_durable(&self, epoch: Epoch) -> bool {
        epoch <= self.durable
    }

    /// A new name for a piece of work.
    pub fn assign(&mut self, generation: Generation) -> Assignment {
        self.assigned += 1;
        Assignment { generation, number: self.assigned }
    }

    /// Takes all work away from its holders.
    pub fn revoke_all(&mut self) {
        self.readers.clear();
        self.discovery = None;
        self.handoff = None;
    }

    /// Forgets the stage that ended.
    ///
    /// # Panics
    /// If a position of that stage is not durable yet: then it was not committed.
    pub fn enter_stage(&mut self) {
        assert!(self.moved.is_empty(), "a complete stage does not move");
        self.revoke_all();
        self.told = Told::Nothing;
        self.durable_positions.clear();
    }

    pub fn moved(&mut self, split: &SplitId, position: &Position) {
        self.moved.insert(split.clone(), position.clone());
        self.changed(split);
    }

    /// A split is not what followers know of it.
    pub fn changed(&mut self, split: &SplitId) {
        self.revision += 1;
        match self.revisions.get_mut(split) {
            Some(revision) => *revision = self.revision,
            None => _ = self.revisions.insert(split.clone(), self.revision),
        }
    }

    /// Any split may be another than followers know.
    pub fn all_changed(&mut self) {
        self.revision += 1;
        self.reshaped_at = self.revision;
        self.revisions.clear();
    }

    pub fn seal(&mut self, epoch: Epoch) {
        let moved = std::mem::take(&mut self.moved);
        if self.in_flight.len() < EPOCHS_IN_FLIGHT_MAX {
            self.in_flight.push_back((epoch, moved));
        } else {
            let (last, positions) = self.in_flight.back_mut().expect("the maximum is not 0");
            *last = epoch;
            positions.extend(moved);
        }
        self.open = epoch.next();
    }

    /// Marks everything up to `epoch` durable and returns the positions that became so.
    pub fn make_durable(&mut self, epoch: Epoch) -> BTreeMap<SplitId, Position> {
        self.durable = epoch;
        let mut positions = BTreeMap::new();
        while self.in_flight.front().is_some_and(|(sealed, _)| *sealed <= epoch) {
            positions.extend(self.in_flight.pop_front().expect("it was just seen").1);
        }
        self.durable_positions.extend(positions.iter().map(|(k, v)| (k.clone(), v.clone())));
        positions
    }

    /// What is left under way of a stage that is committed. Epochs that merged may hold positions
    /// back that became durable with an earlier one of them; here all of them are.
    pub fn make_rest_durable(&mut self) -> BTreeMap<SplitId, Position> {
        assert!(self.moved.is_empty(), "a complete stage does not move");
        self.in_flight.drain(..).flat_map(|(_, positions)| positions).collect()
    }

    /// Whether a reader's numbered report counts.
    pub fn judge_reader(&self, split: &SplitId, report: Report) -> Verdict {
        let Some(reader) = self.readers.get(split) else { return Verdict::Stale };
        if reader.assignment != report.assignment {
            return Verdict::Stale;
        }
        match report.sequence {
            sequence if sequence <= reader.applied => Verdict::Duplicate,
            sequence if sequence == reader.applied + 1 => Verdict::Apply,
            _ => Verdict::Early,
        }
    }

    /// Whether a listing counts. Each listing is whole, so a newer one stands for those it overtook.
    pub fn judge_discovery(&self, report: Report) -> Verdict {
        match self.discovery {
            Some(discovery) if discovery.assignment == report.assignment => {
                if report.sequence > discovery.applied {
                    Verdict::Apply
                } else {
                    Verdict::Duplicate
                }
            }
            _ => Verdict::Stale,
        }
    }

    /// Whether this work is still held by whoever got it.
    pub fn holds(&self, assignment: Assignment) -> bool {
        self.handoff == Some(assignment)
            || self.discovery.is_some_and(|discovery| discovery.assignment == assignment)
            || self.readers.values().any(|reader| reader.assignment == assignment)
    }

    pub fn count_dropped(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Stale => self.dropped.stale += 1,
            Verdict::Duplicate => self.dropped.duplicate += 1,
            Verdict::Early => self.dropped.early += 1,
            Verdict::Apply => unreachable!("an applied report is not dropped"),
        }
    }
}
