//! A read configuration: one stage of a source after parsing and binding, typed.
//!
//! The planner makes it from the statement; connectors read it. Options stay text here because only the
//! connector knows their meaning, but their *names* are checked against [`OptionSpec`] before any call.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use segue_types::{SplitId, UserError};

/// One option that a connector knows.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The name as the user writes it, or a prefix that ends in `*` (`properties.*`).
    pub name: &'static str,
    pub required: bool,
    /// Never printed: not in SHOW CREATE, errors, logs or system relations.
    pub secret: bool,
    /// One line for docs and `segue.connectors`.
    pub doc: &'static str,
}

/// The `WITH (…)` options of a stage, by name. `connector` itself is not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(pub BTreeMap<String, String>);

impl Options {
    /// The option's text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The option's text, or an error that names what is missing.
    pub fn require(&self, name: &str) -> Result<&str, UserError> {
        self.get(name).ok_or_else(|| {
            UserError::new(
                segue_types::SqlState::INVALID_PARAMETER_VALUE,
                format!("option \"{name}\" is required"),
            )
        })
    }

    /// The option parsed, `None` when it is absent, an error that names option and value when it does not parse.
    pub fn parse<T: std::str::FromStr>(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, UserError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            UserError::new(
                segue_types::SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for option \"{name}\": \"{text}\""),
            )
            .with_hint(format!("Give {expected}."))
        })
    }
}

/// One stage's configured read.
#[derive(Clone, Debug)]
pub struct ReadConfig {
    /// The stage's name, for messages.
    pub stage: String,
    pub options: Options,
    pub format: Format,
    pub start: Start,
    pub stop: Option<Stop>,
    /// The full row type: the declared columns, then the INCLUDE columns.
    pub schema: SchemaRef,
    /// How many columns of `schema` are declared, that is, come out of the record itself.
    pub declared_columns: usize,
    /// Indexes into `schema` of the PRIMARY KEY; empty without one.
    pub key: Vec<usize>,
    /// What fills `schema[declared_columns..]`, in that order.
    pub includes: Vec<Include>,
    pub on_error: OnError,
}

/// `FORMAT f ENCODE e (…)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    pub rows: RowFormat,
    /// `json`, `csv`, `parquet`, `native`: lower case.
    pub encode: String,
    /// The options in parentheses after ENCODE.
    pub options: Options,
}

/// `FORMAT …`: how one record becomes a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Each record is a new row.
    Plain,
    /// The record's key names the row; no value means deleted.
    Upsert,
}

/// `START AT …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// From the predecessor's end; the connector derives it. The default of every stage but the first.
    Handoff,
    Earliest,
    Latest,
    /// Milliseconds since 1970 UTC.
    Timestamp {
        unix_ms: i64,
    },
    Offsets(BTreeMap<SplitId, String>),
    /// Runs in the predecessor's snapshot and returns (split, next position).
    Query(String),
    /// Names of two columns of the predecessor's rows.
    Columns {
        split: String,
        position: String,
    },
}

/// `STOP AT …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    Latest,
    Timestamp { unix_ms: i64 },
    Offsets(BTreeMap<SplitId, String>),
}

/// `INCLUDE kind AS column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    pub kind: IncludeKind,
    pub column: String,
}

/// What an INCLUDE column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncludeKind {
    Key,
    Partition,
    Offset,
    Timestamp,
    /// All headers, or the one named.
    Header(Option<String>),
    Payload,
    /// The stage's name.
    Stage,
    File,
}

/// `on_error = …`: what becomes of a malformed record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It goes to `segue.dead_letters`.
    #[default]
    DeadLetter,
    /// The read fails, and stays at the record.
    Fail,
}
