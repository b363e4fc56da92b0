//! Lost connections, dropped captures, restarted servers.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use segue_connect::{Connector, ReadConfig, ReadDefinition};
use segue_connector_postgres::PostgresConnector;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::proxy::Proxy;
use segue_types::SqlType;

use crate::support::{
    Ends, await_sessions, collect, config, next, pin, run, server, set, start, url_at, within,
};

const HANDOFF: &str = "SELECT 'p', round FROM torn_round";

async fn attempt(
    config: &ReadConfig,
    definition: &ReadDefinition,
) -> Result<(Ends, RecordBatch), segue_connect::ConnectError> {
    let capture = start(config, definition, Some(HANDOFF)).await?;
    collect(config, capture).await
}

/// Each round rewrites every row with the round's number, and the handoff tells the round.
fn assert_is_round(found: &(Ends, RecordBatch), round: i64) {
    let ends = found.0.as_ref().expect("the handoff was asked for");
    assert_eq!(ends[0].1.as_str(), round.to_string());
    assert_eq!(found.1.num_rows(), 20_000);
    let rounds = found.1.column(1).as_primitive::<Int64Type>();
    assert!(rounds.values().iter().all(|value| *value == round), "rows of several rounds");
}

#[tokio::test]
async fn a_cut_connection_fails_the_attempt_and_the_next_is_one_snapshot() {
    run("CREATE TABLE torn WITH (autovacuum_enabled = off) AS \
           SELECT n::int8, 0::int8 AS round FROM generate_series(1, 20000) AS s (n); \
         CREATE TABLE torn_round WITH (autovacuum_enabled = off) AS SELECT 0::int8 AS round; \
         ANALYZE torn, torn_round")
    .await;
    let proxy = Proxy::start(server().port()).await;
    let columns = [("n", SqlType::BigInt), ("round", SqlType::BigInt)];
    let mut config = config("SELECT n, round FROM torn", &columns);
    set(&mut config, "url", &url_at(proxy.port()));
    let definition = pin(&config).await.expect("pins");
    let before = proxy.bytes_to_client();
    assert_is_round(&attempt(&config, &definition).await.expect("nothing is cut"), 0);
    let whole = proxy.bytes_to_client() - before;

    let mut round = 0;
    for cut in [0, 1, 300, 2000, whole / 4, whole / 2, whole - 1000, whole - 30, whole - 3] {
        proxy.cut_always_after(cut);
        let error = attempt(&config, &definition).await.expect_err("the connection was cut");
        assert!(error.is_transient(), "cut at {cut} of {whole}: {error:?}");
        proxy.restore();
        round += 1;
        run(&format!("UPDATE torn SET round = {round}; UPDATE torn_round SET round = {round}"))
            .await;
        assert_is_round(&attempt(&config, &definition).await.expect("nothing is cut"), round);
    }
}

#[tokio::test]
async fn a_server_out_of_reach_is_a_transient_error_and_comes_back() {
    let mut own = PostgresServer::start();
    let mut config = config("SELECT 1::int8 AS n", &[("n", SqlType::BigInt)]);
    set(&mut config, "url", &own.url());
    let definition = pin(&config).await.expect("pins");
    let query = "SELECT generate_series(1, 100000000)::int8 AS n";
    let mut long = config.clone();
    set(&mut long, "query", query);
    let pinned = pin(&long).await.expect("pins");
    let mut capture = start(&long, &pinned, None).await.expect("starts");
    next(&mut capture).await;
    own.stop();
    let error = loop {
        match within(capture.batches.next()).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("a torn capture ended like a whole one"),
        }
    };
    assert!(error.is_transient(), "{error:?}");
    assert!(within(capture.batches.next()).await.is_none(), "an attempt that failed is over");
    let error = pin(&config).await.expect_err("the server is down");
    assert!(error.is_transient(), "{error:?}");
    own.start_again();
    within(PostgresConnector.check(&config, &definition, &[])).await.expect("the same database");
}

#[tokio::test]
async fn a_dropped_capture_ends_its_session_while_rows_flow_and_while_none_do() {
    let query = "SELECT generate_series(1, 100000000)::int8 AS n, 'flowing' AS mark";
    let flowing = config(query, &[("n", SqlType::BigInt)]);
    let definition = pin(&flowing).await.expect("pins");
    let mut capture = start(&flowing, &definition, None).await.expect("starts");
    next(&mut capture).await;
    await_sessions("flowing", 1).await;
    drop(capture);
    await_sessions("flowing", 0).await;

    let query = "SELECT 1::int8 AS n, 'silent' AS mark FROM pg_sleep(3600)";
    let silent = config(query, &[("n", SqlType::BigInt)]);
    let definition = pin(&silent).await.expect("pins");
    let mut capture = start(&silent, &definition, None).await.expect("starts");
    tokio::select! {
        row = capture.batches.next() => panic!("it sleeps, but gave {row:?}"),
        () = await_sessions("silent", 1) => {}
    }
    drop(capture);
    await_sessions("silent", 0).await;
}

#[tokio::test]
async fn a_capture_given_up_before_it_started_ends_its_session() {
    let config = config("SELECT 1::int8 AS n", &[("n", SqlType::BigInt)]);
    let definition = pin(&config).await.expect("pins");
    let slow = "SELECT 'given up', pg_sleep(3600)::text";
    tokio::select! {
        _ = start(&config, &definition, Some(slow)) => panic!("it sleeps"),
        () = await_sessions("given up", 1) => {}
    }
    await_sessions("given up", 0).await;
}

#[tokio::test]
async fn a_changed_table_and_another_database_are_told_from_the_pinned_ones() {
    run("CREATE TABLE changing (n int4)").await;
    let mut config = config("SELECT n FROM changing", &[("n", SqlType::BigInt)]);
    let definition = pin(&config).await.expect("pins");
    run("ALTER TABLE changing ALTER n TYPE int8").await;
    let error = start(&config, &definition, None).await.map(|_| ());
    let error = error.expect_err("the column has changed").to_string();
    assert!(error.contains("column \"n\"") && error.contains("replaced"), "{error}");

    run("CREATE DATABASE another").await;
    set(&mut config, "database.name", "another");
    let error =
        within(PostgresConnector.check(&config, &definition, &[])).await.expect_err("another one");
    let error = error.to_user_error("history");
    assert!(error.detail.is_some_and(|detail| detail.contains("/another")));
}
