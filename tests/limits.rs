//! What is too much, too large or malformed: memory stays bounded, the server stays up, and the refusal says why.

mod support;

use std::sync::LazyLock;
use std::time::Duration;

use segue_testkit::kafka::{KafkaServer, Record};
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;
use tokio_postgres::error::DbError;

static KAFKA: LazyLock<KafkaServer> = LazyLock::new(KafkaServer::start);

const MIB: u64 = 1024 * 1024;
/// What one consumer may have waiting is 64 MiB; the rest is the process and what a step works on.
const BOUNDED: u64 = 700 * MIB;

/// Bytes of memory that the process has now (`VmRSS`), or had at most (`VmHWM`).
fn memory(segue: &Segue, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", segue.pid())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with(field)).expect("the field is there");
    let kib = line.split_whitespace().nth(1).expect("a number follows");
    kib.parse::<u64>().expect("a number") * 1024
}

async fn error_of(client: &Client, sql: &str) -> DbError {
    let shown = &sql[..sql.len().min(60)];
    let failed = client.batch_execute(sql).await;
    let error = failed.err().unwrap_or_else(|| panic!("{shown}…: is not refused"));
    error.as_db_error().unwrap_or_else(|| panic!("{shown}…: {error:?}")).clone()
}

fn topic(name: &str) -> String {
    let bootstrap = KAFKA.bootstrap();
    format!(
        "WITH (connector = 'kafka', properties.bootstrap.server = '{bootstrap}', topic = '{name}'"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_that_never_catches_up_has_bounded_memory() {
    let segue = segue();
    let client = segue.connect().await;
    client
        .batch_execute(
            "CREATE SOURCE endless (k BIGINT, text VARCHAR) WITH (connector = 'datagen', \
             fields.k.kind = 'random', fields.k.min = '0', fields.k.max = '99', \
             fields.text.length = '200', datagen.rows.per.second = '0', datagen.split.num = '4')",
        )
        .await
        .expect("the source is created");
    // Each row is far more work to count than to make.
    let slow: Vec<String> =
        (0..20).map(|i| format!("SUM(length(replace(text, '{i}', 'xyz'))) AS s{i}")).collect();
    client
        .batch_execute(&format!(
            "CREATE MATERIALIZED VIEW slow AS SELECT k, COUNT(*) AS n, {} FROM endless GROUP BY k",
            slow.join(", ")
        ))
        .await
        .expect("a stream that never ends does not block");
    let read = "SELECT SUM(n) FROM slow";
    let mut counts = Vec::new();
    for rows_seen in [50_000_u64, 100_000, 150_000] {
        wait_for_async(&format!("{rows_seen} rows"), DEADLINE, async || {
            let seen: u64 = rows(&client, read).await[0][0].parse().unwrap_or(0);
            (seen >= rows_seen).then_some(())
        })
        .await;
        counts.push(memory(&segue, "VmRSS") / MIB);
    }
    assert!(memory(&segue, "VmHWM") < BOUNDED, "MiB at each look: {counts:?}");
    client
        .batch_execute("DROP SOURCE endless CASCADE")
        .await
        .expect("it can be dropped under load");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_larger_than_the_memory_is_read_within_it() {
    const RECORDS: i64 = 6_000;
    KAFKA.create_topic("fat", 2, &[]);
    let text = "x".repeat(50_000);
    for chunk in 0..RECORDS / 1000 {
        let values: Vec<String> = (0..1000)
            .map(|i| format!("{{\"k\":{},\"text\":\"{text}\"}}", chunk * 1000 + i))
            .collect();
        KAFKA.produce_values("fat", 2, &values);
    }
    let segue = segue();
    let client = segue.connect().await;
    let with = topic("fat");
    client
        .batch_execute(&format!(
            "CREATE SOURCE fat (k BIGINT, text VARCHAR) {with}) FORMAT PLAIN ENCODE JSON"
        ))
        .await
        .expect("the source is created");
    client
        .batch_execute(
            "CREATE MATERIALIZED VIEW fat_n AS SELECT COUNT(*) AS n, SUM(k) AS s, \
             SUM(length(text)) AS l FROM fat",
        )
        .await
        .expect("the view is created");
    let expected =
        [RECORDS, RECORDS * (RECORDS - 1) / 2, RECORDS * 50_000].map(|value| value.to_string());
    assert_eq!(rows(&client, "SELECT n, s, l FROM fat_n").await, [expected]);
    let peak = memory(&segue, "VmHWM");
    assert!(peak < BOUNDED, "{} MiB for 300 MB of records", peak / MIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poison_record_is_set_aside_or_stops_the_stage_as_was_asked() {
    let segue = segue();
    let client = segue.connect().await;
    KAFKA.create_topic("poison", 2, &[]);
    let deep = format!("{{\"x\":1,\"y\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    append(&KAFKA, "poison", 1, &["{\"x\":1}", "{\"x\":\"one\"}", "{\"x\":", &deep, "{\"x\":2}"]);
    KAFKA.produce("poison", Record::value(&[0xff_u8, 0xfe][..]).partition(0));
    let with = topic("poison");
    for (name, option) in [("lenient", ""), ("strict", ", on_error = 'fail'")] {
        let source =
            format!("CREATE SOURCE {name} (x BIGINT) {with}{option}) FORMAT PLAIN ENCODE JSON");
        client.batch_execute(&source).await.expect("the source is created");
    }
    client
        .batch_execute(
            "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(x) AS s FROM lenient",
        )
        .await
        .expect("malformed records are set aside");
    let letters = "SELECT split, position FROM segue.dead_letters WHERE source = 'lenient' AND stage <> '' \
                   AND reason <> '' AND payload <> '' ORDER BY split, position";
    let deep_is_a_row = rows(&client, "SELECT n, s FROM v").await == [["3", "4"]];
    let mut expected = vec![["0", "0"], ["1", "1"], ["1", "2"]];
    if !deep_is_a_row {
        assert_eq!(rows(&client, "SELECT n, s FROM v").await, [["2", "3"]]);
        expected.push(["1", "3"]);
    }
    assert_eq!(rows(&client, letters).await, expected);
    let rejected = "SELECT SUM(rejected) FROM segue.stages WHERE source = 'lenient'";
    assert_eq!(rows(&client, rejected).await, [[expected.len().to_string()]]);

    let create = "CREATE MATERIALIZED VIEW w AS SELECT COUNT(*) AS n FROM strict";
    let error = error_of(&client, create).await;
    assert!(error.message().contains("malformed record at position"), "{error:?}");
    let tables =
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
    assert_eq!(rows(&client, tables).await.concat(), ["lenient", "strict", "v"]);

    // A view that was well until the record came stops before it, and says where.
    KAFKA.create_topic("later", 1, &[]);
    append(&KAFKA, "later", 0, &["{\"x\":1}", "{\"x\":2}"]);
    let with = topic("later");
    let source = format!(
        "CREATE SOURCE later (x BIGINT) {with}, on_error = 'fail') FORMAT PLAIN ENCODE JSON"
    );
    client.batch_execute(&source).await.expect("the source is created");
    client
        .batch_execute("CREATE MATERIALIZED VIEW l AS SELECT COUNT(*) AS n, SUM(x) AS s FROM later")
        .await
        .expect("nothing is malformed yet");
    append(&KAFKA, "later", 0, &["{\"x\":3}", "poison", "{\"x\":4}"]);
    let failed = "SELECT error FROM segue.stages WHERE source = 'later' AND phase = 'failed'";
    let error = wait_for_async("the stage to stop", DEADLINE, async || {
        rows(&client, failed).await.pop().map(|row| row[0].clone())
    })
    .await;
    assert!(error.contains("malformed record at position 3 of split 0"), "{error}");
    assert_eq!(rows(&client, "SELECT n, s FROM l").await, [["3", "6"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_10_mb_goes_through_postgresql_kafka_and_the_protocol() {
    const BYTES: usize = 10 * 1024 * 1024;
    let postgres = PostgresServer::start();
    let upstream = postgres.connect().await;
    let table =
        format!("CREATE TABLE large AS SELECT 1::bigint AS id, repeat('p', {BYTES}) AS body");
    upstream.batch_execute(&table).await.expect("the table is new");
    KAFKA.create_topic("large", 1, &[("max.message.bytes", "20000000")]);
    let value = format!("{{\"id\":2,\"body\":\"{}\"}}", "k".repeat(BYTES));
    KAFKA.produce("large", Record::value(&value).key("{\"id\":2}"));
    let mut segue = segue();
    let client = segue.connect().await;
    let (url, with) = (postgres.url(), topic("large"));
    client
        .batch_execute(&format!(
            "CREATE SOURCE large (id BIGINT, body VARCHAR, PRIMARY KEY (id)) WITH STAGES (\
             history WITH (connector = 'postgres', url = '{url}', query = 'SELECT id, body FROM large'), \
             live {with}) FORMAT UPSERT ENCODE JSON START AT OFFSETS '{{\"0\": 0}}')"
        ))
        .await
        .expect("the source is created");
    client
        .batch_execute("CREATE MATERIALIZED VIEW v AS SELECT id, body FROM large")
        .await
        .expect("the view is created");
    client
        .batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY, body VARCHAR)")
        .await
        .expect("new");
    let insert = format!("INSERT INTO t VALUES (3, '{}')", "t".repeat(BYTES));
    client.batch_execute(&insert).await.expect("a large statement");
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    let bodies = "SELECT body FROM v UNION ALL SELECT body FROM t ORDER BY body";
    let bodies = rows(&client, bodies).await.concat();
    let expected = ["k", "p", "t"].map(|letter| letter.repeat(BYTES));
    // Not assert_eq: it would print them.
    assert!(bodies == expected, "{:?}", bodies.iter().map(String::len).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_views_that_come_and_go_leave_nothing() {
    let segue = segue();
    let client = segue.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 2), (2, 3)",
        )
        .await
        .expect("the table is new");
    let things = "SELECT (SELECT COUNT(*) FROM pg_class) AS a, (SELECT COUNT(*) FROM segue.operators) AS b, \
                  (SELECT COUNT(*) FROM segue.jobs) AS c";
    let before = rows(&client, things).await;
    let stored =
        || std::fs::metadata(segue.data_dir().join("segue.redb")).map_or(0, |file| file.len());
    let come_and_go = async |from: usize, to: usize| {
        for i in from..to {
            let statements = format!(
                "CREATE MATERIALIZED VIEW v{i} AS SELECT v, COUNT(*) AS n FROM t GROUP BY v; \
                 DROP MATERIALIZED VIEW v{i}"
            );
            client.batch_execute(&statements).await.expect("each can be created and dropped");
        }
    };
    come_and_go(0, 200).await;
    let (early_memory, early_disk) = (memory(&segue, "VmRSS"), stored());
    come_and_go(200, 1000).await;
    assert_eq!(rows(&client, things).await, before);
    let grown = memory(&segue, "VmRSS").saturating_sub(early_memory);
    assert!(grown < 60 * MIB, "800 views later there are {} MiB more", grown / MIB);
    let grown = stored().saturating_sub(early_disk);
    assert!(grown < 8 * MIB, "800 views later there are {} MiB more on disk", grown / MIB);
    client.batch_execute("INSERT INTO t VALUES (3, 4)").await.expect("the table goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_are_served_and_one_beyond_the_maximum_is_told_so() {
    /// The default of `max_connections`.
    const MAX: usize = 500;
    let segue = segue();
    let client = segue.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); \
             INSERT INTO t SELECT g, g * 2 FROM generate_series(1, 1000) g",
        )
        .await
        .expect("the table is filled");
    let mut clients = vec![client];
    while clients.len() < MAX {
        clients.push(segue.connect().await);
    }
    let refused = segue.try_connect().await.map(drop).expect_err("there is no place");
    assert_eq!(refused.code().map(|code| code.code()), Some("53300"), "{refused:?}");

    let mut running = tokio::task::JoinSet::new();
    for (i, client) in clients.drain(..200).enumerate() {
        running.spawn(async move {
            let sum = rows(&client, "SELECT COUNT(*), SUM(v) FROM t WHERE k <= 1000").await;
            assert_eq!(sum, [["1000", "1001000"]]);
            let key = i + 1;
            let found = rows(&client, &format!("SELECT v FROM t WHERE k = {key}")).await;
            assert_eq!(found, [[(key * 2).to_string()]]);
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("every client gets its answer");
    }
    // Those have left, so there is room again.
    let client = wait_for_async("a place", DEADLINE, async || segue.try_connect().await.ok()).await;
    assert_eq!(rows(&client, "SELECT COUNT(*) FROM t").await, [["1000"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_statements_run_and_deep_ones_are_refused_without_a_crash() {
    let mut segue = segue();
    let client = segue.connect().await;
    client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY, j VARCHAR)").await.expect("new");
    let values: Vec<String> = (0..20_000).map(|i| format!("({i}, '{i}')")).collect();
    client
        .batch_execute(&format!("INSERT INTO t VALUES {}", values.join(",")))
        .await
        .expect("long");
    let keys: Vec<String> = (0..10_000).map(|i| (i * 3).to_string()).collect();
    let listed = format!("SELECT COUNT(*) FROM t WHERE k IN ({})", keys.join(","));
    assert_eq!(rows(&client, &listed).await, [["6667"]]);
    let text = "a".repeat(5_000_000);
    assert_eq!(rows(&client, &format!("SELECT length('{text}')")).await, [["5000000"]]);

    let replaced = format!("SELECT {}'a'{}", "replace(".repeat(25), ", 'a', 'a')".repeat(25));
    assert_eq!(rows(&client, &replaced).await, [["a"]]);
    let nested =
        format!("SELECT COUNT(*) FROM {}t{}", "(SELECT * FROM ".repeat(40), ") AS q".repeat(40));
    assert_eq!(rows(&client, &nested).await, [["20000"]]);
    let chained = format!("SELECT COUNT(*) FROM t WHERE k = 0{}", " OR k = 1".repeat(200));
    assert_eq!(rows(&client, &chained).await, [["2"]]);

    let n = 20_000;
    let deep = [
        format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1", "- ".repeat(n)),
        format!("SELECT {}TRUE", "NOT ".repeat(n)),
        format!("SELECT 1{}", " + 1".repeat(n)),
        format!("SELECT 1{}", " || 'x'".repeat(n)),
        format!("SELECT COUNT(*) FROM t WHERE k = 0{}", " OR k = 1".repeat(n)),
        format!("SELECT COUNT(*) FROM t WHERE k > 0{}", " AND k < 5".repeat(n)),
        format!("SELECT {}1{}", "abs(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1{}", "CASE WHEN TRUE THEN ".repeat(n), " END".repeat(n)),
        format!("SELECT {}1{}", "ARRAY[".repeat(n), "]".repeat(n)),
        format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(n), ")".repeat(n)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(n)),
        format!("SELECT '1'{}", "::text".repeat(n)),
        format!("CREATE TABLE deep (x BIGINT{})", "[]".repeat(n)),
        format!("CREATE TABLE deep (x {}BIGINT{})", "STRUCT<a ".repeat(n), ">".repeat(n)),
        format!("SELECT '{}{}'::jsonb", "[".repeat(n), "]".repeat(n)),
        format!("SELECT * FROM t{}", " JOIN t USING (k)".repeat(n)),
    ];
    for sql in deep {
        let shown = &sql[..60];
        let view = format!("CREATE MATERIALIZED VIEW deep AS {sql}");
        let is_query = sql.starts_with("SELECT");
        for sql in std::iter::once(sql.clone()).chain(is_query.then_some(view)) {
            let client = segue.try_connect().await.unwrap_or_else(|_| panic!("{shown}: crashed"));
            let ran =
                tokio::time::timeout(Duration::from_secs(20), client.batch_execute(&sql)).await;
            let ran = ran.unwrap_or_else(|_| panic!("{shown}: takes for ever"));
            assert!(segue.is_running(), "{shown}: crashed\n{}", segue.log());
            if let Err(error) = ran {
                assert!(error.as_db_error().is_some(), "{shown}: {error:?}");
            }
            drop(client.batch_execute("DROP MATERIALIZED VIEW deep").await);
        }
    }
    assert_eq!(rows(&client, "SELECT COUNT(*) FROM t").await, [["20000"]]);
    wait_for("the server to run on", DEADLINE, || segue.is_running().then_some(()));
}
