//! BEGIN, COMMIT, ROLLBACK and savepoints. A block pins the version that its reads see; writes inside
//! it are done at once and stay done: Segue has no rollback.

use segue_types::{SqlState, UserError};
use sqlparser::ast::Statement;

use crate::outcome::Outcome;
use crate::session::{Running, Session, Transaction};

/// Runs a statement of this family.
pub(super) fn execute(
    session: &mut Session,
    statement: &Statement,
    running: &Running,
) -> Result<Outcome, UserError> {
    match statement {
        Statement::StartTransaction { begin, .. } => {
            match session.transaction {
                Transaction::Idle => session.transaction = Transaction::Open { pinned: None },
                _ => running.notice("there is already a transaction in progress"),
            }
            Ok(Outcome::done(if *begin { "BEGIN" } else { "START TRANSACTION" }))
        }
        Statement::Commit { .. } => Ok(Outcome::done(match leave(session, running) {
            Transaction::Failed => "ROLLBACK",
            _ => "COMMIT",
        })),
        Statement::Rollback { savepoint: None, .. } => {
            leave(session, running);
            Ok(Outcome::done("ROLLBACK"))
        }
        Statement::Rollback { savepoint: Some(_), .. } => {
            within_block(session, "ROLLBACK TO SAVEPOINT")?;
            session.transaction = Transaction::Open { pinned: None };
            Ok(Outcome::done("ROLLBACK"))
        }
        Statement::Savepoint { .. } => {
            within_block(session, "SAVEPOINT")?;
            Ok(Outcome::done("SAVEPOINT"))
        }
        _ => {
            within_block(session, "RELEASE SAVEPOINT")?;
            Ok(Outcome::done("RELEASE"))
        }
    }
}

/// Leaves the block, with its cursors, and says how it was.
fn leave(session: &mut Session, running: &Running) -> Transaction {
    if matches!(session.transaction, Transaction::Idle) {
        running.notice("there is no transaction in progress");
    }
    session.cursors.clear();
    std::mem::take(&mut session.transaction)
}

fn within_block(session: &Session, what: &str) -> Result<(), UserError> {
    if matches!(session.transaction, Transaction::Idle) {
        return Err(UserError::new(
            SqlState::NO_ACTIVE_TRANSACTION,
            format!("{what} can only be used in transaction blocks"),
        ));
    }
    Ok(())
}
