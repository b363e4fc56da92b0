//! Planning and running queries with DataFusion, over the relations of one published version.
//!
//! Each session has a DataFusion state whose tables look the version up at the moment they are scanned,
//! so a prepared plan outlives epochs and is made anew only when the catalog changes.
//! Words: *snapshot cell* (the version that the running statement reads).

mod catalog;
mod in_order;
mod interrupt;
mod relation;
mod rewrite;
mod scan;
mod semantics;
mod snapshot;
mod source;
mod state;
mod threads;
mod types;

use std::sync::Arc;

use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DataFusionStatement;
use segue_types::UserError;
use sqlparser::ast;

pub(crate) use rewrite::{for_catalog_query, for_query, mentions_catalog};
pub(crate) use snapshot::{Reading, Returned, SnapshotCell};
pub(crate) use state::{Identity, session_state};

use crate::errors::user_error;
use crate::session::Running;
use crate::settings::Settings;

/// A session's planner.
pub(crate) struct Planner {
    state: Arc<SessionState>,
    cell: Arc<SnapshotCell>,
    settings: Arc<Settings>,
}

impl Planner {
    pub(crate) fn new(
        state: Arc<SessionState>,
        cell: Arc<SnapshotCell>,
        settings: Arc<Settings>,
    ) -> Planner {
        Planner { state, cell, settings }
    }

    /// What the next statement reads.
    pub(crate) fn read(&self, reading: Reading) {
        self.cell.set(reading);
    }

    /// The statement is over.
    pub(crate) fn rest(&self) {
        self.cell.rest();
    }

    /// What the running statement reads.
    pub(crate) fn reading(&self) -> Reading {
        self.cell.get()
    }

    /// The logical plan of a statement, not optimised yet.
    pub(crate) async fn plan(
        &self,
        statement: ast::Statement,
        text: &str,
    ) -> Result<LogicalPlan, UserError> {
        let statement = DataFusionStatement::Statement(Box::new(statement));
        let planned = threads::plan(Arc::clone(&self.state), statement).await;
        planned.map_err(|error| user_error(&error, text))
    }

    /// The plan of a query.
    pub(crate) async fn plan_query(
        &self,
        query: ast::Query,
        text: &str,
    ) -> Result<LogicalPlan, UserError> {
        self.plan(for_query(ast::Statement::Query(Box::new(query))), text).await
    }

    /// Optimises and starts a plan.
    pub(crate) async fn run(
        &self,
        plan: &LogicalPlan,
        running: &Running,
    ) -> Result<SendableRecordBatchStream, UserError> {
        let text = &running.text;
        self.cell.begin(running);
        let mut state = self.state.as_ref().clone();
        if let Ok(zone) = self.settings.get("timezone")
            && !zone.eq_ignore_ascii_case("utc")
        {
            state.config_mut().options_mut().execution.time_zone = Some(zone);
        }
        // now() is the time of the statement, not of the session.
        state.mark_start_execution();
        let physical =
            state.create_physical_plan(plan).await.map_err(|error| user_error(&error, text))?;
        let physical = in_order::in_order(physical)
            .and_then(|physical| interrupt::interruptible(physical, &running.cancel))
            .map_err(|error| user_error(&error, text))?;
        Ok(threads::start(physical, state.task_ctx()))
    }
}
