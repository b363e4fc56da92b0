//! Views that join a running source: each reads history for itself, meets the one live reading exactly, and shares it.
//!
//! Three shapes of views over the same source want different columns, so that a join also changes what the live
//! reading delivers.

mod support;

use std::sync::Arc;
use std::time::Duration;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use support::views::{Producer, expect_one_reading, expect_view, source, view};
use support::{DEADLINE, Orders, Random, rows, segue};

/// Runs a statement; after a death of the server it goes on by itself, and is waited for.
async fn run(segue: &mut Segue, statement: &str) {
    loop {
        if !segue.is_running() {
            segue.kill();
            segue.start_again();
        }
        let Ok(client) = segue.try_connect().await else { continue };
        match client.batch_execute(statement).await {
            Ok(()) => return,
            Err(error) if error.code().is_some_and(|code| code.code() == "42P07") => {
                if client.batch_execute("WAIT").await.is_ok() {
                    return;
                }
            }
            Err(error) if error.is_closed() || error.as_db_error().is_none() => {}
            Err(error) => panic!("{statement}: {error:?}"),
        }
        wait_for("the process to die", Duration::from_secs(20), || {
            (!segue.is_running()).then_some(())
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_views_that_join_at_random_moments_equal_the_truth_whatever_dies() {
    let (postgres, kafka) = (PostgresServer::start(), Arc::new(KafkaServer::start()));
    let (create, truth, writer) = source(&postgres, &kafka, "joined").await;
    let mut segue = segue();
    run(&mut segue, &create).await;
    let producer = Producer::start(&kafka, "joined", truth, writer);
    let mut random = Random(5);
    for n in 0..10 {
        let side = ["before-commit", "after-commit"][usize::from(random.below(2) == 0)];
        if random.below(3) > 0 {
            segue.kill();
            segue.set_failpoints(&format!("{side}={}*off->1*return", random.below(25)));
            segue.start_again();
            segue.set_failpoints("");
        }
        run(&mut segue, &view(n, &Orders::default()).0).await;
    }
    let truth = producer.stop();
    if !segue.is_running() {
        segue.kill();
        segue.start_again();
    }
    let client = segue.connect().await;
    for n in 0..10 {
        expect_view(&client, n, &truth).await;
    }
    expect_one_reading(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_can_pause_alone_and_the_first_one_can_go_while_the_others_read_on() {
    let (postgres, kafka) = (PostgresServer::start(), Arc::new(KafkaServer::start()));
    let (create, mut truth, mut writer) = source(&postgres, &kafka, "parted").await;
    let mut segue = segue();
    let client = segue.connect().await;
    client.batch_execute(&create).await.expect("the source is new");
    for n in 0..3 {
        client.batch_execute(&view(n, &truth).0).await.expect("the view is new");
    }
    expect_one_reading(&client).await;

    client.batch_execute("ALTER MATERIALIZED VIEW v1 PAUSE").await.expect("it can be paused");
    let before = truth.clone();
    writer.change(&mut truth, &kafka, "parted", 2_000);
    expect_view(&client, 0, &truth).await;
    expect_view(&client, 1, &before).await;
    client.batch_execute("DROP MATERIALIZED VIEW v0").await.expect("nothing reads it");

    // A paused view is paused after a restart too, and what it missed is read again.
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    writer.change(&mut truth, &kafka, "parted", 2_000);
    expect_view(&client, 2, &truth).await;
    expect_view(&client, 1, &before).await;
    client.batch_execute("ALTER MATERIALIZED VIEW v1 RESUME").await.expect("it was paused");
    expect_view(&client, 1, &truth).await;
    expect_one_reading(&client).await;

    client.batch_execute("ALTER SOURCE orders PAUSE").await.expect("it is read");
    writer.change(&mut truth, &kafka, "parted", 100);
    let refused = client.batch_execute("ALTER MATERIALIZED VIEW v2 RESUME").await;
    let refused = refused.expect_err("the whole source is paused");
    assert_eq!(refused.code().map(|code| code.code()), Some("55000"), "{refused:?}");
    client.batch_execute("ALTER SOURCE orders RESUME").await.expect("it was paused");
    expect_view(&client, 1, &truth).await;

    // When the last view goes, so does the reading; the next one begins anew.
    client.batch_execute("DROP MATERIALIZED VIEW v1, v2").await.expect("nothing reads them");
    let consumers =
        "SELECT consumer FROM segue.stages WHERE source = 'orders' AND consumer IS NOT NULL";
    assert_eq!(rows(&client, consumers).await, Vec::<Vec<String>>::new());
    client.batch_execute(&view(0, &truth).0).await.expect("the name is free");
    expect_view(&client, 0, &truth).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_that_join_while_the_first_is_still_in_the_history_wait_for_it_and_meet() {
    let (postgres, kafka) = (PostgresServer::start(), Arc::new(KafkaServer::start()));
    let (create, mut truth, mut writer) = source(&postgres, &kafka, "early").await;
    let mut segue = segue();
    let client = segue.connect().await;
    client.batch_execute(&create).await.expect("the source is new");
    let run = async |client: &tokio_postgres::Client, sql: &str| {
        client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    };
    run(&client, "ALTER SOURCE orders SET backfill_rate_limit = 0").await;
    run(&client, "SET background_ddl = true").await;
    run(&client, &view(0, &truth).0).await;
    run(&client, "ALTER MATERIALIZED VIEW v0 SET backfill_rate_limit = 0").await;
    run(&client, "ALTER SOURCE orders SET backfill_rate_limit = DEFAULT").await;
    run(&client, &view(1, &truth).0).await;
    run(&client, &view(2, &truth).0).await;
    // They come to the end of the history before the first one has begun, and wait there.
    let waiting = "SELECT count(*) FROM segue.stages WHERE stage = 'range' AND phase = 'committed'";
    let wait_there = async |client: &tokio_postgres::Client| {
        wait_for_async("two views to wait", DEADLINE, async || {
            (rows(client, waiting).await == [["2"]]).then_some(())
        })
        .await;
    };
    wait_there(&client).await;
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    wait_there(&client).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM segue.jobs").await, [["3"]]);
    writer.change(&mut truth, &kafka, "early", 500);
    run(&client, "ALTER MATERIALIZED VIEW v0 SET backfill_rate_limit = DEFAULT").await;
    run(&client, "WAIT").await;
    for n in 0..3 {
        expect_view(&client, n, &truth).await;
    }
    expect_one_reading(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canceled_join_leaves_nothing_and_holds_nobody_up() {
    let (postgres, kafka) = (PostgresServer::start(), Arc::new(KafkaServer::start()));
    let (create, truth, writer) = source(&postgres, &kafka, "canceled").await;
    let segue = segue();
    let client = segue.connect().await;
    client.batch_execute(&create).await.expect("the source is new");
    client.batch_execute(&view(0, &truth).0).await.expect("the view is new");
    let producer = Producer::start(&kafka, "canceled", truth, writer);
    let mut random = Random(9);
    for n in 1..8 {
        let cancel = client.cancel_token();
        let statement = view(n, &Orders::default()).0;
        let wait = Duration::from_millis(random.below(120));
        let creating = client.batch_execute(&statement);
        tokio::pin!(creating);
        let created = match tokio::time::timeout(wait, &mut creating).await {
            Ok(created) => created,
            Err(_) => {
                let canceled = cancel.cancel_query(tokio_postgres::NoTls).await;
                canceled.expect("a cancel request is taken");
                creating.await
            }
        };
        let exists = format!("SELECT count(*) FROM pg_class WHERE relname = 'v{n}'");
        let expected = if created.is_ok() { "1" } else { "0" };
        // A cancel that came late hits the next statement.
        wait_for_async("an answer", DEADLINE, async || {
            let found = support::try_rows(&client, &exists).await.ok()?;
            assert_eq!(found, [[expected]], "{created:?}");
            Some(())
        })
        .await;
    }
    let truth = producer.stop();
    expect_view(&client, 0, &truth).await;
    expect_one_reading(&client).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM segue.jobs").await, [["0"]]);
}
