//! The options of `ENCODE JSON (…)`.

use std::collections::BTreeMap;

use segue_types::{SqlState, UserError, nearest};

use crate::EpochUnit;

const KNOWN: [&str; 2] = ["timestamptz.handling.mode", "timestamp.handling.mode"];

/// How JSON values are understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonOptions {
    /// What a bare number in a timestamp or timestamptz column counts.
    pub epoch_unit: EpochUnit,
}

impl JsonOptions {
    /// From the options in parentheses after `ENCODE JSON`. An unknown name is an error.
    pub fn parse(options: &BTreeMap<String, String>) -> Result<JsonOptions, UserError> {
        let mut parsed = JsonOptions::default();
        for (name, value) in options {
            if !KNOWN.contains(&name.as_str()) {
                let error = UserError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("unknown option \"{name}\" of ENCODE JSON"),
                );
                return Err(match nearest(name, KNOWN) {
                    Some(known) => error.with_hint(format!("Did you mean \"{known}\"?")),
                    None => error,
                });
            }
            parsed.epoch_unit = match value.to_ascii_lowercase().as_str() {
                "second" => EpochUnit::Second,
                "milli" => EpochUnit::Milli,
                "micro" => EpochUnit::Micro,
                "guess_number_unit" => EpochUnit::Guess,
                _ => return Err(invalid_mode(name, value)),
            };
        }
        Ok(parsed)
    }
}

fn invalid_mode(name: &str, value: &str) -> UserError {
    let message = format!("invalid value for option \"{name}\": \"{value}\"");
    UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        .with_hint("Give milli (the default), micro, second or guess_number_unit.")
}
