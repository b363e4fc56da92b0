//! How a read fails. Each variant says whose fault it is, and so whether trying again can help.

use segue_types::{Position, SplitId, SqlState, UserError};

/// A failed call of a connector. Texts are lower case and free of secrets.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration is wrong: the user's to mend.
    #[error("{0}")]
    Config(UserError),
    /// The system cannot be reached now. The only variant that is retried.
    #[error("could not reach {system}: {reason}")]
    Unreachable { system: String, reason: String },
    /// The system answered that it refuses us.
    #[error("{system} refused: {reason}")]
    Denied { system: String, reason: String },
    /// The topic, table, file or database is not there.
    #[error("{what} does not exist")]
    Missing { what: String },
    /// What lies at the position is gone: retention, truncation, compaction.
    #[error("position {position} of split {split} of {what} has expired")]
    Expired {
        what: String,
        split: SplitId,
        position: Position,
        /// The first position that is still there.
        available: Position,
    },
    /// The position lies beyond the end: the log lost its tail.
    #[error("position {position} of split {split} of {what} lies beyond its end")]
    Truncated { what: String, split: SplitId, position: Position, end: Position },
    /// Something else now bears the name: a re-created topic, another database, a changed file.
    #[error("{what} has been replaced")]
    Replaced { what: String, pinned: String, found: String },
    /// A record that cannot be decoded, under `on_error = 'fail'`.
    #[error("malformed record at position {position} of split {split}: {reason}")]
    Malformed { split: SplitId, position: Position, reason: String },
    /// A value that has no place in the declared column.
    #[error("{0}")]
    Value(UserError),
    /// The read cannot do what was asked.
    #[error("{0}")]
    Unsupported(String),
}

impl ConnectError {
    /// Whether the same call may succeed later without anybody's help.
    pub fn is_transient(&self) -> bool {
        matches!(self, ConnectError::Unreachable { .. })
    }

    /// As the user sees it, for stage `stage`.
    pub fn to_user_error(&self, stage: &str) -> UserError {
        let message = format!("stage \"{stage}\": {self}");
        match self {
            ConnectError::Config(error) | ConnectError::Value(error) => {
                UserError { message, ..error.clone() }
            }
            ConnectError::Unreachable { .. } | ConnectError::Denied { .. } => {
                UserError::new(SqlState::CONNECTION_FAILURE, message)
            }
            ConnectError::Missing { .. } => UserError::new(SqlState::UNDEFINED_OBJECT, message),
            ConnectError::Expired { available, .. } => {
                UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                    .with_detail(format!("The first position that is still there is {available}."))
                    .with_hint(
                        "Create the source again: with a longer retention, at a later position, or with ALLOW GAP, \
                         which lets a stage go on at what is left.",
                    )
            }
            ConnectError::Truncated { end, .. } => {
                UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                    .with_detail(format!("The end is {end}."))
                    .with_hint("Records that were read have been lost upstream; drop the source and create it again.")
            }
            ConnectError::Replaced { pinned, found, .. } => {
                UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                    .with_detail(format!("The source was pinned to {pinned} and now finds {found}."))
                    .with_hint("Drop the source and create it again to read the new one.")
            }
            ConnectError::Malformed { .. } => {
                UserError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
                    .with_hint("Set on_error = 'dead_letter' to set such records aside.")
            }
            ConnectError::Unsupported(_) => UserError::new(SqlState::FEATURE_NOT_SUPPORTED, message),
        }
    }
}
