//! Where reads start and end: every kind of start and stop against a real server, resolved once, refused when
//! it cannot hold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Stream, at, bound, bounded, config, offsets, open, pin, split, start};
use segue_connect::{
    ConnectError, Connector as _, Handoff, HandoffKind, HasData, ReadConfig, SplitStart, Start,
    Stop,
};
use segue_connector_nats::NatsConnector;
use segue_testkit::nats::{NatsServer, PASSWORD, USER};
use segue_types::PositionOrder;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_start_and_stop_becomes_a_sequence() {
    let stream = Stream::new("starts").await;
    stream.publish(0..10).await;
    stream.client.purge(&stream.name, json!({ "seq": 3 })).await;
    let started = async |start_at| {
        start(&pin(&ReadConfig { start: start_at, ..config(&stream) }).await.unwrap())
    };
    assert_eq!(started(Start::Earliest).await, 3);
    assert_eq!(started(Start::Latest).await, 11);
    // A millisecond may hold several messages: the first of them is the start.
    let unix_ms = stream.client.time_ms(&stream.name, 6).await;
    let found = started(Start::Timestamp { unix_ms }).await;
    assert!((3..=6).contains(&found), "{found}");
    assert!(found == 3 || stream.client.time_ms(&stream.name, found - 1).await < unix_ms);
    assert_eq!(started(Start::Timestamp { unix_ms: unix_ms + 3_600_000 }).await, 11);
    assert_eq!(started(Start::Timestamp { unix_ms: -1 }).await, 3);
    assert_eq!(started(Start::Offsets(offsets(7))).await, 7);
    assert_eq!(started(Start::Offsets(offsets(11))).await, 11, "the end is a start");
    let stopped = async |stop| {
        let definition = pin(&ReadConfig { stop: Some(stop), ..config(&stream) }).await.unwrap();
        assert!(definition.sealed);
        bound(&definition)
    };
    assert_eq!(stopped(Stop::Latest).await, 11);
    assert_eq!(stopped(Stop::Offsets(offsets(4))).await, 4);
    assert_eq!(stopped(Stop::Timestamp { unix_ms }).await, found);
    let empty = ReadConfig {
        start: Start::Latest,
        stop: Some(Stop::Offsets(offsets(4))),
        ..config(&stream)
    };
    assert_eq!(bound(&pin(&empty).await.unwrap()), 11, "an empty range");
    let handoff = ReadConfig { start: Start::Handoff, ..config(&stream) };
    let definition = pin(&handoff).await.unwrap();
    assert!(definition.splits[0].start == SplitStart::FromHandoff && !definition.sealed);
    assert_eq!(stream.client.consumers(&stream.name).await, 0, "questions leave nothing behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_hold_is_refused_with_what_is_there() {
    let stream = Stream::new("refused").await;
    stream.publish(0..10).await;
    stream.client.purge(&stream.name, json!({ "seq": 5 })).await;
    let refused = async |sequence| {
        let start = Start::Offsets(offsets(sequence));
        pin(&ReadConfig { start, ..config(&stream) }).await.unwrap_err()
    };
    let error = refused(4).await;
    let ConnectError::Expired { position, available, .. } = error else { panic!("{error}") };
    assert_eq!((position, available), (at(4), at(5)));
    let error = refused(12).await;
    let ConnectError::Truncated { position, end, .. } = error else { panic!("{error}") };
    assert_eq!((position, end), (at(12), at(11)));
    let stop = Some(Stop::Offsets([].into()));
    let error = pin(&ReadConfig { stop, ..config(&stream) }).await.unwrap_err();
    assert!(error.to_string().contains("does not name split 0"), "{error}");
    let mut wrong = config(&stream);
    wrong.start = Start::Offsets([(segue_types::SplitId::new("1"), "3".to_owned())].into());
    let error = NatsConnector.describe(&wrong).unwrap_err();
    assert!(error.to_string().contains("\"1\" is not a split"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_and_emptied_streams_have_a_start_an_end_and_no_data() {
    let stream = Stream::new("empty").await;
    let definition = pin(&bounded(&stream)).await.unwrap();
    assert_eq!((start(&definition), bound(&definition)), (1, 1));
    let reader = open(&config(&stream), &definition).await;
    assert_eq!(reader.latest(&split()).await, Ok(Some(at(1).into())));
    assert_eq!(reader.has_data(&split(), &at(1)).await, Ok(HasData::No));
    stream.publish(0..3).await;
    assert_eq!(reader.latest(&split()).await, Ok(Some(at(4).into())));
    assert_eq!(reader.has_data(&split(), &at(3)).await, Ok(HasData::Yes));
    assert_eq!(reader.has_data(&split(), &at(4)).await, Ok(HasData::No));
    stream.client.purge(&stream.name, json!({})).await;
    let definition = pin(&bounded(&stream)).await.unwrap();
    assert_eq!((start(&definition), bound(&definition)), (4, 4));
    assert_eq!(reader.latest(&split()).await, Ok(Some(at(4).into())));
    assert_eq!(reader.has_data(&split(), &at(1)).await, Ok(HasData::No));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_is_found_by_its_subject_and_must_be_one() {
    let (one, other) = (Stream::new("found").await, Stream::new("found").await);
    let mut unnamed = config(&one);
    unnamed.options.0.remove("stream");
    let definition = pin(&unnamed).await.unwrap();
    assert!(definition.identity.contains(&one.name), "{}", definition.identity);
    let both = format!("{}.>, {}.>", one.name, other.name);
    let error = pin(&common::of_subject(unnamed.clone(), both)).await.unwrap_err();
    assert!(error.to_string().contains("several streams"), "{error}");
    let error = pin(&common::of_subject(unnamed, "nobody.x".to_owned())).await.unwrap_err();
    assert_eq!(error.to_string(), "a stream with subject \"nobody.x\" does not exist");
    let mut wrong = config(&one);
    wrong.options.0.insert("stream".to_owned(), "nothing".to_owned());
    let error = pin(&wrong).await.unwrap_err();
    assert_eq!(error.to_string(), "stream \"nothing\" does not exist");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_drops_what_was_read_is_refused() {
    let stream = Stream::with("work", json!({ "retention": "workqueue" })).await;
    let error = pin(&config(&stream)).await.unwrap_err();
    assert!(error.to_string().contains("retention \"workqueue\""), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handoff_is_taken_from_the_same_stream_only() {
    let (stream, other) = (Stream::new("handoff").await, Stream::new("handoff").await);
    stream.publish(0..10).await;
    let live = ReadConfig { start: Start::Handoff, ..config(&stream) };
    let definition = pin(&live).await.unwrap();
    let foreign = pin(&config(&other)).await.unwrap();
    let from = |identity: &str, kind, ends| Handoff { kind, identity: identity.to_owned(), ends };
    let ends = vec![(split(), at(6))];
    let same = from(&definition.identity, HandoffKind::LogEnds, ends.clone());
    let starts = NatsConnector.derive_starts(&live, &definition, &same).await.unwrap();
    assert_eq!(starts, [(split(), at(6))]);
    let another = from(&foreign.identity, HandoffKind::LogEnds, ends.clone());
    let error = NatsConnector.derive_starts(&live, &definition, &another).await.unwrap_err();
    assert!(error.to_string().contains("another log"), "{error}");
    let query = from("a database", HandoffKind::Query, ends);
    let starts = NatsConnector.derive_starts(&live, &definition, &query).await.unwrap();
    assert_eq!(starts, [(split(), at(6))]);
    stream.client.purge(&stream.name, json!({ "seq": 8 })).await;
    let error = NatsConnector.derive_starts(&live, &definition, &query).await.unwrap_err();
    assert!(matches!(error, ConnectError::Expired { .. }), "{error}");
    let error = NatsConnector.check(&live, &definition, &[(split(), at(7))]).await.unwrap_err();
    assert!(matches!(error, ConnectError::Expired { .. }), "{error}");
    NatsConnector.check(&live, &definition, &[(split(), at(8))]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_come_in_is_told_so_without_the_password() {
    let guarded = NatsServer::with_password();
    let client = guarded.client().await;
    client.create_stream("S", &["S.>"], json!({})).await;
    let stream = Stream { name: "S".to_owned(), client };
    let mut config = common::config_at(&guarded.url(), &stream);
    let error = pin(&config).await.unwrap_err();
    assert!(matches!(error, ConnectError::Denied { .. }), "{error}");
    let login = [("connect_mode", "user_and_password"), ("username", USER), ("password", PASSWORD)];
    for (name, value) in login {
        config.options.0.insert(name.to_owned(), value.to_owned());
    }
    pin(&config).await.unwrap();
    config.options.0.insert("password".to_owned(), "wr0ng".to_owned());
    let error = pin(&config).await.unwrap_err();
    assert!(matches!(error, ConnectError::Denied { .. }), "{error}");
    assert!(!format!("{:?}", error.to_user_error("live")).contains("wr0ng"), "{error:?}");
    config.options.0.insert("server_url".to_owned(), "nats://u:p4ss@host:1".to_owned());
    let error = NatsConnector.describe(&config).unwrap_err();
    assert!(!format!("{:?}", error.to_user_error("live")).contains("p4ss"), "{error:?}");
}

#[test]
fn positions_compare_as_numbers() {
    assert_eq!(NatsConnector.compare(&at(9), &at(10)), PositionOrder::Less);
    assert_eq!(NatsConnector.compare(&at(10), &at(10)), PositionOrder::Equal);
    let odd = segue_types::Position::new("x");
    assert_eq!(NatsConnector.compare(&odd, &at(1)), PositionOrder::Incomparable);
}
