//! Readers and workers are changed while a bounded stage is read, while a view backfills, and at restarts: every view
//! goes on from what it holds.

mod support;

use std::sync::Arc;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::wait_for_async;
use support::views::{Producer, expect_one_reading, expect_view, source, view};
use support::{DEADLINE, Orders, rows, segue};
use tokio_postgres::Client;

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// Waits until this reader has read rows of its second stage, and not all of them.
async fn expect_mid_range(client: &Client, reader: &str) {
    let read = format!(
        "SELECT 1 FROM segue.stages WHERE reader = '{reader}' AND stage = 'range' AND rows > 0 \
         AND phase IN ('reading', 'sealed')"
    );
    wait_for_async("the range to be half read", DEADLINE, async || {
        (!rows(client, &read).await.is_empty()).then_some(())
    })
    .await;
}

async fn expect_workers(client: &Client, view: &str, workers: &str) {
    let sql = format!(
        "SELECT DISTINCT workers FROM segue.operators WHERE object = '{view}' AND name = 'normalise'"
    );
    assert_eq!(rows(client, &sql).await, [[workers]], "{view}");
}

async fn expect_no_jobs(client: &Client) {
    wait_for_async("every job to end", DEADLINE, async || {
        rows(client, "SELECT * FROM segue.jobs").await.is_empty().then_some(())
    })
    .await;
}

async fn restarted(segue: &mut Segue, workers: &str) -> Client {
    segue.kill();
    segue.set("SEGUE_WORKERS", workers);
    segue.start_again();
    segue.connect().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_workers_change_mid_stage_mid_backfill_and_at_a_restart() {
    let (postgres, kafka) = (PostgresServer::start(), Arc::new(KafkaServer::start()));
    let (create, mut truth, mut writer) = source(&postgres, &kafka, "rescaled").await;
    writer.change(&mut truth, &kafka, "rescaled", 30_000);
    let mut segue = segue();
    let client = restarted(&mut segue, "1").await;
    run(&client, &create).await;
    let producer = Producer::start(&kafka, "rescaled", truth, writer);
    run(&client, "ALTER SOURCE orders SET backfill_rate_limit = 10000").await;
    run(&client, "SET background_ddl = true").await;

    run(&client, &view(0, &Orders::default()).0).await;
    // The first view's reading is the source's own, which the others will share.
    expect_mid_range(&client, "orders").await;
    run(&client, "ALTER MATERIALIZED VIEW v0 SET PARALLELISM = 3").await;
    run(&client, "ALTER SOURCE orders SET PARALLELISM = 3").await;
    expect_workers(&client, "v0", "3").await;
    let client = restarted(&mut segue, "2").await;
    expect_workers(&client, "v0", "3").await;
    run(&client, "ALTER MATERIALIZED VIEW v0 SET PARALLELISM = 1").await;
    expect_workers(&client, "v0", "1").await;
    run(&client, "ALTER SOURCE orders SET backfill_rate_limit = DEFAULT").await;
    expect_no_jobs(&client).await;

    run(&client, "ALTER SOURCE orders SET backfill_rate_limit = 10000").await;
    run(&client, "SET background_ddl = true").await;
    for n in [1, 2] {
        run(&client, &view(n, &Orders::default()).0).await;
        expect_mid_range(&client, &format!("v{n}")).await;
        run(&client, &format!("ALTER MATERIALIZED VIEW v{n} SET PARALLELISM = {}", n + 1)).await;
        run(&client, &format!("ALTER SOURCE orders SET PARALLELISM = {n}")).await;
    }
    let client = restarted(&mut segue, "1").await;
    expect_workers(&client, "v1", "2").await;
    expect_workers(&client, "v2", "3").await;
    run(&client, "ALTER MATERIALIZED VIEW v0 SET PARALLELISM = ADAPTIVE").await;
    run(&client, "ALTER SOURCE orders SET backfill_rate_limit = DEFAULT").await;
    expect_no_jobs(&client).await;

    let truth = producer.stop();
    for n in 0..3 {
        expect_view(&client, n, &truth).await;
    }
    expect_one_reading(&client).await;
}
