//! What a listing of splits means: new ones, bounds that became known, ones that are gone or back.
//!
//! Invariant: after the first discovery a split that the handoff did not name starts at its
//! beginning, as the connector gives it, whatever the stage's own start was. A split that was
//! created later holds only what the consumer has not seen.

use std::collections::BTreeSet;

use segue_types::{Boundedness, Position, SplitId, StageIndex};

use crate::decide::fail;
use crate::live::Discovery;
use crate::state::{Place, Split};
use crate::{ConsumerState, Contradiction, Effect, Report, SplitPlan, SplitStart};

impl ConsumerState {
    /// Takes a whole listing of the current stage.
    pub(crate) fn discovered(
        &mut self,
        report: Report,
        stage: StageIndex,
        splits: Vec<SplitPlan>,
        sealed: bool,
        effects: &mut Vec<Effect>,
    ) {
        assert_eq!(stage, self.current_stage(), "only the current stage is discovered");
        self.live.discovery =
            Some(Discovery { assignment: report.assignment, applied: report.sequence });
        let listed: BTreeSet<SplitId> = splits.iter().map(|split| split.id.clone()).collect();
        let before = self.stage(stage).splits.clone();
        let outcome = self.merge(stage, splits, effects).and_then(|()| {
            self.remove_missing(stage, &listed, effects)?;
            match self.stage(stage).cycle() {
                Some(split) => Err(Contradiction::Cycle { split: split.clone() }),
                None => Ok(()),
            }
        });
        match outcome {
            Ok(()) if sealed => self.seal_stage(stage),
            Ok(()) => {}
            Err(contradiction) => {
                // A listing counts as a whole or not at all.
                self.stage_mut(stage).splits = before;
                let failure = self.contradict(stage, contradiction);
                fail(self, failure, effects);
            }
        }
    }

    fn seal_stage(&mut self, stage: StageIndex) {
        let open = self.live.open;
        let current = self.stage_mut(stage);
        if current.boundedness == Boundedness::Bounded && current.sealed_in.is_none() {
            current.sealed_in = Some(open);
            self.live.discovery = None;
            self.reshape();
        }
    }

    fn merge(
        &mut self,
        stage: StageIndex,
        splits: Vec<SplitPlan>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Contradiction> {
        for plan in splits {
            let SplitPlan { id, bound, .. } = &plan;
            if self.stage(stage).splits.contains_key(id) {
                self.list_again(stage, id, bound.as_ref(), effects)?;
            } else {
                self.insert(stage, plan)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, stage: StageIndex, mut plan: SplitPlan) -> Result<(), Contradiction> {
        let split = plan.id.clone();
        if self.stage(stage).sealed_in.is_some() {
            return Err(Contradiction::SplitAfterSeal { split });
        }
        if let Some(start) = self.stage(stage).starts.get(&split) {
            plan.start = SplitStart::At(start.clone());
        }
        if plan.start == SplitStart::FromHandoff {
            return Err(Contradiction::NoStart { split });
        }
        let open = self.live.open;
        self.stage_mut(stage).splits.insert(split, Split::new(plan, open));
        self.reshape();
        Ok(())
    }

    /// A known split: it may be back, and its bound may have become known.
    fn list_again(
        &mut self,
        stage: StageIndex,
        id: &SplitId,
        bound: Option<&Position>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Contradiction> {
        let split = self.stage_mut(stage).splits.get_mut(id).expect("the caller looked it up");
        let is_back = split.removed_in.take().is_some();
        let is_done = split.done_in().is_some();
        let news = match (&split.bound, bound) {
            (Some(stored), Some(found)) if stored != found && !is_done => {
                let (stored, found) = (stored.clone(), found.clone());
                return Err(Contradiction::BoundChanged { split: id.clone(), stored, found });
            }
            (None, Some(found)) if !is_done => {
                split.bound = Some(found.clone());
                true
            }
            _ => false,
        };
        if news {
            // The reader does not know its new bound: it is opened again, with it, by `advance`.
            self.close_split(stage, id, effects);
        }
        if news || is_back {
            self.reshape();
        }
        Ok(())
    }

    fn remove_missing(
        &mut self,
        stage: StageIndex,
        listed: &BTreeSet<SplitId>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Contradiction> {
        let missing: Vec<SplitId> = (self.stage(stage).splits.iter())
            .filter(|(id, _)| !listed.contains(*id))
            .map(|(id, _)| id.clone())
            .collect();
        for id in missing {
            if self.is_owed(stage, &id) {
                return Err(Contradiction::Vanished { split: id });
            }
            let open = self.live.open;
            let split = self.stage_mut(stage).splits.get_mut(&id).expect("it is a known split");
            if split.removed_in.is_none() {
                split.removed_in = Some(open);
                self.close_split(stage, &id, effects);
                self.reshape();
            }
        }
        Ok(())
    }

    /// Whether the stage cannot go on without this split's remaining rows: a bounded stage would
    /// never be complete, and a successor would start over a gap.
    fn is_owed(&self, stage: StageIndex, id: &SplitId) -> bool {
        let stage = self.stage(stage);
        if matches!(stage.splits[id].place, Place::Done { .. }) {
            return false;
        }
        stage.boundedness == Boundedness::Bounded
            || stage.splits.values().any(|split| split.after.contains(id))
    }

    fn close_split(&mut self, stage: StageIndex, id: &SplitId, effects: &mut Vec<Effect>) {
        if self.live.readers.remove(id).is_some() {
            effects.push(Effect::CloseSplit { stage, split: id.clone() });
        }
    }
}
