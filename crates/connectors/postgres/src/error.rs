//! What an error of the server or of the connection means for whoever configured the read.
//!
//! Invariant: only what may pass by itself is `Unreachable`; everything else would be retried in vain.

use std::error::Error as _;
use std::io;

use segue_connect::ConnectError;
use segue_types::{SqlState, UserError};
use tokio_postgres::error::{DbError, ErrorPosition};

/// What the server was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Connection,
    Query,
    HandoffQuery,
}

impl Asked {
    fn words(self) -> &'static str {
        match self {
            Asked::Connection => "the connection",
            Asked::Query => "the query",
            Asked::HandoffQuery => "the START AT QUERY",
        }
    }
}

/// An error of the driver, as the contract says it.
pub(crate) fn connect_error(
    error: &tokio_postgres::Error,
    system: &str,
    asked: Asked,
) -> ConnectError {
    if let Some(answer) = error.as_db_error() {
        return server_error(answer, system, asked);
    }
    let reason = reason(error);
    let system = system.to_owned();
    if is_refusal(error) {
        ConnectError::Denied { system, reason }
    } else {
        ConnectError::Unreachable { system, reason }
    }
}

fn server_error(answer: &DbError, system: &str, asked: Asked) -> ConnectError {
    let code = answer.code().code();
    let system = system.to_owned();
    match Verdict::of(code) {
        Verdict::Passing => {
            let reason = format!("{} (SQLSTATE {code})", answer.message());
            ConnectError::Unreachable { system, reason }
        }
        Verdict::Denied => {
            let reason = format!("{} (SQLSTATE {code})", answer.message());
            ConnectError::Denied { system, reason }
        }
        Verdict::Value => ConnectError::Value(user_error(answer, &system, asked)),
        Verdict::Config => ConnectError::Config(user_error(answer, &system, asked)),
    }
}

fn user_error(answer: &DbError, system: &str, asked: Asked) -> UserError {
    let code = answer.code().code();
    let state = SqlState::try_from(code.to_owned()).unwrap_or(SqlState::INTERNAL_ERROR);
    let place = match answer.position() {
        Some(ErrorPosition::Original(character)) => format!(" at character {character}"),
        _ => String::new(),
    };
    let more = answer.detail().map(|detail| format!(" {detail}")).unwrap_or_default();
    let message = answer.message();
    let error = UserError::new(state, format!("the server rejected {}", asked.words()))
        .with_detail(format!("The {system} says{place}: {message} (SQLSTATE {code}).{more}"));
    match answer.hint() {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Whose turn it is after an answer of the server.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Nobody's: try again.
    Passing,
    Denied,
    Value,
    Config,
}

impl Verdict {
    fn of(code: &str) -> Verdict {
        match code {
            // A hot standby cancels queries that hold up its recovery with 40001.
            "57P01" | "57P02" | "57P03" | "57P05" | "40001" | "40P01" | "55P03" | "25P03" => {
                Verdict::Passing
            }
            "42501" | "57014" => Verdict::Denied,
            _ => match &code[..code.len().min(2)] {
                "08" | "53" => Verdict::Passing,
                "28" => Verdict::Denied,
                "22" => Verdict::Value,
                _ => Verdict::Config,
            },
        }
    }
}

/// The driver's text is only the kind; the reason is in its sources.
fn reason(error: &tokio_postgres::Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason.push_str(": ");
        reason.push_str(&cause.to_string());
        source = cause.source();
    }
    reason
}

/// Whether the driver gave up for a reason that stays: no password, no TLS, a certificate not trusted. The
/// driver keeps its kinds to itself, so they are told by their texts; a cut in a handshake has an
/// I/O error of the network below it.
fn is_refusal(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    let refusals =
        ["authentication error", "invalid configuration", "error performing TLS handshake"];
    if !refusals.contains(&text.as_str()) {
        return false;
    }
    let cut =
        error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    !matches!(
        cut,
        Some(
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::UnexpectedEof
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::TimedOut
        )
    )
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn what_passes_by_itself_is_told_from_what_does_not() {
        for code in ["57P01", "57P03", "53300", "08006", "40001"] {
            assert_eq!(Verdict::of(code), Verdict::Passing, "{code}");
        }
        for code in ["28P01", "28000", "42501"] {
            assert_eq!(Verdict::of(code), Verdict::Denied, "{code}");
        }
        assert_eq!(Verdict::of("22012"), Verdict::Value);
        for code in ["42P01", "42601", "25006", "3D000", "0A000", "XX000"] {
            assert_eq!(Verdict::of(code), Verdict::Config, "{code}");
        }
    }
}
