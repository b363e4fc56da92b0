//! Column types: PostgreSQL's and RisingWave's spellings of the types that Segue has.
//!
//! Lengths of character types are read and not enforced, as for a connector a value that is too long is still the
//! value. `numeric` without precision is numeric(38,10).

use segue_types::{SqlState, SqlType, UserError, nearest};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::ParseError;

/// Structs and arrays within one another; deeper ones would outgrow the stack.
const DEPTH_MAX: usize = 32;

/// `name [(n [, m])] [[]]…` or `STRUCT<name type, …>`
pub(super) fn sql_type(cursor: &mut Cursor<'_>) -> Result<SqlType, ParseError> {
    let ty = type_at_depth(cursor, 0)?;
    if cursor.closers_left > 0 { Err(cursor.unexpected("one \">\" less")) } else { Ok(ty) }
}

fn type_at_depth(cursor: &mut Cursor<'_>, depth: usize) -> Result<SqlType, ParseError> {
    let offset = cursor.offset().0;
    if depth > DEPTH_MAX {
        return Err(ParseError::TooDeep { offset });
    }
    let mut ty = if let Some(quoted) = quoted_struct(cursor) {
        cursor.advance();
        super::parse_type(&quoted)?
    } else if cursor.is_word(0, "STRUCT") {
        structure(cursor, depth)?
    } else {
        let (name, arguments) = type_name(cursor)?;
        scalar(&name, &arguments).map_err(|error| ParseError::Invalid(error.at(offset)))?
    };
    let mut dimensions = 0;
    while cursor.closers_left == 0 && cursor.accept_token(&Token::LBracket) {
        if matches!(cursor.peek(0), Token::Number(..)) {
            cursor.integer()?;
        }
        cursor.expect_token(&Token::RBracket)?;
        ty = SqlType::Array(Box::new(ty));
        dimensions += 1;
        if depth + dimensions > DEPTH_MAX {
            return Err(ParseError::TooDeep { offset });
        }
    }
    Ok(ty)
}

/// A struct as [`super::lexical`] writes it for sqlparser.
fn quoted_struct(cursor: &Cursor<'_>) -> Option<String> {
    match cursor.peek(0) {
        Token::Word(word) if word.quote_style.is_some() => {
            let is_struct = word.value.get(..6).is_some_and(|w| w.eq_ignore_ascii_case("struct"));
            is_struct.then(|| word.value.clone()).filter(|text| text.ends_with('>'))
        }
        _ => None,
    }
}

fn structure(cursor: &mut Cursor<'_>, depth: usize) -> Result<SqlType, ParseError> {
    cursor.expect(&["STRUCT"])?;
    cursor.expect_token(&Token::Lt)?;
    let mut members: Vec<(String, SqlType)> = Vec::new();
    loop {
        let offset = cursor.offset().0;
        let name: String = cursor.label()?.into();
        if members.iter().any(|(member, _)| *member == name) {
            let message = format!("member \"{name}\" specified more than once");
            return Err(ParseError::invalid(SqlState::DUPLICATE_COLUMN, message, offset));
        }
        members.push((name, type_at_depth(cursor, depth + 1)?));
        if cursor.closers_left > 0 || !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    close_angle(cursor)?;
    Ok(SqlType::Struct(members))
}

/// `>`, or one of several that the tokenizer took for an operator.
fn close_angle(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    if cursor.closers_left > 0 {
        cursor.closers_left -= 1;
        return Ok(());
    }
    let closers = match cursor.peek(0) {
        Token::ShiftRight => 2,
        Token::CustomBinaryOperator(operator) if operator.bytes().all(|byte| byte == b'>') => {
            operator.len()
        }
        _ => return cursor.expect_token(&Token::Gt),
    };
    cursor.advance();
    cursor.closers_left = closers - 1;
    Ok(())
}

/// The words of a type's name in lower case with single blanks, and its arguments.
fn type_name(cursor: &mut Cursor<'_>) -> Result<(String, Vec<u64>), ParseError> {
    if cursor.is_word(0, "pg_catalog") && cursor.peek(1) == &Token::Period {
        cursor.advance();
        cursor.advance();
    }
    let mut name: String = cursor.label()?.into();
    match name.as_str() {
        "double" if cursor.accept(&["PRECISION"]) => name.push_str(" precision"),
        "character" | "char" if cursor.accept(&["VARYING"]) => name.push_str(" varying"),
        "interval" => interval_fields(cursor),
        _ => {}
    }
    let has_arguments = cursor.peek(0) == &Token::LParen;
    let arguments = if has_arguments { cursor.listed(Cursor::integer)? } else { Vec::new() };
    if name == "time" || name == "timestamp" {
        if cursor.accept(&["WITH", "TIME", "ZONE"]) {
            name.push_str(" with time zone");
        } else {
            cursor.accept(&["WITHOUT", "TIME", "ZONE"]);
        }
    }
    Ok((name, arguments))
}

/// `interval day to second` and its like: which fields are kept is not enforced.
fn interval_fields(cursor: &mut Cursor<'_>) {
    const FIELDS: [&str; 6] = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
    if FIELDS.iter().any(|field| cursor.accept(&[field])) && cursor.accept(&["TO"]) {
        let _ = FIELDS.iter().any(|field| cursor.accept(&[field]));
    }
}

/// Spelling → type, for types that take no argument or one that is not kept.
const TYPES: &[(&str, Arguments, SqlType)] = &[
    ("boolean", Arguments::None, SqlType::Boolean),
    ("bool", Arguments::None, SqlType::Boolean),
    ("smallint", Arguments::None, SqlType::SmallInt),
    ("int2", Arguments::None, SqlType::SmallInt),
    ("integer", Arguments::None, SqlType::Integer),
    ("int", Arguments::None, SqlType::Integer),
    ("int4", Arguments::None, SqlType::Integer),
    ("bigint", Arguments::None, SqlType::BigInt),
    ("int8", Arguments::None, SqlType::BigInt),
    ("real", Arguments::None, SqlType::Real),
    ("float4", Arguments::None, SqlType::Real),
    ("double precision", Arguments::None, SqlType::Double),
    ("double", Arguments::None, SqlType::Double),
    ("float8", Arguments::None, SqlType::Double),
    ("float", Arguments::Precision, SqlType::Double),
    ("numeric", Arguments::Precision, SqlType::NUMERIC),
    ("decimal", Arguments::Precision, SqlType::NUMERIC),
    ("dec", Arguments::Precision, SqlType::NUMERIC),
    ("text", Arguments::None, SqlType::Text),
    ("string", Arguments::None, SqlType::Text),
    ("varchar", Arguments::Length, SqlType::Text),
    ("character varying", Arguments::Length, SqlType::Text),
    ("char varying", Arguments::Length, SqlType::Text),
    ("character", Arguments::Length, SqlType::Text),
    ("char", Arguments::Length, SqlType::Text),
    ("bpchar", Arguments::Length, SqlType::Text),
    ("bytea", Arguments::None, SqlType::Bytea),
    ("date", Arguments::None, SqlType::Date),
    ("time", Arguments::Length, SqlType::Time),
    ("timestamp", Arguments::Length, SqlType::Timestamp),
    ("timestamp with time zone", Arguments::Length, SqlType::Timestamptz),
    ("timestamptz", Arguments::Length, SqlType::Timestamptz),
    ("interval", Arguments::Length, SqlType::Interval),
    ("uuid", Arguments::None, SqlType::Uuid),
    ("json", Arguments::None, SqlType::Jsonb),
    ("jsonb", Arguments::None, SqlType::Jsonb),
];

/// What a type takes in parentheses.
#[derive(PartialEq)]
enum Arguments {
    None,
    /// One number, not kept.
    Length,
    /// Numbers that choose the type.
    Precision,
}

/// The type of this name with these arguments: the one place that knows.
fn scalar(name: &str, arguments: &[u64]) -> Result<SqlType, UserError> {
    let Some((_, takes, ty)) = TYPES.iter().find(|(known, ..)| *known == name) else {
        return Err(unknown(name));
    };
    match (takes, arguments) {
        (_, []) => Ok(ty.clone()),
        (Arguments::Length, [_]) => Ok(ty.clone()),
        (Arguments::Precision, [precision]) if name == "float" => float(*precision),
        (Arguments::Precision, [precision]) if *ty == SqlType::NUMERIC => numeric(*precision, 0),
        (Arguments::Precision, [precision, scale]) if *ty == SqlType::NUMERIC => {
            numeric(*precision, *scale)
        }
        _ => {
            let message = format!("type modifier is not allowed for type \"{name}\"");
            Err(UserError::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

fn float(precision: u64) -> Result<SqlType, UserError> {
    let invalid = |message| Err(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    match precision {
        0 => invalid("precision for type float must be at least 1 bit"),
        1..=24 => Ok(SqlType::Real),
        25..=53 => Ok(SqlType::Double),
        _ => invalid("precision for type float must be less than 54 bits"),
    }
}

fn numeric(precision: u64, scale: u64) -> Result<SqlType, UserError> {
    let invalid = |message| UserError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if !(1..=38).contains(&precision) {
        let message = format!("NUMERIC precision {precision} must be between 1 and 38");
        return Err(invalid(message).with_hint("Values of more digits can be kept as text."));
    }
    if scale > precision {
        let message = format!("NUMERIC scale {scale} must be between 0 and precision {precision}");
        return Err(invalid(message));
    }
    let narrow = |number: u64| u8::try_from(number).expect("at most 38");
    Ok(SqlType::Numeric { precision: narrow(precision), scale: narrow(scale).cast_signed() })
}

fn unknown(name: &str) -> UserError {
    let error =
        UserError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"));
    match nearest(name, TYPES.iter().map(|(known, ..)| *known)) {
        Some(known) => error.with_hint(format!("Perhaps you meant the type \"{known}\".")),
        None => error,
    }
}
