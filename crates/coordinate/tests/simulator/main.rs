//! A seeded simulator: worlds of fake connectors and a fake engine drive `decide` through crashes
//! at every point, late, repeated and overtaking reports, pauses and failures. After each run every
//! row must have arrived exactly once, in the order of stages and predecessors, and nothing may be
//! stuck.
//!
//! `SEGUE_SIM_SEED=n` runs that one seed; `SEGUE_SIM_SEEDS=n` runs that many.

mod check;
mod engine;
mod rng;
mod run;
mod sabotage;
mod scenario;
mod shared;
mod store;
mod work;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use run::{Tally, run, run_with_crash};
use sabotage::Sabotage;

const SEEDS: u64 = 12_000;
/// Worlds that crash after each action in turn.
const WORLDS: u64 = 60;
const THREADS: u64 = 2;
const SABOTAGED: &str = "sabotaged";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("the variable holds a number"))
}

/// Runs one seed; a broken assertion counts as a violation.
fn attempt(seed: u64, sabotage: Option<Sabotage>) -> Result<Tally, String> {
    catch_unwind(AssertUnwindSafe(|| run(seed, sabotage)))
        .unwrap_or_else(|_| Err("a panic, printed above".to_owned()))
}

#[test]
fn every_row_arrives_exactly_once_whatever_happens() {
    if let Some(seed) = number("SEGUE_SIM_SEED") {
        let tally = attempt(seed, None);
        println!("seed {seed}: {tally:?}");
        tally.expect("the seed was given to be replayed");
        return;
    }
    let seeds = number("SEGUE_SIM_SEEDS").unwrap_or(SEEDS);
    let total = Mutex::new(Tally::default());
    let total = &total;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for seed in (thread..seeds).step_by(THREADS as usize) {
                    match attempt(seed, None) {
                        Ok(tally) => total.lock().expect("no holder panics").add(&tally),
                        Err(violation) => panic!("SEGUE_SIM_SEED={seed} fails: {violation}"),
                    }
                }
            });
        }
    });
    let tally = total.lock().expect("no holder panics");
    println!("{seeds} seeds: {tally:?}");
    if seeds >= SEEDS {
        tally.assert_reaches_everything();
    }
}

#[test]
fn every_action_of_a_run_may_be_the_last_of_its_process() {
    let mut crashes = 0;
    for seed in 0..WORLDS {
        let is_reached = |crash_after: &usize| match run_with_crash(seed, *crash_after) {
            Ok(is_reached) => is_reached,
            Err(violation) => panic!("seed {seed}, crash after action {crash_after}: {violation}"),
        };
        crashes += (1..).take_while(is_reached).count();
    }
    println!("{WORLDS} worlds, {crashes} crashes");
    assert!(crashes > 50 * WORLDS as usize, "runs are too short");
}

/// The sabotages that no seed finds out.
fn find_blind_spots() -> Vec<Sabotage> {
    // The panics of sabotaged runs are expected and would bury the output.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(SABOTAGED) {
            report(panic);
        }
    }));
    let is_found_out = |sabotage: &Sabotage| {
        let mut violations = (0..2_000).map(|seed| attempt(seed, Some(*sabotage)));
        let violation = violations.find_map(Result::err);
        println!("{sabotage:?}: {violation:?}");
        violation.is_some()
    };
    Sabotage::ALL.into_iter().filter(|sabotage| !is_found_out(sabotage)).collect()
}

/// A simulator that cannot fail proves nothing: each of these worlds is wrong in one way that has
/// cost somebody rows, and must be found out.
#[test]
fn a_wrong_engine_or_a_wrong_coordinator_is_found_out() {
    let blind = std::thread::Builder::new().name(SABOTAGED.to_owned()).spawn(find_blind_spots);
    let blind = blind.expect("a thread can be started").join().expect("panics are caught");
    assert!(blind.is_empty(), "not found out: {blind:?}");
}

/// Runs one seed of leader and followers; a broken assertion counts as a violation.
fn attempt_shared(seed: u64, sabotage: Option<shared::Sabotage>) -> Result<shared::Tally, String> {
    catch_unwind(AssertUnwindSafe(|| shared::run(seed, sabotage)))
        .unwrap_or_else(|_| Err("a panic, printed above".to_owned()))
}

#[test]
fn every_view_that_joins_a_running_source_holds_every_row_exactly_once() {
    if let Some(seed) = number("SEGUE_SIM_SEED") {
        let tally = attempt_shared(seed, None);
        println!("seed {seed}: {tally:?}");
        tally.expect("the seed was given to be replayed");
        return;
    }
    let seeds = number("SEGUE_SIM_SEEDS").unwrap_or(SEEDS);
    let total = Mutex::new(shared::Tally::default());
    let total = &total;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for seed in (thread..seeds).step_by(THREADS as usize) {
                    match attempt_shared(seed, None) {
                        Ok(tally) => total.lock().expect("no holder panics").add(&tally),
                        Err(violation) => panic!("SEGUE_SIM_SEED={seed} fails: {violation}"),
                    }
                }
            });
        }
    });
    let tally = total.lock().expect("no holder panics");
    println!("{seeds} seeds: {tally:?}");
    if seeds >= SEEDS {
        tally.assert_reaches_everything();
    }
}

#[test]
fn a_wrong_rendezvous_is_found_out() {
    let find = || {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(SABOTAGED) {
                report(panic);
            }
        }));
        let is_found_out = |sabotage: &shared::Sabotage| {
            let violation = (0..4_000).find_map(|seed| attempt_shared(seed, Some(*sabotage)).err());
            println!("{sabotage:?}: {violation:?}");
            violation.is_some()
        };
        let all = shared::Sabotage::ALL.into_iter();
        all.filter(|sabotage| !is_found_out(sabotage)).collect::<Vec<_>>()
    };
    let blind = std::thread::Builder::new().name(SABOTAGED.to_owned()).spawn(find);
    let blind = blind.expect("a thread can be started").join().expect("panics are caught");
    assert!(blind.is_empty(), "not found out: {blind:?}");
}
