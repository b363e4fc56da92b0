//! CREATE INDEX and DROP INDEX, with RisingWave's INCLUDE and DISTRIBUTED BY.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::{CreateIndex, DropIndex, OnExisting, OnMissing, ParseError, Statement};

/// `CREATE [UNIQUE] INDEX [IF NOT EXISTS] [name] ON table [USING method] (…) [INCLUDE (…)] [DISTRIBUTED BY (…)]`
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    let unique = cursor.is_words(&["CREATE", "UNIQUE", "INDEX"]);
    if !unique && !cursor.is_words(&["CREATE", "INDEX"]) {
        return Ok(None);
    }
    (0..if unique { 3 } else { 2 }).for_each(|_| cursor.advance());
    let exists = cursor.accept(&["IF", "NOT", "EXISTS"]);
    let on_existing = if exists { OnExisting::Skip } else { OnExisting::Refuse };
    let name = if cursor.is_word(0, "ON") { None } else { Some(cursor.object_name()?) };
    cursor.expect(&["ON"])?;
    let offset = cursor.offset();
    let table = cursor.object_name()?;
    if cursor.accept(&["USING"]) {
        cursor.word("a method")?;
    }
    let columns = cursor.listed(|cursor| cursor.foreign(|parser| parser.parse_order_by_expr()))?;
    let mut index = CreateIndex {
        name,
        on_existing,
        table,
        columns,
        included: Vec::new(),
        distributed: Vec::new(),
        offset,
    };
    if cursor.accept(&["INCLUDE"]) {
        index.included = cursor.listed(|cursor| cursor.foreign(|parser| parser.parse_expr()))?;
    }
    if cursor.accept(&["DISTRIBUTED", "BY"]) {
        index.distributed = if cursor.peek(0) == &Token::LParen {
            cursor.listed(|cursor| cursor.foreign(|parser| parser.parse_expr()))?
        } else {
            vec![cursor.foreign(|parser| parser.parse_expr())?]
        };
    }
    Ok(Some(Statement::CreateIndex(index)))
}

/// `DROP INDEX [IF EXISTS] name, … [CASCADE|RESTRICT]`
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    cursor.expect(&["DROP", "INDEX"])?;
    let missing = cursor.accept(&["IF", "EXISTS"]);
    let on_missing = if missing { OnMissing::Skip } else { OnMissing::Refuse };
    let names = cursor.separated(Cursor::object_name)?;
    if !cursor.accept(&["CASCADE"]) {
        cursor.accept(&["RESTRICT"]);
    }
    Ok(Statement::DropIndex(DropIndex { on_missing, names }))
}
