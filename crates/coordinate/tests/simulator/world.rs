//! The outside as a script: which splits a stage has, what lies in them, and what is visible at
//! which tick.
//!
//! Words defined here: *tick* (how far the outside has moved; nothing in it moves back), *item* (a
//! row, or a marker that nobody ever sees), *end kind* (who knows where a split ends, and when).
//! Invariant: the script alone says which rows exist, so a run can be compared with the truth.

use segue_coordinate::{SplitPlan, SplitStart, StagePlan, StageStart};
use segue_types::{Boundedness, Position, SplitId};

/// The tick after which nothing changes any more.
pub const LAST_TICK: usize = 6;

pub struct World {
    pub stages: Vec<StageScript>,
    pub tick: usize,
}

pub struct StageScript {
    pub boundedness: Boundedness,
    pub start: StageStart,
    /// Its handoff goes on at the ends of the predecessor's splits; otherwise the answer says where.
    pub follows_log: bool,
    pub splits: Vec<SplitScript>,
    /// Since which tick a listing says that it is the last. 0: pinned so.
    pub sealed_at: usize,
}

#[derive(Clone)]
pub struct SplitScript {
    pub id: SplitId,
    pub after: Vec<usize>,
    /// Since which tick it is listed. 0: it is part of the pinned definition.
    pub listed_at: usize,
    /// The ticks in which the listing flaps and lacks it.
    pub missing: std::ops::Range<usize>,
    /// It leaves the listing when the store says that it is done.
    pub expires: bool,
    /// Where the stage must start it.
    pub first: usize,
    /// Where the split itself begins: what a listing says of one that is not part of the pin.
    pub beginning: usize,
    pub items: Vec<Item>,
    pub growing: bool,
    /// Since which tick what lies before an offset is gone.
    pub trimmed: (usize, usize),
    pub end: EndKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Row,
    Marker,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// It has none: a continuous read.
    Open,
    /// The listing gives a bound since this tick.
    Bound { since: usize },
    /// Its reader finds out by itself: a file.
    Found,
}

/// A row is where it comes from. The order of fields is the order of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub stage: usize,
    pub split: usize,
    pub offset: usize,
}

/// Positions whose text does not sort as they do.
pub fn position(offset: usize) -> Position {
    Position::new(format!("{:x}!{offset}", (offset * 7 + 3) % 16))
}

pub fn offset(position: &Position) -> usize {
    let (_, offset) = position.as_str().split_once('!').expect("it was made by `position`");
    offset.parse().expect("it was made by `position`")
}

impl SplitScript {
    pub fn last(&self) -> usize {
        self.first + self.items.len()
    }

    /// The offset up to which items exist at this tick.
    pub fn available(&self, tick: usize) -> usize {
        match self.growing {
            true => self.first + self.items.len() * tick.min(LAST_TICK) / LAST_TICK,
            false => self.last(),
        }
    }

    /// The first offset that is still there at this tick.
    pub fn kept(&self, tick: usize) -> usize {
        let (since, first) = self.trimmed;
        if tick < since { self.first } else { first.clamp(self.first, self.available(tick)) }
    }

    pub fn item(&self, offset: usize) -> Item {
        self.items[offset - self.first]
    }

    pub fn rows(&self) -> usize {
        self.items.iter().filter(|item| **item == Item::Row).count()
    }

    fn plan(&self, stage: &StageScript, tick: usize) -> SplitPlan {
        let start = match stage.start {
            StageStart::Handoff if self.listed_at == 0 => SplitStart::FromHandoff,
            _ if self.listed_at == 0 => SplitStart::At(position(self.first)),
            _ => SplitStart::At(position(self.beginning)),
        };
        let bound = match self.end {
            EndKind::Bound { since } if since <= tick => Some(position(self.last())),
            _ => None,
        };
        let after = self.after.iter().map(|index| stage.splits[*index].id.clone()).collect();
        SplitPlan { id: self.id.clone(), start, bound, after }
    }
}

impl StageScript {
    pub fn index(&self, id: &SplitId) -> usize {
        self.splits.iter().position(|split| split.id == *id).expect("the script knows the split")
    }

    /// What was pinned.
    pub fn plan(&self) -> StagePlan {
        StagePlan {
            boundedness: self.boundedness,
            start: self.start,
            splits: (self.splits.iter())
                .filter(|split| split.listed_at == 0)
                .map(|split| split.plan(self, 0))
                .collect(),
            sealed: self.sealed_at == 0,
        }
    }

    /// A listing at this tick.
    pub fn listing(&self, tick: usize, has_expired: impl Fn(&SplitId) -> bool) -> Vec<SplitPlan> {
        (self.splits.iter())
            .filter(|split| split.listed_at <= tick && !split.missing.contains(&tick))
            .filter(|split| !(split.expires && has_expired(&split.id)))
            .map(|split| split.plan(self, tick))
            .collect()
    }

    /// The connector's derivation: a log goes on at the predecessor's ends; what appeared since the pin
    /// starts at its beginning.
    pub fn derive(&self, tick: usize, ends: &[(SplitId, Position)]) -> Vec<(SplitId, Position)> {
        let end = |split: &SplitScript| {
            let end = ends.iter().find(|(id, _)| self.follows_log && *id == split.id);
            end.map(|(_, end)| end.clone())
        };
        let start = |split: &SplitScript| end(split).unwrap_or(position(split.first));
        let is_there =
            |split: &SplitScript| split.listed_at <= tick && !split.missing.contains(&tick);
        (self.splits.iter())
            .filter(|split| split.listed_at == 0 || end(split).is_some() || is_there(split))
            .map(|split| (split.id.clone(), start(split)))
            .collect()
    }
}
