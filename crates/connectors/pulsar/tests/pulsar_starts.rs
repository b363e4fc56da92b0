//! Where reads start and end: every kind of start and stop against a real broker, resolved once, refused when it
//! cannot hold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{
    after, at, bounded, bounds, broker, config, offsets, open, pin, rows, split, starts, topic,
};
use segue_connect::{
    ConnectError, Connector as _, Handoff, HandoffKind, HasData, ReadConfig, SplitStart, Start,
    Stop,
};
use segue_connector_pulsar::PulsarConnector;
use segue_testkit::pulsar::Batching;
use segue_types::PositionOrder;

/// Now, in milliseconds since 1970, and not the same as before.
fn next_ms() -> i64 {
    let now = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        i64::try_from(since.unwrap().as_millis()).unwrap()
    };
    let before = now();
    segue_testkit::wait::wait_for("a millisecond", common::DEADLINE, || {
        let now = now();
        (now > before + 1).then_some(now)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_start_and_stop_becomes_a_place() {
    let topic = topic("starts", 0);
    let early = broker().produce(&topic, rows(0..3), Batching::Single);
    let unix_ms = next_ms();
    let late = broker().produce(&topic, rows(3..5), Batching::Single);
    let started = async |start| {
        let config = ReadConfig { start, ..config(&topic) };
        starts(&pin(&config).await.unwrap()).remove(0)
    };
    let end = after(&late[1]);
    assert_eq!(started(Start::Earliest).await, early[0]);
    assert_eq!(started(Start::Latest).await, end);
    assert_eq!(started(Start::Timestamp { unix_ms }).await, late[0]);
    assert_eq!(started(Start::Timestamp { unix_ms: 0 }).await, early[0]);
    assert_eq!(started(Start::Timestamp { unix_ms: unix_ms + 3_600_000 }).await, end);
    assert_eq!(started(Start::Offsets(offsets(&[(0, &early[1])]))).await, early[1]);
    assert_eq!(started(Start::Offsets(offsets(&[(0, &end)]))).await, end, "the end is a start");
    let stopped = async |start, stop| {
        let config = ReadConfig { start, stop: Some(stop), ..config(&topic) };
        let definition = pin(&config).await.unwrap();
        assert!(definition.sealed);
        bounds(&definition).remove(0)
    };
    assert_eq!(stopped(Start::Earliest, Stop::Latest).await, end);
    let stop = || Stop::Offsets(offsets(&[(0, &early[2])]));
    assert_eq!(stopped(Start::Earliest, stop()).await, early[2]);
    assert_eq!(stopped(Start::Latest, stop()).await, end, "an empty range");
    assert_eq!(stopped(Start::Earliest, Stop::Timestamp { unix_ms }).await, late[0]);
    let handoff = ReadConfig { start: Start::Handoff, ..config(&topic) };
    let definition = pin(&handoff).await.unwrap();
    assert!(definition.splits[0].start == SplitStart::FromHandoff && !definition.sealed);
    let path = format!("persistent/public/default/{topic}/subscriptions");
    let left = broker().admin("GET", &path, &serde_json::Value::Null);
    assert_eq!(left, "[]", "questions leave nothing behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_hold_is_refused() {
    let topic = topic("refused", 2);
    let places = broker().produce(&format!("{topic}-partition-0"), rows(0..3), Batching::Single);
    let refused = async |pairs: &[(u32, &str)]| {
        let start = Start::Offsets(offsets(pairs));
        pin(&ReadConfig { start, ..config(&topic) }).await.unwrap_err()
    };
    let beyond = after(&after(&places[2]));
    let error = refused(&[(0, &beyond)]).await;
    let ConnectError::Truncated { position, end, .. } = error else { panic!("{error}") };
    assert_eq!((position, end), (at(&beyond), at(&after(&places[2]))));
    let error = refused(&[(2, "1:0")]).await;
    assert!(error.to_string().starts_with("partition 2 of topic"), "{error}");
    let stop = Some(Stop::Offsets(offsets(&[(0, &places[1])])));
    let error = pin(&ReadConfig { stop, ..config(&topic) }).await.unwrap_err();
    assert!(error.to_string().contains("does not name partition 1"), "{error}");
    let error = pin(&config("nothing")).await.unwrap_err();
    assert!(matches!(error, ConnectError::Missing { .. }), "{error:?}");
    let mut elsewhere = config(&topic);
    elsewhere.options.0.insert("service.url".to_owned(), "pulsar://127.0.0.1:1".to_owned());
    let error = pin(&elsewhere).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_topic_has_a_start_an_end_and_no_data() {
    let topic = topic("empty", 2);
    let definition = pin(&bounded(&topic)).await.unwrap();
    assert_eq!(starts(&definition), bounds(&definition));
    for read in common::read_all(&bounded(&topic), &definition).await {
        assert!(read.ids.is_empty() && read.done.is_some());
    }
    let reader = open(&config(&topic), &definition).await;
    let begin = starts(&definition).remove(0);
    assert_eq!(reader.latest(&split(0)).await, Ok(Some(at(&begin).into())));
    assert_eq!(reader.has_data(&split(0), &at(&begin)).await, Ok(HasData::No));
    let places = broker().produce(&format!("{topic}-partition-0"), rows(0..3), Batching::Of(10));
    let end = after(&places[2]);
    assert_eq!(reader.latest(&split(0)).await, Ok(Some(at(&end).into())));
    assert_eq!(reader.has_data(&split(0), &at(&begin)).await, Ok(HasData::Yes));
    assert_eq!(reader.has_data(&split(0), &at(&end)).await, Ok(HasData::No));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handoff_is_taken_from_the_same_topic_only() {
    let topic = topic("handoff", 0);
    let places = broker().produce(&topic, rows(0..5), Batching::Single);
    let live = ReadConfig { start: Start::Handoff, ..config(&topic) };
    let definition = pin(&live).await.unwrap();
    let from = |identity: &str, kind| Handoff {
        kind,
        identity: identity.to_owned(),
        ends: vec![(split(0), at(&places[3]))],
    };
    let same = from(&definition.identity, HandoffKind::LogEnds);
    let starts = PulsarConnector.derive_starts(&live, &definition, &same).await.unwrap();
    assert_eq!(starts, [(split(0), at(&places[3]))]);
    let another = from("another", HandoffKind::LogEnds);
    let error = PulsarConnector.derive_starts(&live, &definition, &another).await.unwrap_err();
    assert!(error.to_string().contains("another log"), "{error}");
    let query = from("a database", HandoffKind::Query);
    let starts = PulsarConnector.derive_starts(&live, &definition, &query).await.unwrap();
    assert_eq!(starts, [(split(0), at(&places[3]))]);
}

#[test]
fn places_compare_by_their_numbers() {
    assert_eq!(PulsarConnector.compare(&at("9:1:0"), &at("10:0:0")), PositionOrder::Less);
    assert_eq!(PulsarConnector.compare(&at("1:2"), &at("1:2:0")), PositionOrder::Equal);
    assert_eq!(PulsarConnector.compare(&at("x"), &at("1:2:0")), PositionOrder::Incomparable);
}
