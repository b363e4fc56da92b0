//! What is read: ranges to their end, gaps, filters, keys, what lies beside a message, what went wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type, Schema, TimestampMicrosecondType};
use common::{
    Stream, at, bounded, config, in_time, of_subject, open, pin, read_all, row, split, until,
    until_done, until_error,
};
use segue_connect::{
    ConnectError, Connector as _, Handoff, HandoffKind, Include, IncludeKind, OnError, ReadConfig,
    RowFormat, Start,
};
use segue_connector_nats::NatsConnector;
use segue_testkit::nats::Publish;
use segue_testkit::wait::wait_for_async;
use segue_types::{Op, SqlType};
use serde_json::json;

/// Waits until the readers' consumers have gone from the server.
async fn nothing_left(stream: &Stream) {
    wait_for_async("the consumers to go", Duration::from_secs(10), async || {
        (stream.client.consumers(&stream.name).await == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_read_to_its_end_and_no_further() {
    let stream = Stream::new("range").await;
    stream.publish(0..20_000).await;
    let config = bounded(&stream);
    let definition = pin(&config).await.unwrap();
    stream.publish(20_000..20_010).await;
    let read = read_all(&config, &definition).await;
    assert_eq!(read.ids, (0..20_000).collect::<Vec<i64>>());
    assert_eq!(read.done, Some(20_001));
    nothing_left(&stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_on_live_and_leaves_nothing_behind() {
    let stream = Stream::new("live").await;
    stream.publish(0..5).await;
    let config = config(&stream);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut reading = reader.read(&split(), &at(3), None).await.unwrap();
    assert_eq!(until(&mut reading, |read| read.ids.len() == 3).await.ids, [2, 3, 4]);
    stream.publish(5..8).await;
    assert_eq!(until(&mut reading, |read| read.ids.len() == 3).await.ids, [5, 6, 7]);
    assert_eq!(stream.client.consumers(&stream.name).await, 1);
    drop(reading);
    nothing_left(&stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_and_purged_messages_are_passed_over_to_the_very_end() {
    let stream = Stream::new("gaps").await;
    stream.publish(0..10).await;
    let config = bounded(&stream);
    let definition = pin(&config).await.unwrap();
    for sequence in [3, 4, 7, 9, 10] {
        stream.client.delete_message(&stream.name, sequence).await;
    }
    let read = read_all(&config, &definition).await;
    assert_eq!((read.ids, read.done), (vec![0, 1, 4, 5, 7], Some(11)));
    // Continuous: what was latest is reached although its message has gone.
    let reader = open(&config, &definition).await;
    let latest = reader.latest(&split()).await.unwrap().unwrap();
    assert_eq!(latest, at(11).into());
    let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
    let read = until(&mut reading, |read| read.next == Some(11)).await;
    assert_eq!(read.ids, [0, 1, 4, 5, 7]);
    assert_eq!(reader.has_data(&split(), &at(9)).await, Ok(segue_connect::HasData::No));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_sees_its_subjects_and_passes_the_others() {
    let stream = Stream::new("filter").await;
    let rows: Vec<String> = (0..6).map(row).collect();
    let subjects = ["a.1", "b.1", "a.2", "c.1", "b.2", "b.3"];
    let messages: Vec<(&str, &str)> =
        subjects.iter().copied().zip(rows.iter().map(String::as_str)).collect();
    stream.publish_to(&messages).await;
    let name = &stream.name;
    for (subject, expected) in [
        (format!("{name}.a.*"), vec![0, 2]),
        (format!("{name}.a.*, {name}.c.>"), vec![0, 2, 3]),
        (format!("{name}.nobody"), vec![]),
    ] {
        let bounded = of_subject(bounded(&stream), subject.clone());
        let definition = pin(&bounded).await.unwrap();
        let read = read_all(&bounded, &definition).await;
        assert_eq!((read.ids, read.done), (expected.clone(), Some(7)), "{subject}");
        // And without an end, the position passes what others wrote.
        let reader = open(&of_subject(config(&stream), subject.clone()), &definition).await;
        let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
        let read = until(&mut reading, |read| read.next == Some(7)).await;
        assert_eq!(read.ids, expected, "{subject}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_hands_over_to_the_live_stream_without_gap_or_overlap() {
    let stream = Stream::new("over").await;
    stream.publish(0..1000).await;
    let history = bounded(&stream);
    let definition = pin(&history).await.unwrap();
    let live = ReadConfig { start: Start::Handoff, ..config(&stream) };
    let live_definition = pin(&live).await.unwrap();
    stream.publish(1000..1500).await;
    let read = read_all(&history, &definition).await;
    let handoff = Handoff {
        kind: HandoffKind::LogEnds,
        identity: definition.identity.clone(),
        ends: vec![(split(), at(read.done.unwrap()))],
    };
    let starts = NatsConnector.derive_starts(&live, &live_definition, &handoff).await.unwrap();
    let reader = open(&live, &live_definition).await;
    let mut reading = reader.read(&split(), &starts[0].1, None).await.unwrap();
    stream.publish(1500..2000).await;
    let mut ids = read.ids;
    ids.extend(until(&mut reading, |read| read.ids.len() == 1000).await.ids);
    assert_eq!(ids, (0..2000).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn upserts_put_and_remove_by_what_the_wildcard_stands_for() {
    let stream = Stream::new("upsert").await;
    let name = stream.name.clone();
    let publish = async |key: &str, payload: &str, headers: &[(&str, &str)]| {
        let (subject, payload) = (format!("{name}.{key}"), payload.to_owned());
        stream.client.publish_all([Publish { subject: &subject, payload, headers }]).await;
    };
    publish("1", r#"{"id":1,"v":"a"}"#, &[]).await;
    publish("2", r#"{"v":"b"}"#, &[]).await;
    publish("2", "", &[]).await;
    publish("1", "ignored", &[("KV-Operation", "DEL")]).await;
    publish("x", "", &[]).await;
    publish("3", r#"{"v":"c"}"#, &[]).await;
    publish("3", "", &[("KV-Operation", "PURGE")]).await;
    let mut config = bounded(&stream);
    config.format.rows = RowFormat::Upsert;
    config.key = vec![0];
    let read = read_all(&config, &pin(&config).await.unwrap()).await;
    assert_eq!(read.ids, [1, 2, 2, 1, 3, 3]);
    let (put, remove) = (Op::Put, Op::Remove);
    assert_eq!(read.ops, [put, put, remove, remove, put, remove]);
    let places: Vec<&str> = read.rejected.iter().map(|bad| bad.position.as_str()).collect();
    assert_eq!(places, ["5"], "a key that is no number");
    config.key = vec![0, 1];
    let error = NatsConnector.describe(&config).unwrap_err();
    assert!(error.to_string().contains("one column only"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_of_newest_values_is_read_although_old_ones_go() {
    let stream = Stream::with("bucket", json!({ "max_msgs_per_subject": 1 })).await;
    let config = config(&stream);
    let definition = pin(&config).await.unwrap();
    for version in 0..20 {
        let row = row(version);
        stream.publish_to(&[("k", row.as_str()), ("other", row.as_str())]).await;
    }
    let reader = open(&config, &definition).await;
    let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
    let read = until(&mut reading, |read| read.next == Some(41)).await;
    assert_eq!(read.ids, [19, 19], "the newest of each subject");
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_hold_what_nats_keeps_beside_the_payload() {
    let stream = Stream::new("includes").await;
    let subject = format!("{}.k.ey", stream.name);
    let headers = [("h", "1"), ("other", "x"), ("h", "2")];
    let message = Publish { subject: &subject, payload: row(7), headers: &headers };
    stream.client.publish_all([message]).await;
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
    let mut config = bounded(&stream);
    let mut fields = config.schema.fields().to_vec();
    for (kind, ty) in kinds {
        let column = format!("c{}", fields.len());
        fields.push(Arc::new(ty.field(&column, true)));
        config.includes.push(Include { kind, column });
    }
    config.schema = Arc::new(Schema::new(fields));
    NatsConnector.describe(&config).unwrap();
    let definition = pin(&config).await.unwrap();
    // Not in the schema's order.
    let projection = [9, 0, 2, 3, 4, 5, 6, 7, 8];
    let reader = NatsConnector.open(&config, &definition, &projection).await.unwrap();
    let mut reading = reader.read(&split(), &at(1), Some(&at(2))).await.unwrap();
    let read = until_done(&mut reading).await;
    let batch = &read.batches[0];
    assert_eq!(batch.column(0).as_string::<i32>().value(0), "live");
    assert_eq!(batch.column(1).as_primitive::<Int64Type>().values(), &[7]);
    assert_eq!(batch.column(2).as_string::<i32>().value(0), "k.ey");
    assert_eq!(batch.column(3).as_primitive::<Int32Type>().values(), &[0]);
    assert_eq!(batch.column(4).as_primitive::<Int64Type>().values(), &[1]);
    let micros = stream.client.time_ms(&stream.name, 1).await * 1000;
    assert_eq!(batch.column(5).as_primitive::<TimestampMicrosecondType>().value(0), micros);
    assert_eq!(batch.column(6).as_binary::<i32>().value(0), b"2", "the last of its name");
    let expected = r#"[{"key": "h", "value": "1"}, {"key": "h", "value": "2"}, {"key": "other""#;
    let headers = batch.column(7).as_string::<i32>().value(0);
    assert!(headers.starts_with(expected), "{headers}");
    assert_eq!(batch.column(8).as_string::<i32>().value(0), r#"{"v": "v7", "id": 7}"#);
    assert!(!batch.column(8).is_null(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_message_is_set_aside_or_ends_the_read_at_its_place() {
    let stream = Stream::new("poison").await;
    let rows: Vec<String> = (0..3).map(row).collect();
    stream
        .publish_to(&[
            ("a", &rows[0]),
            ("a", "{broken"),
            ("a", &rows[1]),
            ("a", ""),
            ("a", &rows[2]),
        ])
        .await;
    let config = bounded(&stream);
    let definition = pin(&config).await.unwrap();
    let read = read_all(&config, &definition).await;
    assert_eq!((read.ids, read.done), (vec![0, 1, 2], Some(6)));
    let places: Vec<(&str, &[u8])> =
        read.rejected.iter().map(|bad| (bad.position.as_str(), bad.payload.as_slice())).collect();
    assert_eq!(places, [("2", &b"{broken"[..]), ("4", &b""[..])]);
    let config = ReadConfig { on_error: OnError::Fail, ..config };
    let reader = open(&config, &definition).await;
    let mut reading = reader.read(&split(), &at(1), Some(&at(6))).await.unwrap();
    let (read, error) = until_error(&mut reading).await;
    assert_eq!((read.ids, read.next), (vec![0], Some(2)), "rows before it are delivered");
    let ConnectError::Malformed { position, .. } = error else { panic!("{error}") };
    assert_eq!(position, at(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_expired_is_an_error_and_never_a_jump() {
    let stream = Stream::new("gone").await;
    stream.publish(0..10).await;
    let config = config(&stream);
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    stream.client.purge(&stream.name, json!({ "seq": 7 })).await;
    let mut reading = reader.read(&split(), &at(5), None).await.unwrap();
    let (read, error) = until_error(&mut reading).await;
    let ConnectError::Expired { position, available, .. } = error else { panic!("{error}") };
    assert_eq!((read.ids, position, available), (vec![], at(5), at(7)));
    let mut reading = reader.read(&split(), &at(12), None).await.unwrap();
    let (_, error) = until_error(&mut reading).await;
    let ConnectError::Truncated { position, end, .. } = error else { panic!("{error}") };
    assert_eq!((position, end), (at(12), at(11)));
    nothing_left(&stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_expires_while_the_reader_waits_is_not_passed_over() {
    let stream = Stream::new("slow").await;
    stream.publish(0..30_000).await;
    let config = config(&stream);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
    // Some are read; then the engine has no room, and retention overtakes the reader.
    let first = until(&mut reading, |read| !read.ids.is_empty()).await;
    stream.client.purge(&stream.name, json!({ "keep": 10 })).await;
    let (rest, error) = until_error(&mut reading).await;
    let ids: Vec<i64> = first.ids.into_iter().chain(rest.ids).collect();
    assert!(
        ids.len() < 30_000 && ids == (0..i64::try_from(ids.len()).unwrap()).collect::<Vec<_>>()
    );
    let ConnectError::Expired { available, .. } = error else { panic!("{error}") };
    assert_eq!(available, at(29_991));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_made_again_under_its_name_is_not_read_on() {
    let stream = Stream::new("again").await;
    stream.publish(0..3).await;
    let config = config(&stream);
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
    until(&mut reading, |read| read.ids.len() == 3).await;
    stream.client.delete_stream(&stream.name).await;
    stream.client.create_stream(&stream.name, &[&format!("{}.>", stream.name)], json!({})).await;
    // More than the old one had, so that the old position is in range.
    stream.publish(100..200).await;
    let (read, error) = until_error(&mut reading).await;
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    assert!(read.ids.is_empty(), "nothing of the new stream was delivered");
    let error = NatsConnector.check(&config, &definition, &[(split(), at(4))]).await.unwrap_err();
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    stream.client.delete_stream(&stream.name).await;
    let error = reader.latest(&split()).await.unwrap_err();
    assert!(matches!(error, ConnectError::Missing { .. }), "{error}");
    let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
    let (_, error) = until_error(&mut reading).await;
    assert!(matches!(error, ConnectError::Missing { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_come_one_by_one() {
    let stream = Stream::new("large").await;
    let payload = |id: i64| format!(r#"{{"id":{id},"v":"{}"}}"#, "x".repeat(900_000));
    let payloads: Vec<String> = (0..30).map(payload).collect();
    let messages: Vec<(&str, &str)> = payloads.iter().map(|text| ("a", text.as_str())).collect();
    stream.publish_to(&messages).await;
    let config = bounded(&stream);
    let read = read_all(&config, &pin(&config).await.unwrap()).await;
    assert_eq!(read.ids, (0..30).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_reads_of_one_stream_do_not_disturb_each_other() {
    let stream = Stream::new("two").await;
    stream.publish(0..10_000).await;
    let config = config(&stream);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut one = reader.read(&split(), &at(1), None).await.unwrap();
    let mut other = reader.read(&split(), &at(5_001), None).await.unwrap();
    let (one, other) = in_time("both", async {
        tokio::join!(
            until(&mut one, |read| read.ids.len() == 10_000),
            until(&mut other, |read| read.ids.len() == 5_000),
        )
    })
    .await;
    assert_eq!(one.ids, (0..10_000).collect::<Vec<i64>>());
    assert_eq!(other.ids, (5_000..10_000).collect::<Vec<i64>>());
}
