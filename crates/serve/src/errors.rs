//! Errors as the user sees them: DataFusion's in PostgreSQL's words, and those that are the front end's
//! own.

use datafusion::common::DataFusionError;
use segue_types::{SqlState, UserError};

/// An error of planning or running a statement of `text`.
pub(crate) fn user_error(error: &DataFusionError, text: &str) -> UserError {
    let mut converted = segue_plan::delta::errors::user_error(error, Some(text));
    if let Some(name) = missing_table(&converted.message) {
        converted.message = format!("relation \"{name}\" does not exist");
        converted.state = SqlState::UNDEFINED_TABLE;
    }
    converted
}

/// The name in `table 'segue.public.t' not found`, which is what a session's planner says.
fn missing_table(message: &str) -> Option<&str> {
    let name = message.strip_prefix("table '")?.strip_suffix("' not found")?;
    name.rsplit('.').next()
}

/// The error of a statement that was cancelled.
pub(crate) fn canceled() -> UserError {
    UserError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

#[cfg(test)]
mod tests {
    use datafusion::common::DataFusionError;

    use super::user_error;

    #[test]
    fn a_missing_table_is_an_undefined_relation() {
        let error = DataFusionError::Plan("table 'segue.public.t' not found".to_owned());
        let error = user_error(&error, "SELECT * FROM t");
        assert_eq!(error.state.as_str(), "42P01");
        assert_eq!(error.message, "relation \"t\" does not exist");
    }
}
