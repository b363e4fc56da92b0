//! ALTER: another name; PAUSE, RESUME, REFRESH, rate limits and parallelism of what reads; PAUSE and RESUME as verbs.
//!
//! Invariant: an ALTER of a table or view that is none of these stays sqlparser's, which names what it would be.

use std::num::NonZeroU32;

use segue_types::{SqlState, UserError};
use sqlparser::tokenizer::Token;

use super::{
    cursor::Cursor,
    verbs::{peek_kind, take_kind},
};
use crate::{
    Action, Alter, AlterJob, JobAction, ObjectKind, Parallelism, ParseError, RateLimit, Rename,
    Statement,
};

/// What RisingWave's ALTER changes and Segue's does not.
const CHANGES: &[&str] =
    &["RENAME", "SET", "RESET", "ADD", "DROP", "ALTER", "OWNER", "FORMAT", "REFRESH", "SWAP"];

/// The words behind SET that are ours.
const SETTINGS: &[&str] = &["SOURCE_RATE_LIMIT", "BACKFILL_RATE_LIMIT", "PARALLELISM"];

/// `ALTER {SOURCE|TABLE|MATERIALIZED VIEW} name …`; `None` when it is sqlparser's.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    let Some((words, kind)) = peek_kind(cursor, 1) else { return Ok(None) };
    if !is_ours(cursor, 1 + words) && matches!(kind, ObjectKind::Table | ObjectKind::View) {
        return Ok(None);
    }
    cursor.advance();
    let kind = take_kind(cursor)?;
    let name = cursor.object_name()?;
    if cursor.accept(&["RENAME", "TO"]) {
        let offset = cursor.offset();
        let to = cursor.name()?;
        return Ok(Some(Statement::Rename(Rename { kind, name, to, offset })));
    }
    let action = action(cursor, kind)?;
    Ok(Some(Statement::Alter(Alter { kind, name, action })))
}

/// Whether what follows the name at `name` is one of our actions.
fn is_ours(cursor: &Cursor<'_>, name: usize) -> bool {
    let verb = if cursor.peek(name + 1) == &Token::Period { name + 3 } else { name + 1 };
    let verbs = ["PAUSE", "RESUME", "REFRESH"];
    verbs.iter().any(|word| cursor.is_word(verb, word))
        || cursor.is_word(verb, "RENAME") && cursor.is_word(verb + 1, "TO")
        || cursor.is_word(verb, "SET")
            && SETTINGS.iter().any(|setting| cursor.is_word(verb + 1, setting))
}

fn action(cursor: &mut Cursor<'_>, kind: ObjectKind) -> Result<Action, ParseError> {
    let reloads = cursor.is_words(&["REFRESH", "SCHEMA"]);
    if cursor.accept(&["PAUSE"]) {
        Ok(Action::Pause)
    } else if cursor.accept(&["RESUME"]) {
        Ok(Action::Resume)
    } else if !reloads && cursor.accept(&["REFRESH"]) {
        Ok(Action::Refresh)
    } else if cursor.accept(&["SET", "SOURCE_RATE_LIMIT"]) {
        rate_limit(cursor).map(Action::SetSourceRateLimit)
    } else if cursor.accept(&["SET", "BACKFILL_RATE_LIMIT"]) {
        rate_limit(cursor).map(Action::SetBackfillRateLimit)
    } else if cursor.accept(&["SET", "PARALLELISM"]) {
        parallelism(cursor).map(Action::SetParallelism)
    } else if let Some(change) = CHANGES.iter().find(|change| cursor.is_word(0, change)) {
        let message = format!("ALTER {} … {change} is not supported", kind.as_sql());
        Err(ParseError::Invalid(
            UserError::unsupported(message)
                .with_hint("Drop it and create it again.")
                .at(cursor.offset().0),
        ))
    } else {
        Err(cursor.unexpected("PAUSE, RESUME, REFRESH or SET"))
    }
}

/// `{= | TO}`
fn expect_assignment(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    if cursor.accept_token(&Token::Eq) || cursor.accept(&["TO"]) {
        Ok(())
    } else {
        Err(cursor.unexpected("\"=\" or TO"))
    }
}

/// `{= | TO} {n | DEFAULT}`
fn rate_limit(cursor: &mut Cursor<'_>) -> Result<RateLimit, ParseError> {
    expect_assignment(cursor)?;
    if cursor.accept(&["DEFAULT"]) {
        return Ok(RateLimit::Unlimited);
    }
    match cursor.peek(0) {
        Token::Number(..) => cursor.integer().map(RateLimit::RowsPerSecond),
        _ => Err(cursor.unexpected("a whole number of rows per second, or DEFAULT")),
    }
}

/// `{= | TO} {n | ADAPTIVE | DEFAULT}`
fn parallelism(cursor: &mut Cursor<'_>) -> Result<Parallelism, ParseError> {
    expect_assignment(cursor)?;
    if cursor.accept(&["ADAPTIVE"]) || cursor.accept(&["DEFAULT"]) {
        return Ok(Parallelism::Adaptive);
    }
    let offset = cursor.offset().0;
    if !matches!(cursor.peek(0), Token::Number(..)) {
        return Err(cursor.unexpected("a whole number, ADAPTIVE or DEFAULT"));
    }
    let number = u32::try_from(cursor.integer()?).ok().and_then(NonZeroU32::new);
    number.map(Parallelism::Fixed).ok_or_else(|| {
        let message = "PARALLELISM must be at least 1";
        ParseError::invalid(SqlState::INVALID_PARAMETER_VALUE, message, offset)
    })
}

/// `{PAUSE|RESUME} {SOURCE|TABLE|MATERIALIZED VIEW} name`, `{PAUSE|RESUME} JOB n, …`
pub(super) fn pause_or_resume(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    let pauses = cursor.accept(&["PAUSE"]);
    if !pauses {
        cursor.expect(&["RESUME"])?;
    }
    if cursor.accept(&["JOB"]) || cursor.accept(&["JOBS"]) {
        let jobs = cursor.separated(Cursor::integer)?;
        let action = if pauses { JobAction::Pause } else { JobAction::Resume };
        return Ok(Statement::AlterJob(AlterJob { jobs, action }));
    }
    if peek_kind(cursor, 0).is_none() {
        return Err(cursor.unexpected("SOURCE, TABLE, MATERIALIZED VIEW or JOB"));
    }
    let kind = take_kind(cursor)?;
    let name = cursor.object_name()?;
    let action = if pauses { Action::Pause } else { Action::Resume };
    Ok(Statement::Alter(Alter { kind, name, action }))
}
