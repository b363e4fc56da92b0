//! Looking up one row by its key: a real server process, PostgreSQL's protocol, a prepared statement.

use std::time::{Duration, Instant};

use segue_testkit::segue::Segue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::Client;

use crate::measure::{cpu_of, times};
use crate::{Outcome, Run};

const LOOKUPS: i64 = 20_000;
const CLIENTS: i64 = 8;

pub(crate) fn bench(run: &Run) -> Outcome {
    let server = Segue::start(&run.segue);
    run.runtime.block_on(async {
        times("speed of light: a TCP round trip on this machine", &round_trips().await?);
        let client = server.connect().await;
        let keys = i64::try_from(run.external_rows)?;
        fill(&client, keys).await?;
        println!("{keys} keys, {LOOKUPS} lookups");
        let (samples, cpu, _) = lookups(&server, 1, keys).await?;
        times("lookup by key, one client", &samples);
        per_core(&cpu);
        let (samples, cpu, wall) = lookups(&server, CLIENTS, keys).await?;
        times(&format!("lookup by key, {CLIENTS} clients at once"), &samples);
        per_core(&cpu);
        println!("    {:.1} k lookups/s in all", LOOKUPS as f64 / wall.as_secs_f64() / 1e3);
        Ok(())
    })
}

fn per_core(cpu: &Duration) {
    let rate = LOOKUPS as f64 / cpu.as_secs_f64() / 1e3;
    let micros = cpu.as_secs_f64() * 1e6 / LOOKUPS as f64;
    println!("    {rate:.1} k lookups a core-second of the server, {micros:.1} us each");
}

async fn fill(client: &Client, keys: i64) -> Outcome {
    let source = format!(
        "CREATE SOURCE g (k BIGINT, v BIGINT) WITH (connector = 'datagen', \
         datagen.rows.per.second = '0', \
         fields.k.kind = 'sequence', fields.k.start = '1', fields.k.end = '{keys}', \
         fields.v.kind = 'random', fields.v.min = '0', fields.v.max = '1000') \
         FORMAT PLAIN ENCODE NATIVE"
    );
    client.batch_execute(&source).await?;
    let view =
        "CREATE MATERIALIZED VIEW m AS SELECT k, COUNT(*) AS n, SUM(v) AS v FROM g GROUP BY k";
    client.batch_execute(view).await?;
    Ok(())
}

/// Times of single lookups, CPU of the server for all of them, and wall time.
async fn lookups(
    server: &Segue,
    clients: i64,
    keys: i64,
) -> Result<(Vec<Duration>, Duration, Duration), Box<dyn std::error::Error>> {
    let before = cpu_of(server.pid())?;
    let began = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..clients {
        let client = server.connect().await;
        tasks.push(tokio::spawn(ask(client, number, LOOKUPS / clients, keys)));
    }
    let mut samples = Vec::new();
    for task in tasks {
        samples.extend(task.await??);
    }
    Ok((samples, cpu_of(server.pid())? - before, began.elapsed()))
}

async fn ask(
    client: Client,
    seed: i64,
    lookups: i64,
    keys: i64,
) -> Result<Vec<Duration>, tokio_postgres::Error> {
    let statement = client.prepare("SELECT k, n, v FROM m WHERE k = $1").await?;
    let mut samples = Vec::new();
    for i in 0..lookups {
        let key = (i * 7919 + seed * 104_729) % keys + 1;
        let began = Instant::now();
        let row = client.query_one(&statement, &[&key]).await?;
        samples.push(began.elapsed());
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (key, 1), "the row is right");
    }
    Ok(samples)
}

/// A byte there and back.
async fn round_trips() -> std::io::Result<Vec<Duration>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let mut client = TcpStream::connect(listener.local_addr()?).await?;
    client.set_nodelay(true)?;
    let (mut server, _) = listener.accept().await?;
    server.set_nodelay(true)?;
    let echo = tokio::spawn(async move {
        let mut byte = [0];
        while server.read_exact(&mut byte).await.is_ok() && server.write_all(&byte).await.is_ok() {}
    });
    let mut samples = Vec::new();
    for _ in 0..LOOKUPS {
        let began = Instant::now();
        client.write_all(&[1]).await?;
        client.read_exact(&mut [0]).await?;
        samples.push(began.elapsed());
    }
    drop(client);
    drop(echo.await);
    Ok(samples)
}
