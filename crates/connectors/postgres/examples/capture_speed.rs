//! How long a capture takes beside its speed of light: the same COPY BINARY, thrown away.
//!
//! ```text
//! cargo run --release -p segue-connector-postgres --example capture_speed -- [rows] [rounds]
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::datatypes::Schema;
use futures::StreamExt;
use segue_connect::{Connector, Format, OnError, Options, ReadConfig, RowFormat, Start};
use segue_connector_postgres::PostgresConnector;
use segue_testkit::postgres::PostgresServer;
use segue_types::SqlType;

const QUERY: &str = "SELECT order_id, customer, amount, status, updated_at, note FROM orders";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows: u32 = arguments.next().map_or(Ok(2_000_000), |text| text.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let server = PostgresServer::start();
    fill(&server, rows).await?;
    let config = config(&server);
    for round in 1..=rounds {
        let thrown_away = copy_to_nowhere(&server).await?;
        let captured = capture(&config, rows).await?;
        let ratio = captured.as_secs_f64() / thrown_away.as_secs_f64();
        let rate = f64::from(rows) / captured.as_secs_f64();
        println!(
            "round {round}: COPY BINARY to nowhere {thrown_away:.2?}, capture {captured:.2?} \
             ({rate:.0} rows/s), {ratio:.2} x"
        );
    }
    Ok(())
}

async fn fill(server: &PostgresServer, rows: u32) -> Result<(), tokio_postgres::Error> {
    let sql = format!(
        "CREATE TABLE orders AS
         SELECT n::int8 AS order_id, n::int8 * 7919 % 1000000 AS customer,
                (n % 100000)::numeric(12,2) / 100 AS amount,
                (ARRAY['new','paid','sent','done','lost','back'])[1 + n % 6] AS status,
                TIMESTAMPTZ '2024-01-01' + n * INTERVAL '1 ms' AS updated_at,
                repeat(md5(n::text), 3) AS note
         FROM generate_series(1, {rows}) AS s (n);
         VACUUM ANALYZE orders"
    );
    let client = server.connect().await;
    for statement in sql.split(';') {
        client.batch_execute(statement).await?;
    }
    Ok(())
}

fn config(server: &PostgresServer) -> ReadConfig {
    let columns = [
        ("order_id", SqlType::BigInt),
        ("customer", SqlType::BigInt),
        ("amount", SqlType::Numeric { precision: 12, scale: 2 }),
        ("status", SqlType::Text),
        ("updated_at", SqlType::Timestamptz),
        ("note", SqlType::Text),
    ];
    let fields: Vec<_> = columns.iter().map(|(name, ty)| ty.field(name, true)).collect();
    let options = [("url", server.url()), ("query", QUERY.to_owned())];
    ReadConfig {
        stage: "history".to_owned(),
        options: Options(options.map(|(name, value)| (name.to_owned(), value)).into()),
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
    }
}

async fn copy_to_nowhere(server: &PostgresServer) -> Result<Duration, tokio_postgres::Error> {
    let client = server.connect().await;
    let began = Instant::now();
    let copy = client.copy_out(&format!("COPY ({QUERY}) TO STDOUT (FORMAT binary)")).await?;
    let mut copy = std::pin::pin!(copy);
    let mut bytes = 0;
    while let Some(chunk) = copy.next().await {
        bytes += chunk?.len();
    }
    assert!(bytes > 0, "the table is not empty");
    Ok(began.elapsed())
}

async fn capture(
    config: &ReadConfig,
    expected: u32,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let definition = PostgresConnector.pin(config).await?;
    let began = Instant::now();
    let mut capture = PostgresConnector.capture(config, &definition, None).await?;
    let mut rows = 0;
    while let Some(batch) = capture.batches.next().await {
        rows += batch?.num_rows();
    }
    assert_eq!(u32::try_from(rows), Ok(expected), "every row arrives");
    Ok(began.elapsed())
}
