//! Stories, one per scar: each names what went wrong elsewhere and what must happen here.

use segue_types::{Boundedness, Epoch, Generation, Position, PositionOrder, SplitId, StageIndex};

use crate::*;

const FIRST: StageIndex = StageIndex(0);
const SECOND: StageIndex = StageIndex(1);

fn id(name: &str) -> SplitId {
    SplitId::new(name)
}

fn at(position: &str) -> Position {
    Position::new(position)
}

fn split(name: &str, start: &str, bound: Option<&str>, after: &[&str]) -> SplitPlan {
    SplitPlan {
        id: id(name),
        start: SplitStart::At(at(start)),
        bound: bound.map(at),
        after: after.iter().map(|name| id(name)).collect(),
    }
}

fn bounded(splits: Vec<SplitPlan>, sealed: bool) -> StagePlan {
    StagePlan { boundedness: Boundedness::Bounded, start: StageStart::Pinned, splits, sealed }
}

fn continuous(start: StageStart, splits: Vec<SplitPlan>) -> StagePlan {
    StagePlan { boundedness: Boundedness::Continuous, start, splits, sealed: false }
}

/// A consumer with an engine that keeps no record of anything.
struct Driver {
    state: Option<ConsumerState>,
    epoch: Epoch,
    effects: Vec<Effect>,
}

impl Driver {
    fn new(plans: Vec<StagePlan>) -> Driver {
        let state = ConsumerState::new(Generation(1), Epoch(1), plans);
        Driver { state: Some(state), epoch: Epoch(1), effects: Vec::new() }
    }

    fn state(&self) -> &ConsumerState {
        self.state.as_ref().expect("only `decide` takes it")
    }

    fn tell(&mut self, event: Event) -> &[Effect] {
        let state = self.state.take().expect("only `decide` takes it");
        let (state, effects) = decide(state, event);
        state.check_invariants();
        self.state = Some(state);
        self.effects = effects;
        &self.effects
    }

    /// Closes the open epoch and makes it durable.
    fn commit(&mut self) -> &[Effect] {
        let epoch = self.epoch;
        self.epoch = epoch.next();
        assert_eq!(self.tell(Event::EpochSealed { epoch }), []);
        self.tell(Event::EpochDurable { epoch })
    }

    /// Stores the state as of now, dies, and comes back.
    fn restart(&mut self) -> &[Effect] {
        self.tell(Event::EpochSealed { epoch: self.epoch });
        let text = serde_json::to_string(self.state()).expect("a state is plain data");
        let state: ConsumerState = serde_json::from_str(&text).expect("it was just written");
        let generation = state.generation().next();
        let (state, effects) = recover(state, generation, self.epoch);
        self.epoch = self.epoch.next();
        self.state = Some(state);
        self.effects = effects;
        &self.effects
    }

    /// The assignment of the split's last opening among the last effects.
    fn reader(&self, name: &str) -> Assignment {
        let opened = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::OpenSplit { assignment, split, .. } if *split == id(name) => Some(*assignment),
            _ => None,
        });
        opened.unwrap_or_else(|| panic!("{name} was not opened: {:?}", self.effects))
    }

    fn discovery(&self) -> Assignment {
        let started = self.effects.iter().find_map(|effect| match effect {
            Effect::Discover { assignment, .. } => Some(*assignment),
            _ => None,
        });
        started.unwrap_or_else(|| panic!("no discovery: {:?}", self.effects))
    }

    fn handoff(&self) -> Assignment {
        let asked = self.effects.iter().find_map(|effect| match effect {
            Effect::ResolveHandoff { assignment, .. } | Effect::CheckStarts { assignment, .. } => {
                Some(*assignment)
            }
            _ => None,
        });
        asked.unwrap_or_else(|| panic!("no handoff: {:?}", self.effects))
    }
}

fn progressed(assignment: Assignment, sequence: u64, name: &str, next: &str) -> Event {
    let report = Report { assignment, sequence };
    Event::Progressed { report, stage: FIRST, split: id(name), next: at(next) }
}

fn done(assignment: Assignment, sequence: u64, name: &str, end: &str) -> Event {
    let report = Report { assignment, sequence };
    Event::SplitDone { report, stage: FIRST, split: id(name), at: at(end) }
}

fn listed(assignment: Assignment, sequence: u64, splits: Vec<SplitPlan>, sealed: bool) -> Event {
    let report = Report { assignment, sequence };
    Event::Discovered { report, stage: FIRST, splits, sealed }
}

fn opened(effects: &[Effect]) -> Vec<String> {
    let text = |effect: &Effect| match effect {
        Effect::OpenSplit { split, from, until, .. } => {
            let until = until.as_ref().map_or(String::new(), |until| format!("..{until}"));
            Some(format!("{split}@{from}{until}"))
        }
        _ => None,
    };
    effects.iter().filter_map(text).collect()
}

#[test]
fn nothing_is_read_before_the_pinned_start_is_durable() {
    let mut driver =
        Driver::new(vec![continuous(StageStart::Pinned, vec![split("p0", "7", None, &[])])]);
    assert_eq!(driver.tell(Event::Resume), []);
    assert_eq!(opened(driver.commit()), ["p0@7"]);
    assert_eq!(opened(driver.commit()), [""; 0], "an open split is not opened again");
}

#[test]
fn the_next_stage_waits_for_every_reader_and_for_a_durable_end() {
    let files = vec![split("a", "0", Some("3"), &[]), split("b", "0", Some("5"), &[])];
    let handoff = SplitPlan { start: SplitStart::FromHandoff, ..split("p0", "", None, &[]) };
    let mut driver =
        Driver::new(vec![bounded(files, true), continuous(StageStart::Handoff, vec![handoff])]);
    driver.commit();
    let (a, b) = (driver.reader("a"), driver.reader("b"));
    driver.tell(done(a, 1, "a", "3"));
    let one = driver.commit().to_vec();
    assert!(!one.iter().any(|effect| matches!(effect, Effect::ResolveHandoff { .. })), "{one:?}");

    driver.tell(done(b, 1, "b", "5"));
    assert_eq!(stage_status(driver.state())[0].phase, StagePhase::Drained);
    assert_eq!(watermark_status(driver.state()).consumer, Watermark::Held);
    let ends = driver.commit().to_vec();
    let wanted = vec![(id("a"), at("3")), (id("b"), at("5"))];
    assert!(
        ends.iter().any(|e| matches!(e, Effect::ResolveHandoff { ends, .. } if *ends == wanted)),
        "{ends:?}"
    );

    let assignment = driver.handoff();
    let starts = vec![(id("p0"), at("100"))];
    let answer = Event::HandoffResolved { assignment, stage: SECOND, starts };
    assert_eq!(driver.tell(answer.clone()), [], "the activation is not durable yet");
    assert!(driver.state().wants_seal());
    assert_eq!(verdict(driver.state(), &answer), Verdict::Stale, "it is answered once");
    assert_eq!(opened(driver.commit()), ["p0@100"]);
    assert_eq!(stage_status(driver.state())[0].phase, StagePhase::Activated);
    assert!(bounded_stages_complete(driver.state()) && !is_complete(driver.state()));
}

#[test]
fn a_restart_after_the_activation_reads_the_record_and_does_not_derive_again() {
    let handoff = SplitPlan { start: SplitStart::FromHandoff, ..split("p0", "", None, &[]) };
    let mut driver = Driver::new(vec![
        bounded(Vec::new(), true),
        continuous(StageStart::Handoff, vec![handoff]),
    ]);
    driver.commit();
    let assignment = driver.handoff();
    let starts = vec![(id("p0"), at("100"))];
    driver.tell(Event::HandoffResolved { assignment, stage: SECOND, starts });
    let effects = driver.restart().to_vec();
    assert_eq!(opened(&effects), ["p0@100"]);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::ResolveHandoff { .. })));
}

#[test]
fn a_restart_before_the_handoff_asks_for_it_again() {
    let mut driver = Driver::new(vec![
        bounded(Vec::new(), true),
        continuous(StageStart::Pinned, vec![split("p0", "7", None, &[])]),
    ]);
    driver.commit();
    let before = driver.handoff();
    let recovered = driver.restart().to_vec();
    assert!(recovered.iter().any(|effect| matches!(effect, Effect::CheckStarts { .. })));
    let late = Event::StartsChecked { assignment: before, stage: SECOND };
    assert_eq!(verdict(driver.state(), &late), Verdict::Stale);
}

#[test]
fn a_source_of_nothing_is_complete() {
    let mut driver = Driver::new(vec![bounded(Vec::new(), true), bounded(Vec::new(), true)]);
    driver.commit();
    let assignment = driver.handoff();
    driver.tell(Event::StartsChecked { assignment, stage: SECOND });
    assert!(driver.commit().contains(&Effect::Completed));
    assert!(is_complete(driver.state()));
    assert_eq!(watermark_status(driver.state()).consumer, Watermark::Finished);
    assert!(driver.restart().contains(&Effect::Completed), "a restart says it again");
}

#[test]
fn an_empty_listing_is_not_the_end_before_it_is_sealed() {
    let mut driver = Driver::new(vec![bounded(Vec::new(), false)]);
    driver.commit();
    let assignment = driver.discovery();
    driver.tell(listed(assignment, 1, Vec::new(), false));
    driver.commit();
    assert!(!is_complete(driver.state()));
    driver.tell(listed(assignment, 2, Vec::new(), true));
    assert!(driver.commit().contains(&Effect::Completed));
}

#[test]
fn repeated_and_overtaking_reports_change_nothing() {
    let mut driver =
        Driver::new(vec![continuous(StageStart::Pinned, vec![split("p0", "0", None, &[])])]);
    driver.commit();
    let reader = driver.reader("p0");
    let (one, two) = (progressed(reader, 1, "p0", "10"), progressed(reader, 2, "p0", "20"));
    assert_eq!(verdict(driver.state(), &two), Verdict::Early);
    driver.tell(two.clone());
    driver.tell(one.clone());
    assert_eq!(verdict(driver.state(), &one), Verdict::Duplicate);
    driver.tell(two);
    driver.tell(one);
    assert_eq!(positions(driver.state(), FIRST)[&id("p0")], at("20"));
    driver.restart();
    let late = progressed(reader, 3, "p0", "30");
    assert_eq!(verdict(driver.state(), &late), Verdict::Stale);
    driver.tell(late);
    assert_eq!(driver.state().dropped(), Dropped { stale: 1, ..Dropped::default() });
}

#[test]
fn children_start_when_the_ends_of_all_parents_are_durable() {
    let parents = || vec![split("a", "0", Some("3"), &[]), split("b", "0", Some("5"), &[])];
    let mut splits = parents();
    splits.push(split("c", "0", None, &["a", "b", "expired long ago"]));
    let mut driver = Driver::new(vec![continuous(StageStart::Pinned, splits)]);
    assert_eq!(opened(driver.commit()), ["a@0..3", "b@0..5"]);
    let (a, b) = (driver.reader("a"), driver.reader("b"));
    driver.tell(done(a, 1, "a", "3"));
    driver.commit();
    driver.tell(done(b, 1, "b", "5"));
    assert_eq!(opened(&driver.effects), [""; 0]);
    assert_eq!(opened(driver.commit()), ["c@0"]);
    let repeated = done(a, 1, "a", "3");
    assert_eq!(verdict(driver.state(), &repeated), Verdict::Stale);
}

#[test]
fn a_bound_that_is_announced_reaches_the_reader_at_its_place() {
    let mut driver =
        Driver::new(vec![continuous(StageStart::Pinned, vec![split("old", "0", None, &[])])]);
    driver.commit();
    let (reader, discovery) = (driver.reader("old"), driver.discovery());
    driver.tell(progressed(reader, 1, "old", "10"));
    let generation = vec![split("old", "0", Some("50"), &[]), split("new", "50", None, &["old"])];
    let effects = driver.tell(listed(discovery, 1, generation, false)).to_vec();
    assert_eq!(effects[0], Effect::CloseSplit { stage: FIRST, split: id("old") });
    assert_eq!(opened(&effects), ["old@10..50"]);
    let reader = driver.reader("old");
    driver.tell(done(reader, 1, "old", "50"));
    assert_eq!(opened(driver.commit()), ["new@50"]);
}

#[test]
fn a_split_that_flaps_goes_on_where_it_was() {
    let mut driver =
        Driver::new(vec![continuous(StageStart::Pinned, vec![split("p0", "0", None, &[])])]);
    driver.commit();
    let (reader, discovery) = (driver.reader("p0"), driver.discovery());
    driver.tell(progressed(reader, 1, "p0", "10"));
    let effects = driver.tell(listed(discovery, 1, Vec::new(), false)).to_vec();
    assert_eq!(effects, [Effect::CloseSplit { stage: FIRST, split: id("p0") }]);
    assert_eq!(split_status(driver.state())[0].phase, SplitPhase::Removed);
    let back = listed(discovery, 2, vec![split("p0", "0", None, &[])], false);
    assert_eq!(opened(driver.tell(back)), ["p0@10"]);
}

#[test]
fn a_late_listing_does_not_undo_a_newer_one() {
    let mut driver = Driver::new(vec![continuous(StageStart::Pinned, Vec::new())]);
    driver.commit();
    let discovery = driver.discovery();
    driver.tell(listed(discovery, 2, vec![split("p0", "0", None, &[])], false));
    let late = listed(discovery, 1, Vec::new(), false);
    assert_eq!(verdict(driver.state(), &late), Verdict::Duplicate);
    driver.tell(late);
    assert_eq!(opened(driver.commit()), ["p0@0"]);
}

/// Tells a listing that cannot be true and returns the reason that is shown.
fn contradiction(plan: StagePlan, splits: Vec<SplitPlan>) -> String {
    let mut driver = Driver::new(vec![plan]);
    driver.commit();
    let discovery = driver.discovery();
    let effects = driver.tell(listed(discovery, 1, splits, false)).to_vec();
    assert!(matches!(effects.last(), Some(Effect::Fail { .. })), "{effects:?}");
    let Mode::Failed(failure) = mode(driver.state()) else { panic!("it must stand still") };
    failure.to_string()
}

#[test]
fn a_listing_that_contradicts_the_state_stops_the_consumer_with_the_reason() {
    let p0 = || split("p0", "0", None, &[]);
    assert_eq!(
        contradiction(bounded(vec![p0()], false), Vec::new()),
        "split \"p0\" vanished before it was done"
    );
    let child = || split("p1", "0", None, &["p0"]);
    assert_eq!(
        contradiction(continuous(StageStart::Pinned, vec![p0(), child()]), vec![child()]),
        "split \"p0\" vanished before it was done"
    );
    let stage = continuous(StageStart::Pinned, vec![split("p0", "0", Some("3"), &[])]);
    assert_eq!(
        contradiction(stage, vec![split("p0", "0", Some("4"), &[])]),
        "the bound of split \"p0\" changed from 3 to 4"
    );
    let ring = vec![split("a", "0", None, &["b"]), split("b", "0", None, &["a"])];
    assert_eq!(
        contradiction(continuous(StageStart::Pinned, Vec::new()), ring),
        "split \"a\" waits for itself through its predecessors"
    );
    let lost = SplitPlan { start: SplitStart::FromHandoff, ..p0() };
    assert_eq!(
        contradiction(continuous(StageStart::Pinned, Vec::new()), vec![lost]),
        "split \"p0\" has no start"
    );
}

#[test]
fn a_handoff_without_a_start_or_beyond_the_seal_is_refused() {
    let handoff = SplitPlan { start: SplitStart::FromHandoff, ..split("p0", "", None, &[]) };
    let second =
        || StagePlan { start: StageStart::Handoff, ..bounded(vec![handoff.clone()], true) };
    let cases = [
        (Vec::new(), "split \"p0\" has no start"),
        (
            vec![(id("p0"), at("1")), (id("p1"), at("0"))],
            "split \"p1\" appeared after the seal of its stage",
        ),
    ];
    for (starts, reason) in cases {
        let mut driver = Driver::new(vec![bounded(Vec::new(), true), second()]);
        driver.commit();
        let assignment = driver.handoff();
        driver.tell(Event::HandoffResolved { assignment, stage: SECOND, starts });
        let Mode::Failed(failure) = mode(driver.state()) else { panic!("it must stand still") };
        assert_eq!((failure.to_string().as_str(), failure.stage), (reason, SECOND));
        driver.tell(Event::Resume);
        assert_ne!(driver.handoff(), assignment, "it is asked for again");
    }
}

#[test]
fn a_split_that_the_handoff_names_early_starts_there_when_it_is_listed() {
    let second = continuous(StageStart::Handoff, Vec::new());
    let mut driver = Driver::new(vec![bounded(Vec::new(), true), second]);
    driver.commit();
    let assignment = driver.handoff();
    let starts = vec![(id("p1"), at("9"))];
    driver.tell(Event::HandoffResolved { assignment, stage: SECOND, starts });
    driver.commit();
    assert_eq!(watermark_status(driver.state()).consumer, Watermark::Held);
    let report = Report { assignment: driver.discovery(), sequence: 1 };
    let splits = vec![split("p1", "0", None, &[]), split("p2", "0", None, &[])];
    driver.tell(Event::Discovered { report, stage: SECOND, splits, sealed: false });
    assert_eq!(watermark_status(driver.state()).consumer, Watermark::Active);
    assert_eq!(opened(driver.commit()), ["p1@9", "p2@0"]);
}

#[test]
fn only_durable_positions_are_released_also_when_epochs_merge() {
    let mut driver =
        Driver::new(vec![continuous(StageStart::Pinned, vec![split("p0", "0", None, &[])])]);
    driver.commit();
    let reader = driver.reader("p0");
    for (sequence, epoch) in (1..).zip(2..=5) {
        driver.tell(progressed(reader, sequence, "p0", &format!("{sequence}0")));
        driver.tell(Event::EpochSealed { epoch: Epoch(epoch) });
    }
    driver.tell(progressed(reader, 5, "p0", "50"));
    let released = |position: &str| Effect::Acknowledge {
        stage: FIRST,
        positions: vec![(id("p0"), at(position))],
    };
    let numeric = |a: &Position, b: &Position| PositionOrder::from(a.as_str().cmp(b.as_str()));
    let forty = [(id("p0"), at("40"))];
    assert_eq!(driver.tell(Event::EpochDurable { epoch: Epoch(2) }), [released("10")]);
    assert!(!reached(driver.state(), None, FIRST, &forty, numeric));
    assert_eq!(driver.tell(Event::EpochDurable { epoch: Epoch(5) }), [released("40")]);
    assert!(reached(driver.state(), None, FIRST, &forty, numeric));
    assert!(
        !reached(driver.state(), None, FIRST, &[(id("p9"), at("0"))], numeric),
        "unknown split"
    );
    assert_eq!(
        driver.tell(Event::EpochDurable { epoch: Epoch(4) }),
        [],
        "told late, known long ago"
    );
}

#[test]
fn pause_and_resume_keep_the_place_and_survive_a_restart() {
    let mut driver =
        Driver::new(vec![continuous(StageStart::Pinned, vec![split("p0", "0", None, &[])])]);
    driver.commit();
    let reader = driver.reader("p0");
    driver.tell(progressed(reader, 1, "p0", "10"));
    assert_eq!(driver.tell(Event::Pause), [Effect::CloseStage { stage: FIRST }]);
    assert_eq!(verdict(driver.state(), &progressed(reader, 2, "p0", "20")), Verdict::Stale);
    assert_eq!(watermark_status(driver.state()).consumer, Watermark::Held);
    assert_eq!(opened(driver.restart()), [""; 0]);
    assert_eq!(*mode(driver.state()), Mode::Paused);
    assert_eq!(opened(driver.tell(Event::Resume)), ["p0@10"]);
}

#[test]
fn a_failure_is_shown_and_only_a_retriable_one_ends_with_a_restart() {
    for (retriable, reopened) in [(true, vec!["p0@0"]), (false, vec![])] {
        let mut driver =
            Driver::new(vec![continuous(StageStart::Pinned, vec![split("p0", "0", None, &[])])]);
        driver.commit();
        let by = FailedBy::Work(driver.reader("p0"));
        let message = "could not reach kafka".to_owned();
        driver.tell(Event::Failed { by, stage: FIRST, message, retriable });
        assert!(
            matches!(mode(driver.state()), Mode::Failed(f) if f.to_string() == "could not reach kafka")
        );
        assert_eq!(opened(driver.restart()), reopened);
        if !retriable {
            assert_eq!(opened(driver.tell(Event::Resume)), ["p0@0"]);
        }
    }
}

#[test]
fn a_lost_reader_is_replaced_and_its_end_is_not_the_splits_end() {
    let mut driver = Driver::new(vec![bounded(vec![split("a", "0", Some("9"), &[])], true)]);
    driver.commit();
    let reader = driver.reader("a");
    driver.tell(progressed(reader, 1, "a", "4"));
    let report = Report { assignment: reader, sequence: 2 };
    let ended = Event::ReaderEnded { report, stage: FIRST, split: id("a") };
    assert_eq!(opened(driver.tell(ended)), ["a@4..9"]);
}

#[test]
fn an_idle_split_constrains_nobody_until_it_delivers() {
    let mut driver =
        Driver::new(vec![continuous(StageStart::Pinned, vec![split("p0", "0", None, &[])])]);
    driver.commit();
    let assignment = driver.reader("p0");
    assert_eq!(watermark_status(driver.state()).consumer, Watermark::Active);
    driver.tell(Event::Idle { assignment, stage: FIRST, split: id("p0") });
    assert_eq!(watermark_status(driver.state()).consumer, Watermark::Idle);
    driver.tell(progressed(assignment, 1, "p0", "1"));
    assert_eq!(watermark_status(driver.state()).consumer, Watermark::Active);
}

#[test]
fn what_did_not_change_is_not_written() {
    let mut driver =
        Driver::new(vec![continuous(StageStart::Pinned, vec![split("p0", "0", None, &[])])]);
    driver.commit();
    let reader = driver.reader("p0");
    driver.commit();
    assert_eq!(driver.state().changed_in(), Epoch(1));
    driver.tell(progressed(reader, 1, "p0", "1"));
    assert_eq!(driver.state().changed_in(), Epoch(3));
    assert!(!driver.state().wants_seal(), "a position alone is in no hurry");
}

#[test]
fn a_record_of_another_version_is_refused() {
    let driver = Driver::new(vec![bounded(Vec::new(), true)]);
    let mut value = serde_json::to_value(driver.state()).expect("a state is plain data");
    value["version"] = 2.into();
    let error =
        serde_json::from_value::<ConsumerState>(value).expect_err("the version is not ours");
    assert_eq!(error.to_string(), "consumer record has version 2, expected 1");
}
