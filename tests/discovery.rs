//! Partitions that appear: while the source is read, between two stages, while the server is down, while a later view
//! reads its history. Each is read from its beginning, whatever START AT said, and by every view exactly once.

mod support;

use std::time::Duration;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;

/// What was written that a view must show: the numbers of 1 to `n`, whatever is in the topic besides.
struct Written<'a> {
    kafka: &'a KafkaServer,
    topic: &'static str,
    n: i64,
}

impl Written<'_> {
    /// The next `count` numbers, to one partition.
    fn append(&mut self, partition: i32, count: i64) {
        let values: Vec<String> =
            (self.n + 1..=self.n + count).map(|x| format!("{{\"x\":{x}}}")).collect();
        append(self.kafka, self.topic, partition, &values);
        self.n += count;
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

fn kafka_options(kafka: &KafkaServer, topic: &str) -> String {
    format!(
        "connector = 'kafka', properties.bootstrap.server = '{}', topic = '{topic}', \
         refresh.interval.sec = 1",
        kafka.bootstrap()
    )
}

async fn create_view(segue: &Segue, view: &str) {
    let sql =
        format!("CREATE MATERIALIZED VIEW {view} AS SELECT COUNT(*) AS n, SUM(x) AS s FROM s");
    let client = segue.connect().await;
    client.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_that_appear_are_read_from_their_beginning_though_the_source_starts_at_latest() {
    let kafka = KafkaServer::start();
    kafka.create_topic("live", 1, &[]);
    append(&kafka, "live", 0, &["{\"x\":1000000}", "{\"x\":2000000}"]);
    let mut written = Written { kafka: &kafka, topic: "live", n: 0 };
    let mut segue = segue();
    let client = segue.connect().await;
    let options = kafka_options(&kafka, "live");
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH ({options}) FORMAT PLAIN ENCODE JSON START AT LATEST"
    );
    client.batch_execute(&source).await.expect("the source is created");
    // Before anything was read: the initial splits are those of CREATE SOURCE.
    kafka.add_partitions("live", 2);
    written.append(1, 3);
    create_view(&segue, "v").await;
    written.append(0, 2);
    written.expect(&client, "v").await;
    // While it is read.
    kafka.add_partitions("live", 4);
    written.append(3, 5);
    written.append(2, 1);
    written.expect(&client, "v").await;
    // While the server is down, twice: also when the first find was never made durable.
    for partitions in [5, 6] {
        segue.kill();
        kafka.add_partitions("live", partitions);
        written.append(partitions - 1, 4);
        written.append(0, 1);
        segue.start_again();
        let client = segue.connect().await;
        written.expect(&client, "v").await;
    }
    // A later view finds the same, and what appears while it does.
    kafka.add_partitions("live", 7);
    written.append(6, 2);
    create_view(&segue, "late").await;
    written.append(6, 2);
    let client = segue.connect().await;
    written.expect(&client, "late").await;
    written.expect(&client, "v").await;
    let splits = "SELECT COUNT(DISTINCT split) FROM segue.splits WHERE source = 's'";
    assert_eq!(rows(&client, splits).await, [["7"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_that_appear_between_two_stages_are_read_by_the_second_from_their_beginning() {
    let kafka = KafkaServer::start();
    kafka.create_topic("two", 1, &[]);
    let mut written = Written { kafka: &kafka, topic: "two", n: 0 };
    written.append(0, 500);
    let mut segue = segue();
    let client = segue.connect().await;
    let options = kafka_options(&kafka, "two");
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH STAGES (\
         range WITH ({options}) FORMAT PLAIN ENCODE JSON STOP AT LATEST, \
         live WITH ({options}) FORMAT PLAIN ENCODE JSON)"
    );
    client.batch_execute(&source).await.expect("the source is created");
    // After both stages were pinned, before the first was read.
    kafka.add_partitions("two", 2);
    written.append(1, 50);
    // The server dies between the completion of the first stage and the activation of the second.
    segue.kill();
    segue.set_failpoints("after-completion-commit=1*return");
    segue.start_again();
    segue.set_failpoints("");
    let client = segue.connect().await;
    let create = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(x) AS s FROM s";
    assert!(client.batch_execute(create).await.is_err(), "the crash point was never passed");
    wait_for("the process to die", Duration::from_secs(20), || (!segue.is_running()).then_some(()));
    segue.kill();
    kafka.add_partitions("two", 3);
    written.append(2, 30);
    written.append(0, 20);
    segue.start_again();
    let client = segue.connect().await;
    client.batch_execute("WAIT").await.expect("the job goes on by itself");
    written.expect(&client, "v").await;
    written.append(2, 10);
    written.expect(&client, "v").await;
}
