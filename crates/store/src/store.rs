//! [`Store`]: opening a data directory, committing epochs to it, closing it.
//!
//! Invariant: the epoch in memory is the epoch in the file; once they may differ, nothing more is written.

use std::fs::{self, File};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use redb::{Database, Durability, WriteTransaction};
use segue_types::Epoch;

use crate::apply::{Applied, Apply, ApplyError, Meta};
use crate::capture::Captures;
use crate::commit::Commit;
use crate::error::{CloseError, CommitError, LoadError, OpenError};
use crate::lock::DirectoryLock;
use crate::{FORMAT, crash_point, load};

const DATABASE_FILE: &str = "segue.redb";
/// A database in the making; it gets its name once it holds its first two records.
const UNBORN_FILE: &str = "segue.redb.new";
/// Everything is read once, at start; after that the cache holds the upper pages of the trees and dirty
/// pages.
const CACHE_BYTES: usize = 128 * 1024 * 1024;
/// From this size on each commit also saves redb's allocator state, so that opening after a crash does
/// not walk the whole file. Below, the walk takes less time than loading the state does, and every
/// commit is cheaper.
const QUICK_REPAIR_FROM_BYTES: u64 = 256 * 1024 * 1024;

/// An open data directory. Shared by reference: commits come from one thread, reads from any.
#[derive(Debug)]
pub struct Store {
    database: Database,
    path: PathBuf,
    captures: Captures,
    progress: Mutex<Progress>,
    // Last, so that the directory is free only when the database is closed.
    _lock: DirectoryLock,
}

#[derive(Debug)]
enum Progress {
    At(Meta),
    Failed(Epoch),
}

impl Store {
    /// Opens the data directory, and makes it when it is not there.
    pub fn open(dir: &Path) -> Result<Store, OpenError> {
        let lock = DirectoryLock::acquire(dir)?;
        let path = dir.join(DATABASE_FILE);
        if !path.try_exists().map_err(|source| OpenError::io(&path, source))? {
            create(dir, &path)?;
        }
        let database = open_database(dir, &path)?;
        let format = load::format(&database, &path)?;
        if format > FORMAT {
            return Err(OpenError::NewerFormat { dir: dir.to_owned(), found: format });
        }
        let opened = |error: LoadError| match error {
            LoadError::Corrupt(corruption) => OpenError::Corrupt(corruption),
            LoadError::Database(reason) => OpenError::Database { path: path.clone(), reason },
        };
        let meta = load::meta(&database).map_err(opened)?;
        let captures = Captures::new(dir);
        captures
            .sweep(&load::manifests(&database).map_err(opened)?)
            .map_err(|(at, source)| OpenError::io(&at, source))?;
        let progress = Mutex::new(Progress::At(meta));
        Ok(Store { database, path, captures, progress, _lock: lock })
    }

    /// The files of captures.
    pub fn captures(&self) -> &Captures {
        &self.captures
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Makes an epoch durable: all of it when this returns `Ok`. After an error the server must stop.
    pub fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        let epoch = commit.epoch();
        let mut progress =
            self.progress.lock().expect("a commit does not panic while it holds this");
        let meta = match &*progress {
            Progress::At(meta) => meta.clone(),
            Progress::Failed(failed) => return Err(CommitError::Stopped { failed: *failed }),
        };
        if epoch != meta.epoch.next() {
            return Err(CommitError::Epoch { stored: meta.epoch, given: epoch });
        }
        // As at opening: a damaged file must not take the server's message away.
        let written = std::panic::catch_unwind(AssertUnwindSafe(|| self.write(&meta, commit)));
        let applied = written
            .unwrap_or_else(|_| {
                let reason = "the structure of the file is damaged".to_owned();
                Err(CommitError::Unknown { epoch, reason })
            })
            .inspect_err(|_| *progress = Progress::Failed(epoch))?;
        assert_eq!(applied.meta.epoch, epoch);
        *progress = Progress::At(applied.meta);
        drop(progress);
        for object in applied.dropped {
            self.captures.remove(object);
        }
        Ok(())
    }

    fn write(&self, meta: &Meta, commit: &Commit) -> Result<Applied, CommitError> {
        let epoch = commit.epoch();
        let not_written = |reason: String| CommitError::NotWritten { epoch, reason };
        let transaction = begin(&self.database, self.file_bytes()).map_err(not_written)?;
        let applied = Apply::begin(&transaction, meta.clone(), epoch)
            .and_then(|apply| match apply.is_at(meta)? {
                true => apply.run(commit),
                false => {
                    Err(ApplyError::Invariant(format!("the file is not at epoch {}", meta.epoch)))
                }
            })
            .map_err(|error| not_written(error.to_string()))?;
        crash_point!("before-commit");
        transaction.commit().map_err(|error| match error {
            redb::CommitError::TransactionPoisoned => not_written(error.to_string()),
            error => CommitError::Unknown { epoch, reason: error.to_string() },
        })?;
        crash_point!("after-commit");
        Ok(applied)
    }

    /// The size of the redb file.
    pub fn file_bytes(&self) -> u64 {
        // Only a hint for the way to commit, so a failure is left to the commit itself.
        fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// Closes the database in order, so that the next open has nothing to repair.
    pub fn close(self) -> Result<(), CloseError> {
        self.database.close().map_err(|error| CloseError(error.to_string()))
    }
}

/// Makes a database under another name and renames it: a crash in between leaves nothing that looks like one.
fn create(dir: &Path, path: &Path) -> Result<(), OpenError> {
    let unborn = dir.join(UNBORN_FILE);
    if let Err(source) = fs::remove_file(&unborn)
        && source.kind() != std::io::ErrorKind::NotFound
    {
        return Err(OpenError::io(&unborn, source));
    }
    let failed = |reason: String| OpenError::Database { path: unborn.clone(), reason };
    let database = builder().create(&unborn).map_err(|error| failed(error.to_string()))?;
    let transaction = begin(&database, 0).map_err(failed)?;
    Apply::begin(&transaction, Meta::default(), Epoch(0))
        .and_then(|apply| apply.initialize(FORMAT))
        .map_err(|error| failed(error.to_string()))?;
    transaction.commit().map_err(|error| failed(error.to_string()))?;
    database.close().map_err(|error| failed(error.to_string()))?;
    fs::rename(&unborn, path)
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(|source| OpenError::io(path, source))
}

fn open_database(dir: &Path, path: &Path) -> Result<Database, OpenError> {
    // A file that was altered behind redb's back may make it panic, which must not take the server's
    // message away.
    let opened = std::panic::catch_unwind(AssertUnwindSafe(|| builder().open(path)));
    let foreign = |reason: String| OpenError::Foreign { path: path.to_owned(), reason };
    match opened {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(redb::DatabaseError::DatabaseAlreadyOpen)) => {
            Err(OpenError::InUse { dir: dir.to_owned() })
        }
        Ok(Err(redb::DatabaseError::Storage(redb::StorageError::Io(source))))
            if source.kind() != std::io::ErrorKind::InvalidData =>
        {
            Err(OpenError::io(path, source))
        }
        Ok(Err(error)) => Err(foreign(error.to_string())),
        Err(_) => Err(foreign("its structure is damaged".to_owned())),
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_repair_callback(|repair| {
        tracing::info!(progress = repair.progress(), "checking the database after an unclean stop");
    });
    builder
}

/// Begins a transaction that will be durable when its commit returns.
fn begin(database: &Database, file_bytes: u64) -> Result<WriteTransaction, String> {
    let mut transaction = database.begin_write().map_err(|error| error.to_string())?;
    transaction.set_durability(Durability::Immediate).map_err(|error| error.to_string())?;
    transaction.set_quick_repair(file_bytes >= QUICK_REPAIR_FROM_BYTES);
    Ok(transaction)
}
