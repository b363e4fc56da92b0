//! A whole engine inside this process, on a data folder of its own.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use segue_connect::{Connector, Registry};
use segue_connector_kafka::KafkaConnector;
use segue_connector_postgres::PostgresConnector;
use segue_engine::{CheckpointStatus, Engine, EngineConfig, Patience, StatementContext};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::Outcome;
use crate::encoded::{EncodedConnector, Feed};

/// How long a condition may take to come true.
const DEADLINE: Duration = Duration::from_secs(120);
/// How closely a condition is watched.
const WATCH_INTERVAL: Duration = Duration::from_micros(200);

/// A running engine.
pub(crate) struct Instance {
    pub(crate) engine: Engine,
}

impl Instance {
    /// Opens `data_dir` with the connectors of the server and these feeds.
    pub(crate) async fn start(
        data_dir: &Path,
        feeds: &[(&'static str, &Arc<Feed>)],
    ) -> Result<Instance, Box<dyn std::error::Error>> {
        let feeds = feeds.iter().map(|(name, feed)| (*name, Arc::clone(feed))).collect();
        let connectors: [Arc<dyn Connector>; 3] = [
            Arc::new(EncodedConnector(feeds)),
            Arc::new(KafkaConnector),
            Arc::new(PostgresConnector),
        ];
        let config = EngineConfig {
            data_dir: data_dir.to_owned(),
            stop: CancellationToken::new(),
            memory: segue_engine::MemoryLimits::NONE,
            // Figures are per core.
            workers: NonZeroUsize::MIN,
        };
        let engine = Engine::start(config, Registry::new(connectors)).await?;
        Ok(Instance { engine })
    }

    /// Runs one statement.
    pub(crate) async fn run(&self, sql: &str) -> Outcome {
        self.run_with(sql, Patience::Endless, CancellationToken::new()).await
    }

    /// The same, as long as `patience` lasts or until `cancel` is raised.
    pub(crate) async fn run_with(
        &self,
        sql: &str,
        patience: Patience,
        cancel: CancellationToken,
    ) -> Outcome {
        let (notices, _nobody) = tokio::sync::mpsc::channel(1);
        let context = StatementContext { notices, cancel, background_ddl: false, patience };
        for statement in segue_sql::parse(sql).map_err(|error| format!("{sql}: {error:?}"))? {
            let done = self.engine.execute(statement, &context).await;
            done.map_err(|error| format!("{sql}: {error:?}"))?;
        }
        Ok(())
    }

    /// How many rows of `relation` are durable and visible; none when it is not there.
    pub(crate) fn visible_rows(&self, relation: &str) -> usize {
        visible_rows(&self.engine, relation)
    }

    /// Waits on this thread until `relation` shows at least `rows`; returns when it was seen first.
    pub(crate) fn wait_for_rows(&self, relation: &str, rows: usize) -> Instant {
        wait_for_rows(&self.engine, relation, rows)
    }

    /// The newest epochs, oldest first.
    pub(crate) async fn checkpoints(
        &self,
    ) -> Result<Vec<CheckpointStatus>, Box<dyn std::error::Error>> {
        let status = self.engine.status().await.map_err(|error| format!("{error:?}"))?;
        Ok(status.checkpoints)
    }

    /// Takes the last epoch and ends.
    pub(crate) async fn stop(self) {
        self.engine.shutdown().await;
    }
}

pub(crate) fn visible_rows(engine: &Engine, relation: &str) -> usize {
    let published = engine.published();
    let object = published.catalog.by_name(relation);
    let version = object.and_then(|object| published.relations.get(&object.id));
    version.map_or(0, |version| version.row_count())
}

/// Watches the published versions from the calling thread.
pub(crate) fn wait_for_rows(engine: &Engine, relation: &str, rows: usize) -> Instant {
    let began = Instant::now();
    while visible_rows(engine, relation) < rows {
        let seen = visible_rows(engine, relation);
        assert!(began.elapsed() < DEADLINE, "{relation} has {seen} rows, not {rows}");
        std::thread::park_timeout(WATCH_INTERVAL);
    }
    Instant::now()
}

/// A folder for data that goes when it is dropped.
pub(crate) fn scratch() -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("segue-bench-").tempdir()
}
