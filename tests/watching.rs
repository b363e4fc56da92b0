//! What `segue.*` tells of a source that is behind and of a CREATE that is under way: in rows and in time.

mod support;

use std::time::{Duration, Instant};

use segue_testkit::kafka::KafkaServer;
use segue_testkit::wait::wait_for_async;
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

async fn only_row(client: &Client, sql: &str) -> Vec<String> {
    let mut found = rows(client, sql).await;
    assert_eq!(found.len(), 1, "{sql}: {found:?}");
    found.remove(0)
}

/// Waits until the only row of `sql` is `expected`.
async fn expect_row(client: &Client, sql: &str, expected: &[&str]) {
    wait_for_async(&format!("{sql} to be {expected:?}"), DEADLINE, async || {
        (rows(client, sql).await == [expected]).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_is_held_up_is_behind_in_rows_and_in_time() {
    let kafka = KafkaServer::start();
    kafka.create_topic("t", 1, &[]);
    append(&kafka, "t", 0, &["{\"x\":1}", "{\"x\":2}"]);
    let segue = segue();
    let client = segue.connect().await;
    let with = format!(
        "WITH (connector = 'kafka', properties.bootstrap.server = '{}', topic = 't')",
        kafka.bootstrap()
    );
    run(&client, &format!("CREATE SOURCE s (x BIGINT) {with} FORMAT PLAIN ENCODE JSON")).await;
    run(&client, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s").await;
    let of_source = "SELECT stage, rows, lag_rows, lag_ms, continuity, completed_epoch, stalled FROM segue.sources";
    expect_row(&client, of_source, &["s", "2", "0", "0", "NULL", "NULL", "NULL"]).await;
    assert_ne!(only_row(&client, "SELECT bytes FROM segue.sources").await, ["0"]);

    run(&client, "ALTER SOURCE s SET source_rate_limit = 0").await;
    let began = Instant::now();
    append(&kafka, "t", 0, &["{\"x\":3}", "{\"x\":4}", "{\"x\":5}"]);
    let behind = "SELECT position, latest, lag_rows FROM segue.splits";
    expect_row(&client, behind, &["2", "5", "3"]).await;
    let seen = Instant::now();
    // Whoever looks again sees the same position grow older; nobody else has to look meanwhile.
    let grown = wait_for_async("the lag to pass a second", DEADLINE, async || {
        let lag = only_row(&client, "SELECT lag_ms FROM segue.splits").await;
        let lag: u64 = lag[0].parse().expect("a number");
        (lag >= 1_000).then_some(lag)
    })
    .await;
    // Not since before the records were there; at least since they were seen, but for the age of an answer.
    assert!(Duration::from_millis(grown) <= began.elapsed(), "{grown}");
    assert!(seen.elapsed() >= Duration::from_millis(900), "{:?}", seen.elapsed());
    for relation in ["stages", "sources"] {
        let lag =
            only_row(&client, &format!("SELECT lag_rows, lag_ms FROM segue.{relation}")).await;
        assert_eq!(lag[0], "3", "{relation}");
        assert!(lag[1].parse::<u64>().expect("a number") >= grown, "{relation}: {lag:?}");
    }

    run(&client, "ALTER SOURCE s SET source_rate_limit = DEFAULT").await;
    expect_row(&client, "SELECT lag_rows, lag_ms FROM segue.splits", &["0", "0"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_tells_stage_rows_percent_rate_time_left_and_when_it_began() {
    let segue = segue();
    let client = segue.connect().await;
    let slow = "WITH (connector = 'datagen', fields.x.kind = 'sequence', fields.x.start = '1', \
                fields.x.end = '2000', datagen.rows.per.second = '500')";
    let fast = "WITH (connector = 'datagen', fields.x.kind = 'sequence', fields.x.start = '1', fields.x.end = '10')";
    run(&client, &format!("CREATE SOURCE s (x BIGINT) WITH STAGES (slow {slow}, fast {fast})"))
        .await;
    run(&client, "SET background_ddl = true").await;
    let before = rows(&client, "SELECT now()").await.concat();
    run(&client, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s").await;
    let job = "SELECT object, state, stage, percent, rows, rows_per_second, time_left_ms, reason, error, \
               started_at IS NOT NULL AND started_at <= now() FROM segue.jobs";
    let shown = wait_for_async("the job to be some way", DEADLINE, async || {
        let shown = rows(&client, job).await.pop()?;
        let percent: u64 = shown[3].parse().ok()?;
        (percent >= 10 && shown[6] != "NULL").then_some(shown)
    })
    .await;
    let number = |place: usize| shown[place].parse::<u64>().expect("a number");
    assert_eq!(shown[..3], ["v", "catching up", "slow"]);
    assert!((10..=99).contains(&number(3)), "{shown:?}");
    assert_eq!(number(4) * 100 / 2000, number(3), "percent is of the rows that there will be");
    assert!((1..=5_000).contains(&number(5)), "{shown:?}");
    let left = (2000 - number(4)) * 1_000 / number(5);
    assert!(number(6).abs_diff(left) <= left / 5 + 20, "{shown:?}, {left}");
    assert_eq!(shown[7..], ["NULL", "NULL", "t"], "since {before:?}");

    run(&client, "WAIT").await;
    assert_eq!(rows(&client, "SELECT n FROM v").await, [["2010"]]);
    let source = "SELECT stage, continuity, rows, completed_epoch IS NOT NULL FROM segue.sources";
    expect_row(&client, source, &["fast", "declared", "2010", "t"]).await;
}
