//! Reading partitions of a real broker: bounds that no record reaches, formats, bad records, topics that
//! change.

mod common;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array as _, AsArray};
use arrow::datatypes::{Int32Type, Int64Type, Schema, TimestampMicrosecondType};
use common::{
    at, bounded, bounds, broker, config, in_time, offsets, open, pin, read_all, row, rows, split,
    topic, topic_name, until, until_done, until_error, upsert,
};
use segue_connect::{
    ConnectError, Connector as _, Format, Handoff, HandoffKind, Include, IncludeKind, OnError,
    Options, ReadConfig, RowFormat, Start, Stop,
};
use segue_connector_kafka::KafkaConnector;
use segue_testkit::kafka::{Isolation, KafkaServer, Record};
use segue_testkit::wait::wait_for;
use segue_types::{Op, SqlType};

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_read_to_its_end_and_no_further_also_over_an_empty_partition() {
    let topic = topic("range", 3);
    broker().produce_values(&topic, 2, rows(0..20_000));
    let config = bounded(broker(), &topic);
    let definition = pin(&config).await.unwrap();
    broker().produce_values(&topic, 3, rows(20_000..20_300));
    let read = read_all(&config, &definition).await;
    let ids = |partition: i64| (0..10_000).map(|i| 2 * i + partition).collect::<Vec<i64>>();
    assert_eq!((&read[0].ids, read[0].done), (&ids(0), Some(10_000)));
    assert_eq!((&read[1].ids, read[1].done), (&ids(1), Some(10_000)));
    assert_eq!((&read[2].ids, read[2].done), (&vec![], Some(0)));
    assert_eq!(read[0].texts("v")[3].as_deref(), Some("v6"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_ends_although_its_last_offsets_are_never_delivered() {
    let topic = topic("markers", 2);
    broker().produce_values(&topic, 2, rows(0..2));
    let mut committed = broker().begin(&topic, &topic);
    committed.write([Record::value(&row(2)), Record::value(&row(3))]);
    committed.commit();
    let mut aborted = broker().begin(&topic, &topic);
    aborted.write([Record::value(&row(4)).partition(1), Record::value(&row(5)).partition(1)]);
    aborted.abort();
    let config = bounded(broker(), &topic);
    let definition = pin(&config).await.unwrap();
    assert_eq!(bounds(&definition), [4, 4], "one record, two in a transaction, its marker");
    let read = read_all(&config, &definition).await;
    assert_eq!((&read[0].ids, read[0].done), (&vec![0, 2, 3], Some(4)));
    assert_eq!((&read[1].ids, read[1].done), (&vec![1], Some(4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_ends_below_an_open_transaction() {
    let topic = topic("open", 1);
    broker().produce_values(&topic, 1, rows(0..3));
    let mut open = broker().begin(&topic, &topic);
    open.write([Record::value(&row(3))]);
    broker().produce_values(&topic, 1, rows(4..6));
    let config = bounded(broker(), &topic);
    let definition = pin(&config).await.unwrap();
    assert_eq!(bounds(&definition), [3], "the last stable offset, not the high watermark");
    let read = read_all(&config, &definition).await;
    assert_eq!((&read[0].ids, read[0].done), (&vec![0, 1, 2], Some(3)));
    open.commit();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_ends_although_compaction_took_its_tail() {
    let name = topic_name("compacted");
    broker().create_topic(&name, 1, KafkaServer::COMPACTED_SOON);
    let value = row(1);
    broker().produce_all(&name, (0..20).map(|_| Record::value(&value).key("k")));
    let bound = Some(Stop::Offsets(offsets(&[(0, 15)])));
    let config = ReadConfig { stop: bound, ..config(broker(), &name) };
    let definition = pin(&config).await.unwrap();
    wait_for("compaction", Duration::from_secs(30), || {
        broker().produce(&name, Record::value(&value).key("other"));
        broker().visible_offsets(&name, 1)[&0].iter().all(|offset| *offset >= 19).then_some(())
    });
    let read = read_all(&config, &definition).await;
    assert_eq!((&read[0].ids, read[0].done), (&vec![], Some(15)));
}

#[tokio::test(flavor = "multi_thread")]
async fn markers_move_the_position_of_a_continuous_read() {
    let topic = topic("progress", 1);
    let config = config(broker(), &topic);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut partition = reader.read(&split(0), &at(0), None).await.unwrap();
    let mut aborted = broker().begin(&topic, &topic);
    aborted.write([Record::value(&row(0))]);
    aborted.abort();
    let read = until(&mut partition, |read| read.next == Some(2)).await;
    assert!(read.ids.is_empty());
    assert_eq!(reader.latest(&split(0)).await, Ok(Some(at(2).into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_hands_over_to_the_live_log_without_gap_or_overlap() {
    let topic = topic("handoff", 2);
    broker().produce_values(&topic, 2, rows(0..1000));
    let history = bounded(broker(), &topic);
    let definition = pin(&history).await.unwrap();
    let live = ReadConfig { start: Start::Handoff, ..config(broker(), &topic) };
    let live_definition = pin(&live).await.unwrap();
    broker().produce_values(&topic, 2, rows(1000..1500));
    let read = read_all(&history, &definition).await;
    let mut ids: Vec<i64> = read.iter().flat_map(|split| split.ids.clone()).collect();
    let ends = read.iter().zip(0..).map(|(read, p)| (split(p), at(read.done.unwrap()))).collect();
    let handoff =
        Handoff { kind: HandoffKind::LogEnds, identity: definition.identity.clone(), ends };
    let starts = KafkaConnector::new().derive_starts(&live, &live_definition, &handoff).await;
    let reader = open(&live, &live_definition).await;
    broker().produce_values(&topic, 2, rows(1500..2000));
    for (split, start) in starts.unwrap() {
        let mut partition = reader.read(&split, &start, None).await.unwrap();
        ids.extend(until(&mut partition, |read| read.ids.len() == 500).await.ids);
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..2000).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn upserts_put_and_remove_by_key() {
    let topic = topic("upsert", 1);
    let records = [
        Record::value(r#"{"id":1,"v":"a"}"#).key(r#"{"id":1}"#),
        Record::value(r#"{"v":"b"}"#).key(r#"{"id":2}"#),
        Record::value(r#"{"v":"c"}"#).key("3"),
        Record::value(r#"{"id":4,"v":"d"}"#),
        Record::tombstone(r#"{"id":2}"#),
        Record::tombstone("3"),
        Record::tombstone("x"),
        Record::value(r#"{"v":"e"}"#),
        Record::default(),
        Record::value(r#"{"id":5}"#).key("5"),
    ];
    broker().produce_all(&topic, records);
    let config = ReadConfig { stop: Some(Stop::Latest), ..upsert(broker(), &topic) };
    let read = read_all(&config, &pin(&config).await.unwrap()).await.remove(0);
    assert_eq!(read.ids, [1, 2, 3, 4, 2, 3, 5]);
    let (put, remove) = (Op::Put, Op::Remove);
    assert_eq!(read.ops, [put, put, put, put, remove, remove, put]);
    let v = |text: &str| Some(text.to_owned());
    assert_eq!(read.texts("v"), [v("a"), v("b"), v("c"), v("d"), None, None, None]);
    let places: Vec<&str> = read.rejected.iter().map(|bad| bad.position.as_str()).collect();
    assert_eq!(places, ["6", "7", "8"], "a key that is no number; no key; nothing at all");
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_hold_what_kafka_keeps_beside_the_value() {
    let topic = topic("includes", 2);
    let headers: [(&str, &[u8]); 3] = [("h", b"1"), ("other", b"x"), ("h", b"2")];
    let value = row(7);
    let record = Record::value(&value).partition(1).key("k\"ey").headers(&headers).at(1234);
    broker().produce_all(&topic, [record, Record::value(&value).partition(1)]);
    let kinds = [
        (IncludeKind::Key, SqlType::Text),
        (IncludeKind::Partition, SqlType::Integer),
        (IncludeKind::Offset, SqlType::BigInt),
        (IncludeKind::Timestamp, SqlType::Timestamptz),
        (IncludeKind::Header(Some("h".to_owned())), SqlType::Bytea),
        (IncludeKind::Header(None), SqlType::Jsonb),
        (IncludeKind::Payload, SqlType::Jsonb),
        (IncludeKind::Stage, SqlType::Text),
    ];
    let mut config = bounded(broker(), &topic);
    let mut fields = config.schema.fields().to_vec();
    for (kind, ty) in kinds {
        let column = format!("c{}", fields.len());
        fields.push(Arc::new(ty.field(&column, true)));
        config.includes.push(Include { kind, column });
    }
    config.schema = Arc::new(Schema::new(fields));
    let definition = pin(&config).await.unwrap();
    // Not in the schema's order.
    let projection = [9, 0, 2, 3, 4, 5, 6, 7, 8];
    let reader = KafkaConnector::new().open(&config, &definition, &projection).await.unwrap();
    let mut partition = reader.read(&split(1), &at(0), Some(&at(2))).await.unwrap();
    let read = until_done(&mut partition).await;
    let batch = arrow::compute::concat_batches(&read.batches[0].schema(), &read.batches).unwrap();
    assert_eq!(batch.column(0).as_string::<i32>().value(1), "live");
    assert_eq!(batch.column(1).as_primitive::<Int64Type>().values(), &[7, 7]);
    assert_eq!(batch.column(2).as_string::<i32>().value(0), "k\"ey");
    assert!(batch.column(2).is_null(1), "the second record has no key");
    assert_eq!(batch.column(3).as_primitive::<Int32Type>().values(), &[1, 1]);
    assert_eq!(batch.column(4).as_primitive::<Int64Type>().values(), &[0, 1]);
    assert_eq!(batch.column(5).as_primitive::<TimestampMicrosecondType>().value(0), 1_234_000);
    assert_eq!(batch.column(6).as_binary::<i32>().value(0), b"2", "the last of its name");
    let headers = batch.column(7).as_string::<i32>().value(0);
    assert!(headers.starts_with(r#"[{"key": "h", "value": "1"}, {"key": "other""#), "{headers}");
    assert_eq!(batch.column(8).as_string::<i32>().value(0), r#"{"v": "v7", "id": 7}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_record_is_set_aside_or_ends_the_read_at_its_place() {
    let topic = topic("poison", 1);
    let good: Vec<String> = rows(0..3).collect();
    let records = [
        Record::value(&good[0]),
        Record::value("{broken"),
        Record::value(&good[1]),
        Record::tombstone("no value"),
        Record::value(&good[2]),
    ];
    broker().produce_all(&topic, records);
    let config = bounded(broker(), &topic);
    let definition = pin(&config).await.unwrap();
    let read = read_all(&config, &definition).await.remove(0);
    assert_eq!((read.ids, read.done), (vec![0, 1, 2], Some(5)));
    assert_eq!(read.rejected.len(), 2);
    assert_eq!(
        (&read.rejected[0].position, &read.rejected[0].payload[..]),
        (&at(1), &b"{broken"[..])
    );
    assert_eq!(read.rejected[1].position, at(3));
    let config = ReadConfig { on_error: OnError::Fail, ..config };
    let reader = open(&config, &definition).await;
    let mut partition = reader.read(&split(0), &at(0), Some(&at(5))).await.unwrap();
    let (read, error) = until_error(&mut partition).await;
    assert_eq!((read.ids, read.next), (vec![0], Some(1)), "rows before it are delivered");
    let ConnectError::Malformed { position, .. } = error else { panic!("{error}") };
    assert_eq!(position, at(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_delivered_as_they_are() {
    let topic = topic("bytes", 1);
    broker().produce_all(&topic, [Record::value(&[0xff, 0][..]), Record::value("")]);
    let config = ReadConfig {
        schema: Arc::new(Schema::new(vec![SqlType::Bytea.field("payload", true)])),
        declared_columns: 1,
        format: Format {
            rows: RowFormat::Plain,
            encode: "bytes".to_owned(),
            options: Options::default(),
        },
        ..bounded(broker(), &topic)
    };
    let read = read_all(&config, &pin(&config).await.unwrap()).await.remove(0);
    let values: Vec<Vec<u8>> = read
        .batches
        .iter()
        .flat_map(|batch| batch.column(0).as_binary::<i32>().iter().flatten().map(<[u8]>::to_vec))
        .collect();
    assert_eq!(values, [&[0xff, 0][..], &[]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_has_gone_is_an_error_and_never_a_jump() {
    let topic = topic("gone", 1);
    broker().produce_values(&topic, 1, rows(0..10));
    let config = config(broker(), &topic);
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    broker().delete_records(&topic, 0, 6);
    let kafka = KafkaConnector::new();
    let error = kafka.check(&config, &definition, &[(split(0), at(5))]).await.unwrap_err();
    assert!(matches!(error, ConnectError::Expired { .. }), "{error}");
    kafka.check(&config, &definition, &[(split(0), at(6))]).await.unwrap();
    let mut partition = reader.read(&split(0), &at(5), None).await.unwrap();
    let (read, error) = until_error(&mut partition).await;
    let ConnectError::Expired { position, available, .. } = error else { panic!("{error}") };
    assert_eq!((read.ids, position, available), (vec![], at(5), at(6)));
    let mut partition = reader.read(&split(0), &at(11), None).await.unwrap();
    let (_, error) = until_error(&mut partition).await;
    let ConnectError::Truncated { position, end, .. } = error else { panic!("{error}") };
    assert_eq!((position, end), (at(11), at(10)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_made_again_under_its_name_is_not_read_on() {
    let topic = topic("again", 1);
    broker().produce_values(&topic, 1, rows(0..3));
    let config = config(broker(), &topic);
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    let mut partition = reader.read(&split(0), &at(0), None).await.unwrap();
    assert_eq!(until(&mut partition, |read| read.ids.len() == 3).await.ids, [0, 1, 2]);
    broker().delete_topic(&topic);
    broker().create_topic(&topic, 1, &[]);
    // More than the old one had, so that the old position is in range.
    broker().produce_values(&topic, 1, rows(100..200));
    let (read, error) = until_error(&mut partition).await;
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    assert!(read.ids.is_empty(), "nothing of the new topic was delivered");
    let kafka = KafkaConnector::new();
    let error = kafka.check(&config, &definition, &[(split(0), at(3))]).await.unwrap_err();
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    let error = kafka.open(&config, &definition, &[0]).await.err().unwrap();
    assert!(error.to_string().contains(&topic), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_deleted_is_missed() {
    let topic = topic("deleted", 1);
    broker().produce_values(&topic, 1, rows(0..3));
    let config = config(broker(), &topic);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut partition = reader.read(&split(0), &at(0), None).await.unwrap();
    until(&mut partition, |read| read.ids.len() == 3).await;
    broker().delete_topic(&topic);
    let (_, error) = until_error(&mut partition).await;
    assert!(matches!(error, ConnectError::Missing { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_partition_is_found_and_read_from_its_beginning() {
    let topic = topic("grown", 1);
    let config = ReadConfig { start: Start::Latest, ..config(broker(), &topic) };
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    assert_eq!(reader.discover().await.unwrap().splits.len(), 1);
    broker().add_partitions(&topic, 2);
    broker().produce_all(&topic, [Record::value(&row(0)).partition(1)]);
    let found = reader.discover().await.unwrap();
    assert!(!found.sealed);
    let new = &found.splits[1];
    assert_eq!(new.id, split(1));
    let mut partition = reader.read(&new.id, &at(0), None).await.unwrap();
    assert_eq!(until(&mut partition, |read| !read.ids.is_empty()).await.ids, [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_ten_megabytes_is_read() {
    let name = topic_name("big");
    broker().create_topic(&name, 1, &[("max.message.bytes", "33554432")]);
    let big = format!(r#"{{"id":1,"v":"{}"}}"#, "x".repeat(10 << 20));
    let small = row(2);
    broker().produce_all(&name, [Record::value(&big), Record::value(&small)]);
    let config = bounded(broker(), &name);
    let read = read_all(&config, &pin(&config).await.unwrap()).await.remove(0);
    assert_eq!(read.ids, [1, 2]);
    assert_eq!(read.texts("v")[0].as_ref().unwrap().len(), 10 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_read_again_at_once_after_its_reader_was_dropped() {
    let topic = topic("dropped", 1);
    broker().produce_values(&topic, 1, rows(0..50_000));
    let config = config(broker(), &topic);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    for from in [0, 20_000, 7] {
        let mut partition = reader.read(&split(0), &at(from), None).await.unwrap();
        let read = until(&mut partition, |read| read.ids.len() > 10).await;
        assert_eq!(read.ids[0], from);
        assert!(read.ids.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    }
    let kept = reader.read(&split(0), &at(0), None).await.unwrap();
    let twice = in_time("a refusal", reader.read(&split(0), &at(0), None)).await;
    assert!(twice.err().unwrap().to_string().contains("already"));
    drop(kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_positions_are_committed_to_the_users_group() {
    let topic = topic("group", 1);
    broker().produce_values(&topic, 1, rows(0..5));
    let mut config = config(broker(), &topic);
    config.options.0.insert("properties.group.id".to_owned(), topic.clone());
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    reader.acknowledge(&[(split(0), at(3))]).await.unwrap();
    wait_for("the commit", Duration::from_secs(30), || {
        (broker().committed_offset(&topic, &topic, 0) == Some(3)).then_some(())
    });
    assert_eq!(broker().watermarks(&topic, 0, Isolation::ReadCommitted), (0, 5));
}
