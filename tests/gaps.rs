//! `ALLOW GAP`: what expires before it is read is passed over, once and for all, and whoever misses it can be told.
//! Against Kafka, NATS and Pulsar, for the live reading, a view that joins it, a table and a SELECT, across `kill -9`.

mod support;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::nats::{NatsServer, Publish};
use segue_testkit::pulsar::{Batching, PulsarServer};
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use serde_json::{Value, json};
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;

async fn run(client: &Client, sql: &str) {
    let ran = tokio::time::timeout(DEADLINE, client.batch_execute(sql)).await;
    ran.unwrap_or_else(|_| panic!("{sql}: blocked"))
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

fn values(range: std::ops::Range<i64>) -> Vec<String> {
    range.map(|x| format!("{{\"x\":{x}}}")).collect()
}

/// COUNT and SUM of what is left of the numbers below `end`.
fn left(from: i64, end: i64) -> [[String; 2]; 1] {
    [[(end - from).to_string(), (from..end).sum::<i64>().to_string()]]
}

fn view(name: &str, source: &str) -> String {
    format!("CREATE MATERIALIZED VIEW {name} AS SELECT count(*) AS n, sum(x) AS s FROM {source}")
}

async fn expect(client: &Client, view: &str, expected: [[String; 2]; 1]) {
    let sql = format!("SELECT n, s FROM {view}");
    wait_for_async(&format!("{view} to show {expected:?}"), DEADLINE, async || {
        (rows(client, &sql).await == expected).then_some(())
    })
    .await;
}

const GAPS: &str = "SELECT object, source, stage, split, gaps, records, first_from, last_to FROM segue.gaps \
     ORDER BY object, source, split";

fn kafka_source(kafka: &KafkaServer, name: &str, topic: &str, tail: &str) -> String {
    format!(
        "CREATE SOURCE {name} (x BIGINT) WITH (connector = 'kafka', topic = '{topic}', \
         properties.bootstrap.server = '{}') FORMAT PLAIN ENCODE JSON {tail}",
        kafka.bootstrap()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_expired_before_it_was_read_is_an_error_or_a_gap_that_is_told_and_recorded() {
    let kafka = KafkaServer::start();
    kafka.create_topic("t", 1, &[]);
    append(&kafka, "t", 0, &values(0..1000));
    let mut segue = segue();
    let (client, notices) = segue.connect_with_notices().await;
    let start = "START AT OFFSETS '{\"0\": \"0\"}'";
    run(&client, &kafka_source(&kafka, "strict", "t", start)).await;
    run(&client, &kafka_source(&kafka, "s", "t", &format!("{start} ALLOW GAP"))).await;
    run(&client, &kafka_source(&kafka, "range", "t", &format!("{start} STOP AT LATEST ALLOW GAP")))
        .await;
    // The live reading has all of it.
    run(&client, &view("early", "s")).await;
    expect(&client, "early", left(0, 1000)).await;
    kafka.delete_records("t", 0, 600);

    let refused = client.batch_execute(&view("refused", "strict")).await;
    let error = refused.expect_err("its start is gone");
    let error = error.as_db_error().expect("the server says so");
    assert_eq!(error.code().code(), "55000");
    assert!(error.hint().expect("a hint").contains("ALLOW GAP"), "{error:?}");

    // A view that joins, one of a range, and a SELECT.
    notices.take();
    let said = "split 0: 600 records from 0 up to 600 had expired and were passed over";
    for (name, source) in [("late", "s"), ("ranged", "range")] {
        run(&client, &view(name, source)).await;
        let expected = left(600, 1000);
        assert_eq!(rows(&client, &format!("SELECT n, s FROM {name}")).await, expected, "{name}");
        let told = notices.take();
        assert!(told.contains(&format!("stage \"{source}\": {said}")), "{name}: {told:?}");
    }
    assert_eq!(rows(&client, "SELECT count(*), sum(x) FROM s").await, left(600, 1000));
    assert!(notices.take().contains(&format!("stage \"s\": {said}")));
    let gap = |object: &'static str, source: &'static str| {
        vec![object, source, source, "0", "1", "600", "0", "600"]
    };
    let recorded = [gap("late", "s"), gap("ranged", "range")];
    assert_eq!(rows(&client, GAPS).await, recorded);
    let of_range = "SELECT gaps, skipped, reason FROM segue.splits WHERE source = 'range'";
    let reason = "600 records from 0 up to 600 had expired and were passed over";
    assert_eq!(rows(&client, of_range).await, [["1", "600", reason]]);

    // The reading that has met the live one goes on with it, and all is as it was after a crash.
    segue.kill();
    append(&kafka, "t", 0, &values(1000..1100));
    segue.start_again();
    let client = segue.connect().await;
    expect(&client, "early", left(0, 1100)).await;
    expect(&client, "late", left(600, 1100)).await;
    assert_eq!(rows(&client, GAPS).await, recorded);

    // All of it is gone: a view returns with nothing, and has what comes.
    kafka.delete_records("t", 0, 1100);
    run(&client, &view("none", "s")).await;
    assert_eq!(rows(&client, "SELECT n, s FROM none").await, [["0", "NULL"]]);
    append(&kafka, "t", 0, &values(1100..1110));
    for (name, from) in [("early", 0), ("none", 1100)] {
        expect(&client, name, left(from, 1110)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_reading_that_has_fallen_behind_what_is_left_goes_on_there_with_all_who_share_it() {
    let kafka = KafkaServer::start();
    kafka.create_topic("t", 1, &[]);
    append(&kafka, "t", 0, &values(0..100));
    let segue = segue();
    let client = segue.connect().await;
    // Without START AT: each view begins at what is left when it is created.
    run(&client, &kafka_source(&kafka, "s", "t", "ALLOW GAP")).await;
    run(&client, &view("early", "s")).await;
    expect(&client, "early", left(0, 100)).await;
    run(&client, "ALTER SOURCE s PAUSE").await;
    append(&kafka, "t", 0, &values(100..200));
    kafka.delete_records("t", 0, 150);
    run(&client, "SET background_ddl = on").await;
    run(&client, &view("late", "s")).await;
    run(&client, "ALTER SOURCE s RESUME").await;
    run(&client, "WAIT").await;
    let sum = (0..100).sum::<i64>() + (150..200).sum::<i64>();
    expect(&client, "early", [["150".to_owned(), sum.to_string()]]).await;
    expect(&client, "late", left(150, 200)).await;
    let gaps = rows(&client, "SELECT object, records, first_from, last_to FROM segue.gaps").await;
    assert!(gaps.contains(&["early", "50", "100", "150"].map(str::to_owned).to_vec()), "{gaps:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_expire_in_the_midst_of_a_backfill_leave_the_count_of_what_is_left() {
    let kafka = KafkaServer::start();
    let mut segue = segue();
    let client = segue.connect().await;
    let end = 200_000;
    // A range, which is history, and a log that never ends; a crash before the gap is durable, and none.
    for (round, (tail, point)) in
        [("STOP AT LATEST", "after-gap=1*return"), ("", "after-gap=1*return"), ("", "")]
            .into_iter()
            .enumerate()
    {
        let (source, topic) = (format!("s{round}"), format!("t{round}"));
        kafka.create_topic(&topic, 1, &[]);
        // More than the client fetches ahead: by default 100,000 records, a megabyte at a time.
        let padding = "-".repeat(150);
        let value = |x: i64| format!("{{\"x\":{x},\"padding\":\"{padding}\"}}");
        append(&kafka, &topic, 0, &(0..end).map(value).collect::<Vec<_>>());
        segue.kill();
        segue.set_failpoints(point);
        segue.start_again();
        segue.set_failpoints("");
        let mut client = segue.connect().await;
        let tail = format!("{tail} ALLOW GAP");
        run(&client, &kafka_source(&kafka, &source, &topic, &tail)).await;
        for limit in ["source", "backfill"] {
            run(&client, &format!("ALTER SOURCE {source} SET {limit}_rate_limit = 2000")).await;
        }
        run(&client, "SET background_ddl = on").await;
        run(&client, &view(&format!("v{round}"), &source)).await;
        let position = format!("SELECT position FROM segue.splits WHERE source = '{source}'");
        wait_for_async("the reading to begin", DEADLINE, async || {
            let shown = rows(&client, &position).await;
            shown.first()?[0].parse::<i64>().ok().filter(|at| *at > 0)
        })
        .await;
        kafka.delete_records(&topic, 0, end - 50_000);
        for limit in ["source", "backfill"] {
            run(&client, &format!("ALTER SOURCE {source} SET {limit}_rate_limit = DEFAULT")).await;
        }
        if !point.is_empty() {
            segue.wait_for_crash();
            segue.start_again();
            client = segue.connect().await;
        }
        run(&client, "WAIT").await;
        counts_what_is_left(&client, &source, round, end).await;
    }
    drop(client);
}

/// What was read and what was passed over are together the whole, also in the sum.
async fn counts_what_is_left(client: &Client, source: &str, round: usize, end: i64) {
    let gaps = format!(
        "SELECT records, first_from, last_to FROM segue.gaps WHERE source = '{source}' AND gaps = 1"
    );
    let gap = rows(client, &gaps).await;
    let number = |place: usize| gap[0][place].parse::<i64>().expect("a number");
    let (records, from, to) = (number(0), number(1), number(2));
    assert_eq!((records, to), (to - from, end - 50_000), "{gap:?}");
    assert!((1..end - 50_000).contains(&from), "in the midst: {gap:?}");
    let sum = (0..end).sum::<i64>() - (from..to).sum::<i64>();
    let expected = [[(end - records).to_string(), sum.to_string()]];
    expect(client, &format!("v{round}"), expected).await;
}

/// Everything about one source whose first records are gone by the time at which a second view is created.
async fn first_gone(segue: &Segue, source: &str, from: i64, end: i64) {
    let client = segue.connect().await;
    run(&client, &view("late", source)).await;
    assert_eq!(rows(&client, "SELECT n, s FROM late").await, left(from, end));
    expect(&client, "early", left(0, end)).await;
    let gaps = rows(&client, GAPS).await;
    let of_late = gaps.iter().filter(|gap| gap[0] == "late");
    let of_late: Vec<&[String]> = of_late.map(|gap| &gap[1..5]).collect();
    assert_eq!(of_late, [[source, "live", "0", "1"]], "{gaps:?}");
    assert_eq!(
        rows(&client, &format!("SELECT count(*), sum(x) FROM {source}")).await,
        left(from, end)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_nats_that_drops_its_oldest_leaves_what_it_still_has() {
    let nats = NatsServer::start();
    let stream = nats.client().await;
    stream.create_stream("e", &["e.>"], json!({})).await;
    let publish = async |range: std::ops::Range<i64>| {
        let messages = values(range);
        let messages = messages.iter().map(|payload| Publish {
            subject: "e.e",
            payload: payload.clone(),
            headers: &[],
        });
        stream.publish_all(messages).await;
    };
    publish(0..500).await;
    let segue = segue();
    let client = segue.connect().await;
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH STAGES (live WITH (connector = 'nats', server_url = '{}', \
         subject = 'e.>') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{{\"0\": \"1\"}}' ALLOW GAP)",
        nats.url()
    );
    run(&client, &source).await;
    run(&client, &view("early", "s")).await;
    expect(&client, "early", left(0, 500)).await;
    stream.purge("e", json!({ "seq": 301 })).await;
    publish(500..520).await;
    first_gone(&segue, "s", 300, 520).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_of_pulsar_that_was_trimmed_leaves_what_it_still_has() {
    let pulsar = PulsarServer::start();
    pulsar.admin("PUT", "namespaces/public/short", &json!({}));
    let none = json!({ "retentionTimeInMinutes": 0, "retentionSizeInMB": 0 });
    pulsar.admin("POST", "namespaces/public/short/retention", &none);
    pulsar.admin("PUT", "persistent/public/short/t", &Value::Null);
    let topic = "persistent://public/short/t";
    let places = pulsar.produce(topic, values(0..300), Batching::Of(10));
    let segue = segue();
    let client = segue.connect().await;
    let first: Vec<&str> = places[0].split(':').collect();
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH STAGES (live WITH (connector = 'pulsar', service.url = '{}', \
         topic = '{topic}') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{{\"0\": \"{}:{}\"}}' ALLOW GAP)",
        pulsar.url(),
        first[0],
        first[1],
    );
    run(&client, &source).await;
    run(&client, &view("early", "s")).await;
    expect(&client, "early", left(0, 300)).await;
    // Whoever reads the topic holds it there: the live reading stands still while its first ledger goes.
    run(&client, "ALTER SOURCE s PAUSE").await;
    pulsar.admin("PUT", "persistent/public/short/t/unload", &Value::Null);
    pulsar.produce(topic, values(300..340), Batching::Of(10));
    wait_for("the first ledger to go", DEADLINE, || {
        pulsar.admin_if_ready("POST", "persistent/public/short/t/trim", &Value::Null)?;
        let path = "persistent/public/short/t/internalStats";
        let stats: Value = serde_json::from_str(&pulsar.admin("GET", path, &Value::Null)).ok()?;
        let ledgers = stats["ledgers"].as_array()?;
        let mut ids = ledgers.iter().map(|ledger| ledger["ledgerId"].to_string());
        ids.all(|id| id != first[0]).then_some(())
    });
    run(&client, "ALTER SOURCE s RESUME").await;
    // The live reading stood at the end of that ledger: nobody can tell it that nothing lay behind, so it has a gap, too.
    expect(&client, "early", left(0, 340)).await;
    first_gone(&segue, "s", 300, 340).await;
}
