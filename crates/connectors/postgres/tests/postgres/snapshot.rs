//! One capture is one snapshot: its rows, its handoff, and nothing that happens meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use segue_connect::{Connector, Include, IncludeKind, ReadConfig};
use segue_connector_postgres::PostgresConnector;
use segue_types::{RowSemantics, SqlType};

use crate::support::{capture, collect, config, next, pin, run, server, set, start, within};

fn column(rows: &RecordBatch, index: usize) -> Vec<i64> {
    rows.column(index).as_primitive::<Int64Type>().values().to_vec()
}

#[tokio::test]
async fn two_hundred_thousand_rows_come_in_order_and_in_batches() {
    let query = "SELECT n, repeat('x', (n % 50)::int) AS note FROM generate_series(1, 200000) AS s (n) \
                 ORDER BY n DESC; -- newest first";
    let config = config(query, &[("note", SqlType::Text), ("n", SqlType::BigInt)]);
    let definition = pin(&config).await.expect("pins");
    assert!(definition.sealed && definition.splits.len() == 1);
    let mut capture = start(&config, &definition, None).await.expect("starts");
    assert!(capture.rows_estimated.is_some());
    let mut batches = Vec::new();
    while let Some(batch) = within(capture.batches.next()).await {
        batches.push(batch.expect("the server goes on"));
    }
    assert!(batches.iter().all(|batch| batch.num_rows() <= 8192) && batches.len() == 25);
    let rows = concat_batches(&config.schema, &batches).expect("one schema");
    let notes = rows.column(0).as_string::<i32>();
    for (index, n) in column(&rows, 1).into_iter().enumerate() {
        assert_eq!(n, 200_000 - i64::try_from(index).expect("small"));
        assert_eq!(notes.value_length(index), i32::try_from(n % 50).expect("small"));
    }
}

#[tokio::test]
async fn a_large_value_makes_its_own_batch_and_an_empty_result_none() {
    let query = "SELECT n::int8, repeat('y', 10000000) AS big FROM generate_series(1, 3) AS s (n)";
    let large = config(query, &[("n", SqlType::BigInt), ("big", SqlType::Text)]);
    let definition = pin(&large).await.expect("pins");
    let capturing = start(&large, &definition, None).await.expect("starts");
    let sizes: Vec<usize> =
        within(capturing.batches.map(|batch| batch.expect("goes on").num_rows()).collect()).await;
    assert_eq!(sizes, [1, 1, 1]);
    let empty = config("SELECT 1::int8 AS n WHERE false", &[("n", SqlType::BigInt)]);
    assert_eq!(capture(&empty).await.expect("an empty result is a result").num_rows(), 0);
}

#[tokio::test]
async fn writes_during_a_capture_do_not_show() {
    run("CREATE TABLE calm AS SELECT n::int8, 1::int8 AS v FROM generate_series(1, 100000) AS s (n)").await;
    let config = config("SELECT n, v FROM calm", &[("n", SqlType::BigInt), ("v", SqlType::BigInt)]);
    let definition = pin(&config).await.expect("pins");
    let mut capture = start(&config, &definition, None).await.expect("starts");
    let first = next(&mut capture).await;
    run("UPDATE calm SET v = 2; DELETE FROM calm WHERE n > 10; INSERT INTO calm VALUES (7, 7)")
        .await;
    let (_, rest) = collect(&config, capture).await.expect("the snapshot stands");
    let rows = concat_batches(&config.schema, [&first, &rest]).expect("one schema");
    let mut numbers = column(&rows, 0);
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=100_000).collect::<Vec<i64>>());
    assert_eq!(column(&rows, 1).iter().sum::<i64>(), 100_000);
}

/// A writer adds row n and moves the mark to n + 1 in one transaction, as fast as it can.
#[tokio::test]
async fn the_handoff_is_of_the_snapshot_of_the_rows() {
    run("CREATE TABLE log (n int8); CREATE TABLE mark (next int8); INSERT INTO mark VALUES (0)")
        .await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (stop, client) = (Arc::clone(&stop), server().connect().await);
        async move {
            while !stop.load(Ordering::Relaxed) {
                let sql = "BEGIN; INSERT INTO log SELECT next FROM mark; \
                           UPDATE mark SET next = next + 1; COMMIT";
                client.batch_execute(sql).await.expect("writes");
            }
        }
    });
    let config = config("TABLE log", &[("n", SqlType::BigInt)]);
    let definition = pin(&config).await.expect("pins");
    let query = "SELECT 0 AS split, next FROM mark; -- partition 0";
    let mut seen = Vec::new();
    for _ in 0..20 {
        let capture = start(&config, &definition, Some(query)).await;
        let (ends, rows) =
            collect(&config, capture.expect("starts")).await.expect("the snapshot stands");
        let ends = ends.expect("it was asked for");
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0].0.as_str(), "0");
        assert_eq!(ends[0].1.as_str(), rows.num_rows().to_string());
        seen.push(rows.num_rows());
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.expect("the writer wrote to the end");
    assert!(seen.last() > seen.first(), "nothing was written meanwhile: {seen:?}");
}

#[tokio::test]
async fn ctes_limits_duplicates_and_comments_are_all_queries() {
    for (query, expected) in [
        ("WITH a AS (SELECT 1::int8 AS n) SELECT n FROM a", vec![1]),
        ("SELECT n FROM (VALUES (2::int8), (2), (2)) AS v (n) -- ) duplicates", vec![2, 2, 2]),
        (
            "SELECT n::int8 FROM generate_series(1, 9) AS s (n) ORDER BY n DESC LIMIT 2 ;;",
            vec![9, 8],
        ),
        ("VALUES (5::int8)", vec![]),
        ("SELECT 1::int8 AS n /* ; */ UNION ALL SELECT 2 /* open ;*/", vec![1, 2]),
        ("SELECT ';'::text AS other, 3::int8 AS n", vec![3]),
    ] {
        let name = if query.starts_with("VALUES") { "column1" } else { "n" };
        let rows = capture(&config(query, &[(name, SqlType::BigInt)])).await.expect(query);
        let expected = if name == "n" { expected } else { vec![5] };
        assert_eq!(column(&rows, 0), expected, "{query}");
    }
}

#[tokio::test]
async fn a_table_is_read_whole_and_keyed_rows_are_a_state() {
    run("CREATE SCHEMA \"Shop\"; CREATE TABLE \"Shop\".\"Orders\" (id int8 PRIMARY KEY, \"Kind\" text); \
         INSERT INTO \"Shop\".\"Orders\" VALUES (1, 'a'), (2, NULL)")
    .await;
    let mut config = config("", &[("Kind", SqlType::Text), ("id", SqlType::BigInt)]);
    config.options.0.remove("query");
    set(&mut config, "schema.name", "Shop");
    set(&mut config, "table.name", "Orders");
    let semantics = |config: &ReadConfig| {
        PostgresConnector.describe(config).expect("well configured").semantics
    };
    assert_eq!(semantics(&config), RowSemantics::Append);
    config.key = vec![1];
    assert_eq!(semantics(&config), RowSemantics::State);
    let rows = capture(&config).await.expect("reads");
    assert_eq!(column(&rows, 1), [1, 2]);
    assert!(rows.column(0).is_null(1));
}

#[tokio::test]
async fn include_columns_say_the_stage_and_are_null_otherwise() {
    let columns = [("n", SqlType::BigInt), ("stage", SqlType::Text), ("offset", SqlType::BigInt)];
    let mut config = config("SELECT 1::int8 AS n", &columns);
    config.declared_columns = 1;
    let include = |kind, column: &str| Include { kind, column: column.to_owned() };
    config.includes =
        vec![include(IncludeKind::Stage, "stage"), include(IncludeKind::Offset, "offset")];
    let rows = capture(&config).await.expect("reads");
    assert_eq!(rows.column(1).as_string::<i32>().value(0), "history");
    assert!(rows.column(2).is_null(0));
}
