//! What is read: ranges to their end, batches, compression, keys, what lies beside a message, what went wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::{Int32Type, Schema, TimestampMicrosecondType};
use common::{
    after, at, bounded, broker, config, open, pin, read_all, row, rows, split, starts, topic,
    until, until_done, until_error,
};
use segue_connect::{
    ConnectError, Connector as _, Handoff, HandoffKind, Include, IncludeKind, OnError, ReadConfig,
    RowFormat, Start,
};
use segue_connector_pulsar::PulsarConnector;
use segue_testkit::pulsar::Batching;
use segue_testkit::wait::wait_for_async;
use segue_types::{Op, SqlType};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_partitions_are_read_to_their_end_and_no_further() {
    let topic = topic("range", 2);
    broker().produce(&format!("{topic}-partition-0"), rows(0..5_000), Batching::Of(100));
    broker().produce(&format!("{topic}-partition-1"), rows(5_000..5_050), Batching::Single);
    let config = bounded(&topic);
    let definition = pin(&config).await.unwrap();
    broker().produce(&format!("{topic}-partition-0"), rows(9_000..9_003), Batching::Of(100));
    let read = read_all(&config, &definition).await;
    assert_eq!(read[0].ids, (0..5_000).collect::<Vec<i64>>());
    assert_eq!(read[1].ids, (5_000..5_050).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_starts_and_ends_inside_of_a_batch() {
    let topic = topic("inside", 0);
    let places = broker().produce(&topic, rows(0..20), Batching::Of(20));
    assert!(places[3].ends_with(":3"), "one batch: {places:?}");
    let config = config(&topic);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut reading = reader.read(&split(0), &at(&places[3]), Some(&at(&places[7]))).await.unwrap();
    let read = until_done(&mut reading).await;
    assert_eq!((read.ids, read.done), (vec![3, 4, 5, 6], Some(places[7].clone())));
    let mut reading = reader.read(&split(0), &at(&places[18]), None).await.unwrap();
    let read = until(&mut reading, |read| read.ids.len() == 2).await;
    assert_eq!((read.ids, read.next), (vec![18, 19], Some(after(&places[19]))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_on_live_and_through_a_change_of_ledger() {
    let topic = topic("live", 0);
    broker().produce(&topic, rows(0..5), Batching::Single);
    let config = config(&topic);
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    let start = at(&starts(&definition)[0]);
    let mut reading = reader.read(&split(0), &start, None).await.unwrap();
    assert_eq!(until(&mut reading, |read| read.ids.len() == 5).await.ids, [0, 1, 2, 3, 4]);
    // The topic is closed and opened again, with a new ledger.
    let unload = format!("persistent/public/default/{topic}/unload");
    broker().admin("PUT", &unload, &Value::Null);
    broker().produce(&topic, rows(5..8), Batching::Of(10));
    let read = until(&mut reading, |read| read.ids.len() == 3).await;
    assert_eq!(read.ids, [5, 6, 7]);
    assert_eq!(
        reader.latest(&split(0)).await.unwrap().map(|at| at.position.to_string()),
        read.next
    );
    drop(reading);
    wait_for_async("the subscription to go", Duration::from_secs(20), async || {
        let path = format!("persistent/public/default/{topic}/subscriptions");
        (broker().admin("GET", &path, &Value::Null) == "[]").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_compression_is_undone() {
    let topic = topic("packed", 0);
    let kinds = [None, Some("LZ4"), Some("ZLIB"), Some("ZSTD"), Some("SNAPPY")];
    for (kind, first) in kinds.into_iter().zip((0..).step_by(10)) {
        let messages = |from: i64| rows(from..from + 5).map(|value| json!({ "value": value }));
        broker().produce_messages(
            &topic,
            &messages(first).collect::<Vec<_>>(),
            Batching::Of(5),
            kind,
        );
        broker().produce_messages(
            &topic,
            &messages(first + 5).collect::<Vec<_>>(),
            Batching::Single,
            kind,
        );
    }
    let config = bounded(&topic);
    let read = read_all(&config, &pin(&config).await.unwrap()).await.remove(0);
    assert_eq!(read.rejected, []);
    assert_eq!(read.ids, (0..50).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_hands_over_to_the_live_topic_without_gap_or_overlap() {
    let topic = topic("over", 0);
    broker().produce(&topic, rows(0..1000), Batching::Of(50));
    let history = bounded(&topic);
    let definition = pin(&history).await.unwrap();
    let live = ReadConfig { start: Start::Handoff, ..config(&topic) };
    let live_definition = pin(&live).await.unwrap();
    broker().produce(&topic, rows(1000..1500), Batching::Of(50));
    let read = read_all(&history, &definition).await.remove(0);
    let handoff = Handoff {
        kind: HandoffKind::LogEnds,
        identity: definition.identity.clone(),
        ends: vec![(split(0), at(&read.done.unwrap()))],
    };
    let starts = PulsarConnector.derive_starts(&live, &live_definition, &handoff).await.unwrap();
    let reader = open(&live, &live_definition).await;
    let mut reading = reader.read(&split(0), &starts[0].1, None).await.unwrap();
    broker().produce(&topic, rows(1500..2000), Batching::Single);
    let mut ids = read.ids;
    ids.extend(until(&mut reading, |read| read.ids.len() == 1000).await.ids);
    assert_eq!(ids, (0..2000).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn upserts_put_and_remove_by_the_messages_key() {
    let topic = topic("upsert", 0);
    let message = |key: &str, value: &str| json!({ "key": key, "value": value });
    let messages = vec![
        message("1", r#"{"id":1,"v":"a"}"#),
        message(r#"{"id":2}"#, r#"{"v":"b"}"#),
        message("2", ""),
        message("x", ""),
        json!({ "value": r#"{"v":"c"}"# }),
        message("1", ""),
    ];
    broker().produce_messages(&topic, &messages, Batching::Of(4), None);
    let mut config = bounded(&topic);
    config.format.rows = RowFormat::Upsert;
    config.key = vec![0];
    let read = read_all(&config, &pin(&config).await.unwrap()).await.remove(0);
    assert_eq!(read.ids, [1, 2, 2, 1]);
    assert_eq!(read.ops, [Op::Put, Op::Put, Op::Remove, Op::Remove]);
    assert_eq!(read.rejected.len(), 2, "a key that is no number; no key");
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_hold_what_pulsar_keeps_beside_the_payload() {
    let topic = topic("includes", 2);
    let partition = format!("{topic}-partition-1");
    let message = json!({
        "value": row(7), "key": "k", "properties": { "h": "1" }, "event_time": 1234
    });
    let places = broker().produce_messages(&partition, &[message], Batching::Of(1), None);
    let kinds = [
        (IncludeKind::Key, SqlType::Text),
        (IncludeKind::Partition, SqlType::Integer),
        (IncludeKind::Offset, SqlType::Text),
        (IncludeKind::Timestamp, SqlType::Timestamptz),
        (IncludeKind::Header(Some("h".to_owned())), SqlType::Bytea),
        (IncludeKind::Header(None), SqlType::Jsonb),
    ];
    let mut config = bounded(&topic);
    let mut fields = config.schema.fields().to_vec();
    for (kind, ty) in kinds {
        let column = format!("c{}", fields.len());
        fields.push(Arc::new(ty.field(&column, true)));
        config.includes.push(Include { kind, column });
    }
    config.schema = Arc::new(Schema::new(fields));
    PulsarConnector.describe(&config).unwrap();
    let read = read_all(&config, &pin(&config).await.unwrap()).await.remove(1);
    let batch = &read.batches[0];
    assert_eq!(batch.column(2).as_string::<i32>().value(0), "k");
    assert_eq!(batch.column(3).as_primitive::<Int32Type>().values(), &[1]);
    assert_eq!(batch.column(4).as_string::<i32>().value(0), places[0]);
    assert_eq!(batch.column(5).as_primitive::<TimestampMicrosecondType>().value(0), 1_234_000);
    assert_eq!(batch.column(6).as_binary::<i32>().value(0), b"1");
    assert_eq!(batch.column(7).as_string::<i32>().value(0), r#"[{"key": "h", "value": "1"}]"#);
    config.includes.truncate(3);
    let mut fields = config.schema.fields()[..5].to_vec();
    fields[4] = Arc::new(SqlType::BigInt.field("c4", true));
    config.schema = Arc::new(Schema::new(fields));
    let error = PulsarConnector.describe(&config).unwrap_err();
    assert!(error.to_string().contains("is a number"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_message_is_set_aside_or_ends_the_read_at_its_place() {
    let topic = topic("poison", 0);
    let values = [row(0), "{broken".to_owned(), row(1)];
    let places = broker().produce(&topic, values, Batching::Of(3));
    let config = bounded(&topic);
    let definition = pin(&config).await.unwrap();
    let read = read_all(&config, &definition).await.remove(0);
    assert_eq!((read.ids, read.done), (vec![0, 1], Some(after(&places[2]))));
    assert_eq!(read.rejected[0].position, at(&places[1]));
    assert_eq!(read.rejected[0].payload, b"{broken");
    let config = ReadConfig { on_error: OnError::Fail, ..config };
    let reader = open(&config, &definition).await;
    let start = at(&places[0]);
    let mut reading = reader.read(&split(0), &start, None).await.unwrap();
    let (read, error) = until_error(&mut reading).await;
    assert_eq!((read.ids, read.next), (vec![0], Some(places[1].clone())));
    let ConnectError::Malformed { position, .. } = error else { panic!("{error}") };
    assert_eq!(position, at(&places[1]));
}

/// A topic without retention, of which the first ledger is closed.
fn of_two_ledgers(name: &str) -> (String, Vec<String>) {
    let namespace = format!("public/ns-{name}");
    broker().admin("PUT", &format!("namespaces/{namespace}"), &json!({}));
    let none = json!({ "retentionTimeInMinutes": 0, "retentionSizeInMB": 0 });
    broker().admin("POST", &format!("namespaces/{namespace}/retention"), &none);
    let topic = format!("persistent://{namespace}/t");
    broker().admin("PUT", &format!("persistent/{namespace}/t"), &Value::Null);
    let places = broker().produce(&topic, rows(0..5), Batching::Single);
    (topic, places)
}

fn trim(topic: &str) {
    let path = topic.replace("persistent://", "persistent/");
    broker().admin("PUT", &format!("{path}/unload"), &Value::Null);
    broker().produce(topic, rows(5..8), Batching::Single);
    broker().admin("POST", &format!("{path}/trim"), &Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_expired_is_an_error_and_never_a_jump() {
    let (topic, places) = of_two_ledgers("gone");
    let config = config(&topic);
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    trim(&topic);
    let starts = [(split(0), at(&places[2]))];
    let error = wait_for_async("the ledger to go", common::DEADLINE, async || {
        PulsarConnector.check(&config, &definition, &starts).await.err()
    });
    assert!(matches!(error.await, ConnectError::Expired { .. }));
    let mut reading = reader.read(&split(0), &at(&places[2]), None).await.unwrap();
    let (read, error) = until_error(&mut reading).await;
    let ConnectError::Expired { position, .. } = error else { panic!("{error}") };
    assert_eq!((read.ids, position), (vec![], at(&places[2])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_keeps_what_was_not_acknowledged() {
    let (topic, places) = of_two_ledgers("kept");
    let mut config = config(&topic);
    config.options.0.insert("subscription.name".to_owned(), "segue-test".to_owned());
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    trim(&topic);
    let mut reading = reader.read(&split(0), &at(&places[1]), None).await.unwrap();
    let read = until(&mut reading, |read| read.ids.len() == 7).await;
    assert_eq!(read.ids, [1, 2, 3, 4, 5, 6, 7]);
    // After an epoch nothing of it is needed any more.
    let next = at(&read.next.unwrap());
    reader.acknowledge(&[(split(0), next.clone())]).await.unwrap();
    let backlog = || {
        let path = topic.replace("persistent://", "persistent/") + "/stats";
        let stats: Value =
            serde_json::from_str(&broker().admin("GET", &path, &Value::Null)).unwrap();
        stats["subscriptions"]["segue-test"]["msgBacklog"].as_i64()
    };
    wait_for_async("the acknowledgment", common::DEADLINE, async || {
        (backlog() == Some(0)).then_some(())
    })
    .await;
    drop(reading);
    // The first ledger goes now, and what was read to its end has not expired by that.
    broker().admin(
        "POST",
        &(topic.replace("persistent://", "persistent/") + "/trim"),
        &Value::Null,
    );
    broker().produce(&topic, rows(8..9), Batching::Single);
    let mut reading = reader.read(&split(0), &next, None).await.unwrap();
    assert_eq!(until(&mut reading, |read| !read.ids.is_empty()).await.ids, [8]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_made_again_under_its_name_is_not_read_on() {
    let topic = topic("again", 0);
    let places = broker().produce(&topic, rows(0..3), Batching::Single);
    let config = config(&topic);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut reading = reader.read(&split(0), &at(&places[0]), None).await.unwrap();
    until(&mut reading, |read| read.ids.len() == 3).await;
    let path = format!("persistent/public/default/{topic}");
    broker().admin("DELETE", &format!("{path}?force=true"), &Value::Null);
    broker().create_topic(&topic, 0);
    broker().produce(&topic, rows(100..110), Batching::Single);
    let next = at(&after(&places[2]));
    // A broker that is still deleting the topic says that it is away for a moment.
    let error = loop {
        let (read, error) = until_error(&mut reading).await;
        assert!(read.ids.is_empty(), "{error}: {:?}", read.ids);
        if !error.is_transient() {
            break error;
        }
        reading = reader.read(&split(0), &next, None).await.unwrap();
    };
    let definite = matches!(error, ConnectError::Expired { .. } | ConnectError::Missing { .. });
    assert!(definite, "{error}");
    let definition = pin(&config).await.unwrap();
    let error = PulsarConnector.check(&config, &definition, &[(split(0), next)]).await.unwrap_err();
    assert!(matches!(error, ConnectError::Expired { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_partition_is_found_and_read_from_its_beginning() {
    let topic = topic("grown", 1);
    let config = ReadConfig { start: Start::Latest, ..config(&topic) };
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    assert_eq!(reader.discover().await.unwrap().splits.len(), 1);
    broker().add_partitions(&topic, 2);
    broker().produce(&format!("{topic}-partition-1"), rows(0..2), Batching::Single);
    let found = reader.discover().await.unwrap();
    assert!(!found.sealed && found.splits[1].id == split(1));
    let segue_connect::SplitStart::At(start) = &found.splits[1].start else {
        panic!("it starts at its beginning")
    };
    let mut reading = reader.read(&split(1), start, None).await.unwrap();
    assert_eq!(until(&mut reading, |read| read.ids.len() == 2).await.ids, [0, 1]);
}
