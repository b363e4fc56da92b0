//! Syncs finished chunk files beside the writer: waiting for the disk takes several times as long as writing.
//!
//! Invariant: `finish` has returned `Ok` only when every file that was given is on disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::CaptureError;

/// Chunks that wait to be synced. When there are more, the disk is the bottleneck and the writer waits
/// for it.
const WAITING_MAX: usize = 4;

/// The thread that syncs, and the way to it. Ends by itself when it is dropped.
pub(crate) struct Syncer {
    queue: SyncSender<(PathBuf, File)>,
    thread: JoinHandle<Result<(), CaptureError>>,
}

impl Syncer {
    /// `dir` is for the message when no thread can be had.
    pub(crate) fn start(dir: &Path) -> Result<Syncer, CaptureError> {
        let (queue, files) = sync_channel(WAITING_MAX);
        let thread = thread::Builder::new()
            .name("capture-sync".to_owned())
            .spawn(move || sync(&files))
            .map_err(|error| CaptureError::io(dir, error))?;
        Ok(Syncer { queue, thread })
    }

    /// Gives a file to be synced. Hands the syncer back, or the error of an earlier file.
    pub(crate) fn push(self, path: PathBuf, file: File) -> Result<Syncer, CaptureError> {
        match self.queue.send((path, file)) {
            Ok(()) => Ok(self),
            Err(_) => Err(self.finish().expect_err("the thread stops early only with an error")),
        }
    }

    /// Waits until every file is on disk.
    pub(crate) fn finish(self) -> Result<(), CaptureError> {
        drop(self.queue);
        self.thread.join().expect("syncing a file does not panic")
    }
}

fn sync(files: &Receiver<(PathBuf, File)>) -> Result<(), CaptureError> {
    while let Ok((path, file)) = files.recv() {
        file.sync_all().map_err(|error| CaptureError::io(&path, error))?;
    }
    Ok(())
}
