//! The capture of a PostgreSQL query into durable chunks, beside the same COPY thrown away.

use futures::StreamExt as _;
use segue_testkit::postgres::PostgresServer;

use crate::instance::{Instance, scratch};
use crate::measure::{Meter, Spent, rate};
use crate::{Outcome, Run};

const ROUNDS: usize = 3;
const QUERY: &str = "SELECT order_id, customer, amount, status, updated_at, note FROM orders";
const COLUMNS: &str = "order_id BIGINT, customer BIGINT, amount NUMERIC(12,2), status VARCHAR, \
     updated_at TIMESTAMPTZ, note VARCHAR";

pub(crate) fn bench(run: &Run) -> Outcome {
    let server = PostgresServer::start();
    let rows = run.external_rows;
    run.runtime.block_on(async {
        fill(&server, rows).await?;
        println!("{rows} rows of 6 columns; wall time is PostgreSQL's too, {ROUNDS} rounds");
        for _ in 0..ROUNDS {
            let thrown_away = copy_to_nowhere(&server).await?;
            rate("speed of light: COPY BINARY to nowhere", rows, thrown_away);
            let captured = capture(&server).await?;
            rate("CREATE SOURCE: captured and durable", rows, captured);
            let ratio = captured.wall.as_secs_f64() / thrown_away.wall.as_secs_f64();
            println!("    {ratio:.2} times the wall time");
        }
        Ok(())
    })
}

async fn fill(server: &PostgresServer, rows: usize) -> Outcome {
    let create = format!(
        "CREATE TABLE orders AS
         SELECT n::int8 AS order_id, n::int8 * 7919 % 1000000 AS customer,
                (n % 100000)::numeric(12,2) / 100 AS amount,
                (ARRAY['new','paid','sent','done','lost','back'])[1 + n % 6] AS status,
                TIMESTAMPTZ '2024-01-01' + n * INTERVAL '1 ms' AS updated_at,
                repeat(md5(n::text), 3) AS note
         FROM generate_series(1, {rows}) AS s (n)"
    );
    let client = server.connect().await;
    client.batch_execute(&create).await?;
    client.batch_execute("VACUUM ANALYZE orders").await?;
    Ok(())
}

async fn copy_to_nowhere(server: &PostgresServer) -> Result<Spent, Box<dyn std::error::Error>> {
    let client = server.connect().await;
    let meter = Meter::start();
    let copy = client.copy_out(&format!("COPY ({QUERY}) TO STDOUT (FORMAT binary)")).await?;
    let mut copy = std::pin::pin!(copy);
    let mut bytes = 0;
    while let Some(chunk) = copy.next().await {
        bytes += chunk?.len();
    }
    assert!(bytes > 0, "the table is not empty");
    Ok(meter.stop())
}

/// Until CREATE SOURCE returns: the whole result is then in chunk files, checksummed, published.
async fn capture(server: &PostgresServer) -> Result<Spent, Box<dyn std::error::Error>> {
    let home = scratch()?;
    let instance = Instance::start(home.path(), &[]).await?;
    let url = server.url();
    let source = format!(
        "CREATE SOURCE orders ({COLUMNS}) WITH (connector = 'postgres', url = '{url}', \
         query = '{QUERY}')"
    );
    let meter = Meter::start();
    instance.run(&source).await?;
    let spent = meter.stop();
    instance.stop().await;
    Ok(spent)
}
