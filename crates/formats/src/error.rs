//! How decoding fails: a value that has no place in its column, or a record that is not well
//! formed.
//!
//! Words defined here: *value error* (about one value, knows no column), *decode error* (about
//! one record). Invariant: the quoted part of an input is cut, so that a message never carries a
//! whole record.

use std::fmt;

/// How many characters of a wrong value a message shows.
const SHOWN_CHARS_MAX: usize = 64;

/// One value that its column cannot hold. Lower case, without the column's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(Box<str>);

impl ValueError {
    /// A reason in the words of PostgreSQL.
    pub(crate) fn new(reason: impl Into<Box<str>>) -> ValueError {
        ValueError(reason.into())
    }

    /// `"abc" is not a valid numeric`.
    #[cold]
    pub(crate) fn invalid(text: &str, ty: impl fmt::Display) -> ValueError {
        ValueError::new(format!("{} is not a valid {ty}", Shown(text)))
    }

    /// `"300000" is out of range for smallint`.
    #[cold]
    pub(crate) fn out_of_range(text: &str, ty: impl fmt::Display) -> ValueError {
        ValueError::new(format!("{} is out of range for {ty}", Shown(text)))
    }
}

/// A quoted value, cut to [`SHOWN_CHARS_MAX`].
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((end, _)) => write!(f, "\"{}…\"", &self.0[..end]),
            None => write!(f, "\"{}\"", self.0),
        }
    }
}

/// A record that could not be decoded. The decoder is exactly as it was before the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The declared column at fault; `None` when the record itself is not well formed.
    pub column: Option<String>,
    pub reason: String,
}

impl DecodeError {
    /// About the record as a whole.
    #[cold]
    pub(crate) fn record(reason: impl Into<String>) -> DecodeError {
        DecodeError { column: None, reason: reason.into() }
    }

    /// About the value of one column.
    #[cold]
    pub(crate) fn value(column: &str, error: &ValueError) -> DecodeError {
        DecodeError { column: Some(column.to_owned()), reason: error.to_string() }
    }

    /// A NOT NULL column without a value.
    #[cold]
    pub(crate) fn null(column: &str) -> DecodeError {
        DecodeError {
            column: Some(column.to_owned()),
            reason: "null value violates the not-null constraint".to_owned(),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(f, "column \"{column}\": {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for DecodeError {}
