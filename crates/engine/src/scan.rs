//! SELECT from a source: its stages from the first on, up to what the last one has now, for one statement.
//!
//! The step thread has no part in it and nothing is stored or acknowledged: stages are walked as a new view's
//! consumer would walk them, with the same starts, captures and handoffs, and whoever drops the scan ends it.
//! Word defined here: *horizon*, where a statement's reading of a source begins and ends. All scans of one
//! statement share it, so a source that is joined with itself is the same on both sides.

mod gather;
mod walk;

use std::sync::Arc;

use segue_catalog::{Object, ObjectKind};
use segue_types::{Boundedness, Changes, ObjectId, RowSemantics, SqlState, UserError};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::ddl::opening::{self, Opening};
use crate::ddl::stopping;
use crate::engine::Engine;
use crate::patience::Asker;

/// Batches that wait for the query.
const BATCHES_MAX: usize = 4;

/// Where a statement's reading of a source begins and ends.
#[derive(Clone)]
pub struct Horizon {
    opening: Arc<Opening>,
    asker: Asker,
}

/// What a scan gives.
#[derive(Debug)]
pub struct Scanned {
    pub rows: arrow::array::RecordBatch,
    /// Records before these rows that could not be decoded.
    pub rejected: usize,
}

/// What a query wants of a source.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Columns of the source, in the order in which they are delivered.
    pub columns: Vec<usize>,
    /// How much memory the newest rows of a source of changes by key may take.
    pub memory_bytes_max: usize,
}

/// The rows of a source, read while they are asked for. Dropping it ends the reading.
pub struct SourceScan {
    rows: mpsc::Receiver<Result<Scanned, UserError>>,
    task: AbortHandle,
}

impl Drop for SourceScan {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SourceScan {
    /// The next rows; `None` when there are no more.
    pub async fn next(&mut self) -> Option<Result<Scanned, UserError>> {
        self.rows.recv().await
    }
}

/// What the walk delivers.
struct Delivery {
    changes: Changes,
    rejected: usize,
}

impl Engine {
    /// Asks the systems behind a source where a reading begins that starts now, and where it ends.
    /// A system that is away is waited for as long as the asker's patience lasts, now and while it is read.
    pub async fn horizon(&self, source: ObjectId, asker: Asker) -> Result<Horizon, UserError> {
        let found = self.inbox().ask(move |world| world.sources.get(&source).map(Arc::clone)).await;
        let gone = || UserError::new(SqlState::UNDEFINED_TABLE, "the source has been dropped");
        let source = found.ok_or_else(stopping)?.ok_or_else(gone)?;
        let last = source.stages.last().expect("a source has stages");
        if last.definition.boundedness == Boundedness::Continuous && !last.capabilities.latest {
            return Err(endless(&last.name));
        }
        let opening = opening::open(source, &asker).await?;
        Ok(Horizon { opening: Arc::new(opening), asker })
    }

    /// Starts reading a source, on the runtime that this is called in.
    pub fn scan(&self, object: &Object, horizon: &Horizon, wanted: Wanted) -> SourceScan {
        let (sender, rows) = mpsc::channel(BATCHES_MAX);
        let plan = Plan::of(object, wanted);
        let Horizon { opening, asker } = horizon.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = plan.run(&opening, &asker, &sender).await {
                // Whoever dropped the scan need not be told.
                drop(sender.send(Err(error)).await);
            }
        });
        SourceScan { rows, task: task.abort_handle() }
    }
}

fn endless(stage: &str) -> UserError {
    let message = format!("stage \"{stage}\" has no end, and cannot tell what is there now");
    UserError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .with_hint("Create a materialized view or a table on the source and select from that.")
}

/// How the rows that are read become those that are wanted.
enum Plan {
    /// Every row that is read is one, with these columns.
    Stream { columns: Vec<usize> },
    /// Changes are gathered first, and what is left at the end is given.
    Gather { read: Vec<usize>, gatherer: Box<gather::Gatherer> },
}

impl Plan {
    fn of(object: &Object, wanted: Wanted) -> Plan {
        let ObjectKind::Source(source) = &object.kind else { panic!("only sources are scanned") };
        let grows = source
            .stages
            .iter()
            .all(|stage| matches!(stage.semantics, RowSemantics::Append | RowSemantics::State));
        if object.key.is_empty() && grows {
            return Plan::Stream { columns: wanted.columns };
        }
        let mut read: Vec<usize> = wanted.columns.iter().chain(&object.key).copied().collect();
        read.sort_unstable();
        read.dedup();
        let gatherer = Box::new(gather::Gatherer::new(object, &read, &wanted));
        Plan::Gather { read, gatherer }
    }

    async fn run(
        self,
        opening: &Opening,
        asker: &Asker,
        rows: &mpsc::Sender<Result<Scanned, UserError>>,
    ) -> Result<(), UserError> {
        match self {
            Plan::Stream { columns } => stream(columns, opening, asker, rows).await,
            Plan::Gather { read, gatherer } => {
                let (sender, deliveries) = mpsc::channel(BATCHES_MAX);
                let walked = async move {
                    let walked = walk::walk(opening, asker, &read, &sender).await;
                    drop(sender);
                    walked
                };
                let ((), gatherer) =
                    futures::future::try_join(walked, gatherer.gather(deliveries)).await?;
                gatherer.give(rows).await
            }
        }
    }
}

async fn stream(
    columns: Vec<usize>,
    opening: &Opening,
    asker: &Asker,
    rows: &mpsc::Sender<Result<Scanned, UserError>>,
) -> Result<(), UserError> {
    // A reader's batch without columns could not carry rows.
    let read = if columns.is_empty() { vec![0] } else { columns.clone() };
    let (sender, mut deliveries) = mpsc::channel::<Delivery>(BATCHES_MAX);
    let walked = async move {
        let walked = walk::walk(opening, asker, &read, &sender).await;
        drop(sender);
        walked
    };
    let wanted: Vec<usize> = (0..columns.len()).collect();
    let passed = async {
        while let Some(Delivery { changes, rejected }) = deliveries.recv().await {
            let batch = changes.rows.project(&wanted).expect("these columns were read");
            if rows.send(Ok(Scanned { rows: batch, rejected })).await.is_err() {
                break;
            }
        }
        Ok(())
    };
    futures::future::try_join(walked, passed).await.map(|((), ())| ())
}
