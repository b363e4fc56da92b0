//! How much memory large views take: 20 M rows kept as they are, and 5 M groups over them, in a real server process.

use std::time::Instant;

use segue_testkit::segue::Segue;
use tokio_postgres::Client;

use crate::measure::{cpu_of, millis};
use crate::{Outcome, Run};

const ROWS: i64 = 20_000_000;
const GROUPS: i64 = 5_000_000;
/// What both views together may take.
const MEMORY_BYTES_MAX: u64 = 8 << 30;

pub(crate) fn bench(run: &Run) -> Outcome {
    let mut server = Segue::start(&run.segue);
    run.runtime.block_on(async {
        let client = server.connect().await;
        let source = format!(
            "CREATE SOURCE s (k BIGINT, v BIGINT) WITH (connector = 'datagen', \
             datagen.rows.per.second = '0', \
             fields.k.kind = 'sequence', fields.k.start = '1', fields.k.end = '{ROWS}', \
             fields.v.kind = 'random', fields.v.min = '0', fields.v.max = '1000')"
        );
        client.batch_execute(&source).await?;
        let groups =
            format!("SELECT k % {GROUPS} AS g, count(*) AS n, sum(v) AS v FROM s GROUP BY 1");
        let mut taken = 0;
        for (name, query) in [("rows", "SELECT k, v FROM s"), ("groups", groups.as_str())] {
            let (began, cpu) = (Instant::now(), cpu_of(server.pid())?);
            client.batch_execute(&format!("CREATE MATERIALIZED VIEW {name} AS {query}")).await?;
            let cpu = cpu_of(server.pid())?.saturating_sub(cpu);
            let bytes = resident(server.pid())?;
            println!(
                "{name}: {:.2} M rows/core-s, {:.1} s; resident {:.2} GB more, {:.0} B for each",
                ROWS as f64 / cpu.as_secs_f64() / 1e6,
                began.elapsed().as_secs_f64(),
                (bytes - taken) as f64 / 1e9,
                (bytes - taken) as f64 / if name == "rows" { ROWS } else { GROUPS } as f64,
            );
            taken = bytes;
        }
        check(&client).await?;
        operators(&client).await
    })?;
    println!("peak {:.2} GB", peak(server.pid())? as f64 / 1e9);
    server.kill();
    let began = Instant::now();
    server.start_again();
    run.runtime.block_on(async {
        let client = server.connect().await;
        println!("restart after kill -9: {:.0} ms", millis(began.elapsed()));
        check(&client).await
    })?;
    let peak = peak(server.pid())?;
    println!("peak after the restart {:.2} GB", peak as f64 / 1e9);
    assert!(peak < MEMORY_BYTES_MAX, "the views take no more than {MEMORY_BYTES_MAX} bytes");
    Ok(())
}

async fn check(client: &Client) -> Outcome {
    let count = client.query_one("SELECT count(*) FROM rows", &[]).await?.get::<_, i64>(0);
    assert_eq!(count, ROWS, "the rows are there");
    let groups = client.query_one("SELECT count(*), sum(n)::bigint FROM groups", &[]).await?;
    assert_eq!((groups.get(0), groups.get(1)), (GROUPS, ROWS), "the groups are right");
    Ok(())
}

async fn operators(client: &Client) -> Outcome {
    let rows = client
        .query("SELECT object, name, state_rows, state_bytes FROM segue.operators", &[])
        .await?;
    for row in rows.iter().filter(|row| row.get::<_, i64>(3) > 0) {
        let (object, name) = (row.get::<_, &str>(0), row.get::<_, &str>(1));
        let (rows, bytes) = (row.get::<_, i64>(2), row.get::<_, i64>(3));
        println!("    {object} {name}: {rows} rows in {:.2} GB", bytes as f64 / 1e9);
    }
    Ok(())
}

/// What a process holds now, in bytes.
fn resident(pid: u32) -> std::io::Result<u64> {
    status(pid, "VmRSS:")
}

/// The most that it ever held.
fn peak(pid: u32) -> std::io::Result<u64> {
    status(pid, "VmHWM:")
}

fn status(pid: u32, field: &str) -> std::io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes << 10)
        .ok_or_else(|| std::io::Error::other(field.to_owned()))
}
