//! Errors as the user sees them: DataFusion's in PostgreSQL's words, and those that are the front end's own.

use datafusion::common::DataFusionError;
use segue_types::{SqlState, UserError};

/// An error of planning or running a statement of `text`.
pub(crate) fn user_error(error: &DataFusionError, text: &str) -> UserError {
    segue_plan::delta::errors::user_error(error, Some(text))
}

/// The error of a statement that was cancelled.
pub(crate) fn canceled() -> UserError {
    UserError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}
