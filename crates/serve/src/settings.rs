//! Session settings: what SET, RESET and SHOW know, with PostgreSQL's names and RisingWave's.
//!
//! A *known* setting has a default and is shown; an *ignored* one is RisingWave's, accepted and kept
//! but without effect. Anything else is an error that names the nearest known one.

mod duration;

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::RwLock;
use segue_types::{SqlState, UserError, nearest};

use crate::backend::Patience;
use crate::encode::{Forms, Style, Zone};

/// The PostgreSQL version that clients are told: psql and drivers choose their queries by it.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// A setting that SHOW ALL lists.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) default: &'static str,
    pub(crate) kind: Kind,
    pub(crate) doc: &'static str,
}

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Boolean,
    Integer,
    /// Milliseconds, or with a unit; zero is without limit.
    Duration,
    /// Cannot be set.
    Internal,
}

const fn known(name: &'static str, default: &'static str, kind: Kind, doc: &'static str) -> Known {
    Known { name, default, kind, doc }
}

/// Every known setting, by name.
pub(crate) const KNOWN: &[Known] = &[
    known("application_name", "", Kind::Text, "Name that the client gives itself."),
    known("background_ddl", "off", Kind::Boolean, "CREATE returns at once and goes on as a job."),
    known("bytea_output", "hex", Kind::Text, "Output format of bytea; only hex."),
    known("client_encoding", "UTF8", Kind::Text, "Encoding of the client; only UTF8."),
    known("client_min_messages", "notice", Kind::Text, "Lowest level that is sent to the client."),
    known(
        "connector_timeout",
        "1min",
        Kind::Duration,
        "How long a statement waits for an external system that is away; 0 waits for ever.",
    ),
    known("datestyle", "ISO, MDY", Kind::Text, "Output style of dates; only ISO."),
    known("default_transaction_isolation", "read committed", Kind::Text, "Accepted, no effect."),
    known("default_transaction_read_only", "off", Kind::Boolean, "Accepted, no effect."),
    known("extra_float_digits", "1", Kind::Integer, "Floats are always printed with all digits."),
    known("idle_in_transaction_session_timeout", "0", Kind::Duration, "Accepted, no effect."),
    known("integer_datetimes", "on", Kind::Internal, "Timestamps are 64-bit integers."),
    known("intervalstyle", "postgres", Kind::Text, "Output style of intervals; only postgres."),
    known("jit", "off", Kind::Boolean, "Accepted, no effect."),
    known("lock_timeout", "0", Kind::Duration, "Accepted, no effect."),
    known("max_identifier_length", "63", Kind::Internal, "Longest name."),
    known("row_security", "on", Kind::Boolean, "Accepted, no effect."),
    known("search_path", "\"$user\", public", Kind::Text, "Where names are looked up."),
    known("server_encoding", "UTF8", Kind::Internal, "Encoding of the server."),
    known("server_version", SERVER_VERSION, Kind::Internal, "PostgreSQL version that is spoken."),
    known("server_version_num", "150000", Kind::Internal, "The same as a number."),
    known(
        "source_scan_memory_mb",
        "1024",
        Kind::Integer,
        "Memory for the newest rows of a source of changes by key that a SELECT reads.",
    ),
    known("standard_conforming_strings", "on", Kind::Boolean, "Backslashes are plain characters."),
    known("statement_timeout", "0", Kind::Duration, "Time after which a statement is cancelled."),
    known("synchronize_seqscans", "on", Kind::Boolean, "Accepted, no effect."),
    known("timezone", "UTC", Kind::Text, "Time zone in which timestamptz is printed."),
    known("transaction_isolation", "read committed", Kind::Text, "Accepted, no effect."),
    known("transaction_read_only", "off", Kind::Boolean, "Accepted, no effect."),
    known(
        "value_forms",
        "auto",
        Kind::Text,
        "Text forms: postgresql, risingwave, or by rw_ settings.",
    ),
];

/// RisingWave's session settings that carry none of its prefixes.
const IGNORED: &[&str] = &[
    "bypass_cluster_limits",
    "create_compaction_group_for_mv",
    "implicit_flush",
    "max_split_range_gap",
    "query_epoch",
    "query_mode",
    "slow_ddl_notification_secs",
    "source_rate_limit",
    "upsert_dml",
    "visibility_mode",
];

/// Those that ask for what is always so.
const FLUSHES: &[&str] = &["rw_implicit_flush", "implicit_flush"];

/// Whether a setting of this name is accepted and has no effect, which the user should be told.
pub(crate) fn is_without_effect(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !KNOWN.iter().any(|known| known.name == name)
        && is_ignored(&name)
        && !FLUSHES.contains(&name.as_str())
}

/// How RisingWave's settings begin that are about how it works, not about what is so.
const PREFIXES: &[&str] = &[
    "allow_",
    "backfill_",
    "batch_",
    "cdc_",
    "disable_",
    "dml_",
    "enable_",
    "force_",
    "iceberg_",
    "rw_",
    "sink_",
    "streaming_",
];

fn is_ignored(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.contains('.')
        || IGNORED.contains(&name)
}

/// What a session has set.
#[derive(Debug, Default)]
pub(crate) struct Settings(RwLock<BTreeMap<String, String>>);

impl Settings {
    /// `SET name = value`; returns the value as it is shown.
    pub(crate) fn set(&self, name: &str, value: &str) -> Result<String, UserError> {
        let name = name.to_ascii_lowercase();
        let value = match KNOWN.iter().find(|known| known.name == name) {
            Some(known) => checked(known, value)?,
            None if is_ignored(&name) => value.to_owned(),
            None => return Err(unknown(&name)),
        };
        self.0.write().insert(name, value.clone());
        Ok(value)
    }

    /// `RESET name`, `SET name TO DEFAULT`.
    pub(crate) fn reset(&self, name: &str) -> Result<(), UserError> {
        let name = name.to_ascii_lowercase();
        let known = KNOWN.iter().any(|known| known.name == name);
        if !known && !is_ignored(&name) {
            return Err(unknown(&name));
        }
        self.0.write().remove(&name);
        Ok(())
    }

    /// `RESET ALL`.
    pub(crate) fn reset_all(&self) {
        self.0.write().clear();
    }

    /// The value, or the error that there is no such setting.
    pub(crate) fn get(&self, name: &str) -> Result<String, UserError> {
        let name = name.to_ascii_lowercase();
        if let Some(value) = self.0.read().get(&name) {
            return Ok(value.clone());
        }
        let known = KNOWN.iter().find(|known| known.name == name);
        match known {
            Some(known) => Ok(known.default.to_owned()),
            // DML is visible when it returns, whatever is set.
            None if FLUSHES.contains(&name.as_str()) => Ok("true".to_owned()),
            None if is_ignored(&name) => Ok(String::new()),
            None => Err(unknown(&name)),
        }
    }

    /// Whether a boolean setting is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_ok_and(|value| value == "on")
    }

    /// The value of an integer setting that is not negative.
    pub(crate) fn integer(&self, name: &str) -> Option<usize> {
        self.get(name).ok()?.parse().ok()
    }

    /// How values are printed.
    pub(crate) fn style(&self) -> Style {
        let zone = self.get("timezone").ok().and_then(|name| Zone::parse(&name));
        Style { zone: zone.unwrap_or_default(), forms: self.forms() }
    }

    /// Who makes a setting that only RisingWave has reads values as RisingWave writes them.
    fn forms(&self) -> Forms {
        let is_risingwave = match self.get("value_forms").as_deref() {
            Ok("risingwave") => true,
            Ok("postgresql") => false,
            _ => {
                let set = self.0.read();
                set.keys().any(|name| name.starts_with("rw_") || FLUSHES.contains(&name.as_str()))
            }
        };
        if is_risingwave { Forms::RisingWave } else { Forms::PostgreSql }
    }

    /// `statement_timeout`; `None` when there is none.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        self.limit("statement_timeout")
    }

    /// `connector_timeout`.
    pub(crate) fn patience(&self) -> Patience {
        self.limit("connector_timeout").map_or(Patience::Endless, Patience::Limited)
    }

    /// The value of a time; `None` when it is without limit.
    fn limit(&self, name: &str) -> Option<Duration> {
        let text = self.get(name).ok()?;
        let limit = duration::parse(&text).expect("what is kept was checked");
        (!limit.is_zero()).then_some(limit)
    }
}

fn unknown(name: &str) -> UserError {
    let error = UserError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("unrecognized configuration parameter \"{name}\""),
    );
    match nearest(name, KNOWN.iter().map(|known| known.name)) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None => error,
    }
}

/// The value as it is kept, or why it cannot be.
fn checked(known: &Known, value: &str) -> Result<String, UserError> {
    let invalid = || {
        UserError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{}\": \"{value}\"", known.name),
        )
    };
    match (known.name, known.kind) {
        (name, Kind::Internal) => Err(UserError::new(
            SqlState::try_from("55P02".to_owned()).expect("five ASCII characters"),
            format!("parameter \"{name}\" cannot be changed"),
        )),
        (_, Kind::Boolean) => match boolean(value) {
            Some(true) => Ok("on".to_owned()),
            Some(false) => Ok("off".to_owned()),
            None => Err(invalid().with_hint("Give on or off.")),
        },
        (_, Kind::Integer) => {
            value.parse::<i32>().map(|number| number.to_string()).map_err(|_| invalid())
        }
        (_, Kind::Duration) => match duration::parse(value) {
            Ok(time) => Ok(duration::show(time)),
            Err(reason) => Err(invalid().with_hint(reason)),
        },
        ("timezone", _) => match Zone::parse(value) {
            Some(_) => Ok(value.to_owned()),
            None => Err(invalid().with_hint("Give a name such as Europe/Berlin, or an offset.")),
        },
        ("client_encoding", _) => {
            // asyncpg sends the name in quotes.
            match value.to_ascii_lowercase().replace(['-', '\''], "").as_str() {
                // What is asked for is repeated; the bytes are UTF-8 in every case.
                "utf8" | "unicode" | "sqlascii" | "sql_ascii" => Ok("UTF8".to_owned()),
                _ => Err(invalid().with_hint("Only UTF8 is spoken.")),
            }
        }
        ("datestyle", _) => Ok("ISO, MDY".to_owned()),
        ("value_forms", _) => match value.to_ascii_lowercase().as_str() {
            forms @ ("auto" | "postgresql" | "risingwave") => Ok(forms.to_owned()),
            _ => Err(invalid().with_hint("Give auto, postgresql or risingwave.")),
        },
        _ => Ok(value.to_owned()),
    }
}

fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" => Some(true),
        "off" | "false" | "no" | "0" | "f" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, Settings};

    #[test]
    fn known_settings_are_checked_ignored_ones_kept_and_others_refused() {
        let settings = Settings::default();
        assert_eq!(settings.set("Background_DDL", "TRUE").expect("a boolean"), "on");
        assert!(settings.is_on("background_ddl"));
        settings.set("rw_implicit_flush", "true").expect("RisingWave has it");
        assert_eq!(settings.get("rw_implicit_flush").expect("was set"), "true");
        settings.set("timezone", "Europe/Berlin").expect("a zone");

        let error = settings.set("timezone", "Mars/Olympus").expect_err("no such zone");
        assert_eq!(error.state.as_str(), "22023");
        let error = settings.set("backgroud_ddl", "on").expect_err("misspelt");
        assert_eq!(error.state.as_str(), "42704");
        assert!(error.hint.expect("one is near").contains("background_ddl"));
        assert!(settings.set("server_version", "9").is_err());

        settings.reset_all();
        assert!(!settings.is_on("background_ddl"));
        assert_eq!(settings.get("timezone").expect("known"), "UTC");
    }

    #[test]
    fn the_table_is_sorted_so_that_show_all_is() {
        assert!(KNOWN.is_sorted_by_key(|known| known.name));
    }
}
