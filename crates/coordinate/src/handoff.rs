//! The activation of a stage: from the predecessor's ends to full start positions, recorded once.
//!
//! Invariant: an activated stage has a start for every split, so recovery reads and never derives.

use std::collections::BTreeMap;

use segue_types::{Position, SplitId, StageIndex};

use crate::decide::fail;
use crate::state::Place;
use crate::{ConsumerState, Contradiction, Effect, Role, SplitStart};

impl ConsumerState {
    /// Records where the stage starts. The starts also name splits that appeared since the stage
    /// was pinned.
    pub(crate) fn handoff_resolved(
        &mut self,
        stage: StageIndex,
        starts: Vec<(SplitId, Position)>,
        effects: &mut Vec<Effect>,
    ) {
        let starts: BTreeMap<SplitId, Position> = starts.into_iter().collect();
        match self.refuse_starts(stage, &starts) {
            Some(contradiction) => {
                let failure = self.contradict(stage, contradiction);
                fail(self, failure, effects);
            }
            None => {
                self.take_starts(stage, starts);
                self.activate(stage);
            }
        }
    }

    /// The pinned starts still hold; a follower's are its leader's.
    pub(crate) fn starts_checked(&mut self, stage: StageIndex) {
        let is_last = stage.as_usize() + 1 == self.stages.len();
        if self.role == Role::Follows && is_last {
            let starts =
                self.led_starts().expect("a follower asks when it knows the leader's starts");
            self.take_starts(stage, starts.into_iter().collect());
        }
        self.activate(stage);
    }

    fn refuse_starts(
        &self,
        stage: StageIndex,
        starts: &BTreeMap<SplitId, Position>,
    ) -> Option<Contradiction> {
        let next = self.stage(stage);
        let lacking = next
            .splits
            .iter()
            .find(|(id, split)| split.place == Place::Unknown && !starts.contains_key(*id));
        if let Some((split, _)) = lacking {
            return Some(Contradiction::NoStart { split: split.clone() });
        }
        let unknown = starts.keys().find(|id| !next.splits.contains_key(*id));
        match unknown {
            Some(split) if next.sealed_in.is_some() => {
                Some(Contradiction::SplitAfterSeal { split: split.clone() })
            }
            _ => None,
        }
    }

    fn take_starts(&mut self, stage: StageIndex, starts: BTreeMap<SplitId, Position>) {
        let next = self.stage_mut(stage);
        for (id, start) in starts {
            match next.splits.get_mut(&id) {
                Some(split) => {
                    split.start = SplitStart::At(start.clone());
                    split.place = Place::Next(start);
                }
                None => {
                    next.starts.insert(id, start);
                }
            }
        }
    }

    /// Writes the activation record. Nothing of the stage is read before this epoch is durable.
    ///
    /// # Panics
    /// If the predecessor is not durably complete, or the stage is already active.
    pub(crate) fn activate(&mut self, stage: StageIndex) {
        assert_eq!(self.current_stage().next(), stage, "stages are activated in order");
        assert!(self.is_durable(self.current().drained_in()), "the predecessor is committed");
        let open = self.live.open;
        let next = self.stage_mut(stage);
        next.activated_in = Some(open);
        for split in next.splits.values_mut() {
            split.found_in = open;
        }
        self.live.enter_stage();
        self.reshape();
    }
}
