//! How opening, loading and committing fail. One enum per family; each says what the caller may still assume.

use std::io;
use std::path::{Path, PathBuf};

use segue_types::{Epoch, SqlState, UserError};

/// A record, or the file around it, that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("corrupted record in table \"{table}\" with key {key}: {reason}")]
pub struct Corruption {
    pub table: &'static str,
    pub key: String,
    pub reason: String,
}

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error("data directory \"{}\" is in use by another segue server", dir.display())]
    InUse { dir: PathBuf },
    #[error(
        "data directory \"{}\" has format {found}, this server knows formats up to {}",
        dir.display(),
        crate::FORMAT
    )]
    NewerFormat { dir: PathBuf, found: u16 },
    /// The file is no redb database, or one that something else made.
    #[error("\"{}\" is not a segue database: {reason}", path.display())]
    Foreign { path: PathBuf, reason: String },
    #[error("could not open \"{}\": {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    #[error("could not open \"{}\": {reason}", path.display())]
    Database { path: PathBuf, reason: String },
}

/// Why stored records could not be read back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    #[error("could not read the database: {0}")]
    Database(String),
}

/// Why an epoch was not made durable, or may not have been. Each variant is final: the server must stop, and
/// the next start reads which side of the commit the file is on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Nothing was written.
    #[error("epoch {given} cannot follow epoch {stored}")]
    Epoch { stored: Epoch, given: Epoch },
    /// Nothing was written.
    #[error("could not write epoch {epoch}: {reason}")]
    NotWritten { epoch: Epoch, reason: String },
    /// The transaction may have become durable before the failure, so it must not be repeated.
    #[error("the outcome of the commit of epoch {epoch} is unknown: {reason}")]
    Unknown { epoch: Epoch, reason: String },
    /// An earlier commit failed.
    #[error("no epoch can be written after the commit of epoch {failed} has failed")]
    Stopped { failed: Epoch },
}

/// Why a database could not be closed in order. Nothing is lost: the next open repairs it.
#[derive(Debug, thiserror::Error)]
#[error("could not close the database: {0}")]
pub struct CloseError(pub(crate) String);

impl OpenError {
    pub(crate) fn io(path: &Path, source: io::Error) -> OpenError {
        OpenError::Io { path: path.to_owned(), source }
    }
}

impl From<&OpenError> for UserError {
    fn from(error: &OpenError) -> UserError {
        let message = error.to_string();
        match error {
            OpenError::InUse { .. } => UserError::new(SqlState::OBJECT_IN_USE, message)
                .with_hint("Stop the other server, or give this one a data directory of its own."),
            OpenError::NewerFormat { .. } => {
                UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                    .with_hint("Start the version that wrote it, or a later one.")
            }
            OpenError::Foreign { .. } => UserError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_hint("Give a directory that a segue server has made, or an empty one."),
            OpenError::Corrupt(_) => UserError::new(SqlState::DATA_CORRUPTED, message),
            OpenError::Io { .. } | OpenError::Database { .. } => {
                UserError::new(SqlState::IO_ERROR, message)
            }
        }
    }
}

impl From<&LoadError> for UserError {
    fn from(error: &LoadError) -> UserError {
        let state = match error {
            LoadError::Corrupt(_) => SqlState::DATA_CORRUPTED,
            LoadError::Database(_) => SqlState::IO_ERROR,
        };
        UserError::new(state, error.to_string())
    }
}

impl From<&CommitError> for UserError {
    fn from(error: &CommitError) -> UserError {
        let message = error.to_string();
        match error {
            CommitError::Epoch { .. } => UserError::internal(message),
            CommitError::NotWritten { .. } | CommitError::Stopped { .. } => {
                UserError::new(SqlState::IO_ERROR, message)
                    .with_hint("Check the disk of the data directory and start the server again.")
            }
            CommitError::Unknown { .. } => UserError::new(SqlState::IO_ERROR, message).with_hint(
                "Check the disk of the data directory and start the server again; it will find out \
                 whether the epoch became durable.",
            ),
        }
    }
}

macro_rules! redb_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for LoadError {
            fn from(error: $error) -> LoadError {
                LoadError::Database(error.to_string())
            }
        })*
    };
}

redb_errors!(redb::StorageError, redb::TableError, redb::TransactionError);
