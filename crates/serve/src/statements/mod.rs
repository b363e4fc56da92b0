//! Statements: one file per kind. [`execute`] runs one, [`prepare`] finds out its parameters and
//! columns first.

mod columns;
mod copy;
mod copy_layout;
mod create_as;
mod cursor;
mod ddl;
mod defaults;
mod delete;
mod describe;
mod explain;
mod insert;
mod listing;
mod lookup;
mod parameters;
mod prepared;
mod query;
mod returning;
mod set;
mod show;
mod target;
mod tolerated;
mod transaction;
mod update;

use std::sync::Arc;

use arrow::datatypes::Fields;
use segue_sql::Statement;
use segue_types::{SqlState, UserError};
use sqlparser::ast;

pub(crate) use copy::{CopyIn, CopyOut};

use crate::outcome::Outcome;
use crate::prepared::{Parameter, Parameters, PlanCache, Prepared};
use crate::session::{Running, Session, Transaction, aborted};

/// A statement to be run.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) statement: Arc<Statement>,
    /// The statement's own text.
    pub(crate) source: Arc<str>,
    pub(crate) parameters: Parameters,
    pub(crate) plan: Arc<PlanCache>,
}

/// Runs a statement. The future is awaited to its end; raising the token in `running` makes that soon.
pub(crate) async fn execute(
    session: &mut Session,
    call: Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    running.check()?;
    refuse_in_failed_block(session, &call.statement)?;
    session.begin_statement();
    match call.statement.as_ref() {
        Statement::Sql(statement) => execute_sql(session, statement, &call, running).await,
        Statement::CreateIndex(index) => tolerated::create_index(session, index, running),
        Statement::DropIndex(index) => Ok(tolerated::drop_index(index, running)),
        Statement::Show(show) => listing::show(session, show).await,
        Statement::Describe(describe) => describe::describe(session, describe).await,
        Statement::Explain(explain) => explain::own(session, explain).await,
        Statement::CreateSource(_)
        | Statement::CreateTable(_)
        | Statement::CreateView(_)
        | Statement::CreateMaterializedView(_)
        | Statement::CreateSink(_)
        | Statement::Drop(_)
        | Statement::Alter(_)
        | Statement::AlterJob(_)
        | Statement::Rename(_)
        | Statement::Flush
        | Statement::Wait(_)
        | Statement::CancelJob(_) => ddl::execute(session, &call, running).await,
    }
}

async fn execute_sql(
    session: &mut Session,
    statement: &ast::Statement,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    match statement {
        ast::Statement::Query(query) => query::execute(session, query, call, running).await,
        ast::Statement::Insert(insert) => insert::execute(session, insert, call, running).await,
        ast::Statement::Update(update) => update::execute(session, update, call, running).await,
        ast::Statement::Delete(delete) => delete::execute(session, delete, call, running).await,
        ast::Statement::Truncate(truncate) => delete::truncate(session, truncate, running).await,
        ast::Statement::Copy { .. } => copy::execute(session, statement, call, running).await,
        ast::Statement::Set(set) => set::set(session, set, running),
        ast::Statement::Reset(reset) => set::reset(session, reset),
        ast::Statement::ShowVariable { variable } => show::variable(session, variable),
        ast::Statement::StartTransaction { .. }
        | ast::Statement::Commit { .. }
        | ast::Statement::Rollback { .. }
        | ast::Statement::Savepoint { .. }
        | ast::Statement::ReleaseSavepoint { .. } => {
            transaction::execute(session, statement, running)
        }
        ast::Statement::Prepare { .. }
        | ast::Statement::Execute { .. }
        | ast::Statement::Deallocate { .. } => {
            Box::pin(prepared::execute(session, statement, call, running)).await
        }
        ast::Statement::Declare { .. }
        | ast::Statement::Fetch { .. }
        | ast::Statement::Close { .. } => cursor::execute(session, statement, call, running).await,
        ast::Statement::Explain { .. } => explain::query(session, statement, call, running).await,
        ast::Statement::Discard { object_type } => Ok(set::discard(session, *object_type)),
        ast::Statement::LISTEN { .. } => Ok(Outcome::done("LISTEN")),
        ast::Statement::UNLISTEN { .. } => Ok(Outcome::done("UNLISTEN")),
        ast::Statement::NOTIFY { .. } => Ok(Outcome::done("NOTIFY")),
        ast::Statement::Analyze(_) => Ok(Outcome::done("ANALYZE")),
        ast::Statement::Vacuum(_) => Ok(Outcome::done("VACUUM")),
        ast::Statement::CreateTable(create) if create.query.is_some() => {
            Box::pin(create_as::execute(session, create, call, running))
                .await
                .unwrap_or_else(|| Err(unsupported(statement)))
        }
        other => match tolerated::namespace(other, running) {
            Some(outcome) => outcome,
            None => Err(unsupported(other)),
        },
    }
}

/// Names a statement by its first words, which never hold a value.
fn unsupported(statement: &ast::Statement) -> UserError {
    let text = statement.to_string();
    let words: Vec<&str> = text
        .split_whitespace()
        .take(3)
        .take_while(|word| word.chars().all(|c| c.is_ascii_uppercase()))
        .collect();
    let name = if words.is_empty() { "this statement".to_owned() } else { words.join(" ") };
    UserError::unsupported(format!("{name} is not supported"))
}

fn refuse_in_failed_block(session: &Session, statement: &Statement) -> Result<(), UserError> {
    let ends = matches!(
        statement,
        Statement::Sql(sql)
            if matches!(**sql, ast::Statement::Commit { .. } | ast::Statement::Rollback { .. })
    );
    match session.transaction {
        Transaction::Failed if !ends => Err(aborted()),
        _ => Ok(()),
    }
}

/// Parses the text of `running` and finds out its parameters and columns.
pub(crate) async fn prepare(
    session: &mut Session,
    running: &Running,
    client_oids: &[u32],
) -> Result<Prepared, UserError> {
    let text = Arc::clone(&running.text);
    let mut parsed = segue_sql::parse_spanned(&text)?;
    if parsed.len() > 1 {
        return Err(UserError::new(
            SqlState::SYNTAX_ERROR,
            "cannot insert multiple commands into a prepared statement",
        ));
    }
    let plan = Arc::new(PlanCache::default());
    let Some(parsed) = parsed.pop() else {
        return Ok(Prepared { text, statement: None, parameters: Vec::new(), fields: None, plan });
    };
    refuse_in_failed_block(session, &parsed.statement)?;
    session.begin_statement();
    let call = Call {
        source: text[parsed.source.clone()].into(),
        statement: Arc::new(parsed.statement),
        parameters: Parameters::default(),
        plan: Arc::clone(&plan),
    };
    let (parameters, fields) = describe_call(session, &call, running, client_oids).await?;
    Ok(Prepared { text, statement: Some(call.statement), parameters, fields, plan })
}

async fn describe_call(
    session: &mut Session,
    call: &Call,
    running: &Running,
    client_oids: &[u32],
) -> Result<(Vec<Parameter>, Option<Fields>), UserError> {
    match call.statement.as_ref() {
        Statement::Sql(statement) => match statement.as_ref() {
            ast::Statement::Query(query) => {
                let (parameters, fields) =
                    query::prepare(session, query, call, running, client_oids).await?;
                Ok((parameters, Some(fields)))
            }
            ast::Statement::Insert(insert) => {
                insert::prepare(session, insert, running, client_oids).await
            }
            ast::Statement::Update(update) => {
                update::prepare(session, update, running, client_oids).await
            }
            ast::Statement::Delete(delete) => {
                delete::prepare(session, delete, running, client_oids).await
            }
            ast::Statement::Fetch { name, .. } => {
                Ok((Vec::new(), Some(cursor::fields(session, &name.value)?)))
            }
            ast::Statement::Execute { name: Some(name), .. } => {
                Ok((Vec::new(), session.prepared(&name.to_string())?.fields.clone()))
            }
            ast::Statement::ShowVariable { .. }
            | ast::Statement::Explain { analyze: false, .. } => {
                Ok((Vec::new(), columns_by_running(session, call, running).await?))
            }
            _ => Ok((Vec::new(), None)),
        },
        Statement::Show(_) | Statement::Describe(_) | Statement::Explain(_) => {
            Ok((Vec::new(), columns_by_running(session, call, running).await?))
        }
        _ => Ok((Vec::new(), None)),
    }
}

/// What only shows something is run to learn its columns.
async fn columns_by_running(
    session: &mut Session,
    call: &Call,
    running: &Running,
) -> Result<Option<Fields>, UserError> {
    match Box::pin(execute(session, call.clone(), running)).await? {
        Outcome::Rows(rows) => Ok(Some(rows.schema.fields().clone())),
        _ => Ok(None),
    }
}
