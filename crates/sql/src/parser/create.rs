//! CREATE SOURCE, CREATE TABLE, CREATE [MATERIALIZED] VIEW, and the column list of the first two.

use segue_types::{SqlState, UserError};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::{cursor::Cursor, stage, types};
use crate::{
    Column, Columns, ConflictAction, CreateSource, CreateTable, CreateView, Emission, Foreign,
    Input, Mutability, Name, Nullability, Offset, OnExisting, ParseError, Statement, Watermark,
    WithOption,
};

/// A CREATE of our own; `None` when it is sqlparser's.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    let replace = cursor.is_words(&["CREATE", "OR", "REPLACE"]);
    let kind = if replace { 3 } else { 1 };
    let is_view = cursor.is_word(kind, "VIEW");
    let is_materialized = cursor.is_word(kind, "MATERIALIZED") && cursor.is_word(kind + 1, "VIEW");
    let is_source = cursor.is_word(kind, "SOURCE");
    let is_table = cursor.is_word(kind, "TABLE") && !replace && table_has_columns(cursor);
    if !(is_view || is_materialized || is_source || is_table) {
        return Ok(None);
    }
    let skipped = kind + if is_materialized { 2 } else { 1 };
    (0..skipped).for_each(|_| cursor.advance());
    let on_existing = on_existing(cursor, replace)?;
    if is_source {
        source(cursor, on_existing).map(|source| Some(Statement::CreateSource(source)))
    } else if is_table {
        table(cursor, on_existing).map(|table| Some(Statement::CreateTable(table)))
    } else if is_view {
        let view = view(cursor, on_existing)?;
        if view.emission == Emission::OnWindowClose {
            let message = "EMIT ON WINDOW CLOSE of a plain view is not supported";
            let error = UserError::unsupported(message)
                .with_hint("Make it a materialized view: a plain one is run where it is read.");
            return Err(ParseError::Invalid(error.at(view.offset.0)));
        }
        Ok(Some(Statement::CreateView(view)))
    } else {
        view(cursor, on_existing).map(|view| Some(Statement::CreateMaterializedView(view)))
    }
}

/// `CREATE TABLE t AS SELECT …` and its like have no column list, and stay sqlparser's.
fn table_has_columns(cursor: &Cursor<'_>) -> bool {
    let words = [cursor.is_word(2, "IF"), cursor.is_word(3, "NOT"), cursor.is_word(4, "EXISTS")];
    let name = if words == [true; 3] { 5 } else { 2 };
    let after = if cursor.peek(name + 1) == &Token::Period { name + 3 } else { name + 1 };
    !cursor.is_word(after, "AS")
}

pub(super) fn on_existing(
    cursor: &mut Cursor<'_>,
    replace: bool,
) -> Result<OnExisting, ParseError> {
    match (replace, cursor.is_words(&["IF", "NOT", "EXISTS"])) {
        (true, true) => Err(cursor.unexpected("a name")),
        (true, false) => Ok(OnExisting::Replace),
        (false, true) => {
            cursor.expect(&["IF", "NOT", "EXISTS"])?;
            Ok(OnExisting::Skip)
        }
        (false, false) => Ok(OnExisting::Refuse),
    }
}

fn source(cursor: &mut Cursor<'_>, on_existing: OnExisting) -> Result<CreateSource, ParseError> {
    let offset = cursor.offset();
    let name = cursor.object_name()?;
    let columns = columns(cursor, &name)?;
    let includes = stage::includes(cursor)?;
    let input = stage::input(cursor)?;
    Ok(CreateSource { name, on_existing, columns, includes, input, offset })
}

fn table(cursor: &mut Cursor<'_>, on_existing: OnExisting) -> Result<CreateTable, ParseError> {
    let offset = cursor.offset();
    let name = cursor.object_name()?;
    let columns = columns(cursor, &name)?;
    let append_only = cursor.accept(&["APPEND", "ONLY"]);
    let mut mutability = if append_only { Mutability::AppendOnly } else { Mutability::Mutable };
    let on_conflict = on_conflict(cursor)?;
    let has_versions = cursor.accept(&["WITH", "VERSION", "COLUMN"]);
    let versions = if has_versions { cursor.listed(Cursor::name)? } else { Vec::new() };
    let includes = stage::includes(cursor)?;
    let mut input = if cursor.is_word(0, "WITH") { Some(stage::input(cursor)?) } else { None };
    if let Some(options) = input.as_ref().and_then(options_of_statements) {
        if options.iter().any(|option| option.name == "appendonly" && option.value == "true") {
            mutability = Mutability::AppendOnly;
        }
        input = None;
    }
    Ok(CreateTable {
        name,
        on_existing,
        columns,
        mutability,
        on_conflict,
        versions,
        includes,
        input,
        offset,
    })
}

/// RisingWave's options of a table that only statements feed: how fast, and in older versions that it is APPEND ONLY.
const TABLE_OPTIONS: [&str; 5] = [
    "appendonly",
    "backfill_rate_limit",
    "dml_rate_limit",
    "retention_seconds",
    "source_rate_limit",
];

/// The options, if none of them is a connector's.
fn options_of_statements(input: &Input) -> Option<&[WithOption]> {
    let Input::Read(read) = input else { return None };
    let is_known = |option: &WithOption| TABLE_OPTIONS.contains(&option.name.as_str());
    (read.format.is_none() && read.options.iter().all(is_known)).then_some(&read.options)
}

fn on_conflict(cursor: &mut Cursor<'_>) -> Result<Option<ConflictAction>, ParseError> {
    if !cursor.accept(&["ON", "CONFLICT"]) {
        return Ok(None);
    }
    let action = if cursor.accept(&["DO", "NOTHING"]) || cursor.accept(&["IGNORE"]) {
        ConflictAction::DoNothing
    } else if cursor.accept(&["OVERWRITE"]) || cursor.accept(&["DO", "UPDATE", "FULL"]) {
        ConflictAction::Overwrite
    } else if cursor.accept(&["DO", "UPDATE", "IF", "NOT", "NULL"]) {
        ConflictAction::DoUpdateIfNotNull
    } else {
        return Err(
            cursor.unexpected("DO NOTHING, OVERWRITE, DO UPDATE FULL or DO UPDATE IF NOT NULL")
        );
    };
    Ok(Some(action))
}

fn view(cursor: &mut Cursor<'_>, on_existing: OnExisting) -> Result<CreateView, ParseError> {
    let offset = cursor.offset();
    let name = cursor.object_name()?;
    let has_columns = cursor.peek(0) == &Token::LParen;
    let columns = if has_columns { cursor.listed(Cursor::name)? } else { Vec::new() };
    if cursor.accept(&["WITH"]) {
        skip_view_options(cursor)?;
    }
    let first = cursor.accept(&["EMIT", "ON", "WINDOW", "CLOSE"]);
    let emission = match first || cursor.emits_on_close {
        true => Emission::OnWindowClose,
        false => Emission::OnChange,
    };
    cursor.expect(&["AS"])?;
    if ["INSERT", "UPDATE", "DELETE", "MERGE"].iter().any(|verb| cursor.is_word(0, verb)) {
        return Err(cursor.unexpected("a query"));
    }
    let query = cursor.foreign(|parser| parser.parse_query().map(|query| *query))?;
    Ok(CreateView { name, on_existing, columns, query, emission, offset })
}

/// RisingWave's options of a materialized view that only say in which order, or how fast, it is filled.
const VIEW_OPTIONS: [&str; 3] = ["backfill_order", "backfill_rate_limit", "source_rate_limit"];

/// `(name = value, …)`, where `backfill_order = FIXED a -> b, b -> c` has commas of its own.
fn skip_view_options(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    cursor.expect_token(&Token::LParen)?;
    loop {
        if !VIEW_OPTIONS.iter().any(|option| cursor.is_word(0, option)) {
            return Err(unsupported(cursor, "this option of a view is not supported"));
        }
        cursor.advance();
        cursor.expect_token(&Token::Eq)?;
        loop {
            match cursor.peek(0) {
                Token::RParen => return cursor.expect_token(&Token::RParen),
                Token::EOF => return Err(cursor.unexpected("\")\"")),
                Token::Comma => {
                    cursor.advance();
                    let goes_on = [1, 3].iter().any(|n| cursor.peek(*n) == &Token::Arrow);
                    if !goes_on {
                        break;
                    }
                }
                _ => cursor.advance(),
            }
        }
    }
}

/// What a parenthesised list may hold.
enum Element {
    Column(Column, IsKey),
    Key(Vec<Name>, Offset),
    Watermark(Watermark),
}

/// Whether the column itself said PRIMARY KEY.
#[derive(PartialEq)]
enum IsKey {
    No,
    Yes(Offset),
}

fn columns(cursor: &mut Cursor<'_>, object: &Name) -> Result<Columns, ParseError> {
    if cursor.peek(0) != &Token::LParen {
        return Err(cursor.unexpected("a list of columns in parentheses"));
    }
    let start = cursor.offset();
    let mut columns = Columns::default();
    for element in cursor.listed(element)? {
        match element {
            Element::Column(column, is_key) => {
                if let IsKey::Yes(offset) = is_key {
                    set_key(&mut columns, object, vec![column.name.clone()], offset)?;
                }
                columns.columns.push(column);
            }
            Element::Key(key, offset) => set_key(&mut columns, object, key, offset)?,
            Element::Watermark(watermark) if columns.watermark.is_none() => {
                columns.watermark = Some(watermark);
            }
            Element::Watermark(watermark) => {
                let message = "multiple watermarks are not allowed";
                let state = SqlState::INVALID_TABLE_DEFINITION;
                return Err(ParseError::invalid(state, message, watermark.offset.0));
            }
        }
    }
    if columns.columns.is_empty() {
        let message = format!("\"{}\" has no columns", object.as_str());
        let state = SqlState::INVALID_TABLE_DEFINITION;
        return Err(ParseError::invalid(state, message, start.0));
    }
    Ok(columns)
}

fn set_key(
    columns: &mut Columns,
    object: &Name,
    key: Vec<Name>,
    offset: Offset,
) -> Result<(), ParseError> {
    if !columns.key.is_empty() {
        let message = format!("multiple primary keys for \"{}\" are not allowed", object.as_str());
        let state = SqlState::INVALID_TABLE_DEFINITION;
        return Err(ParseError::invalid(state, message, offset.0));
    }
    (columns.key, columns.key_offset) = (key, offset);
    Ok(())
}

fn element(cursor: &mut Cursor<'_>) -> Result<Element, ParseError> {
    if cursor.is_word(0, "CONSTRAINT") {
        cursor.advance();
        cursor.name()?;
    }
    let offset = cursor.offset();
    if cursor.accept(&["PRIMARY", "KEY"]) {
        return Ok(Element::Key(cursor.listed(key_column)?, offset));
    }
    if cursor.accept(&["WATERMARK", "FOR"]) {
        let column = cursor.name()?;
        cursor.expect(&["AS"])?;
        let expression = cursor.foreign(|parser| parser.parse_expr())?;
        let has_options = cursor.accept(&["WITH"]);
        let options = if has_options { stage::options(cursor)? } else { Vec::new() };
        return Ok(Element::Watermark(Watermark { column, expression, options, offset }));
    }
    for constraint in ["UNIQUE", "CHECK", "FOREIGN", "EXCLUDE"] {
        if cursor.is_word(0, constraint) {
            return Err(unsupported(
                cursor,
                &format!("{constraint} constraints are not supported"),
            ));
        }
    }
    column(cursor)
}

/// A column of a key, whose order says nothing here.
fn key_column(cursor: &mut Cursor<'_>) -> Result<Name, ParseError> {
    let name = cursor.name()?;
    if !cursor.accept(&["ASC"]) {
        cursor.accept(&["DESC"]);
    }
    Ok(name)
}

fn column(cursor: &mut Cursor<'_>) -> Result<Element, ParseError> {
    let offset = cursor.offset();
    let name = cursor.name()?;
    let ty = types::sql_type(cursor)?;
    let mut is_key = IsKey::No;
    let nullability = Nullability::Nullable;
    let mut column = Column { name, ty, nullability, default: None, generated: None, offset };
    loop {
        let offset = cursor.offset();
        if is_key == IsKey::No && cursor.accept(&["PRIMARY", "KEY"]) {
            is_key = IsKey::Yes(offset);
        } else if cursor.accept(&["NOT", "NULL"]) {
            column.nullability = Nullability::NotNull;
        } else if column.default.is_none() && cursor.accept(&["DEFAULT"]) {
            column.default = Some(cursor.foreign(|parser| parser.parse_expr())?);
        } else if column.generated.is_none() && cursor.accept(&["AS"]) {
            column.generated = Some(cursor.foreign(|parser| parser.parse_expr())?);
        } else if column.generated.is_none() && cursor.is_words(&["GENERATED", "ALWAYS", "AS"]) {
            column.generated = Some(always(cursor)?);
        } else if !cursor.accept(&["NULL"]) {
            break;
        }
    }
    let refused = [
        ("UNIQUE", "UNIQUE constraints are not supported"),
        ("CHECK", "CHECK constraints are not supported"),
        ("REFERENCES", "FOREIGN KEY constraints are not supported"),
        ("GENERATED", "identity columns are not supported"),
        ("COLLATE", "COLLATE of a column is not supported"),
    ];
    match refused.iter().find(|(word, _)| cursor.is_word(0, word)) {
        Some((_, message)) => Err(unsupported(cursor, message)),
        None => Ok(Element::Column(column, is_key)),
    }
}

/// `GENERATED ALWAYS AS (expression) [STORED]`
fn always(cursor: &mut Cursor<'_>) -> Result<Foreign<ast::Expr>, ParseError> {
    if cursor.is_word(3, "IDENTITY") {
        return Err(unsupported(cursor, "identity columns are not supported"));
    }
    cursor.expect(&["GENERATED", "ALWAYS", "AS"])?;
    if cursor.peek(0) != &Token::LParen {
        return Err(cursor.unexpected("an expression in parentheses"));
    }
    let expression = cursor.foreign(|parser| parser.parse_expr())?;
    if cursor.is_word(0, "VIRTUAL") {
        return Err(unsupported(cursor, "virtual generated columns are not supported"));
    }
    cursor.accept(&["STORED"]);
    Ok(expression)
}

fn unsupported(cursor: &Cursor<'_>, message: &str) -> ParseError {
    ParseError::Invalid(UserError::unsupported(message).at(cursor.offset().0))
}
