//! CREATE, DROP, ALTER, FLUSH, WAIT and CANCEL JOB: the engine runs them, as tasks of their own.

use segue_sql::{JobAction, ObjectKind, Statement};
use segue_types::UserError;

use super::Call;
use crate::backend::StatementContext;
use crate::outcome::Outcome;
use crate::session::{Running, Session};

/// Runs the statement and waits until it has finished or, when cancelled, cleaned up.
pub(super) async fn execute(
    session: &mut Session,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    if let Statement::CreateTable(create) = call.statement.as_ref() {
        super::defaults::check(session, create, running).await?;
    }
    let statement = call.statement.as_ref().clone();
    let tag = tag(&statement);
    let context = StatementContext {
        notices: running.notices.clone(),
        cancel: running.cancel.clone(),
        background_ddl: session.settings.is_on("background_ddl"),
        patience: session.settings.patience(),
    };
    let engine = session.engine.clone();
    // A task of its own: it must come to its end even if this connection's task does not.
    let task = tokio::spawn(async move { engine.execute(statement, &context).await });
    match task.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(placed(session, call, running, error).await),
        Err(error) => {
            tracing::error!(%error, "a statement's task failed");
            return Err(UserError::internal("the statement failed for an internal reason"));
        }
    }
    session.wrote();
    Ok(Outcome::Done(tag))
}

/// An error in a view's query with its place. The engine plans without the client's text; planned with it as a SELECT,
/// the same mistake is found again where it stands.
async fn placed(session: &Session, call: &Call, running: &Running, error: UserError) -> UserError {
    let view = match call.statement.as_ref() {
        Statement::CreateView(view) | Statement::CreateMaterializedView(view) => view,
        _ => return error,
    };
    if error.offset.is_some() {
        return error;
    }
    let query = view.query.tree.as_ref().clone();
    match session.planner.plan_query(query, &running.text).await {
        Err(UserError { offset: Some(offset), message, .. }) if message == error.message => {
            error.at(offset)
        }
        _ => error,
    }
}

fn tag(statement: &Statement) -> String {
    let keyword = |kind: ObjectKind| match kind {
        ObjectKind::Source => "SOURCE",
        ObjectKind::Table => "TABLE",
        ObjectKind::View => "VIEW",
        ObjectKind::MaterializedView => "MATERIALIZED VIEW",
        ObjectKind::Sink => "SINK",
    };
    match statement {
        Statement::CreateSource(_) => "CREATE SOURCE".to_owned(),
        Statement::CreateTable(_) => "CREATE TABLE".to_owned(),
        Statement::CreateView(_) => "CREATE VIEW".to_owned(),
        Statement::CreateMaterializedView(_) => "CREATE MATERIALIZED VIEW".to_owned(),
        Statement::CreateSink(_) => "CREATE SINK".to_owned(),
        Statement::Drop(drop) => format!("DROP {}", keyword(drop.kind)),
        Statement::Alter(alter) => format!("ALTER {}", keyword(alter.kind)),
        Statement::AlterJob(alter) => match alter.action {
            JobAction::Pause => "PAUSE JOB".to_owned(),
            JobAction::Resume => "RESUME JOB".to_owned(),
        },
        Statement::Rename(rename) => format!("ALTER {}", keyword(rename.kind)),
        Statement::Flush => "FLUSH".to_owned(),
        Statement::Wait(_) => "WAIT".to_owned(),
        Statement::CancelJob(_) => "CANCEL JOB".to_owned(),
        _ => "OK".to_owned(),
    }
}
