//! The lock that keeps a second server away from a data directory.
//!
//! redb locks its own file too, but only once that file exists; the first start needs a lock before it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::OpenError;

const LOCK_FILE: &str = "segue.lock";

/// Held as long as the directory is in use. The kernel releases it when the process dies, however it dies.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    file: File,
}

impl DirectoryLock {
    /// Creates the directory when it is missing, readable by its owner alone since it will hold passwords,
    /// and locks it.
    pub(crate) fn acquire(dir: &Path) -> Result<DirectoryLock, OpenError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|source| OpenError::io(dir, source))?;
        let path = dir.join(LOCK_FILE);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|source| OpenError::io(&path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(DirectoryLock { file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { dir: dir.to_owned() }),
            Err(TryLockError::Error(source)) => Err(OpenError::io(&path, source)),
        }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing would not do: a child that another thread is just starting has a copy of the descriptor until
        // it runs its program, and the lock is gone only with the last copy. A failure leaves just that.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "could not unlock the data directory");
        }
    }
}
