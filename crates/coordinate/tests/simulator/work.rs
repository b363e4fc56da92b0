//! The fake connectors' side: readers, discoveries and handoffs that run somewhere and report when
//! they like.
//!
//! Invariant: a reader delivers its split's items in order from where it was opened, numbers what
//! it delivers, and tells positions also when no row was visible.

use segue_coordinate::{Assignment, Event, Gap, Report};
use segue_types::{Position, SplitId, StageIndex};

use crate::rng::Rng;
use crate::world::{EndKind, Item, Row, SplitScript, World, offset, position};

/// What is on its way to the step thread.
#[derive(Clone)]
pub struct Message {
    pub event: Event,
    /// What the event accounts for: rows that it brings, or rows that it says are gone.
    pub rows: Vec<Row>,
}

pub struct Reader {
    pub assignment: Assignment,
    pub stage: usize,
    pub split: usize,
    pub id: SplitId,
    pub next: usize,
    pub until: Option<usize>,
    pub sequence: u64,
}

pub struct Discovery {
    pub assignment: Assignment,
    pub stage: usize,
    pub sequence: u64,
}

pub struct Handoff {
    pub assignment: Assignment,
    pub to: usize,
    /// `None`: the starts are pinned and only checked.
    pub ends: Option<Vec<(SplitId, Position)>>,
}

/// What a reader does when it is polled.
pub enum Polled {
    Delivered(Message),
    /// It delivered its last.
    Finished(Message),
    Empty,
}

pub fn stage_index(stage: usize) -> StageIndex {
    StageIndex(u16::try_from(stage).expect("a world has few stages"))
}

impl Reader {
    /// Reads up to three items further.
    pub fn poll(&mut self, world: &World, rng: &mut Rng) -> Polled {
        let script = &world.stages[self.stage].splits[self.split];
        let visible = script.available(world.tick).min(self.until.unwrap_or(usize::MAX));
        let kept = script.kept(world.tick).min(self.until.unwrap_or(usize::MAX));
        if self.next < kept {
            return Polled::Finished(self.skipped(script, kept));
        }
        if self.next < visible {
            let to = visible.min(self.next + rng.between(1, 3));
            let rows = self.rows(script, to);
            self.next = to;
            let next = position(to);
            let (report, stage, split) = self.report();
            return Polled::Delivered(Message {
                event: Event::Progressed { report, stage, split, next },
                rows,
            });
        }
        let is_end = match script.end {
            EndKind::Found => self.next == script.last(),
            EndKind::Bound { .. } | EndKind::Open => self.until.is_some_and(|end| self.next >= end),
        };
        if is_end { Polled::Finished(self.done()) } else { Polled::Empty }
    }

    fn rows(&self, script: &SplitScript, to: usize) -> Vec<Row> {
        let is_row = |at: &usize| script.item(*at) == Item::Row;
        let row = |offset| Row { stage: self.stage, split: self.split, offset };
        (self.next..to).filter(is_row).map(row).collect()
    }

    /// What it was to read up to `to` is gone.
    fn skipped(&mut self, script: &SplitScript, to: usize) -> Message {
        let rows = self.rows(script, to);
        let records = Some((to - self.next) as u64);
        let gap = Gap { from: position(self.next), to: position(to), records };
        let (report, stage, split) = self.report();
        Message { event: Event::Skipped { report, stage, split, gap }, rows }
    }

    pub fn done(&mut self) -> Message {
        let at = position(self.next);
        let (report, stage, split) = self.report();
        Message { event: Event::SplitDone { report, stage, split, at }, rows: Vec::new() }
    }

    /// The connection is lost, the reader is gone, nothing is complete.
    pub fn ended(&mut self) -> Message {
        let (report, stage, split) = self.report();
        Message { event: Event::ReaderEnded { report, stage, split }, rows: Vec::new() }
    }

    fn report(&mut self) -> (Report, StageIndex, SplitId) {
        self.sequence += 1;
        let report = Report { assignment: self.assignment, sequence: self.sequence };
        (report, stage_index(self.stage), self.id.clone())
    }
}

impl Discovery {
    pub fn list(&mut self, world: &World, has_expired: impl Fn(&SplitId) -> bool) -> Message {
        self.sequence += 1;
        let report = Report { assignment: self.assignment, sequence: self.sequence };
        let script = &world.stages[self.stage];
        let splits = script.listing(world.tick, has_expired);
        let sealed = script.sealed_at <= world.tick;
        let stage = stage_index(self.stage);
        Message { event: Event::Discovered { report, stage, splits, sealed }, rows: Vec::new() }
    }
}

impl Handoff {
    /// Checks that the ends are the truth, and answers.
    pub fn answer(&self, world: &World) -> Result<Message, String> {
        let (assignment, stage) = (self.assignment, stage_index(self.to));
        let Some(ends) = &self.ends else {
            return Ok(Message {
                event: Event::StartsChecked { assignment, stage },
                rows: Vec::new(),
            });
        };
        let before = &world.stages[self.to - 1];
        for split in &before.splits {
            let end = ends.iter().find(|(id, _)| *id == split.id).map(|(_, end)| offset(end));
            if end != Some(split.last()) {
                return Err(format!("split {} ended at {end:?}, not {}", split.id, split.last()));
            }
        }
        let starts = world.stages[self.to].derive(world.tick, ends);
        let event = Event::HandoffResolved { assignment, stage, starts };
        Ok(Message { event, rows: Vec::new() })
    }
}
