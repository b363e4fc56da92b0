//! The grammar. One module per family of statements, all on one cursor over sqlparser's tokens.
//!
//! The text is cut at its semicolons before anything is parsed, so that an error in one statement names the
//! token where that statement went wrong, and `COPY … FROM STDIN;` does not take what follows for its data.

mod alter;
mod create;
mod cursor;
mod depth;
mod dialect;
mod forms;
mod index;
mod lexical;
mod sink;
mod stage;
mod tokens;
mod types;
mod verbs;

use std::ops::Range;

use segue_types::SqlType;
use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::{Foreign, Lines, ParseError, Statement, redact_url};
use cursor::Cursor;
pub use depth::STACK_BYTES;
use dialect::SegueDialect;

static DIALECT: SegueDialect = SegueDialect;

/// A statement and the bytes of the text that it stands in, without the semicolon.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub statement: Statement,
    pub source: Range<usize>,
}

/// The statements of a text; empty ones are left out.
pub fn parse(text: &str) -> Result<Vec<Statement>, ParseError> {
    Ok(parse_spanned(text)?.into_iter().map(|parsed| parsed.statement).collect())
}

/// The statements of a text, and where each stands in it.
pub fn parse_spanned(text: &str) -> Result<Vec<Parsed>, ParseError> {
    let lines = Lines::new(text);
    let mut tokens = tokenize(text, &lines)?.into_iter().peekable();
    let mut parsed = Vec::new();
    while tokens.peek().is_some() {
        let mut end = None;
        let goes_on = |token: &TokenWithSpan| {
            end = (token.token == Token::SemiColon).then_some(token.span);
            end.is_none()
        };
        let statement: Vec<TokenWithSpan> = tokens.by_ref().take_while(goes_on).collect();
        depth::check(&statement, &lines)?;
        let mut cursor = Cursor::new(text, &lines, statement, end);
        if cursor.is_empty() {
            continue;
        }
        let statement = verbs::statement(&mut cursor)?;
        cursor.expect_end()?;
        parsed.push(Parsed { statement, source: cursor.source() });
    }
    Ok(parsed)
}

/// A column type alone, as in `varchar(20)[]`.
pub fn parse_type(text: &str) -> Result<SqlType, ParseError> {
    let lines = Lines::new(text);
    let tokens = tokenize(text, &lines)?;
    let mut cursor = Cursor::new(text, &lines, tokens, None);
    let ty = types::sql_type(&mut cursor)?;
    cursor.expect_end()?;
    Ok(ty)
}

/// A query alone.
pub fn parse_query(text: &str) -> Result<Foreign<ast::Query>, ParseError> {
    parse_foreign(text, |parser| parser.parse_query().map(|query| *query))
}

/// An expression alone.
pub fn parse_expression(text: &str) -> Result<Foreign<ast::Expr>, ParseError> {
    parse_foreign(text, |parser| parser.parse_expr())
}

/// A type as sqlparser writes it, for trees that are made and not read.
pub fn parse_data_type(text: &str) -> Result<Foreign<ast::DataType>, ParseError> {
    parse_foreign(text, |parser| parser.parse_data_type())
}

fn parse_foreign<T>(
    text: &str,
    read: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<Foreign<T>, ParseError> {
    let lines = Lines::new(text);
    let tokens = tokenize(text, &lines)?;
    depth::check(&tokens, &lines)?;
    let mut cursor = Cursor::new(text, &lines, tokens, None);
    let foreign = cursor.foreign(|parser| read(parser))?;
    cursor.expect_end()?;
    Ok(foreign)
}

fn tokenize(text: &str, lines: &Lines<'_>) -> Result<Vec<TokenWithSpan>, ParseError> {
    let mut tokens = Vec::new();
    match Tokenizer::new(&DIALECT, text).tokenize_with_location_into_buf(&mut tokens) {
        Ok(()) => Ok(forms::read(lexical::readable(&tokens, text, lines))),
        Err(error) => {
            let start = tokens.last().map_or(Location { line: 1, column: 1 }, |last| last.span.end);
            Err(unterminated(text, lines, start, &error.message))
        }
    }
}

/// The tokenizer fails on what nobody closed, and says so in words of its own; these are PostgreSQL's.
fn unterminated(text: &str, lines: &Lines<'_>, start: Location, message: &str) -> ParseError {
    let what = match message {
        _ if message.contains("comment") => "unterminated /* comment",
        _ if message.contains("dollar") => "unterminated dollar-quoted string",
        _ if message.contains("delimiter") => "unterminated quoted identifier",
        _ if message.contains("Unterminated") => "unterminated quoted string",
        _ => "invalid token",
    };
    let rest = &text[lines.byte(start).unwrap_or(text.len())..];
    ParseError::Unterminated {
        what,
        near: redact_url(rest.lines().next().unwrap_or_default()),
        offset: lines.offset(start).unwrap_or_else(|| lines.end()),
    }
}
