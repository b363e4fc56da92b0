//! The shared server, configurations, and captures collected whole.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::Schema;
use futures::{StreamExt, TryStreamExt};
use segue_connect::{
    Capture, ConnectError, Connector, Format, OnError, Options, ReadConfig, ReadDefinition,
    RowFormat, Start,
};
use segue_connector_postgres::PostgresConnector;
use segue_testkit::postgres::PostgresServer;
use segue_types::{Position, SplitId, SqlType};

pub const DEADLINE: Duration = Duration::from_secs(60);

pub fn server() -> &'static PostgresServer {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    SERVER.get_or_init(PostgresServer::start)
}

/// Runs statements as superuser.
pub async fn run(sql: &str) {
    let client = server().connect().await;
    within(client.batch_execute(sql)).await.expect(sql);
}

/// A URL of the shared server's database through another port.
pub fn url_at(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

pub fn config(query: &str, columns: &[(&str, SqlType)]) -> ReadConfig {
    let fields: Vec<_> = columns.iter().map(|(name, ty)| ty.field(name, true)).collect();
    let mut config = ReadConfig {
        stage: "history".to_owned(),
        options: Options::default(),
        format: Format {
            rows: RowFormat::Plain,
            encode: "native".to_owned(),
            options: Options::default(),
        },
        start: Start::Handoff,
        stop: None,
        schema: Arc::new(Schema::new(fields)),
        declared_columns: columns.len(),
        key: Vec::new(),
        includes: Vec::new(),
        on_error: OnError::Fail,
    };
    set(&mut config, "url", &server().url());
    set(&mut config, "query", query);
    config
}

pub fn set(config: &mut ReadConfig, option: &str, value: &str) {
    config.options.0.insert(option.to_owned(), value.to_owned());
}

pub type Ends = Option<Vec<(SplitId, Position)>>;

/// `future`, which must end in time.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it ends in time")
}

pub async fn pin(config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
    within(PostgresConnector.pin(config)).await
}

pub async fn start(
    config: &ReadConfig,
    definition: &ReadDefinition,
    handoff: Option<&str>,
) -> Result<Capture, ConnectError> {
    within(PostgresConnector.capture(config, definition, handoff)).await
}

/// The next batch of a capture that goes on.
pub async fn next(capture: &mut Capture) -> RecordBatch {
    within(capture.batches.next()).await.expect("there are rows").expect("they come")
}

/// One attempt, from pinning to the last row.
pub async fn capture(config: &ReadConfig) -> Result<RecordBatch, ConnectError> {
    let definition = pin(config).await?;
    let capture = start(config, &definition, None).await?;
    collect(config, capture).await.map(|(_, rows)| rows)
}

pub async fn collect(
    config: &ReadConfig,
    capture: Capture,
) -> Result<(Ends, RecordBatch), ConnectError> {
    let batches: Vec<RecordBatch> = within(capture.batches.try_collect()).await?;
    let rows = concat_batches(&config.schema, &batches).expect("all of one schema");
    Ok((capture.handoff, rows))
}

/// How many sessions of the connector run a query that contains `needle`.
async fn sessions(needle: &str) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity \
               WHERE application_name = 'segue' AND query LIKE '%' || $1 || '%'";
    let row = server().connect().await.query_one(sql, &[&needle]).await;
    row.expect("the superuser sees all sessions").get(0)
}

/// Waits until exactly `count` sessions of the connector are at a query that contains `needle`.
pub async fn await_sessions(needle: &str, count: i64) {
    let waiting = async {
        while sessions(needle).await != count {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(DEADLINE, waiting).await;
    waited.unwrap_or_else(|_| panic!("never {count} sessions at {needle}"));
}
