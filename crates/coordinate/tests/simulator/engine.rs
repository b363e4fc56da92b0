//! The fake engine: it carries out effects, applies rows in the step that decides over them, seals,
//! commits, tells what is durable, and loses everything else when it crashes.
//!
//! Invariant: what it executes is checked against the store, the only thing that a crash leaves.

use std::collections::{BTreeMap, VecDeque};

use segue_coordinate::{
    Cause, ConsumerState, Effect, Event, Mode, SplitPhase, StagePlan, Verdict, decide, mode,
    recover, split_status, verdict,
};
use segue_types::{Boundedness, Epoch, Generation, Position, SplitId, StageIndex};

use crate::rng::Rng;
use crate::sabotage::Sabotage;
use crate::store::{Positions, Sealed, Store};
use crate::work::{Discovery, Handoff, Message, Polled, Reader};
use crate::world::{Row, World, offset};

pub type Checked = Result<(), String>;

pub struct Engine {
    pub sabotage: Option<Sabotage>,
    pub store: Store,
    generation: Generation,
    /// `None` only while `decide` holds it.
    state: Option<ConsumerState>,
    pub effects: VecDeque<Effect>,
    pub readers: Vec<Reader>,
    pub discoveries: Vec<Discovery>,
    pub handoffs: Vec<Handoff>,
    /// On their way, also from holders whose work was taken back.
    pub transit: Vec<Message>,
    pub applied: Vec<Row>,
    positions: Positions,
    /// Where the last gap of a split ended.
    gaps: Positions,
    pub sealed: VecDeque<Sealed>,
    /// Committed, but the coordinator was not told yet.
    pub committed: VecDeque<Epoch>,
    pub is_completed: bool,
    /// What was released upstream; no crash takes it back.
    pub released: Positions,
    /// Failures that were shown.
    pub failures: usize,
    /// Gaps that were decided.
    pub skips: usize,
    /// Reports that did not count, of all incarnations.
    pub dropped: BTreeMap<&'static str, usize>,
}

impl Engine {
    pub fn new(world: &World, sabotage: Option<Sabotage>) -> Engine {
        let generation = Generation(1);
        let state = ConsumerState::new(generation, Epoch(1), plans(world));
        Engine {
            sabotage,
            store: Store::default(),
            generation,
            state: Some(state),
            effects: VecDeque::new(),
            readers: Vec::new(),
            discoveries: Vec::new(),
            handoffs: Vec::new(),
            transit: Vec::new(),
            applied: Vec::new(),
            positions: BTreeMap::new(),
            gaps: BTreeMap::new(),
            sealed: VecDeque::new(),
            committed: VecDeque::new(),
            is_completed: false,
            released: BTreeMap::new(),
            failures: 0,
            skips: 0,
            dropped: BTreeMap::new(),
        }
    }

    pub fn state(&self) -> &ConsumerState {
        self.state.as_ref().expect("only `decide` takes it")
    }

    pub fn is_running(&self) -> bool {
        *mode(self.state()) == Mode::Running
    }

    /// The epoch that the running step belongs to.
    fn open(&self) -> Epoch {
        self.sealed.back().map_or(self.store.epoch, |sealed| sealed.epoch).next()
    }

    pub fn decide(&mut self, event: Event) {
        let state = self.state.take().expect("only `decide` takes it");
        let (state, effects) = decide(state, event);
        state.check_invariants();
        self.state = Some(state);
        self.effects.extend(effects);
    }

    /// Gives all work to new holders.
    pub fn reassign(&mut self) {
        self.generation = self.generation.next();
        self.decide(Event::Reassigned { generation: self.generation });
    }

    /// Consumes the message in a step, unless it does not count.
    pub fn deliver(&mut self, world: &World, mut message: Message) {
        if let Some(sabotage) = self.sabotage {
            sabotage.tell(world, &mut message.event);
        }
        let judged = verdict(self.state(), &message.event);
        let applies = judged == Verdict::Apply || self.sabotage == Some(Sabotage::ApplyUnjudged);
        if applies {
            self.apply(world, &message);
        } else {
            *self.dropped.entry(word(judged)).or_default() += 1;
        }
        let is_early = judged == Verdict::Early && self.sabotage != Some(Sabotage::DropEarly);
        let pending = self.effects.len();
        self.decide(message.event.clone());
        assert!(applies || self.effects.len() == pending, "what does not count has no effect");
        if is_early {
            self.transit.push(message);
        }
    }

    fn apply(&mut self, world: &World, message: &Message) {
        let is_gap = matches!(message.event, Event::Skipped { .. });
        if !is_gap || self.sabotage != Some(Sabotage::SilentGap) {
            self.applied.extend(&message.rows);
        }
        if let Event::Skipped { stage, split, gap, .. } = &message.event {
            self.skips += 1;
            let stage = stage.as_usize();
            let place = (stage, world.stages[stage].index(split));
            self.positions.insert(place, offset(&gap.to));
            self.gaps.insert(place, offset(&gap.to));
        }
        if let Event::Progressed { stage, split, next: at, .. }
        | Event::SplitDone { stage, split, at, .. } = &message.event
        {
            let stage = stage.as_usize();
            let split = world.stages[stage].index(split);
            self.positions.insert((stage, split), offset(at));
        }
    }

    pub fn seal(&mut self) {
        let epoch = self.open();
        self.decide(Event::EpochSealed { epoch });
        let forgets = self.sabotage == Some(Sabotage::StateBehindRows) && epoch.0.is_multiple_of(3);
        let is_written = self.state().changed_in() == epoch && !forgets;
        let sealed = Sealed {
            epoch,
            state: is_written.then(|| self.state().clone()),
            rows: self.applied.len(),
            positions: self.positions.clone(),
        };
        self.sealed.push_back(sealed);
        if self.sabotage == Some(Sabotage::DurableWhenSealed) {
            self.decide(Event::EpochDurable { epoch });
        }
    }

    /// Commits the `count` oldest sealed epochs as one transaction.
    pub fn commit(&mut self, count: usize) {
        for sealed in self.sealed.drain(..count) {
            self.store.commit(sealed);
        }
        self.committed.push_back(self.store.epoch);
    }

    pub fn tell_durable(&mut self) {
        if let Some(epoch) = self.committed.pop_front() {
            self.decide(Event::EpochDurable { epoch });
        }
    }

    /// The process dies. Messages of its readers may still arrive at the next one.
    pub fn crash(&mut self, world: &World) {
        self.effects.clear();
        self.readers.clear();
        self.discoveries.clear();
        self.handoffs.clear();
        self.sealed.clear();
        self.committed.clear();
        self.is_completed = false;
        self.applied.truncate(self.store.rows);
        self.positions = self.store.positions.clone();
        self.gaps.clear();
        self.generation = self.generation.next();
        let Some(state) = self.store.read() else {
            let open = self.store.epoch.next();
            self.state = Some(ConsumerState::new(self.generation, open, plans(world)));
            return;
        };
        let state = self.damaged(state);
        let (state, effects) = recover(state, self.generation, self.store.epoch);
        self.state = Some(state);
        self.effects.extend(effects);
        if self.sabotage == Some(Sabotage::SignalsOnlyOnce) {
            let is_reader = |effect: &Effect| matches!(effect, Effect::OpenSplit { .. });
            self.effects.retain(is_reader);
        }
    }

    fn damaged(&self, state: ConsumerState) -> ConsumerState {
        let Some(sabotage) = self.sabotage else { return state };
        let mut value = serde_json::to_value(&state).expect("a state is plain data");
        sabotage.damage(&mut value);
        serde_json::from_value(value).expect("only the contents were damaged")
    }

    pub fn execute(&mut self, world: &World) -> Checked {
        let Some(effect) = self.effects.pop_front() else { return Ok(()) };
        match effect {
            Effect::Discover { assignment, stage } => {
                self.check_stage_may_run(world, stage.as_usize())?;
                let stage = stage.as_usize();
                self.discoveries.push(Discovery { assignment, stage, sequence: 0 });
            }
            Effect::OpenSplit { assignment, stage, split, from, until } => {
                let until = until.map(|bound| offset(&bound));
                let reader = Reader {
                    assignment,
                    stage: stage.as_usize(),
                    split: world.stages[stage.as_usize()].index(&split),
                    id: split,
                    next: offset(&from),
                    until,
                    sequence: 0,
                };
                self.check_opening(world, &reader)?;
                self.readers.push(reader);
            }
            Effect::CloseSplit { stage, split } => {
                self.readers.retain(|r| r.stage != stage.as_usize() || r.id != split);
            }
            Effect::CloseStage { stage } => {
                self.readers.retain(|reader| reader.stage != stage.as_usize());
                self.discoveries.retain(|discovery| discovery.stage != stage.as_usize());
            }
            Effect::ResolveHandoff { assignment, from, to, ends } => {
                self.check_handoff(world, from.as_usize(), to.as_usize())?;
                self.handoffs.push(Handoff { assignment, to: to.as_usize(), ends: Some(ends) });
            }
            Effect::CheckStarts { assignment, stage, .. } => {
                let to = stage.as_usize();
                self.check_handoff(world, to - 1, to)?;
                self.handoffs.push(Handoff { assignment, to, ends: None });
            }
            Effect::Acknowledge { stage, positions } => self.release(world, stage, &positions)?,
            Effect::Completed => self.is_completed = true,
            Effect::Fail { failure } => {
                self.failures += 1;
                if let Cause::Contradiction(contradiction) = failure.cause {
                    return Err(format!(
                        "a consistent world contradicts the state: {contradiction}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The stage's activation is stored, and so is everything before it.
    fn check_stage_may_run(&self, world: &World, stage: usize) -> Checked {
        self.check_stages_before(world, stage)?;
        let stored = self.store.state.as_ref().map(|state| state.current_stage().as_usize());
        match stored == Some(stage) {
            true => Ok(()),
            false => Err(format!("stage {stage} runs, the store is at stage {stored:?}")),
        }
    }

    fn check_stages_before(&self, world: &World, stage: usize) -> Checked {
        match (0..stage).find(|before| !self.store.holds_stage(world, *before)) {
            Some(before) => Err(format!("stage {stage} is due, stage {before} is not durable")),
            None => Ok(()),
        }
    }

    fn check_opening(&self, world: &World, reader: &Reader) -> Checked {
        self.check_stage_may_run(world, reader.stage)?;
        let (stage, split) = (reader.stage, &reader.id);
        let stored = self.store.state.as_ref().map(split_status).unwrap_or_default();
        if !stored.iter().any(|row| row.stage.as_usize() == stage && row.split == *split) {
            return Err(format!("split {split} of stage {stage} is read before it is stored"));
        }
        let script = &world.stages[stage].splits[reader.split];
        if let Some(parent) =
            script.after.iter().find(|parent| !self.store.holds_split(world, stage, **parent))
        {
            return Err(format!("split {split} is read, its predecessor {parent} is not durable"));
        }
        let applied = self.positions.get(&(stage, reader.split)).copied().unwrap_or(script.first);
        if reader.next != applied {
            return Err(format!("split {split} is read from {}, not {applied}", reader.next));
        }
        let stored = self.store.positions.get(&(stage, reader.split));
        if self.gaps.get(&(stage, reader.split)).is_some_and(|gap| stored < Some(gap)) {
            return Err(format!("split {split} is read behind a gap that is not durable"));
        }
        if reader.until.is_some_and(|until| until != script.last()) {
            return Err(format!("split {split} is read up to {:?}", reader.until));
        }
        if self.readers.iter().any(|other| other.stage == stage && other.id == *split) {
            return Err(format!("split {split} has two readers"));
        }
        Ok(())
    }

    fn check_handoff(&self, world: &World, from: usize, to: usize) -> Checked {
        self.check_stages_before(world, to)?;
        let stored = self.store.state.as_ref().map_or(0, |s| s.current_stage().as_usize());
        match stored == from {
            true => Ok(()),
            false => Err(format!("the handoff to stage {to} is derived at stage {stored}")),
        }
    }

    fn release(
        &mut self,
        world: &World,
        stage: StageIndex,
        positions: &[(SplitId, Position)],
    ) -> Checked {
        let stage = stage.as_usize();
        for (id, position) in positions {
            let (key, next) = ((stage, world.stages[stage].index(id)), offset(position));
            let durable = self.store.positions.get(&key).copied();
            if durable.is_none_or(|durable| durable < next) {
                return Err(format!("{id} is released up to {position}, durable is {durable:?}"));
            }
            self.released.insert(key, next);
        }
        Ok(())
    }

    /// Polls a reader once; true if anything came of it.
    pub fn poll(&mut self, world: &World, rng: &mut Rng, index: usize) -> bool {
        match self.readers[index].poll(world, rng) {
            Polled::Delivered(message) => {
                self.transit.push(message);
                true
            }
            Polled::Finished(message) => {
                self.transit.push(message);
                self.readers.remove(index);
                true
            }
            Polled::Empty if self.sabotage == Some(Sabotage::EndOfFileIsDone) => {
                let message = self.readers[index].done();
                self.transit.push(message);
                self.readers.remove(index);
                true
            }
            Polled::Empty => false,
        }
    }

    pub fn list(&mut self, world: &World, index: usize) {
        let discovery = &mut self.discoveries[index];
        let stage = discovery.stage;
        let stored = self.store.state.as_ref().map(split_status).unwrap_or_default();
        let message = discovery.list(world, |id| {
            stored.iter().any(|row| {
                row.stage.as_usize() == stage && row.split == *id && row.phase == SplitPhase::Done
            })
        });
        let is_last = world.stages[stage].boundedness == Boundedness::Bounded
            && matches!(message.event, Event::Discovered { sealed: true, .. });
        if is_last {
            self.discoveries.remove(index);
        }
        self.transit.push(message);
    }
}

fn plans(world: &World) -> Vec<StagePlan> {
    world.stages.iter().map(|stage| stage.plan()).collect()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Apply => "apply",
        Verdict::Early => "early",
        Verdict::Duplicate => "duplicate",
        Verdict::Stale => "stale",
    }
}
