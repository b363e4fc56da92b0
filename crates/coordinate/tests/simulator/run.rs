//! One run: a stretch of chaos, drawn action by action from the seed, then fair turns until all is
//! delivered.
//!
//! Invariant: in the fair turns everybody does what he can, once per turn; so a number of turns
//! that grows with the size of the world alone must be enough, or something is stuck.

use segue_coordinate::{Event, FailedBy, split_status};

use crate::check::{check_always, check_cancelled, check_end, is_over};
use crate::engine::{Checked, Engine};
use crate::rng::Rng;
use crate::sabotage::Sabotage;
use crate::scenario;
use crate::work::{Message, stage_index};
use crate::world::{LAST_TICK, World};

/// How long the chaos lasts.
const ACTIONS_MAX: usize = 320;

/// What happened, so that the test can tell that the simulator goes everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub runs: usize,
    pub rows: usize,
    pub stages: usize,
    pub crashes: usize,
    pub cancelled: usize,
    pub failures: usize,
    pub early: usize,
    pub duplicate: usize,
    pub stale: usize,
    pub removed: usize,
    pub skips: usize,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.rows += other.rows;
        self.stages += other.stages;
        self.crashes += other.crashes;
        self.cancelled += other.cancelled;
        self.failures += other.failures;
        self.early += other.early;
        self.duplicate += other.duplicate;
        self.stale += other.stale;
        self.removed += other.removed;
        self.skips += other.skips;
    }

    pub fn assert_reaches_everything(&self) {
        let counts = [
            self.rows,
            self.stages,
            self.crashes,
            self.cancelled,
            self.failures,
            self.early,
            self.duplicate,
            self.stale,
            self.removed,
            self.skips,
        ];
        for count in counts {
            assert!(count * 100 > self.runs, "some kind of event hardly ever happens: {self:?}");
        }
    }
}

pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<Tally, String> {
    let mut rng = Rng::new(seed);
    let mut world = scenario::draw(&mut rng);
    let mut engine = Engine::new(&world, sabotage);
    let mut tally = Tally { runs: 1, stages: world.stages.len(), ..Tally::default() };
    let is_cancelled = rng.chance(5);
    let mut fuse = Fuse::none();
    for _ in 0..rng.between(0, ACTIONS_MAX) {
        act(&mut world, &mut engine, &mut rng, &mut tally)?;
        check_always(&world, &engine)?;
    }
    if is_cancelled {
        engine.decide(Event::Cancel);
        tally.cancelled = 1;
        for _ in 0..3 {
            turn(&world, &mut engine, &mut rng, &mut fuse)?;
        }
        check_cancelled(&world, &engine)?;
    } else {
        finish(&mut world, &mut engine, &mut rng, &mut fuse)?;
        check_end(&world, &engine)?;
    }
    count(&engine, &mut tally);
    Ok(tally)
}

fn count(engine: &Engine, tally: &mut Tally) {
    let dropped = |word: &str| engine.dropped.get(word).copied().unwrap_or(0);
    tally.rows = engine.applied.len();
    tally.failures = engine.failures;
    tally.skips = engine.skips;
    (tally.early, tally.duplicate) = (dropped("early"), dropped("duplicate"));
    tally.stale = dropped("stale");
    let rows = split_status(engine.state());
    tally.removed = rows.iter().filter(|row| row.phase.to_string() == "removed").count();
}

/// One action of anybody.
fn act(world: &mut World, engine: &mut Engine, rng: &mut Rng, tally: &mut Tally) -> Checked {
    match rng.below(100) {
        0..22 => return engine.execute(world),
        22..42 => {
            if let Some(index) = any(rng, engine.readers.len()) {
                engine.poll(world, rng, index);
            }
        }
        42..66 => {
            if let Some(index) = any(rng, engine.transit.len()) {
                let message = match rng.chance(15) {
                    true => engine.transit[index].clone(),
                    false => engine.transit.remove(index),
                };
                engine.deliver(world, message);
            }
        }
        66..74 => {
            if let Some(index) = any(rng, engine.discoveries.len()) {
                engine.list(world, index);
            }
        }
        74..78 => return answer(world, engine, rng),
        78..86 if engine.sealed.len() < 4 => engine.seal(),
        86..91 if !engine.sealed.is_empty() => {
            engine.commit(rng.between(1, engine.sealed.len()));
        }
        91..94 => engine.tell_durable(),
        94..96 => world.tick = (world.tick + 1).min(LAST_TICK),
        96..98 => disturb(world, engine, rng, tally),
        98 => accident(engine, rng),
        _ => engine.decide(Event::Resume),
    }
    Ok(())
}

fn any(rng: &mut Rng, count: usize) -> Option<usize> {
    (count > 0).then(|| rng.below(count))
}

fn answer(world: &World, engine: &mut Engine, rng: &mut Rng) -> Checked {
    if let Some(index) = any(rng, engine.handoffs.len()) {
        let handoff = engine.handoffs.remove(index);
        let message = match rng.chance(15) {
            true => failed(handoff.assignment, handoff.to, rng),
            false => handoff.answer(world)?,
        };
        engine.transit.push(message);
    }
    Ok(())
}

fn failed(assignment: segue_coordinate::Assignment, stage: usize, rng: &mut Rng) -> Message {
    let (by, stage) = (FailedBy::Work(assignment), stage_index(stage));
    let (message, retriable) = ("could not reach the broker".to_owned(), rng.chance(50));
    Message { event: Event::Failed { by, stage, message, retriable }, rows: Vec::new() }
}

/// What an operator or the power supply does.
fn disturb(world: &World, engine: &mut Engine, rng: &mut Rng, tally: &mut Tally) {
    match rng.below(5) {
        0 => engine.decide(Event::Pause),
        1 => engine.reassign(),
        2 => {
            let (by, stage) = (FailedBy::Engine, engine.state().current_stage());
            let message = "the memory limit is reached".to_owned();
            engine.decide(Event::Failed { by, stage, message, retriable: rng.chance(50) });
        }
        _ => {
            engine.crash(world);
            tally.crashes += 1;
        }
    }
}

/// What happens to a reader.
fn accident(engine: &mut Engine, rng: &mut Rng) {
    let Some(index) = any(rng, engine.readers.len()) else { return };
    let reader = &mut engine.readers[index];
    let message = match rng.below(3) {
        0 => {
            let (assignment, stage, split) =
                (reader.assignment, stage_index(reader.stage), reader.id.clone());
            Message { event: Event::Idle { assignment, stage, split }, rows: Vec::new() }
        }
        1 => failed(reader.assignment, reader.stage, rng),
        _ => {
            let message = reader.ended();
            engine.readers.remove(index);
            message
        }
    };
    engine.transit.push(message);
}

/// Everything is visible now; fair turns must bring it home.
fn finish(world: &mut World, engine: &mut Engine, rng: &mut Rng, fuse: &mut Fuse) -> Checked {
    world.tick = LAST_TICK;
    let splits: usize = world.stages.iter().map(|stage| stage.splits.len()).sum();
    let turns_max = 10 + 6 * world.stages.len() + 4 * splits;
    for _ in 0..turns_max {
        if !engine.is_running() {
            engine.decide(Event::Resume);
        }
        turn(world, engine, rng, fuse)?;
        if is_over(world, engine) {
            return Ok(());
        }
    }
    let rows = engine.store.rows;
    let stage = engine.state().current_stage();
    Err(format!("stuck in stage {stage} after {turns_max} fair turns with {rows} rows"))
}

/// Counts actions; the process dies after a given one.
struct Fuse {
    crash_after: Option<usize>,
    actions: usize,
}

impl Fuse {
    fn none() -> Fuse {
        Fuse { crash_after: None, actions: 0 }
    }

    fn burn(&mut self, world: &World, engine: &mut Engine) -> Checked {
        check_always(world, engine)?;
        self.actions += 1;
        if self.crash_after == Some(self.actions) {
            engine.crash(world);
        }
        Ok(())
    }
}

/// A run without any disturbance but one: the process dies after action `crash_after`. Returns
/// whether the run was long enough for that.
pub fn run_with_crash(seed: u64, crash_after: usize) -> Result<bool, String> {
    let mut rng = Rng::new(seed);
    let mut world = scenario::draw(&mut rng);
    let mut engine = Engine::new(&world, None);
    let mut fuse = Fuse { crash_after: Some(crash_after), actions: 0 };
    for tick in 0..LAST_TICK {
        world.tick = tick;
        turn(&world, &mut engine, &mut rng, &mut fuse)?;
    }
    finish(&mut world, &mut engine, &mut rng, &mut fuse)?;
    check_end(&world, &engine)?;
    Ok(fuse.actions > crash_after)
}

/// Everybody does what he can.
fn turn(world: &World, engine: &mut Engine, rng: &mut Rng, fuse: &mut Fuse) -> Checked {
    execute_all(world, engine, fuse)?;
    for index in (0..engine.readers.len()).rev() {
        while index < engine.readers.len() && engine.poll(world, rng, index) {
            fuse.burn(world, engine)?;
        }
    }
    for index in (0..engine.discoveries.len()).rev() {
        if index < engine.discoveries.len() {
            engine.list(world, index);
            fuse.burn(world, engine)?;
        }
    }
    for handoff in std::mem::take(&mut engine.handoffs) {
        let message = handoff.answer(world)?;
        engine.transit.push(message);
        fuse.burn(world, engine)?;
    }
    deliver_all(world, engine, fuse)?;
    execute_all(world, engine, fuse)?;
    engine.seal();
    fuse.burn(world, engine)?;
    engine.commit(engine.sealed.len());
    fuse.burn(world, engine)?;
    while !engine.committed.is_empty() {
        engine.tell_durable();
        fuse.burn(world, engine)?;
    }
    execute_all(world, engine, fuse)
}

fn execute_all(world: &World, engine: &mut Engine, fuse: &mut Fuse) -> Checked {
    while !engine.effects.is_empty() {
        engine.execute(world)?;
        fuse.burn(world, engine)?;
    }
    Ok(())
}

/// Delivers in the order of arrival; what came early is offered again as long as anything moves.
fn deliver_all(world: &World, engine: &mut Engine, fuse: &mut Fuse) -> Checked {
    loop {
        let waiting = engine.transit.len();
        for message in std::mem::take(&mut engine.transit) {
            engine.deliver(world, message);
            fuse.burn(world, engine)?;
        }
        if engine.transit.len() == waiting || engine.transit.is_empty() {
            return Ok(());
        }
    }
}
