//! What feeds a source or table: INCLUDE, `WITH (…)`, `WITH STAGES (…)`, FORMAT, START AT, STOP AT, ALLOW, AS EVENTS.

use segue_types::SqlState;
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::{
    FormatClause, Include, Input, ParseError, Read, Rows, Stage, StartAt, StopAt, WeakHandoff,
    WithOption,
};

pub(super) fn includes(cursor: &mut Cursor<'_>) -> Result<Vec<Include>, ParseError> {
    let mut includes = Vec::new();
    while cursor.accept(&["INCLUDE"]) {
        let offset = cursor.offset();
        let kind = cursor.word("what to include")?;
        let has_inner = matches!(cursor.peek(0), Token::SingleQuotedString(_));
        let inner = if has_inner { Some(cursor.string()?) } else { None };
        let column = if cursor.accept(&["AS"]) { Some(cursor.label()?) } else { None };
        includes.push(Include { kind, inner, column, offset });
    }
    Ok(includes)
}

pub(super) fn input(cursor: &mut Cursor<'_>) -> Result<Input, ParseError> {
    if cursor.accept(&["WITH", "STAGES"]) {
        return cursor.listed(stage).map(Input::Stages);
    }
    read(cursor).map(Input::Read)
}

fn stage(cursor: &mut Cursor<'_>) -> Result<Stage, ParseError> {
    let offset = cursor.offset();
    let name = cursor.name()?;
    Ok(Stage { name, read: read(cursor)?, offset })
}

/// The clauses after the options may come in any order, each once.
fn read(cursor: &mut Cursor<'_>) -> Result<Read, ParseError> {
    let offset = cursor.offset();
    cursor.expect(&["WITH"])?;
    let mut read = Read {
        options: options(cursor)?,
        format: None,
        start: None,
        stop: None,
        allow: None,
        rows: Rows::AsDeclared,
        offset,
        start_offset: offset,
        stop_offset: offset,
    };
    loop {
        let clause = cursor.offset();
        if read.format.is_none() && cursor.is_word(0, "FORMAT") {
            read.format = Some(format(cursor)?);
        } else if read.start.is_none() && cursor.accept(&["START", "AT"]) {
            (read.start, read.start_offset) = (Some(start(cursor)?), clause);
        } else if read.stop.is_none() && cursor.accept(&["STOP", "AT"]) {
            (read.stop, read.stop_offset) = (Some(stop(cursor)?), clause);
        } else if read.allow.is_none() && cursor.accept(&["ALLOW"]) {
            read.allow = Some(allow(cursor)?);
        } else if read.rows == Rows::AsDeclared && cursor.accept(&["AS", "EVENTS"]) {
            read.rows = Rows::AsEvents;
        } else {
            return Ok(read);
        }
    }
}

pub(super) fn format(cursor: &mut Cursor<'_>) -> Result<FormatClause, ParseError> {
    let offset = cursor.offset();
    cursor.expect(&["FORMAT"])?;
    let format = cursor.word("a format")?;
    cursor.expect(&["ENCODE"])?;
    let encode = cursor.word("an encoding")?;
    let has_options = cursor.peek(0) == &Token::LParen;
    let options = if has_options { options(cursor)? } else { Vec::new() };
    Ok(FormatClause { format, encode, options, offset })
}

fn start(cursor: &mut Cursor<'_>) -> Result<StartAt, ParseError> {
    if cursor.accept(&["HANDOFF"]) {
        Ok(StartAt::Handoff)
    } else if cursor.accept(&["EARLIEST"]) {
        Ok(StartAt::Earliest)
    } else if cursor.accept(&["LATEST"]) {
        Ok(StartAt::Latest)
    } else if cursor.accept(&["TIMESTAMP"]) {
        cursor.string().map(StartAt::Timestamp)
    } else if cursor.accept(&["OFFSETS"]) {
        cursor.string().map(StartAt::Offsets)
    } else if cursor.accept(&["QUERY"]) {
        cursor.string().map(StartAt::Query)
    } else if cursor.accept(&["COLUMNS"]) {
        start_columns(cursor)
    } else {
        Err(cursor.unexpected(
            "HANDOFF, EARLIEST, LATEST, TIMESTAMP '…', OFFSETS '…', QUERY '…' or COLUMNS (…)",
        ))
    }
}

fn start_columns(cursor: &mut Cursor<'_>) -> Result<StartAt, ParseError> {
    cursor.expect_token(&Token::LParen)?;
    let split = cursor.name()?;
    cursor.expect_token(&Token::Comma)?;
    let position = cursor.name()?;
    cursor.expect_token(&Token::RParen)?;
    Ok(StartAt::Columns { split, position })
}

fn stop(cursor: &mut Cursor<'_>) -> Result<StopAt, ParseError> {
    if cursor.accept(&["LATEST"]) {
        Ok(StopAt::Latest)
    } else if cursor.accept(&["TIMESTAMP"]) {
        cursor.string().map(StopAt::Timestamp)
    } else if cursor.accept(&["OFFSETS"]) {
        cursor.string().map(StopAt::Offsets)
    } else {
        Err(cursor.unexpected("LATEST, TIMESTAMP '…' or OFFSETS '…'"))
    }
}

fn allow(cursor: &mut Cursor<'_>) -> Result<WeakHandoff, ParseError> {
    if cursor.accept(&["GAP"]) {
        Ok(WeakHandoff::Gap)
    } else if cursor.accept(&["OVERLAP"]) {
        Ok(WeakHandoff::Overlap)
    } else {
        Err(cursor.unexpected("GAP or OVERLAP"))
    }
}

/// `(name = value, …)`
pub(super) fn options(cursor: &mut Cursor<'_>) -> Result<Vec<WithOption>, ParseError> {
    let options = cursor.listed(option)?;
    for (i, option) in options.iter().enumerate() {
        if options[..i].iter().any(|earlier| earlier.name == option.name) {
            let message = format!("option \"{}\" specified more than once", option.name);
            let state = SqlState::SYNTAX_ERROR;
            return Err(ParseError::invalid(state, message, option.offset.0));
        }
    }
    Ok(options)
}

fn option(cursor: &mut Cursor<'_>) -> Result<WithOption, ParseError> {
    let offset = cursor.offset();
    let is_quoted = matches!(cursor.peek(0), Token::SingleQuotedString(_));
    let mut name: String = if is_quoted { cursor.string()? } else { cursor.label()?.into() };
    while cursor.accept_token(&Token::Period) {
        name.push('.');
        name.push_str(cursor.label()?.as_str());
    }
    cursor.expect_token(&Token::Eq)?;
    Ok(WithOption { name, value: option_value(cursor)?, offset })
}

fn option_value(cursor: &mut Cursor<'_>) -> Result<String, ParseError> {
    for boolean in ["true", "false"] {
        if cursor.accept(&[boolean]) {
            return Ok(boolean.to_owned());
        }
    }
    let is_negative = cursor.peek(0) == &Token::Minus;
    if let Token::Number(digits, _) = cursor.peek(usize::from(is_negative)) {
        let sign = if is_negative { "-" } else { "" };
        let number = format!("{sign}{digits}");
        (0..=usize::from(is_negative)).for_each(|_| cursor.advance());
        return Ok(number);
    }
    match cursor.peek(0) {
        Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_) => cursor.string(),
        _ => Err(cursor.unexpected("a string, a number, true or false")),
    }
}
