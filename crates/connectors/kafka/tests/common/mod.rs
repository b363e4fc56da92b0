//! What the Kafka tests share: a broker per test binary, a read configuration to vary, readers that collect.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::allow_attributes, reason = "what one binary does not use, another does")]

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use segue_connect::{
    ConnectError, ReadConfig, ReadDefinition, ReadEvent, SplitReader, StageReader,
};
use segue_connector_kafka::KafkaConnector;
use segue_testkit::kafka::KafkaServer;
use segue_testkit::reading;
pub use segue_testkit::reading::{DEADLINE, in_time, row, rows, split};
use segue_types::{Position, SplitId};

/// The broker of this test binary.
pub fn broker() -> &'static KafkaServer {
    static BROKER: OnceLock<KafkaServer> = OnceLock::new();
    BROKER.get_or_init(KafkaServer::start)
}

/// A name that no other test uses.
pub fn topic_name(of: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{of}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A new topic of the shared broker.
pub fn topic(of: &str, partitions: i32) -> String {
    let name = topic_name(of);
    broker().create_topic(&name, partitions, &[]);
    name
}

/// `(id bigint not null, v text)` as FORMAT PLAIN ENCODE JSON, from the earliest record on, without an end.
pub fn config(server: &KafkaServer, topic: &str) -> ReadConfig {
    reading::config(&[("topic", topic), ("properties.bootstrap.server", &server.bootstrap())])
}

/// The same, up to what is there now.
pub fn bounded(server: &KafkaServer, topic: &str) -> ReadConfig {
    reading::bounded(config(server, topic))
}

/// The same with FORMAT UPSERT, keyed by `id`.
pub fn upsert(server: &KafkaServer, topic: &str) -> ReadConfig {
    reading::upsert(config(server, topic))
}

pub fn at(offset: i64) -> Position {
    Position::new(offset.to_string())
}

pub fn offsets(pairs: &[(i32, i64)]) -> BTreeMap<SplitId, String> {
    pairs.iter().map(|(p, offset)| (split(*p), offset.to_string())).collect()
}

pub type Collected = reading::Collected<i64>;

pub async fn pin(config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
    reading::pin(&KafkaConnector::new(), config).await
}

pub async fn open(config: &ReadConfig, definition: &ReadDefinition) -> Box<dyn StageReader> {
    reading::open(&KafkaConnector::new(), config, definition).await
}

pub async fn until_done(reader: &mut Box<dyn SplitReader>) -> Collected {
    reading::until_done(reader).await
}

pub async fn until(
    reader: &mut Box<dyn SplitReader>,
    enough: impl Fn(&Collected) -> bool,
) -> Collected {
    reading::until(reader, enough).await
}

pub async fn until_error(reader: &mut Box<dyn SplitReader>) -> (Collected, ConnectError) {
    reading::until_error(reader).await
}

pub fn starts(definition: &ReadDefinition) -> Vec<i64> {
    reading::starts(definition)
}

pub fn bounds(definition: &ReadDefinition) -> Vec<i64> {
    reading::bounds(definition)
}

/// Reads every split of a bounded definition from its start to its end, by partition.
pub async fn read_all(config: &ReadConfig, definition: &ReadDefinition) -> Vec<Collected> {
    reading::read_all(&KafkaConnector::new(), config, definition).await
}

/// The ids of one delivery.
pub fn ids_of(event: ReadEvent) -> Vec<i64> {
    let mut collected = Collected::default();
    collected.add(event);
    collected.ids
}
