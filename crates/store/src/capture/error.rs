//! How writing and reading a capture fail.

use std::io;
use std::path::{Path, PathBuf};

use arrow::error::ArrowError;
use segue_types::{ObjectId, Position, SqlState, StageIndex, UserError};

/// A failed call of a capture's writer or reader.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    #[error("could not use capture file \"{}\": {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is not what the manifest says it is.
    #[error("corrupted capture file \"{}\": {reason}", path.display())]
    Corrupt { path: PathBuf, reason: String },
    /// A batch does not have the columns that the attempt was begun with.
    #[error("captured rows have other columns than the stage: {reason}")]
    Columns { reason: String },
    /// The stage's columns are not those that were captured.
    #[error("stage {stage} of object {object} was captured with other columns")]
    Schema { object: ObjectId, stage: StageIndex },
    #[error("\"{position}\" is not a position of the capture")]
    Position { position: Position },
}

impl CaptureError {
    pub(crate) fn io(path: &Path, source: io::Error) -> CaptureError {
        CaptureError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn corrupt(path: &Path, reason: impl Into<String>) -> CaptureError {
        CaptureError::Corrupt { path: path.to_owned(), reason: reason.into() }
    }

    /// A failure of the IPC writer: the file system's fault, since the columns were checked.
    pub(crate) fn writing(path: &Path, error: ArrowError) -> CaptureError {
        match error {
            ArrowError::IoError(_, source) => CaptureError::io(path, source),
            other => CaptureError::Columns { reason: other.to_string() },
        }
    }
}

impl From<&CaptureError> for UserError {
    fn from(error: &CaptureError) -> UserError {
        let message = error.to_string();
        match error {
            CaptureError::Io { .. } => UserError::new(SqlState::IO_ERROR, message),
            CaptureError::Corrupt { .. } => UserError::new(SqlState::DATA_CORRUPTED, message)
                .with_hint("Drop the source and create it again to capture the query anew."),
            CaptureError::Columns { .. }
            | CaptureError::Schema { .. }
            | CaptureError::Position { .. } => UserError::internal(message),
        }
    }
}
