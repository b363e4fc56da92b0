//! The `segue` binary: reads the configuration, wires the crates together, shuts down in order.
//!
//! The only place that names every connector.

mod config;
mod machine;
mod metrics;
mod run;

use std::process::ExitCode;

use clap::Parser;

use crate::config::{Cli, Command};

fn main() -> ExitCode {
    let Command::Serve(flags) = Cli::parse().command;
    let config = match flags.resolve() {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    config::init_logging(config.log_format);
    match run::serve(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// One line that says what is wrong; no backtrace, because it is the user's to mend.
fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("segue: {error}");
    ExitCode::FAILURE
}
