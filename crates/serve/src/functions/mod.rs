//! Functions that PostgreSQL's clients call.

use std::sync::Arc;
use datafusion::execution::session_state::SessionState;
use crate::plan::{Identity, SnapshotCell};

pub(crate) fn register_shared(_state: &mut SessionState) {}
pub(crate) fn register_session(_state: &mut SessionState, _identity: &Identity, _cell: &Arc<SnapshotCell>) {}
