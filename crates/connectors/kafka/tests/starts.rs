//! Where reads start and end: every kind of start and stop against a real broker, resolved once, refused when
//! it cannot hold.

mod common;

use common::{at, bounded, bounds, broker, config, offsets, open, pin, rows, split, starts, topic};
use segue_connect::{
    ConnectError, Connector as _, Handoff, HandoffKind, HasData, ReadConfig, SplitStart, Start,
    Stop,
};
use segue_connector_kafka::KafkaConnector;
use segue_testkit::kafka::Record;
use segue_types::PositionOrder;

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_start_becomes_a_number() {
    let topic = topic("starts", 2);
    let values: Vec<String> = rows(0..10).collect();
    let record = |(i, value): (i64, &'_ String)| (i * 1000, value.clone());
    let timed: Vec<(i64, String)> = (0..).zip(&values).map(record).collect();
    broker().produce_all(&topic, timed.iter().map(|(ms, value)| Record::value(value).at(*ms)));
    broker().delete_records(&topic, 0, 2);
    let started = async |start| {
        let config = ReadConfig { start, ..config(broker(), &topic) };
        starts(&pin(&config).await.unwrap())
    };
    assert_eq!(started(Start::Earliest).await, [2, 0]);
    assert_eq!(started(Start::Latest).await, [10, 0]);
    assert_eq!(started(Start::Timestamp { unix_ms: 4500 }).await, [5, 0]);
    assert_eq!(
        started(Start::Timestamp { unix_ms: 9001 }).await,
        [10, 0],
        "no record is that young"
    );
    assert_eq!(started(Start::Timestamp { unix_ms: -1 }).await, [2, 0]);
    assert_eq!(
        started(Start::Offsets(offsets(&[(0, 7)]))).await,
        [7, 0],
        "others from the beginning"
    );
    assert_eq!(started(Start::Offsets(offsets(&[(0, 10)]))).await, [10, 0], "the end is a start");
    let config = ReadConfig { start: Start::Handoff, ..config(broker(), &topic) };
    let definition = pin(&config).await.unwrap();
    assert!(definition.splits.iter().all(|split| split.start == SplitStart::FromHandoff));
    assert!(!definition.sealed);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_stop_becomes_a_bound() {
    let topic = topic("stops", 1);
    let values: Vec<String> = rows(0..10).collect();
    let timed = (1..).zip(&values).map(|(i, value)| Record::value(value).at(i * 1000));
    broker().produce_all(&topic, timed);
    let bound = async |start, stop| {
        let config = ReadConfig { start, stop: Some(stop), ..config(broker(), &topic) };
        let definition = pin(&config).await.unwrap();
        assert!(definition.sealed);
        bounds(&definition)
    };
    assert_eq!(bound(Start::Earliest, Stop::Latest).await, [10]);
    assert_eq!(bound(Start::Earliest, Stop::Timestamp { unix_ms: 3000 }).await, [2]);
    assert_eq!(bound(Start::Earliest, Stop::Offsets(offsets(&[(0, 4)]))).await, [4]);
    assert_eq!(
        bound(Start::Latest, Stop::Offsets(offsets(&[(0, 4)]))).await,
        [10],
        "an empty range"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_hold_is_refused_with_what_is_there() {
    let topic = topic("refused", 1);
    broker().produce_values(&topic, 1, rows(0..10));
    broker().delete_records(&topic, 0, 5);
    let refused = async |pairs: &[(i32, i64)]| {
        let start = Start::Offsets(offsets(pairs));
        pin(&ReadConfig { start, ..config(broker(), &topic) }).await.unwrap_err()
    };
    let error = refused(&[(0, 4)]).await;
    let ConnectError::Expired { position, available, .. } = error else { panic!("{error}") };
    assert_eq!((position, available), (at(4), at(5)));
    let error = refused(&[(0, 11)]).await;
    let ConnectError::Truncated { position, end, .. } = error else { panic!("{error}") };
    assert_eq!((position, end), (at(11), at(10)));
    let error = refused(&[(1, 0)]).await;
    assert_eq!(error.to_string(), format!("partition 1 of topic \"{topic}\" does not exist"));
    let stop = Some(Stop::Offsets(offsets(&[])));
    let error = pin(&ReadConfig { stop, ..config(broker(), &topic) }).await.unwrap_err();
    assert!(error.to_string().contains("does not name partition 0"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_inside_an_open_transaction_is_inside_the_log() {
    let topic = topic("open-start", 1);
    broker().produce_values(&topic, 1, rows(0..3));
    let mut transaction = broker().begin(&topic, &topic);
    transaction.write([Record::value("{}"), Record::value("{}")]);
    let start = Start::Offsets(offsets(&[(0, 4)]));
    let config = ReadConfig { start, ..config(broker(), &topic) };
    assert_eq!(starts(&pin(&config).await.unwrap()), [4]);
    transaction.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_or_misconfigured_is_told_apart() {
    let error = pin(&config(broker(), "no-such-topic")).await.unwrap_err();
    assert_eq!(error, ConnectError::Missing { what: "topic \"no-such-topic\"".to_owned() });
    let describe = |name: &str, value: &str| {
        let mut config = config(broker(), "t");
        config.options.0.insert(name.to_owned(), value.to_owned());
        KafkaConnector::new().describe(&config).unwrap_err().to_string()
    };
    assert!(describe("properties.no.such", "1").contains("properties.no.such"));
    assert!(describe("properties.isolation.level", "read_uncommitted").contains("cannot be set"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handoff_becomes_starts_and_is_checked() {
    let topic = topic("derived", 2);
    broker().produce_values(&topic, 2, rows(0..20));
    let config = ReadConfig { start: Start::Handoff, ..config(broker(), &topic) };
    let definition = pin(&config).await.unwrap();
    let derive = async |kind, identity: &str, ends: &[(i32, i64)]| {
        let ends = ends.iter().map(|(p, offset)| (split(*p), at(*offset))).collect();
        let handoff = Handoff { kind, identity: identity.to_owned(), ends };
        KafkaConnector::new().derive_starts(&config, &definition, &handoff).await
    };
    let same = definition.identity.as_str();
    let derived = derive(HandoffKind::LogEnds, same, &[(0, 10), (1, 4)]).await;
    assert_eq!(derived, Ok(vec![(split(0), at(10)), (split(1), at(4))]));
    let derived = derive(HandoffKind::Columns, "a database", &[(1, 4)]).await;
    assert_eq!(derived, Ok(vec![(split(0), at(0)), (split(1), at(4))]));
    let error = derive(HandoffKind::LogEnds, "another", &[(0, 10)]).await.unwrap_err();
    assert!(error.to_string().contains("another log"), "{error}");
    derive(HandoffKind::Query, "", &[(2, 0)]).await.expect_err("there is no partition 2");
    derive(HandoffKind::Query, "", &[(0, 11)]).await.expect_err("11 lies beyond the end");
    broker().delete_records(&topic, 0, 3);
    let error = derive(HandoffKind::Query, "", &[(1, 4)]).await.unwrap_err();
    assert!(matches!(error, ConnectError::Expired { .. }), "what was first has gone: {error}");
    broker().add_partitions(&topic, 3);
    let derived = derive(HandoffKind::Query, "", &[(0, 3), (1, 4)]).await.unwrap();
    assert_eq!(derived[2], (split(2), at(0)), "a later partition starts at its beginning");
}

#[tokio::test(flavor = "multi_thread")]
async fn latest_and_has_data_answer_from_the_watermarks() {
    let topic = topic("latest", 2);
    broker().produce_values(&topic, 1, rows(0..5));
    let config = bounded(broker(), &topic);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    assert_eq!(reader.latest(&split(0)).await, Ok(Some(at(5).into())));
    assert_eq!(reader.has_data(&split(0), &at(4)).await, Ok(HasData::Yes));
    assert_eq!(reader.has_data(&split(0), &at(5)).await, Ok(HasData::No));
    assert_eq!(reader.has_data(&split(1), &at(0)).await, Ok(HasData::No));
    broker().delete_records(&topic, 0, 5);
    assert_eq!(reader.has_data(&split(0), &at(0)).await, Ok(HasData::No));
    let kafka = KafkaConnector::new();
    assert_eq!(kafka.compare(&at(9), &at(10)), PositionOrder::Less);
}
