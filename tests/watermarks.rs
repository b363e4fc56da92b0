//! Watermarks over three stages (files, a range of a topic, the topic live): held between stages and by a partition that
//! says nothing, let go by one that is idle; no window closed early, none stuck, and none moved by a crash.

mod support;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::wait_for_async;
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;

/// A record at a time of one day.
fn at(time: &str) -> String {
    format!("{{\"ts\":\"2024-01-01T{time}:00Z\"}}")
}

/// A source over the three stages, a view of closed windows `<name>_closed`, and one of all rows, `<name>_seen`.
fn statements(name: &str, idle_timeout: &str, path: &str, bootstrap: &str) -> [String; 3] {
    let log =
        format!("connector = 'kafka', properties.bootstrap.server = '{bootstrap}', topic = 'log'");
    [
        format!(
            "CREATE SOURCE {name} (ts TIMESTAMPTZ, \
             WATERMARK FOR ts AS ts - INTERVAL '1 minute' WITH (idle_timeout = '{idle_timeout}')) WITH STAGES (\
             old WITH (connector = 'files', path = '{path}', match_pattern = '*.ndjson') FORMAT PLAIN ENCODE JSON, \
             range WITH ({log}) FORMAT PLAIN ENCODE JSON \
               START AT OFFSETS '{{\"0\": 0, \"1\": 0}}' STOP AT OFFSETS '{{\"0\": 1, \"1\": 1}}', \
             live WITH ({log}) FORMAT PLAIN ENCODE JSON)"
        ),
        format!(
            "CREATE MATERIALIZED VIEW {name}_closed AS \
             SELECT window_start, count(*) AS n FROM TUMBLE({name}, ts, INTERVAL '1 hour') GROUP BY window_start \
             EMIT ON WINDOW CLOSE"
        ),
        format!("CREATE MATERIALIZED VIEW {name}_seen AS SELECT count(*) AS n FROM {name}"),
    ]
}

/// The closed windows of a source: hour and rows.
async fn closed(client: &Client, name: &str) -> Vec<Vec<String>> {
    let hours = "extract(hour FROM window_start)::int";
    rows(client, &format!("SELECT {hours}, n FROM {name}_closed ORDER BY 1")).await
}

async fn watermark(client: &Client, name: &str) -> String {
    let sql = format!("SELECT watermark FROM segue.sources WHERE name = '{name}'");
    rows(client, &sql).await[0][0].clone()
}

async fn seen(client: &Client, name: &str, count: usize) {
    wait_for_async("the rows", DEADLINE, async || {
        let now = rows(client, &format!("SELECT n FROM {name}_seen")).await;
        (now == [[count.to_string()]]).then_some(())
    })
    .await;
}

async fn expect_closed(client: &Client, name: &str, expected: &[[&str; 2]]) {
    wait_for_async("the windows", DEADLINE, async || {
        (closed(client, name).await == expected).then_some(())
    })
    .await;
}

struct Scene {
    kafka: KafkaServer,
    segue: Segue,
    client: Client,
    _folder: tempfile::TempDir,
}

/// History that is not in the order of its times: the last hour comes first.
async fn scene(name: &str, idle_timeout: &str) -> Scene {
    let kafka = KafkaServer::start();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let lines = [at("02:30"), at("00:10")].join("\n");
    std::fs::write(folder.path().join("a.ndjson"), lines).expect("writable");
    std::fs::write(folder.path().join("b.ndjson"), at("00:30")).expect("writable");
    kafka.create_topic("log", 2, &[]);
    append(&kafka, "log", 0, &[at("01:10")]);
    append(&kafka, "log", 1, &[at("00:50")]);
    let segue = segue();
    let client = segue.connect().await;
    let path = folder.path().display().to_string();
    for statement in statements(name, idle_timeout, &path, &kafka.bootstrap()) {
        client.batch_execute(&statement).await.expect("it is created");
    }
    seen(&client, name, 5).await;
    Scene { kafka, segue, client, _folder: folder }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stages_and_silent_partitions_hold_the_watermark_and_a_crash_does_not_move_it() {
    let Scene { kafka, mut segue, client, _folder } = scene("patient", "1 hour").await;
    // The stages that ended said how far they came; what is live has said nothing.
    assert_eq!(closed(&client, "patient").await, Vec::<Vec<String>>::new());
    assert_eq!(watermark(&client, "patient").await, "NULL");

    append(&kafka, "log", 0, &[at("04:10")]);
    seen(&client, "patient", 6).await;
    assert_eq!(closed(&client, "patient").await, Vec::<Vec<String>>::new());
    assert_eq!(watermark(&client, "patient").await, "NULL");

    append(&kafka, "log", 1, &[at("03:20")]);
    expect_closed(&client, "patient", &[["0", "3"], ["1", "1"], ["2", "1"]]).await;
    assert_eq!(watermark(&client, "patient").await, "2024-01-01 03:19:00");

    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    assert_eq!(watermark(&client, "patient").await, "2024-01-01 03:19:00");
    // Ahead of the other partition, so it closes nothing, and is itself not late.
    append(&kafka, "log", 0, &[at("05:30")]);
    seen(&client, "patient", 8).await;
    assert_eq!(watermark(&client, "patient").await, "2024-01-01 03:19:00");
    append(&kafka, "log", 1, &[at("03:25"), at("05:10")]);
    let windows = [["0", "3"], ["1", "1"], ["2", "1"], ["3", "2"], ["4", "1"]];
    expect_closed(&client, "patient", &windows).await;
    assert_eq!(watermark(&client, "patient").await, "2024-01-01 05:09:00");
    let late = "SELECT sum(late_rows) FROM segue.operators";
    assert_eq!(rows(&client, late).await, [["0"]]);
}

/// Rows that went while the server was down are gone when it is back, and those that came are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_passes_while_the_server_is_down() {
    let mut segue = segue();
    let client = segue.connect().await;
    let statements = [
        "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMPTZ)",
        "CREATE MATERIALIZED VIEW recent AS SELECT id FROM t WHERE at > now() - INTERVAL '1 hour'",
        "CREATE MATERIALIZED VIEW past AS SELECT id FROM t WHERE at <= now()",
        "INSERT INTO t VALUES (1, now()), (2, now() + INTERVAL '1 day')",
        "INSERT INTO t VALUES (3, now() - INTERVAL '59 minutes 58 seconds'), (4, now() + INTERVAL '2 seconds')",
    ];
    for statement in statements {
        client.batch_execute(statement).await.expect("it is done");
    }
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    wait_for_async("time to pass", DEADLINE, async || {
        let recent = rows(&client, "SELECT id FROM recent ORDER BY id").await;
        let past = rows(&client, "SELECT id FROM past ORDER BY id").await;
        let is_right = recent == [["1"], ["2"], ["4"]] && past == [["1"], ["3"], ["4"]];
        is_right.then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_partition_holds_nothing_back() {
    let Scene { kafka, segue: _segue, client, _folder } = scene("hasty", "1 second").await;
    // When all partitions are idle, what history said counts: nothing is stuck.
    expect_closed(&client, "hasty", &[["0", "3"], ["1", "1"]]).await;
    append(&kafka, "log", 0, &[at("04:10")]);
    expect_closed(&client, "hasty", &[["0", "3"], ["1", "1"], ["2", "1"]]).await;
    assert_eq!(watermark(&client, "hasty").await, "2024-01-01 04:09:00");

    // The idle one comes back with a row whose window is closed: it is late, counted, and changes nothing.
    append(&kafka, "log", 1, &[at("03:20"), at("04:20")]);
    seen(&client, "hasty", 8).await;
    let late = "SELECT sum(late_rows) FROM segue.operators WHERE object = 'hasty_closed'";
    assert_eq!(rows(&client, late).await, [["1"]]);
    append(&kafka, "log", 0, &[at("06:30")]);
    append(&kafka, "log", 1, &[at("06:20")]);
    expect_closed(&client, "hasty", &[["0", "3"], ["1", "1"], ["2", "1"], ["4", "2"]]).await;
}
