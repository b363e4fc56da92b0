//! The time, as data: read once for each step, and given to the dataflows that ask for it as a mark.
//!
//! Invariant: a dataflow holds the greatest time it was given, and stores it with what followed from it; a clock that
//! goes back changes nothing.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use segue_flow::{Mark, StepInput};
use segue_types::ObjectId;

use crate::relation::{Feed, Inputs, Relation};
use crate::world::World;

/// What is due within this time is done together: each tick may cost an epoch.
const TICK_MIN: Duration = Duration::from_millis(50);

/// Microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

impl Relation {
    fn clock_input(&self) -> Option<usize> {
        self.feeds.iter().position(|feed| matches!(feed, Feed::Clock))
    }

    /// The time, if the dataflow asks for it.
    pub(crate) fn told_time(&self, now_us: i64) -> Option<(usize, StepInput)> {
        Some(self.marked(self.clock_input()?, Mark::At(now_us)))
    }

    /// When time alone changes it next.
    fn due(&self) -> Option<i64> {
        self.clock_input()?;
        let is_maintained = self.failed.is_none() && self.filling.is_none();
        if is_maintained { self.dataflow.due() } else { None }
    }
}

impl World {
    /// How long it takes until time alone changes something.
    pub(crate) fn until_due(&self) -> Option<Duration> {
        let due = self.relations.values().filter_map(Relation::due).min()?;
        let micros = u64::try_from(due.saturating_sub(now_us())).unwrap_or(0);
        Some(Duration::from_micros(micros).max(TICK_MIN))
    }

    /// Lets those relations step that are due.
    pub(crate) fn tick(&self, inputs: &mut BTreeMap<ObjectId, Inputs>) {
        let now = now_us();
        let is_due = |relation: &Relation| relation.due().is_some_and(|due| due <= now);
        for (id, _) in self.relations.iter().filter(|(_, relation)| is_due(relation)) {
            inputs.entry(*id).or_default();
        }
    }
}
