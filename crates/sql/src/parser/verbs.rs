//! Which grammar a statement belongs to, and the short statements: DROP, SHOW, DESCRIBE, EXPLAIN, WAIT, CANCEL.

use segue_types::UserError;
use sqlparser::tokenizer::Token;

use super::{alter, create, cursor::Cursor, index, sink};
use crate::{
    CancelJob, Describe, Drop, DropBehavior, Explain, ExplainMode, Explained, ObjectKind,
    OnMissing, ParseError, Show, Shown, Statement, Wait,
};

/// Objects of RisingWave that Segue does not have. Their statements deserve better than a syntax error.
const ABSENT: &[&str] = &["SUBSCRIPTION", "CONNECTION", "SECRET"];

pub(super) fn statement(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    refuse_absent(cursor)?;
    if cursor.is_word(0, "CREATE") {
        if let Some(statement) = create::create(cursor)? {
            return Ok(statement);
        }
        if let Some(statement) = index::create(cursor)? {
            return Ok(statement);
        }
        if let Some(statement) = sink::create(cursor)? {
            return Ok(statement);
        }
    } else if let Some(statement) = verb(cursor)? {
        return Ok(statement);
    }
    let parsed = cursor.foreign(|parser| parser.parse_statement())?;
    Ok(Statement::Sql(parsed.tree))
}

/// The verbs of our own; `None` when the statement is sqlparser's.
fn verb(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    if cursor.is_word(0, "DROP") {
        drop_objects(cursor)
    } else if cursor.is_word(0, "ALTER") {
        alter::alter(cursor)
    } else if cursor.is_word(0, "PAUSE") || cursor.is_word(0, "RESUME") {
        alter::pause_or_resume(cursor).map(Some)
    } else if cursor.is_word(0, "SHOW") {
        show(cursor)
    } else if cursor.is_word(0, "DESCRIBE") || cursor.is_word(0, "DESC") {
        describe(cursor)
    } else if cursor.is_word(0, "EXPLAIN") {
        explain(cursor)
    } else if cursor.accept(&["FLUSH"]) {
        Ok(Some(Statement::Flush))
    } else if cursor.accept(&["WAIT"]) {
        wait(cursor).map(Some)
    } else if cursor.accept(&["CANCEL"]) {
        cancel(cursor).map(Some)
    } else {
        Ok(None)
    }
}

fn refuse_absent(cursor: &Cursor<'_>) -> Result<(), ParseError> {
    let Some(verb) = ["CREATE", "DROP", "ALTER"].iter().find(|verb| cursor.is_word(0, verb)) else {
        return Ok(());
    };
    match ABSENT.iter().find(|kind| cursor.is_word(1, kind)) {
        None => Ok(()),
        Some(kind) => Err(ParseError::Invalid(
            UserError::unsupported(format!("{verb} {kind} is not supported")).at(cursor.offset().0),
        )),
    }
}

/// How many words the kind of object at `n` takes, and the kind.
pub(super) fn peek_kind(cursor: &Cursor<'_>, n: usize) -> Option<(usize, ObjectKind)> {
    if cursor.is_word(n, "MATERIALIZED") && cursor.is_word(n + 1, "VIEW") {
        return Some((2, ObjectKind::MaterializedView));
    }
    [ObjectKind::Source, ObjectKind::Table, ObjectKind::View, ObjectKind::Sink]
        .into_iter()
        .find(|kind| cursor.is_word(n, kind.as_sql()))
        .map(|kind| (1, kind))
}

pub(super) fn take_kind(cursor: &mut Cursor<'_>) -> Result<ObjectKind, ParseError> {
    let (words, kind) = peek_kind(cursor, 0)
        .ok_or_else(|| cursor.unexpected("SOURCE, TABLE, VIEW, MATERIALIZED VIEW or SINK"))?;
    (0..words).for_each(|_| cursor.advance());
    Ok(kind)
}

fn drop_objects(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    if cursor.is_word(1, "INDEX") {
        return index::drop(cursor).map(Some);
    }
    if peek_kind(cursor, 1).is_none() {
        return Ok(None);
    }
    cursor.advance();
    let kind = take_kind(cursor)?;
    let missing = cursor.accept(&["IF", "EXISTS"]);
    let on_missing = if missing { OnMissing::Skip } else { OnMissing::Refuse };
    let names = cursor.separated(Cursor::object_name)?;
    let behavior = if cursor.accept(&["CASCADE"]) {
        DropBehavior::Cascade
    } else {
        cursor.accept(&["RESTRICT"]);
        DropBehavior::Restrict
    };
    Ok(Some(Statement::Drop(Drop { kind, on_missing, names, behavior })))
}

fn show(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    const LISTS: &[(&[&str], Shown)] = &[
        (&["SHOW", "SOURCES"], Shown::Sources),
        (&["SHOW", "STAGES"], Shown::Stages),
        (&["SHOW", "TABLES"], Shown::Tables),
        (&["SHOW", "VIEWS"], Shown::Views),
        (&["SHOW", "MATERIALIZED", "VIEWS"], Shown::MaterializedViews),
        (&["SHOW", "SINKS"], Shown::Sinks),
        (&["SHOW", "JOBS"], Shown::Jobs),
    ];
    let what = if cursor.accept(&["SHOW", "CREATE"]) {
        let kind = take_kind(cursor)?;
        Shown::Create(kind, cursor.object_name()?)
    } else {
        let list = LISTS.iter().find(|(words, _)| cursor.accept(words));
        let Some((_, shown)) = list else { return Ok(None) };
        shown.clone()
    };
    let filtered = !matches!(what, Shown::Create(..));
    let from = filtered && (cursor.accept(&["FROM"]) || cursor.accept(&["IN"]));
    let from = if from { Some(cursor.object_name()?) } else { None };
    let like = filtered && cursor.accept(&["LIKE"]);
    let like = if like { Some(cursor.string()?) } else { None };
    Ok(Some(Statement::Show(Show { what, from, like })))
}

/// `DESCRIBE name`, and nothing longer: `DESC SELECT …` is sqlparser's.
fn describe(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    let qualified = cursor.peek(2) == &Token::Period;
    if cursor.peek(if qualified { 4 } else { 2 }) != &Token::EOF {
        return Ok(None);
    }
    cursor.advance();
    let offset = cursor.offset();
    let first = cursor.name()?;
    let (schema, name) = if cursor.accept_token(&Token::Period) {
        (Some(first), cursor.label()?)
    } else {
        (None, first)
    };
    Ok(Some(Statement::Describe(Describe { schema, name, offset })))
}

fn explain(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    let analyze = cursor.is_word(1, "ANALYZE");
    let statement = if analyze { 2 } else { 1 };
    let creates = cursor.is_word(statement, "CREATE");
    if !creates && peek_kind(cursor, statement).is_none_or(|(_, kind)| kind == ObjectKind::Table) {
        // TABLE t is a query.
        return Ok(None);
    }
    (0..statement).for_each(|_| cursor.advance());
    let offset = cursor.offset().0;
    let mode = if analyze { ExplainMode::Analyze } else { ExplainMode::Plan };
    if !creates {
        let kind = take_kind(cursor)?;
        let subject = Explained::Object(kind, cursor.object_name()?);
        return Ok(Some(Statement::Explain(Explain { mode, subject })));
    }
    let created = match create::create(cursor)? {
        None => sink::create(cursor)?,
        created => created,
    };
    match created {
        Some(statement) => {
            let subject = Explained::Create(Box::new(statement));
            Ok(Some(Statement::Explain(Explain { mode, subject })))
        }
        None => Err(ParseError::Invalid(
            UserError::unsupported("EXPLAIN of this statement is not supported").at(offset),
        )),
    }
}

fn wait(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    if cursor.at_end() {
        return Ok(Statement::Wait(Wait::All));
    }
    let kind = take_kind(cursor)?;
    Ok(Statement::Wait(Wait::For(kind, cursor.object_name()?)))
}

fn cancel(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    if !cursor.accept(&["JOB"]) {
        cursor.expect(&["JOBS"])?;
    }
    Ok(Statement::CancelJob(CancelJob { jobs: cursor.separated(Cursor::integer)? }))
}
