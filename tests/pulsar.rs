//! Pulsar among the stages, across `kill -9`: after PostgreSQL by `START AT QUERY`, after a range of Kafka by the offsets
//! that a user states, after a range of its own topic; and a CREATE that returns whatever the end of a topic looks like.

mod support;

use std::time::Duration;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::pulsar::{Batching, PulsarServer};
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use serde_json::json;
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;

/// The numbers from 1 on, as they go to one partition of a topic.
struct Numbers<'a> {
    pulsar: &'a PulsarServer,
    n: i64,
}

fn value(x: i64) -> String {
    format!("{{\"x\":{x}}}")
}

impl Numbers<'_> {
    /// Stores the next `count`, and returns the place behind them.
    fn append(&mut self, topic: &str, count: i64, batching: Batching) -> String {
        let values = (self.n + 1..=self.n + count).map(value);
        let places = self.pulsar.produce(topic, values, batching);
        self.n += count;
        let mut last = places.last().expect("some were stored").split(':');
        let (ledger, entry) = (last.next().expect("three numbers"), last.next().expect("three"));
        format!("{ledger}:{}", entry.parse::<u64>().expect("a number") + 1)
    }

    async fn expect(&self, client: &Client, view: &str) {
        let sql = format!("SELECT n, s FROM {view}");
        let expected = [[self.n.to_string(), (self.n * (self.n + 1) / 2).to_string()]];
        wait_for_async(&format!("{view} to show {expected:?}"), DEADLINE, async || {
            let now = rows(client, &sql).await;
            let n: i64 = now[0][0].parse().expect("a count");
            assert!(n <= self.n, "{view} shows {now:?} where {expected:?} was written");
            (now == expected).then_some(())
        })
        .await;
    }
}

const VIEW: &str = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(x) AS s FROM s";

/// Creates the view, starting the server again when its crash point kills it.
async fn create_across_a_crash(segue: &mut Segue, point: &str) {
    segue.kill();
    segue.set_failpoints(point);
    segue.start_again();
    segue.set_failpoints("");
    let client = segue.connect().await;
    assert!(client.batch_execute(VIEW).await.is_err(), "{point} was never passed");
    wait_for("the process to die", Duration::from_secs(20), || (!segue.is_running()).then_some(()));
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    match client.batch_execute(VIEW).await {
        Ok(()) => {}
        Err(error) if error.code().is_some_and(|code| code.code() == "42P07") => {
            client.batch_execute("WAIT").await.expect("the job goes on by itself");
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_then_a_topic_of_pulsar_is_exact_across_kills_of_either_server() {
    let (postgres, pulsar) = (PostgresServer::start(), PulsarServer::start());
    let mut segue = segue();
    let crashes = ["after-last-bounded-row", "after-completion-commit", "after-activation"];
    for (index, point) in crashes.iter().enumerate() {
        let topic = format!("events-{index}");
        pulsar.create_topic(&topic, 1);
        let partition = format!("{topic}-partition-0");
        let mut numbers = Numbers { pulsar: &pulsar, n: 0 };
        // The database has copied a part of the topic, up to the middle of what is batched there.
        let place = numbers.append(&partition, 2_000, Batching::Of(37));
        let history = numbers.n;
        numbers.append(&partition, 1_000, Batching::Of(37));
        let sql = format!(
            "CREATE TABLE events_{index} AS SELECT i::bigint AS x FROM generate_series(1, {history}) i; \
             CREATE TABLE copied_{index} AS SELECT 0 AS partition, '{place}' AS next"
        );
        postgres.connect().await.batch_execute(&sql).await.expect("the tables are new");
        let source = format!(
            "CREATE SOURCE s (x BIGINT) WITH STAGES (\
             history WITH (connector = 'postgres', url = '{}', query = 'SELECT x FROM events_{index}'), \
             live WITH (connector = 'pulsar', service.url = '{}', topic = '{topic}', \
               subscription.name = 'segue', refresh.interval.sec = 1) FORMAT PLAIN ENCODE JSON \
               START AT QUERY 'SELECT partition, next FROM copied_{index}')",
            postgres.url(),
            pulsar.url(),
        );
        segue.connect().await.batch_execute(&source).await.expect("the source is created");
        create_across_a_crash(&mut segue, &format!("{point}=1*return")).await;
        numbers.append(&partition, 100, Batching::Single);
        numbers.expect(&segue.connect().await, "v").await;
        if index + 1 < crashes.len() {
            segue.connect().await.batch_execute("DROP SOURCE s CASCADE").await.expect("it goes");
            continue;
        }
        // A partition that is added is read from its beginning; then either server dies.
        pulsar.add_partitions(&topic, 2);
        numbers.append(&format!("{topic}-partition-1"), 50, Batching::Of(10));
        numbers.expect(&segue.connect().await, "v").await;
        segue.kill();
        numbers.append(&partition, 70, Batching::Of(10));
        segue.start_again();
        // The broker dies while it still recovers the topic for whoever reconnects.
        pulsar.kill();
        pulsar.start_again();
        numbers.append(&format!("{topic}-partition-1"), 30, Batching::Of(10));
        let client = segue.connect().await;
        numbers.expect(&client, "v").await;
        client.batch_execute(&VIEW.replace(" v ", " late ")).await.expect("a later view");
        numbers.expect(&client, "late").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_of_kafka_then_a_range_of_pulsar_then_its_live_topic_count_exactly() {
    let (kafka, pulsar) = (KafkaServer::start(), PulsarServer::start());
    kafka.create_topic("old", 1, &[]);
    let values: Vec<String> = (1..=500).map(value).collect();
    append(&kafka, "old", 0, &values);
    pulsar.create_topic("new", 0);
    // The first messages are those that were mirrored from Kafka.
    let mut mirror = Numbers { pulsar: &pulsar, n: 0 };
    let place = mirror.append("new", 500, Batching::Of(20));
    let mut numbers = Numbers { pulsar: &pulsar, n: 500 };
    numbers.append("new", 300, Batching::Of(20));
    let mut segue = segue();
    let client = segue.connect().await;
    let of_pulsar =
        format!("connector = 'pulsar', service.url = '{}', topic = 'new'", pulsar.url());
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH STAGES (\
         old WITH (connector = 'kafka', properties.bootstrap.server = '{}', topic = 'old') \
           FORMAT PLAIN ENCODE JSON STOP AT LATEST, \
         range WITH ({of_pulsar}) FORMAT PLAIN ENCODE JSON \
           START AT OFFSETS '{{\"0\": \"{place}\"}}' STOP AT LATEST, \
         live WITH ({of_pulsar}) FORMAT PLAIN ENCODE JSON)",
        kafka.bootstrap(),
    );
    client.batch_execute(&source).await.expect("the source is created");
    let continuity = "SELECT continuity FROM segue.stages ORDER BY position";
    assert_eq!(rows(&client, continuity).await, [["NULL"], ["declared"], ["exact"]]);
    numbers.append("new", 40, Batching::Of(20));
    create_across_a_crash(&mut segue, "after-activation=1*off->1*return").await;
    numbers.append("new", 10, Batching::Single);
    numbers.expect(&segue.connect().await, "v").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_select_after_the_ddl_sees_everything_that_existed_before_it() {
    let pulsar = PulsarServer::start();
    let segue = segue();
    let client = segue.connect().await;
    // What the topic holds, and how many of its messages a reader may see.
    pulsar.create_topic("empty", 2);
    pulsar.create_topic("idle", 0);
    pulsar.produce("idle", (0..3).map(value), Batching::Single);
    pulsar.create_topic("batch", 1);
    pulsar.produce("batch-partition-0", (0..3).map(value), Batching::Of(3));
    // Everything has expired, and only the ledger that is open is left.
    pulsar.admin("PUT", "namespaces/public/short", &json!({}));
    let none = json!({ "retentionTimeInMinutes": 0, "retentionSizeInMB": 0 });
    pulsar.admin("POST", "namespaces/public/short/retention", &none);
    pulsar.admin("PUT", "persistent/public/short/emptied", &json!(null));
    pulsar.produce("persistent://public/short/emptied", (0..3).map(value), Batching::Single);
    pulsar.admin("PUT", "persistent/public/short/emptied/unload", &json!(null));
    pulsar.produce("persistent://public/short/emptied", (0..1).map(value), Batching::Single);
    pulsar.admin("POST", "persistent/public/short/emptied/trim", &json!(null));
    for (name, topic, expected) in [
        ("empty", "empty", 0..=0),
        ("idle", "idle", 3..=3),
        ("batch", "batch", 3..=3),
        // The trimming goes on by itself, so it may come before or after.
        ("emptied", "persistent://public/short/emptied", 1..=4),
    ] {
        let source = format!(
            "CREATE SOURCE {name} (x BIGINT) WITH (connector = 'pulsar', service.url = '{}', \
             topic = '{topic}') FORMAT PLAIN ENCODE JSON",
            pulsar.url()
        );
        client.batch_execute(&source).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let view = format!("CREATE MATERIALIZED VIEW {name}_n AS SELECT COUNT(*) AS n FROM {name}");
        let created = tokio::time::timeout(DEADLINE, client.batch_execute(&view)).await;
        created.unwrap_or_else(|_| panic!("{name}: blocked")).expect("the view is created");
        let counted = rows(&client, &format!("SELECT n FROM {name}_n")).await;
        let counted: i64 = counted[0][0].parse().expect("a count");
        assert!(expected.contains(&counted), "{name}: {counted}");
    }
}
