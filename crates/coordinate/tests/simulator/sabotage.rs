//! Ways to be wrong, each of which has cost somebody rows. They live in the simulator's engine, in
//! what it tells the coordinator, and in what it keeps of the state.

use segue_coordinate::{Event, SplitStart};

use crate::world::{World, position};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Rows are applied without asking for the verdict.
    ApplyUnjudged,
    /// A report that overtook another is dropped instead of kept.
    DropEarly,
    /// Some epochs store their rows without the state that belongs to them.
    StateBehindRows,
    /// An epoch is called durable when it is sealed.
    DurableWhenSealed,
    /// After a restart nothing is handed out that was handed out before.
    SignalsOnlyOnce,
    /// The end of what a reader can see now is taken for the end of the split.
    EndOfFileIsDone,
    /// A handoff starts at what is the latest position now.
    HandoffToLatest,
    /// A split that is found later starts at what is the latest position now.
    LaterSplitAtLatest,
    /// Children do not wait for their parents.
    IgnoreParents,
    /// Splits that are done are not kept.
    ForgetDoneSplits,
    /// Positions are only kept of splits that are done.
    ForgetPositions,
    /// A new bound is not passed on to the reader.
    KeepOldBound,
    /// What is gone is passed over and nobody learns of it.
    SilentGap,
}

impl Sabotage {
    pub const ALL: [Sabotage; 13] = [
        Sabotage::ApplyUnjudged,
        Sabotage::DropEarly,
        Sabotage::StateBehindRows,
        Sabotage::DurableWhenSealed,
        Sabotage::SignalsOnlyOnce,
        Sabotage::EndOfFileIsDone,
        Sabotage::HandoffToLatest,
        Sabotage::LaterSplitAtLatest,
        Sabotage::IgnoreParents,
        Sabotage::ForgetDoneSplits,
        Sabotage::ForgetPositions,
        Sabotage::KeepOldBound,
        Sabotage::SilentGap,
    ];

    /// Falsifies what the coordinator is told.
    pub fn tell(self, world: &World, event: &mut Event) {
        match (self, event) {
            (Sabotage::IgnoreParents, Event::Discovered { splits, .. }) => {
                splits.iter_mut().for_each(|split| split.after.clear());
            }
            (Sabotage::LaterSplitAtLatest, Event::Discovered { stage, splits, .. }) => {
                let script = &world.stages[stage.as_usize()];
                for plan in splits {
                    let split = &script.splits[script.index(&plan.id)];
                    if split.listed_at > 0 {
                        plan.start = SplitStart::At(position(split.available(world.tick)));
                    }
                }
            }
            (Sabotage::HandoffToLatest, Event::HandoffResolved { stage, starts, .. }) => {
                let script = &world.stages[stage.as_usize()];
                for (id, start) in starts {
                    *start = position(script.splits[script.index(id)].available(world.tick));
                }
            }
            (Sabotage::KeepOldBound, Event::Discovered { splits, .. }) => {
                splits.iter_mut().for_each(|split| split.bound = None);
            }
            _ => {}
        }
    }

    /// Falsifies what a restart finds.
    pub fn damage(self, state: &mut serde_json::Value) {
        let stages = state["stages"].as_array_mut().expect("a state has stages");
        let splits = stages.iter_mut().filter_map(|stage| stage["splits"].as_object_mut());
        for splits in splits {
            match self {
                Sabotage::ForgetDoneSplits => {
                    splits.retain(|_, split| split["place"].get("done").is_none());
                }
                Sabotage::ForgetPositions => {
                    for split in splits.values_mut() {
                        let start = split["start"].get("at").cloned();
                        if let (Some(next), Some(start)) = (split["place"].get_mut("next"), start) {
                            *next = start;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
