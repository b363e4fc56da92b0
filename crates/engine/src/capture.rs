//! Capturing a bounded query: attempts until one is complete, each whole or not at all.
//!
//! Invariant: rows and handoff metadata of one manifest come from one snapshot; what a broken attempt has
//! written is deleted, never continued.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use futures::StreamExt;
use parking_lot::Mutex;
use segue_connect::{Capture, ConnectError, HandoffKind, Start};
use segue_store::capture::{CaptureError, CaptureWriter, Manifest};
use segue_store::{Store, crash_point};
use segue_types::{ObjectId, StageIndex, UserError};
use tokio::sync::mpsc::{Receiver, channel};

use crate::backoff::Backoff;
use crate::greatest::Greatest;
use crate::limits::Gate;
use crate::meter::Away;
use crate::source::{SourceRuntime, StageRuntime};

/// How often pinned starts of later stages are checked while a query is captured.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);

/// Batches that wait to be written.
const BATCHES_AHEAD: usize = 4;

/// How far the capture of a stage has come; shared with whoever shows it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) stage: AtomicU64,
    pub(crate) rows: AtomicU64,
    /// 0: the system did not say.
    pub(crate) rows_estimated: AtomicU64,
    pub(crate) attempts: AtomicU64,
    /// When the running attempt had its snapshot.
    began: Mutex<Option<Instant>>,
    /// Closed by PAUSE.
    pub(crate) gate: Gate,
    /// While the database cannot be reached.
    pub(crate) away: Mutex<Option<Away>>,
}

impl Progress {
    /// Of the running attempt, since it began.
    pub(crate) fn rows_per_second(&self) -> Option<f64> {
        let seconds = (*self.began.lock())?.elapsed().as_secs_f64();
        let rows = self.rows.load(Ordering::Relaxed);
        (rows > 0 && seconds > 0.0).then(|| rows as f64 / seconds)
    }

    /// Nothing is read.
    fn stand(&self) {
        *self.away.lock() = None;
        *self.began.lock() = None;
        self.rows.store(0, Ordering::Relaxed);
    }

    /// The database has answered: rows come from now on.
    fn begin(&self, rows_estimated: Option<u64>) {
        *self.away.lock() = None;
        *self.began.lock() = Some(Instant::now());
        self.rows_estimated.store(rows_estimated.unwrap_or(0), Ordering::Relaxed);
    }
}

/// Why an attempt came to nothing.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error(transparent)]
    Read(#[from] ConnectError),
    #[error(transparent)]
    Write(#[from] CaptureError),
}

/// Captures every stage of `source` that has to be, in order. Cancel-safe: an attempt that is dropped
/// deletes what it wrote and ends the query upstream.
pub(crate) async fn capture_all(
    source: &SourceRuntime,
    store: &Arc<Store>,
    progress: &Progress,
    mut notice: impl FnMut(String),
) -> Result<Vec<Manifest>, UserError> {
    let mut manifests = Vec::new();
    for (index, stage) in source.stages.iter().enumerate() {
        if !stage.is_captured() || stage.capture.is_some() {
            continue;
        }
        let index = StageIndex(u16::try_from(index).expect("stages are counted in 16 bits"));
        progress.stage.store(u64::from(index.0), Ordering::Relaxed);
        let manifest = loop {
            progress.gate.pass().await;
            let captured = capture(source, index, store, progress, &mut notice);
            tokio::select! {
                manifest = captured => break manifest?,
                error = watch(source, index) => return Err(error),
                // The attempt goes, and with it its snapshot: the database could not clean up behind one that is held.
                () = progress.gate.closed() => progress.stand(),
            }
        };
        manifests.push(manifest);
    }
    check_later(source, StageIndex(0))
        .await
        .map_err(|(stage, error)| error.to_user_error(&stage))?;
    Ok(manifests)
}

/// Attempts until one is complete. Only a system that is away is tried again.
async fn capture(
    source: &SourceRuntime,
    index: StageIndex,
    store: &Arc<Store>,
    progress: &Progress,
    notice: &mut impl FnMut(String),
) -> Result<Manifest, UserError> {
    let stage = source.stage(index);
    let mut backoff = Backoff::new();
    loop {
        progress.attempts.fetch_add(1, Ordering::Relaxed);
        progress.rows.store(0, Ordering::Relaxed);
        let wanted = Wanted {
            query: handoff_query(source, index),
            greatest: Greatest::wanted(source, index),
        };
        match attempt(source.object, index, stage, wanted, store, progress).await {
            Ok(manifest) => return Ok(manifest),
            Err(AttemptError::Read(error)) if error.is_transient() => {
                let rows = progress.rows.load(Ordering::Relaxed);
                notice(format!(
                    "stage \"{}\": {error}; {rows} rows of the incomplete attempt are dropped, trying again",
                    stage.name
                ));
                {
                    let mut away = progress.away.lock();
                    *away = Some(Away::again(away.take(), error));
                }
                backoff.wait().await;
            }
            Err(AttemptError::Read(error)) => return Err(error.to_user_error(&stage.name)),
            Err(AttemptError::Write(error)) => return Err(UserError::from(&error)),
        }
    }
}

/// What the next stage wants to be told, from the snapshot of the rows.
struct Wanted<'a> {
    query: Option<&'a str>,
    greatest: Option<Greatest>,
}

/// One attempt: one snapshot, read to its end.
async fn attempt(
    object: ObjectId,
    index: StageIndex,
    stage: &StageRuntime,
    mut wanted: Wanted<'_>,
    store: &Arc<Store>,
    progress: &Progress,
) -> Result<Manifest, AttemptError> {
    let capture = stage.connector.capture(&stage.config, &stage.definition, wanted.query).await?;
    let Capture { handoff, mut batches, rows_estimated } = capture;
    progress.begin(rows_estimated);
    let schema = Arc::clone(&stage.config.schema);
    let writer = store.captures().begin(object, index, schema)?;
    let (to_write, waiting) = channel(BATCHES_AHEAD);
    let writing = tokio::spawn(on_disk(move || write_all(writer, waiting)));
    let read = async {
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            if let Some(greatest) = &mut wanted.greatest {
                greatest.take(&batch)?;
            }
            progress.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            if to_write.send(batch).await.is_err() {
                // The writer has failed, and says how.
                break;
            }
        }
        Ok::<(), AttemptError>(())
    };
    let read = read.await;
    drop(to_write);
    // Also when the reading has failed: the next attempt begins when this one's files are gone.
    let written = writing.await.expect("writing a capture does not panic");
    read?;
    let writer = written?;
    let handoff = wanted.greatest.map(Greatest::next).or(handoff);
    let handoff = handoff.map(|ends| serde_json::to_value(ends).expect("positions are text"));
    Ok(on_disk(move || CaptureWriter::finish(writer, handoff)).await?)
}

/// Writes while the next rows are read and decoded.
fn write_all(
    mut writer: CaptureWriter,
    mut batches: Receiver<RecordBatch>,
) -> Result<CaptureWriter, CaptureError> {
    while let Some(batch) = batches.blocking_recv() {
        writer.write(&batch)?;
        crash_point!("mid-capture");
    }
    Ok(writer)
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CaptureError> + Send + 'static,
) -> Result<T, CaptureError> {
    tokio::task::spawn_blocking(work).await.expect("writing a capture does not panic")
}

/// The query of the next stage that has to run in this stage's snapshot.
fn handoff_query(source: &SourceRuntime, index: StageIndex) -> Option<&str> {
    let next = source.stages.get(index.next().as_usize())?;
    let by_query = next.handoff.as_ref()?.kind == Some(HandoffKind::Query);
    match &next.config.start {
        Start::Query(sql) if by_query => Some(sql),
        _ => None,
    }
}

/// Watches that what later stages will start from is still there; ends with what is definitely lost.
async fn watch(source: &SourceRuntime, index: StageIndex) -> UserError {
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        match check_later(source, index).await {
            Err((stage, error)) if !error.is_transient() => return error.to_user_error(&stage),
            // A broker that is away for a moment is met again at the activation.
            Ok(()) | Err(_) => {}
        }
    }
}

/// Checks the pinned starts of every stage after `index`.
async fn check_later(
    source: &SourceRuntime,
    index: StageIndex,
) -> Result<(), (String, ConnectError)> {
    for stage in source.stages.iter().skip(index.next().as_usize()) {
        let starts = stage.pinned_starts();
        if stage.is_captured() || starts.is_empty() {
            continue;
        }
        let checked = stage.connector.check(&stage.config, &stage.definition, &starts).await;
        checked.map_err(|error| (stage.name.clone(), error))?;
    }
    Ok(())
}
