//! Ends of a topic that no record tells: a CREATE returns, and what existed before it is visible.

mod support;

use std::time::Duration;

use segue_testkit::kafka::{KafkaServer, Record};
use segue_testkit::wait::{wait_for, wait_for_async};
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;

async fn create(client: &Client, kafka: &KafkaServer, topic: &str, tail: &str) -> Vec<Vec<String>> {
    let bootstrap = kafka.bootstrap();
    let source = format!(
        "CREATE SOURCE {topic} (x BIGINT) WITH (connector = 'kafka', \
         properties.bootstrap.server = '{bootstrap}', topic = '{topic}') FORMAT PLAIN ENCODE JSON {tail}"
    );
    client.batch_execute(&source).await.unwrap_or_else(|error| panic!("{topic}: {error:?}"));
    let view = format!("CREATE MATERIALIZED VIEW {topic}_n AS SELECT COUNT(*) AS n FROM {topic}");
    let created = tokio::time::timeout(DEADLINE, client.batch_execute(&view)).await;
    created.unwrap_or_else(|_| panic!("{topic}: blocked")).expect("the view is created");
    rows(client, &format!("SELECT n FROM {topic}_n")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_ends_a_read_at_the_last_stable_offset_and_says_so() {
    let kafka = KafkaServer::start();
    let segue = segue();
    let (client, notices) = segue.connect_with_notices().await;
    for (topic, tail) in [("continuous", ""), ("bounded", "STOP AT LATEST")] {
        kafka.create_topic(topic, 1, &[]);
        append(&kafka, topic, 0, &["{\"x\":1}", "{\"x\":2}"]);
        let mut open = kafka.begin(topic, topic);
        open.write([Record::value("{\"x\":3}")]);
        append(&kafka, topic, 0, &["{\"x\":4}"]);
        assert_eq!(create(&client, &kafka, topic, tail).await, [["2"]], "{topic}");
        let said = format!(
            "stage \"{topic}\": partition 0 of topic \"{topic}\" has an open transaction: what is there now \
             ends at its last stable offset 2, and not at the high watermark 4"
        );
        assert!(notices.take().contains(&said), "{topic}: a NOTICE says so");
        if tail.is_empty() {
            assert_eq!(rows(&client, "SELECT x FROM continuous ORDER BY x").await, [["1"], ["2"]]);
            assert!(notices.take().contains(&said), "a SELECT says so, too");
            let reason = "SELECT position, latest, lag_rows, lag_ms, reason FROM segue.splits";
            let shown = rows(&client, reason).await;
            assert_eq!(shown[0][..4], ["2", "2", "0", "0"], "{shown:?}");
            assert!(said.ends_with(&shown[0][4]) && !shown[0][4].is_empty(), "{shown:?}");
        }
        open.commit();
        if tail.is_empty() {
            wait_for_async("the rest", DEADLINE, async || {
                (rows(&client, "SELECT n FROM continuous_n").await == [["4"]]).then_some(())
            })
            .await;
        }
    }
    assert_eq!(rows(&client, "SELECT n FROM bounded_n").await, [["2"]], "a bound is a bound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_that_compaction_or_an_abort_took_blocks_nothing() {
    let kafka = KafkaServer::start();
    let segue = segue();
    let client = segue.connect().await;
    // The last record before the end was replaced by one that an abort then took.
    kafka.create_topic("compacted", 1, KafkaServer::COMPACTED_SOON);
    let records = (0..20).map(|_| Record::value("{\"x\":1}").key("k"));
    kafka.produce_all("compacted", records);
    wait_for("compaction", Duration::from_secs(30), || {
        kafka.produce("compacted", Record::value("{\"x\":2}").key("other"));
        kafka.visible_offsets("compacted", 1)[&0].iter().all(|offset| *offset >= 19).then_some(())
    });
    let mut aborted = kafka.begin("compacted", "c");
    aborted.write([Record::value("{\"x\":3}").key("k")]);
    aborted.abort();
    let visible = kafka.visible_offsets("compacted", 1)[&0].len();
    let counted: usize =
        create(&client, &kafka, "compacted", "").await[0][0].parse().expect("a count");
    assert!((1..=visible).contains(&counted), "{counted} of {visible}");
    // Nothing but aborted records, then nothing but a marker behind what was trimmed.
    kafka.create_topic("aborted", 1, &[]);
    let mut aborted = kafka.begin("aborted", "a");
    aborted.write((0..10).map(|_| Record::value("{\"x\":1}")));
    aborted.abort();
    assert_eq!(create(&client, &kafka, "aborted", "").await, [["0"]]);
    kafka.create_topic("trimmed", 1, &[]);
    let mut committed = kafka.begin("trimmed", "t");
    committed.write([Record::value("{\"x\":1}")]);
    committed.commit();
    kafka.delete_records("trimmed", 0, 1);
    assert_eq!(create(&client, &kafka, "trimmed", "").await, [["0"]], "only a marker is left");
}
