//! CREATE SINK: a query, and where its rows go.

use sqlparser::tokenizer::Token;

use super::{create, cursor::Cursor, parse_query, stage};
use crate::{CreateSink, Emission, Name, ParseError, SinkTable, Statement};

/// `CREATE SINK [IF NOT EXISTS] name [INTO table [(columns)]] {FROM relation | AS query} [WITH (options) [FORMAT …]]`
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    if !cursor.accept(&["CREATE", "SINK"]) {
        return Ok(None);
    }
    let on_existing = create::on_existing(cursor, false)?;
    let offset = cursor.offset();
    let name = cursor.object_name()?;
    let into = if cursor.accept(&["INTO"]) { Some(table(cursor)?) } else { None };
    let query = if cursor.accept(&["FROM"]) {
        let relation: Name = cursor.object_name()?;
        parse_query(&format!("SELECT * FROM {relation}"))?
    } else {
        cursor.expect(&["AS"])?;
        cursor.foreign(|parser| parser.parse_query().map(|query| *query))?
    };
    let emission = match cursor.emits_on_close {
        true => Emission::OnWindowClose,
        false => Emission::OnChange,
    };
    // The tokens of a sink have a semicolon where WITH stood.
    let has_options = cursor.accept_token(&Token::SemiColon);
    let options = if has_options { stage::options(cursor)? } else { Vec::new() };
    let has_format = has_options && cursor.is_word(0, "FORMAT");
    let format = if has_format { Some(stage::format(cursor)?) } else { None };
    let sink = CreateSink { name, on_existing, into, query, emission, options, format, offset };
    Ok(Some(Statement::CreateSink(sink)))
}

fn table(cursor: &mut Cursor<'_>) -> Result<SinkTable, ParseError> {
    let offset = cursor.offset();
    let name = cursor.object_name()?;
    let has_columns = cursor.peek(0) == &Token::LParen;
    let columns = if has_columns { cursor.listed(Cursor::name)? } else { Vec::new() };
    Ok(SinkTable { name, columns, offset })
}
