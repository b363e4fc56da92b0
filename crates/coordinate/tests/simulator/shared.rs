//! One leader and followers that join it: views that are created, paused, dropped and merged while everything else
//! goes wrong. Each view must hold every row exactly once, in order, whoever read it.
//!
//! Words defined here: *view* (a list of rows and the consumer that feeds it), *boundary* (the end of a step: leads
//! are told, holds are looked at, followers that met all are merged).
//! Invariant: what a crash leaves is one whole epoch of all consumers and all views.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use segue_coordinate::{
    ConsumerState, Effect, Event, Mode, Verdict, decide, has_met, has_met_all, held, lead,
    lead_since, led_by, mode, recover, verdict,
};
use segue_types::{Boundedness, Epoch, Generation, SplitId};

use crate::check::{check_order, is_delivered};
use crate::engine::Checked;
use crate::rng::Rng;
use crate::scenario;
use crate::work::{Discovery, Handoff, Message, Polled, Reader};
use crate::world::{LAST_TICK, Row, World, offset};

const ACTIONS_MAX: usize = 700;
const VIEWS_MAX: usize = 4;
const LEADER: usize = 0;

/// Ways to be wrong that lose or repeat rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Followers are told where the leader stood a boundary ago.
    StaleLead,
    /// A round is not clipped where the leader stood.
    NoClip,
    /// Rows of a split that is met do not reach the follower.
    MetIsForgotten,
    /// A paused view stays where its follower began.
    PartAtStart,
}

impl Sabotage {
    pub const ALL: [Sabotage; 4] =
        [Sabotage::StaleLead, Sabotage::NoClip, Sabotage::MetIsForgotten, Sabotage::PartAtStart];
}

/// How often what is worth testing happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub runs: usize,
    pub merges: usize,
    pub holds: usize,
    pub parts: usize,
    pub crashes: usize,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.merges += other.merges;
        self.holds += other.holds;
        self.parts += other.parts;
        self.crashes += other.crashes;
    }

    pub fn assert_reaches_everything(&self) {
        for count in [self.merges, self.holds, self.parts, self.crashes] {
            assert!(count * 100 > self.runs, "some kind of event hardly ever happens: {self:?}");
        }
    }
}

struct Consumer {
    state: Option<ConsumerState>,
    effects: VecDeque<Effect>,
    readers: Vec<Reader>,
    discoveries: Vec<Discovery>,
    handoffs: Vec<Handoff>,
    transit: Vec<Message>,
}

#[derive(Clone, Default)]
struct View {
    rows: Vec<Row>,
    reads: usize,
}

/// What an epoch writes.
#[derive(Clone, Default)]
struct Snapshot {
    epoch: Epoch,
    consumers: BTreeMap<usize, Vec<u8>>,
    views: BTreeMap<usize, View>,
    next: usize,
}

struct Engine<'w> {
    world: &'w World,
    sabotage: Option<Sabotage>,
    generation: Generation,
    durable: Snapshot,
    in_flight: VecDeque<Snapshot>,
    open: Epoch,
    consumers: BTreeMap<usize, Consumer>,
    views: BTreeMap<usize, View>,
    next: usize,
    held: BTreeSet<SplitId>,
    told: Option<segue_coordinate::Lead>,
    tally: Tally,
}

impl Consumer {
    fn new(state: ConsumerState, effects: Vec<Effect>) -> Consumer {
        Consumer {
            state: Some(state),
            effects: effects.into(),
            readers: Vec::new(),
            discoveries: Vec::new(),
            handoffs: Vec::new(),
            transit: Vec::new(),
        }
    }

    fn state(&self) -> &ConsumerState {
        self.state.as_ref().expect("only `decide` takes it")
    }

    fn decide(&mut self, event: Event) {
        let (state, effects) = decide(self.state.take().expect("only `decide` takes it"), event);
        state.check_invariants();
        self.state = Some(state);
        self.effects.extend(effects);
    }

    fn execute(&mut self, world: &World, sabotage: Option<Sabotage>) {
        match self.effects.pop_front() {
            Some(Effect::Discover { assignment, stage }) => {
                let stage = stage.as_usize();
                self.discoveries.push(Discovery { assignment, stage, sequence: 0 });
            }
            Some(Effect::OpenSplit { assignment, stage, split, from, until }) => {
                let stage = stage.as_usize();
                let is_clipped =
                    sabotage != Some(Sabotage::NoClip) || stage + 1 < world.stages.len();
                let until = until.map(|until| offset(&until)).filter(|_| is_clipped);
                let (index, next) = (world.stages[stage].index(&split), offset(&from));
                let (id, sequence) = (split, 0);
                self.readers.push(Reader {
                    assignment,
                    stage,
                    split: index,
                    id,
                    next,
                    until,
                    sequence,
                });
            }
            Some(Effect::CloseSplit { stage, split }) => {
                self.readers.retain(|r| r.stage != stage.as_usize() || r.id != split);
            }
            Some(Effect::CloseStage { stage }) => {
                self.readers.retain(|reader| reader.stage != stage.as_usize());
                self.discoveries.retain(|discovery| discovery.stage != stage.as_usize());
            }
            Some(Effect::ResolveHandoff { assignment, to, ends, .. }) => {
                self.handoffs.push(Handoff { assignment, to: to.as_usize(), ends: Some(ends) });
            }
            Some(Effect::CheckStarts { assignment, stage, .. }) => {
                self.handoffs.push(Handoff { assignment, to: stage.as_usize(), ends: None });
            }
            Some(Effect::Acknowledge { .. } | Effect::Completed | Effect::Fail { .. }) | None => {}
        }
    }

    fn poll(&mut self, world: &World, rng: &mut Rng, index: usize) -> bool {
        match self.readers[index].poll(world, rng) {
            Polled::Delivered(message) => self.transit.push(message),
            Polled::Finished(message) => {
                self.transit.push(message);
                self.readers.remove(index);
            }
            Polled::Empty => return false,
        }
        true
    }
}

impl<'w> Engine<'w> {
    fn new(world: &'w World, sabotage: Option<Sabotage>) -> Engine<'w> {
        let mut engine = Engine {
            world,
            sabotage,
            generation: Generation(1),
            durable: Snapshot::default(),
            in_flight: VecDeque::new(),
            open: Epoch(1),
            consumers: BTreeMap::new(),
            views: BTreeMap::new(),
            next: LEADER,
            held: BTreeSet::new(),
            told: None,
            tally: Tally { runs: 1, ..Tally::default() },
        };
        engine.create_view();
        engine
    }

    fn take_number(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn create_view(&mut self) {
        let id = self.take_number();
        let plans = self.world.stages.iter().map(|stage| stage.plan()).collect();
        let state = match id {
            LEADER => ConsumerState::new(self.generation, self.open, plans),
            _ => ConsumerState::follower(self.generation, self.open, plans),
        };
        self.consumers.insert(id, Consumer::new(state, Vec::new()));
        self.views.insert(id, View { rows: Vec::new(), reads: id });
    }

    /// The end of a step.
    fn boundary(&mut self) {
        let leader = self.consumers[&LEADER].state();
        let stale = match self.sabotage {
            Some(Sabotage::StaleLead) => std::mem::replace(&mut self.told, lead(leader)),
            _ => None,
        };
        let told = |id: &usize| match self.sabotage {
            Some(Sabotage::StaleLead) => stale.clone(),
            _ => lead_since(leader, led_by(self.consumers[id].state())),
        };
        let followers = self.consumers.keys().copied().filter(|id| *id != LEADER);
        let leads: Vec<_> = followers.map(|id| (id, told(&id))).collect();
        self.held.clear();
        for (id, lead) in leads {
            let consumer = self.consumers.get_mut(&id).expect("it was just listed");
            if let Some(lead) = lead {
                consumer.decide(Event::Led { lead });
            }
            self.held.extend(held(consumer.state()));
            if has_met_all(consumer.state()) {
                self.consumers.remove(&id);
                self.views
                    .values_mut()
                    .filter(|view| view.reads == id)
                    .for_each(|v| v.reads = LEADER);
                self.tally.merges += 1;
            }
        }
        self.tally.holds += usize::from(!self.held.is_empty());
    }

    fn deliver(&mut self, id: usize, message: Message) {
        let consumer = self.consumers.get_mut(&id).expect("the caller looked it up");
        let split = match &message.event {
            Event::Progressed { split, .. }
            | Event::SplitDone { split, .. }
            | Event::Skipped { split, .. } => Some(split.clone()),
            _ => None,
        };
        if id == LEADER && split.as_ref().is_some_and(|split| self.held.contains(split)) {
            return consumer.transit.push(message);
        }
        match verdict(consumer.state(), &message.event) {
            Verdict::Apply => {
                consumer.decide(message.event);
                let world = self.world;
                for view in self.views.values_mut() {
                    let takes = view.reads == id
                        || id == LEADER
                            && split.as_ref().is_some_and(|split| {
                                let follower = self.consumers.get(&view.reads);
                                let is_last = message
                                    .rows
                                    .first()
                                    .is_some_and(|row| row.stage + 1 == world.stages.len());
                                is_last
                                    && self.sabotage != Some(Sabotage::MetIsForgotten)
                                    && follower
                                        .is_some_and(|follower| has_met(follower.state(), split))
                            });
                    if takes {
                        view.rows.extend(&message.rows);
                    }
                }
            }
            Verdict::Early => consumer.transit.push(message),
            Verdict::Duplicate | Verdict::Stale => consumer.decide(message.event),
        }
    }

    /// Pauses one view: alone, while the others go on.
    fn pause(&mut self, view: usize) {
        self.boundary();
        let reads = self.views[&view].reads;
        if reads != LEADER {
            return self.consumers.get_mut(&reads).expect("it reads").decide(Event::Pause);
        }
        let leader = self.consumers[&LEADER].state();
        if lead(leader).is_none() {
            return;
        }
        let parted = match self.sabotage {
            Some(Sabotage::PartAtStart) => {
                let plans = self.world.stages.iter().map(|stage| stage.plan()).collect();
                ConsumerState::follower(self.generation, self.open, plans)
            }
            _ => ConsumerState::parted(leader, self.generation),
        };
        let id = self.take_number();
        self.consumers.insert(id, Consumer::new(parted, Vec::new()));
        self.views.get_mut(&view).expect("the caller listed it").reads = id;
        self.tally.parts += 1;
    }

    fn resume(&mut self) {
        self.consumers.values_mut().for_each(|consumer| consumer.decide(Event::Resume));
    }

    /// All work of the leader moves, as when its readers have to deliver more columns.
    fn reassign(&mut self) {
        let consumer = self.consumers.get_mut(&LEADER).expect("the leader stays");
        self.generation = self.generation.next();
        consumer.decide(Event::Reassigned { generation: self.generation });
    }

    fn seal(&mut self) {
        self.boundary();
        let epoch = self.open;
        let mut consumers = BTreeMap::new();
        for (id, consumer) in &mut self.consumers {
            consumer.decide(Event::EpochSealed { epoch });
            consumers.insert(*id, serde_json::to_vec(consumer.state()).expect("plain data"));
        }
        let (views, next) = (self.views.clone(), self.next);
        self.in_flight.push_back(Snapshot { epoch, consumers, views, next });
        self.open = epoch.next();
    }

    fn commit(&mut self) {
        let Some(snapshot) = self.in_flight.pop_front() else { return };
        let epoch = snapshot.epoch;
        self.durable = snapshot;
        for consumer in self.consumers.values_mut() {
            consumer.decide(Event::EpochDurable { epoch });
        }
    }

    fn crash(&mut self) {
        self.tally.crashes += 1;
        self.in_flight.clear();
        self.held.clear();
        self.told = None;
        self.generation = self.generation.next();
        self.open = self.durable.epoch.next();
        (self.views, self.next) = (self.durable.views.clone(), self.durable.next);
        self.consumers.clear();
        for (id, bytes) in &self.durable.consumers {
            let state = serde_json::from_slice(bytes).expect("it was just written");
            let (state, effects) = recover(state, self.generation, self.durable.epoch);
            self.consumers.insert(*id, Consumer::new(state, effects));
        }
        if self.consumers.is_empty() {
            self.next = LEADER;
            self.create_view();
        }
        self.boundary();
    }

    /// Drops a view; its follower goes with it, the leader stays for the others.
    fn drop_view(&mut self, view: usize) {
        let reads = self.views.remove(&view).expect("the caller listed it").reads;
        if reads != LEADER {
            self.consumers.remove(&reads);
        }
    }

    fn is_over(&self, world: &World) -> bool {
        self.views.values().all(|view| view.reads == LEADER && is_delivered(world, view.rows.len()))
    }
}

/// A world whose last stage never ends; others have no leader.
fn draw(rng: &mut Rng) -> World {
    loop {
        let world = scenario::draw(rng);
        if world.stages.last().is_some_and(|last| last.boundedness == Boundedness::Continuous) {
            return world;
        }
    }
}

pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<Tally, String> {
    let mut rng = Rng::new(seed);
    let mut world = draw(&mut rng);
    let mut ticks: Vec<usize> = (0..LAST_TICK).map(|_| rng.below(ACTIONS_MAX)).collect();
    ticks.sort_unstable();
    // The world moves between the segments; the engine borrows it within each.
    let mut carried: Option<Carried> = None;
    for tick in 0..LAST_TICK {
        world.tick = tick;
        let from = if tick == 0 { 0 } else { ticks[tick - 1] };
        let mut engine = Engine::carry(&world, sabotage, carried.take());
        for _ in from..ticks[tick] {
            act(&mut engine, &mut rng);
        }
        carried = Some(engine.into_carried());
    }
    world.tick = LAST_TICK;
    let mut engine = Engine::carry(&world, sabotage, carried);
    finish(&mut engine, &mut rng)?;
    for view in engine.views.values() {
        check_order(&world, &view.rows)?;
    }
    Ok(engine.tally)
}

/// An engine without the borrow of its world.
struct Carried(Engine<'static>);

impl<'w> Engine<'w> {
    fn carry(world: &'w World, sabotage: Option<Sabotage>, carried: Option<Carried>) -> Engine<'w> {
        match carried {
            None => Engine::new(world, sabotage),
            Some(Carried(engine)) => Engine { world, ..engine },
        }
    }

    fn into_carried(self) -> Carried {
        const NOWHERE: &World = &World { stages: Vec::new(), tick: 0 };
        Carried(Engine { world: NOWHERE, ..self })
    }
}

fn any<T: Copy>(rng: &mut Rng, all: &[T]) -> Option<T> {
    (!all.is_empty()).then(|| all[rng.below(all.len())])
}

fn act(engine: &mut Engine<'_>, rng: &mut Rng) {
    let world = engine.world;
    let ids: Vec<usize> = engine.consumers.keys().copied().collect();
    let id = any(rng, &ids).expect("the leader stays");
    let views: Vec<usize> = engine.views.keys().copied().collect();
    let consumer = engine.consumers.get_mut(&id).expect("it was just listed");
    match rng.below(100) {
        0..25 => consumer.execute(world, engine.sabotage),
        25..45 if !consumer.readers.is_empty() => {
            let index = rng.below(consumer.readers.len());
            consumer.poll(world, rng, index);
        }
        45..68 if !consumer.transit.is_empty() => {
            let message = consumer.transit.remove(rng.below(consumer.transit.len()));
            engine.deliver(id, message);
        }
        68..74 if !consumer.discoveries.is_empty() => {
            let message = consumer.discoveries[0].list(world, |_| false);
            consumer.transit.push(message);
        }
        74..79 => answer(world, consumer),
        79..84 => engine.boundary(),
        84..89 if engine.in_flight.len() < 3 => engine.seal(),
        89..94 => engine.commit(),
        94 if engine.views.len() < VIEWS_MAX => engine.create_view(),
        95 => {
            if let Some(view) = any(rng, &views) {
                engine.pause(view);
            }
        }
        96 if views.len() > 1 && rng.chance(30) => {
            engine.drop_view(views[rng.below(views.len())]);
        }
        97 if rng.chance(40) => engine.crash(),
        98 => engine.reassign(),
        _ => engine.resume(),
    }
}

fn answer(world: &World, consumer: &mut Consumer) {
    if let Some(handoff) = consumer.handoffs.pop() {
        let message = handoff.answer(world).expect("ends are the truth");
        consumer.transit.push(message);
    }
}

/// Everything is visible; fair turns must bring every view home.
fn finish(engine: &mut Engine<'_>, rng: &mut Rng) -> Checked {
    let world = engine.world;
    let splits: usize = world.stages.iter().map(|stage| stage.splits.len()).sum();
    for _ in 0..20 + 12 * world.stages.len() + 8 * splits {
        let paused = |consumer: &Consumer| *mode(consumer.state()) != Mode::Running;
        if engine.consumers.values().any(paused) {
            engine.resume();
        }
        turn(engine, rng);
        if engine.is_over(world) {
            return Ok(());
        }
    }
    let rows: Vec<(usize, usize)> =
        engine.views.values().map(|view| (view.reads, view.rows.len())).collect();
    Err(format!("stuck with views of (consumer, rows) {rows:?}"))
}

fn turn(engine: &mut Engine<'_>, rng: &mut Rng) {
    let world = engine.world;
    let ids: Vec<usize> = engine.consumers.keys().copied().collect();
    for id in ids {
        let Some(consumer) = engine.consumers.get_mut(&id) else { continue };
        while !consumer.effects.is_empty() {
            consumer.execute(world, engine.sabotage);
        }
        for index in (0..consumer.readers.len()).rev() {
            while index < consumer.readers.len() && consumer.poll(world, rng, index) {}
        }
        for index in 0..consumer.discoveries.len() {
            let message = consumer.discoveries[index].list(world, |_| false);
            consumer.transit.push(message);
        }
        answer(world, consumer);
        for _ in 0..2 {
            let consumer = engine.consumers.get_mut(&id).expect("nothing removed it");
            for message in std::mem::take(&mut consumer.transit) {
                engine.deliver(id, message);
            }
        }
        engine.boundary();
    }
    engine.seal();
    while !engine.in_flight.is_empty() {
        engine.commit();
    }
}
