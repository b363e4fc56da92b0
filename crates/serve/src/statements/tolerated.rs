//! What scripts create and Segue has no use for: indexes, databases, the one schema, users and their rights, comments.
//! It is checked as far as that
//! finds mistakes, and a NOTICE says that nothing is kept.

use segue_catalog::{RelationKind, USER_SCHEMA};
use segue_sql::{CreateIndex, DropIndex};
use segue_types::{SqlState, UserError};
use sqlparser::ast::{self, Expr, ObjectType};

use super::target;
use crate::outcome::Outcome;
use crate::session::{Running, Session};

/// `CREATE INDEX`: its table and columns must be there.
pub(super) fn create_index(
    session: &Session,
    index: &CreateIndex,
    running: &Running,
) -> Result<Outcome, UserError> {
    let name = index.table.as_str();
    let catalog = &session.planner.reading().published.catalog;
    let object = catalog.by_name(name).ok_or_else(|| {
        let message = format!("relation \"{name}\" does not exist");
        UserError::new(SqlState::UNDEFINED_TABLE, message).at(index.offset.0)
    })?;
    let kind = object.relation_kind();
    if !matches!(kind, RelationKind::Table | RelationKind::MaterializedView) {
        let message = format!("cannot create index on {kind} \"{name}\"");
        return Err(UserError::new(SqlState::WRONG_OBJECT_TYPE, message).at(index.offset.0));
    }
    let columns = index.columns.iter().map(|column| &column.tree.expr);
    let others = index.included.iter().chain(&index.distributed).map(|column| &*column.tree);
    for expr in columns.chain(others) {
        if let Expr::Identifier(ident) = expr {
            target::column(object, &target::folded(ident))?;
        }
    }
    let shown = index.name.as_ref().map_or("", |name| name.as_str());
    running.notice(format!(
        "index \"{shown}\" is not kept: rows are found by their PRIMARY KEY, or by reading all"
    ));
    Ok(Outcome::done("CREATE INDEX"))
}

/// `DROP INDEX`
pub(super) fn drop_index(index: &DropIndex, running: &Running) -> Outcome {
    for name in &index.names {
        running.notice(format!("index \"{}\" is not kept, skipping", name.as_str()));
    }
    Outcome::done("DROP INDEX")
}

/// CREATE and DROP of databases and schemas, and what has no effect; `None` for any other statement.
pub(super) fn namespace(
    statement: &ast::Statement,
    running: &Running,
) -> Option<Result<Outcome, UserError>> {
    match statement {
        ast::Statement::CreateDatabase { .. } => {
            running.notice("every database name shows the same objects; none is created");
            Some(Ok(Outcome::done("CREATE DATABASE")))
        }
        ast::Statement::Drop { object_type: ObjectType::Database, .. } => {
            running.notice("every database name shows the same objects; none is dropped");
            Some(Ok(Outcome::done("DROP DATABASE")))
        }
        ast::Statement::CreateSchema { schema_name, if_not_exists, .. } => {
            let name = schema_name.to_string().replace('"', "");
            Some(create_schema(&name, *if_not_exists, running))
        }
        ast::Statement::Drop { object_type: ObjectType::Schema, names, if_exists, .. } => {
            let names = names.iter().map(|name| name.to_string().replace('"', ""));
            Some(drop_schemas(names, *if_exists, running))
        }
        other => without_effect(&other.to_string(), running).map(Ok),
    }
}

/// Statements that begin so, their tag, and what the user should know.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("COMMENT", "comments are not kept"),
    ("GRANT", "nobody has rights of his own; nothing is granted"),
    ("REVOKE", "nobody has rights of his own; nothing is revoked"),
    ("CREATE ROLE", "every user name may connect; none is created"),
    ("ALTER ROLE", "every user name may connect; none is changed"),
    ("DROP ROLE", "every user name may connect; none is dropped"),
];

fn without_effect(statement: &str, running: &Running) -> Option<Outcome> {
    let (tag, notice) = WITHOUT_EFFECT.iter().find(|(words, _)| {
        statement.strip_prefix(words).is_some_and(|rest| rest.starts_with(' '))
    })?;
    running.notice((*notice).to_owned());
    Some(Outcome::done(*tag))
}

fn create_schema(name: &str, skip: bool, running: &Running) -> Result<Outcome, UserError> {
    let message = format!("schema \"{name}\" already exists");
    match name {
        USER_SCHEMA if skip => {
            running.notice(format!("{message}, skipping"));
            Ok(Outcome::done("CREATE SCHEMA"))
        }
        USER_SCHEMA => Err(UserError::new(SqlState::DUPLICATE_SCHEMA, message)),
        _ => Err(UserError::unsupported("CREATE SCHEMA is not supported")
            .with_hint(format!("Objects live in schema \"{USER_SCHEMA}\"."))),
    }
}

fn drop_schemas(
    names: impl Iterator<Item = String>,
    skip: bool,
    running: &Running,
) -> Result<Outcome, UserError> {
    for name in names {
        let message = format!("schema \"{name}\" does not exist");
        match name.as_str() {
            USER_SCHEMA => {
                return Err(UserError::unsupported("DROP SCHEMA is not supported")
                    .with_hint("Drop the objects that are in it."));
            }
            _ if skip => running.notice(format!("{message}, skipping")),
            _ => return Err(UserError::new(SqlState::UNDEFINED_SCHEMA, message)),
        }
    }
    Ok(Outcome::done("DROP SCHEMA"))
}
