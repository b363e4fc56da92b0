//! Every figure of docs/performance.md, measured on the machine that this runs on.
//!
//! Words: *core-second*: a second of CPU time of this process, all its threads together; *speed of light*:
//! what the same machine needs for the part of the work that nobody can leave out.
//! Invariant: each bench checks that the result is right before it prints how fast it came.

mod aggregate;
mod capacity;
mod capture;
mod decode;
mod encoded;
mod epoch;
mod freshness;
mod idle_topic;
mod instance;
mod join;
mod joining;
mod kafka;
mod lookup;
mod measure;
mod nexmark;
mod operators;
mod restart;
mod switch;
mod topic_ends;
mod views;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Runtime;

/// Prints how fast Segue is, each figure with its speed of light.
#[derive(Parser)]
struct Arguments {
    /// The benches to run; all of them without a name.
    names: Vec<String>,
    /// Orders of the workload.
    #[arg(long, default_value_t = 5_000_000)]
    rows: usize,
    /// Orders that go through Kafka and PostgreSQL, and keys to look up.
    #[arg(long, default_value_t = 1_000_000)]
    external_rows: usize,
    /// The server's binary; beside this one if not given.
    #[arg(long)]
    segue: Option<PathBuf>,
}

/// What a bench runs with.
struct Run {
    rows: usize,
    external_rows: usize,
    segue: PathBuf,
    runtime: Runtime,
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

type Bench = fn(&Run) -> Outcome;

const BENCHES: &[(&str, Bench)] = &[
    ("decode", decode::bench),
    ("aggregate", aggregate::bench),
    ("join", join::bench),
    ("operators", operators::bench),
    ("views", views::bench),
    ("nexmark", nexmark::bench),
    ("kafka", kafka::bench),
    ("capture", capture::bench),
    ("epoch", epoch::bench),
    ("freshness", freshness::bench),
    ("restart", restart::bench),
    ("capacity", capacity::bench),
    ("lookup", lookup::bench),
    ("idle-topic", idle_topic::bench),
    ("topic-ends", topic_ends::bench),
    ("joining", joining::bench),
    ("switch", switch::bench),
];

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let known = |name: &String| BENCHES.iter().any(|(known, _)| known == name);
    if let Some(unknown) = arguments.names.iter().find(|name| !known(name)) {
        let names: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        eprintln!("there is no bench {unknown}; there are {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("segue-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Outcome {
    let beside = || Ok::<_, std::io::Error>(std::env::current_exe()?.with_file_name("segue"));
    let run = Run {
        rows: arguments.rows,
        external_rows: arguments.external_rows,
        segue: arguments.segue.map_or_else(beside, Ok)?,
        runtime: Runtime::new()?,
    };
    println!("{}", measure::machine());
    let wanted = |name: &str| {
        arguments.names.is_empty() || arguments.names.iter().any(|wanted| wanted == name)
    };
    for (name, bench) in BENCHES.iter().filter(|(name, _)| wanted(name)) {
        println!("\n== {name} (load {})", measure::load());
        bench(&run)?;
    }
    Ok(())
}
