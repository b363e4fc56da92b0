//! One statement's tokens: looking ahead, taking words, names and literals, and saying what was expected instead.
//!
//! sqlparser's own parser sits on the same tokens, so a foreign statement, query or expression is parsed in place.

use std::ops::Range;

use segue_types::{SqlState, UserError};
use sqlparser::{
    parser::{Parser, ParserError},
    tokenizer::{Location, Span, Token, TokenWithSpan},
};

use super::{DIALECT, tokens};
use crate::{Foreign, Lines, Name, Offset, ParseError, name::is_reserved, redact_url};

/// How deep parentheses and subqueries may nest. sqlparser grows its stack on the heap.
const DEPTH_MAX: usize = 200;

pub(super) struct Cursor<'a> {
    text: &'a str,
    lines: &'a Lines<'a>,
    /// Of the tokens that `parser` owns, as it owns them.
    places: Vec<Place>,
    /// Of the semicolon, if there is one.
    end: Option<Span>,
    parser: Parser<'a>,
    /// Whether the statement ended in EMIT ON WINDOW CLOSE, which is not among the tokens: after a table's name EMIT
    /// would be read as its alias.
    pub(super) emits_on_close: bool,
    /// How many outer STRUCTs the rest of a `>>` or `>>>` is still to close: the tokenizer takes it for one operator.
    pub(super) closers_left: usize,
}

struct Place {
    span: Span,
    visible: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(
        text: &'a str,
        lines: &'a Lines<'a>,
        mut tokens: Vec<TokenWithSpan>,
        mut end: Option<Span>,
    ) -> Cursor<'a> {
        tokens = tokens::rewritten(tokens);
        let emit = emit_on_close(&tokens);
        if let Some(emit) = emit.clone() {
            if emit.end == tokens.len() {
                end = Some(tokens[emit.start].span);
            }
            tokens.drain(emit);
        }
        let place = |token: &TokenWithSpan| Place {
            span: token.span,
            visible: !matches!(token.token, Token::Whitespace(_)),
        };
        let places = tokens.iter().map(place).collect();
        let parser = Parser::new(&DIALECT)
            .with_recursion_limit(DEPTH_MAX)
            .with_tokens_with_locations(tokens);
        let emits_on_close = emit.is_some();
        Cursor { text, lines, places, end, parser, emits_on_close, closers_left: 0 }
    }

    /// The token `n` places ahead; `Token::EOF` at the end of the statement.
    pub(super) fn peek(&self, n: usize) -> &Token {
        &self.parser.peek_nth_token_ref(n).token
    }

    pub(super) fn advance(&mut self) {
        self.parser.advance_token();
    }

    /// Where the next token stands.
    pub(super) fn offset(&self) -> Offset {
        let next = self.next_span().or(self.end);
        Offset(next.map_or_else(|| self.lines.end(), |span| self.offset_of(span)))
    }

    /// Whether the token `n` places ahead is this unquoted word.
    pub(super) fn is_word(&self, n: usize, word: &str) -> bool {
        matches!(self.peek(n), Token::Word(found)
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    }

    /// Whether the next tokens are these unquoted words.
    pub(super) fn is_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| self.is_word(n, word))
    }

    /// Takes the words if they are next.
    pub(super) fn accept(&mut self, words: &[&str]) -> bool {
        let found = self.is_words(words);
        if found {
            words.iter().for_each(|_| self.advance());
        }
        found
    }

    /// Takes the words, each of which must be there.
    pub(super) fn expect(&mut self, words: &[&str]) -> Result<(), ParseError> {
        words.iter().try_for_each(|word| {
            if self.accept(&[word]) { Ok(()) } else { Err(self.unexpected(word)) }
        })
    }

    pub(super) fn accept_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Result<(), ParseError> {
        if self.accept_token(token) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("\"{token}\"")))
        }
    }

    pub(super) fn at_end(&self) -> bool {
        self.peek(0) == &Token::EOF
    }

    pub(super) fn expect_end(&self) -> Result<(), ParseError> {
        if self.at_end() { Ok(()) } else { Err(self.unexpected("")) }
    }

    /// A name: quoted, or a word that is not reserved.
    pub(super) fn name(&mut self) -> Result<Name, ParseError> {
        match self.peek(0) {
            Token::Word(word) if word.quote_style.is_none() && is_reserved(&fold(&word.value)) => {
                Err(self.unexpected("a name"))
            }
            _ => self.label(),
        }
    }

    /// A name where no keyword can stand, as after AS.
    pub(super) fn label(&mut self) -> Result<Name, ParseError> {
        let Token::Word(word) = self.peek(0) else { return Err(self.unexpected("a name")) };
        if word.value.is_empty() {
            let offset = self.offset().0;
            let message = "zero-length delimited identifier at or near \"\"\"\"";
            return Err(ParseError::invalid(SqlState::SYNTAX_ERROR, message, offset));
        }
        let text = if word.quote_style.is_none() { fold(&word.value) } else { word.value.clone() };
        self.advance();
        Ok(Name::new(text))
    }

    /// A word of a list that may grow, like the formats; in lower case.
    pub(super) fn word(&mut self, expected: &str) -> Result<String, ParseError> {
        let word = match self.peek(0) {
            Token::Word(word) if word.quote_style.is_none() => fold(&word.value),
            _ => return Err(self.unexpected(expected)),
        };
        self.advance();
        Ok(word)
    }

    /// The name of an object, which may be written with the one schema that objects live in.
    pub(super) fn object_name(&mut self) -> Result<Name, ParseError> {
        let offset = self.offset().0;
        let name = self.name()?;
        if !self.accept_token(&Token::Period) {
            return Ok(name);
        }
        if name.as_str() != "public" {
            let system = ["segue", "pg_catalog", "information_schema"];
            let what =
                if system.contains(&name.as_str()) { "is the system's" } else { "does not exist" };
            let message = format!("schema \"{}\" {what}", name.as_str());
            let error = UserError::new(SqlState::UNDEFINED_SCHEMA, message).at(offset);
            return Err(ParseError::Invalid(error.with_hint("Objects live in schema \"public\".")));
        }
        self.label()
    }

    /// `item [, item]…`
    pub(super) fn separated<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut items = vec![item(self)?];
        while self.accept_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `( item [, item]… [,] )`; RisingWave's scripts end such lists with a comma.
    pub(super) fn listed<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.expect_token(&Token::LParen)?;
        let mut items = vec![item(self)?];
        while self.accept_token(&Token::Comma) && self.peek(0) != &Token::RParen {
            items.push(item(self)?);
        }
        self.expect_token(&Token::RParen)?;
        Ok(items)
    }

    /// A string in any of PostgreSQL's quotes.
    pub(super) fn string(&mut self) -> Result<String, ParseError> {
        let text = match self.peek(0) {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(quoted) => quoted.value.clone(),
            _ => return Err(self.unexpected("a string in single quotes")),
        };
        self.advance();
        Ok(text)
    }

    /// A whole number.
    pub(super) fn integer(&mut self) -> Result<u64, ParseError> {
        let Token::Number(digits, _) = self.peek(0) else {
            return Err(self.unexpected("a whole number"));
        };
        let Ok(number) = digits.parse() else { return Err(self.unexpected("a whole number")) };
        self.advance();
        Ok(number)
    }

    /// A piece of sqlparser's grammar, with the text it was read from.
    pub(super) fn foreign<T>(
        &mut self,
        read: impl FnOnce(&mut Parser<'a>) -> Result<T, ParserError>,
    ) -> Result<Foreign<T>, ParseError> {
        let start = self.next_span().map_or(self.text.len(), |span| self.byte(span.start));
        let tree = read(&mut self.parser).map_err(|error| self.translate(error))?;
        let text = self.text[start..self.taken_until()].to_owned();
        Ok(Foreign { tree: Box::new(tree), text })
    }

    /// Whether there is nothing but blanks and comments.
    pub(super) fn is_empty(&self) -> bool {
        !self.places.iter().any(|place| place.visible)
    }

    /// The bytes of the whole statement.
    pub(super) fn source(&self) -> Range<usize> {
        let first = self.places.iter().find(|place| place.visible);
        let last = self.places.iter().rfind(|place| place.visible);
        match (first, last) {
            (Some(first), Some(last)) => self.byte(first.span.start)..self.byte(last.span.end),
            _ => unreachable!("an empty statement is not parsed"),
        }
    }

    /// The complaint that the next token is not what may stand here.
    pub(super) fn unexpected(&self, expected: &str) -> ParseError {
        let detail =
            if expected.is_empty() { String::new() } else { format!("Expected {expected}.") };
        self.unexpected_at(self.next_span(), detail)
    }

    fn unexpected_at(&self, span: Option<Span>, expected: String) -> ParseError {
        match span.or(self.end) {
            None => ParseError::UnexpectedEnd { expected, offset: self.lines.end() },
            Some(span) => {
                let near = &self.text[self.byte(span.start)..self.byte(span.end)];
                let offset = self.offset_of(span);
                ParseError::Unexpected { near: redact_url(near), expected, offset }
            }
        }
    }

    /// sqlparser puts the place at the end of its message, where there is one: the end of the text has none.
    fn translate(&self, error: ParserError) -> ParseError {
        let message = match error {
            ParserError::RecursionLimitExceeded => {
                return ParseError::TooDeep { offset: self.offset().0 };
            }
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        };
        let (message, place) = split_place(&message);
        let span = place.and_then(|place| self.span_at(place));
        let expected = message.strip_prefix("Expected: ");
        match expected.and_then(|expected| expected.rsplit_once(", found: ")) {
            Some((expected, "EOF")) if span.is_none() => {
                self.unexpected_at(None, format!("Expected {expected}."))
            }
            Some((expected, _)) => {
                self.unexpected_at(span.or(self.next_span()), format!("Expected {expected}."))
            }
            None => self.unexpected_at(span.or(self.next_span()), sentence(message)),
        }
    }

    fn span_at(&self, place: Location) -> Option<Span> {
        self.places.iter().map(|place| place.span).find(|span| span.start == place)
    }

    /// Of the next token; `None` at the end of the statement.
    fn next_span(&self) -> Option<Span> {
        let next = self.parser.peek_token_ref();
        if next.token == Token::EOF { None } else { Some(next.span) }
    }

    fn offset_of(&self, span: Span) -> usize {
        self.lines.offset(span.start).expect("the tokenizer's places lie in its text")
    }

    fn byte(&self, place: Location) -> usize {
        self.lines.byte(place).expect("the tokenizer's places lie in its text")
    }

    /// The byte after the last token that was taken.
    fn taken_until(&self) -> usize {
        let taken = &self.places[..self.parser.index().min(self.places.len())];
        let last = taken.iter().rfind(|place| place.visible);
        last.map_or(0, |place| self.byte(place.span.end))
    }
}

/// Where EMIT ON WINDOW CLOSE stands, if the query of a CREATE ends so.
fn emit_on_close(tokens: &[TokenWithSpan]) -> Option<Range<usize>> {
    let visible = tokens.iter().enumerate();
    let mut visible =
        visible.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    let creates = visible.clone().next().is_some_and(|(_, token)| tokens::is_word(token, "CREATE"));
    // The options of a sink come behind.
    let options = visible.clone().position(|(_, token)| token.token == Token::SemiColon);
    if let Some(options) = options {
        let behind = visible.clone().count() - options;
        (0..behind).for_each(|_| _ = visible.next_back());
    }
    let mut end = None;
    let mut at = None;
    for word in ["CLOSE", "WINDOW", "ON", "EMIT"] {
        at = Some(visible.next_back().filter(|(_, token)| tokens::is_word(token, word))?.0);
        end = end.or(at.map(|at| at + 1));
    }
    let rest = |end: usize| if options.is_some() { end } else { tokens.len() };
    at.zip(end).filter(|_| creates).map(|(at, end)| at..rest(end))
}

fn fold(word: &str) -> String {
    word.to_ascii_lowercase()
}

fn sentence(message: &str) -> String {
    let message = message.trim_end_matches('.');
    if message.is_empty() { String::new() } else { format!("{message}.") }
}

/// Takes ` at Line: 1, Column: 8` off a message.
fn split_place(message: &str) -> (&str, Option<Location>) {
    let place = message.rsplit_once(" at Line: ").and_then(|(front, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        let place = Location { line: line.parse().ok()?, column: column.parse().ok()? };
        Some((front, Some(place)))
    });
    place.unwrap_or((message, None))
}
