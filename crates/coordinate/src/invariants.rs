//! What holds for every state: checked when one is made and when one is read back; the simulator
//! checks it after every action. It looks at every split, so `decide` itself does not.

use segue_types::Boundedness;

use crate::state::{Place, Split, Stage};
use crate::{ConsumerState, Role, StageStart};

impl ConsumerState {
    /// Checks what `decide` keeps true.
    ///
    /// # Panics
    /// If an invariant is broken: then `decide` is wrong, or the record was damaged past its checksum.
    pub fn check_invariants(&self) {
        let current = self.current_stage().as_usize();
        let (last, before) = self.stages.split_last().expect("a consumer has at least one stage");
        for stage in before {
            assert!(stage.boundedness == Boundedness::Bounded, "only the last stage is continuous");
        }
        assert!(
            last.boundedness == Boundedness::Bounded || last.sealed_in.is_none(),
            "a continuous stage is never sealed"
        );
        for (index, stage) in self.stages.iter().enumerate() {
            assert_eq!(
                index <= current,
                stage.activated_in.is_some(),
                "stages are activated in order"
            );
            check_stage(stage);
        }
        for pair in self.stages[..=current].windows(2) {
            let drained = pair[0].drained_in().expect("a stage that was left is complete");
            let activated = pair[1].activated_in.expect("it lies before the current one");
            assert!(drained < activated, "an activation follows the durable end before it");
        }
        let is_met = |split: &Split| matches!(split.place, Place::Met { .. });
        for (index, stage) in self.stages.iter().enumerate() {
            let may_meet = self.role == Role::Follows && index + 1 == self.stages.len();
            assert!(
                may_meet || !stage.splits.values().any(is_met),
                "a leader is met in its last stage"
            );
        }
        for id in self.live.readers.keys() {
            let split = &self.current().splits[id];
            assert!(matches!(split.place, Place::Next(_)), "what is read has somewhere to go on");
            assert!(split.removed_in.is_none(), "a removed split is not read");
        }
    }
}

fn check_stage(stage: &Stage) {
    assert_eq!(stage.cycle(), None, "predecessors form no cycle");
    for split in stage.splits.values() {
        if stage.activated_in.is_some() {
            assert!(split.place != Place::Unknown, "an active stage knows all starts");
        } else {
            assert!(split.done_in().is_none(), "a stage is active before it is read");
            let is_known = split.place != Place::Unknown;
            assert!(is_known || stage.start == StageStart::Handoff, "a pinned split has a start");
        }
        let Some(done) = split.done_in() else { continue };
        assert!(split.found_in < done, "a split is recorded before it is read");
        for predecessor in split.after.iter().filter_map(|id| stage.splits.get(id)) {
            // A predecessor that was heard of later than its successor could not hold it back.
            if predecessor.found_in <= split.found_in {
                let end = predecessor.done_in().expect("a predecessor is done first");
                assert!(end < done, "a predecessor's end is durable before its successor starts");
            }
        }
    }
}
