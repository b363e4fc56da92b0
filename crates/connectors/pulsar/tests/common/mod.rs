//! What the Pulsar tests share: a broker per test binary, a read configuration to vary, readers that collect.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::allow_attributes, reason = "what one binary does not use, another does")]

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use segue_connect::{ConnectError, ReadConfig, ReadDefinition, SplitReader, StageReader};
use segue_connector_pulsar::PulsarConnector;
use segue_testkit::pulsar::PulsarServer;
use segue_testkit::reading;
pub use segue_testkit::reading::{DEADLINE, in_time, row, rows, split};
use segue_types::{Position, SplitId};

/// The broker of this test binary.
pub fn broker() -> &'static PulsarServer {
    static BROKER: OnceLock<PulsarServer> = OnceLock::new();
    BROKER.get_or_init(PulsarServer::start)
}

/// A new topic of the shared broker, under a name that no other test uses.
pub fn topic(of: &str, partitions: u32) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("{of}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    broker().create_topic(&name, partitions);
    name
}

/// `(id bigint not null, v text)` as FORMAT PLAIN ENCODE JSON, from the earliest message on, without an end.
pub fn config(topic: &str) -> ReadConfig {
    config_of(broker(), topic)
}

/// The same of another broker.
pub fn config_of(server: &PulsarServer, topic: &str) -> ReadConfig {
    reading::config(&[("service.url", &server.url()), ("topic", topic)])
}

/// The same, up to what is there now.
pub fn bounded(topic: &str) -> ReadConfig {
    reading::bounded(config(topic))
}

pub fn at(place: &str) -> Position {
    Position::new(place)
}

pub fn offsets(pairs: &[(u32, &str)]) -> BTreeMap<SplitId, String> {
    pairs.iter().map(|(p, place)| (split(*p), (*place).to_owned())).collect()
}

/// The place of the message behind one that travels alone or is the last of its batch.
pub fn after(place: &str) -> String {
    let mut parts = place.split(':');
    let (ledger, entry) = (parts.next().unwrap(), parts.next().unwrap());
    format!("{ledger}:{}:0", entry.parse::<u64>().unwrap() + 1)
}

pub type Collected = reading::Collected<String>;

pub async fn pin(config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
    reading::pin(&PulsarConnector, config).await
}

pub async fn open(config: &ReadConfig, definition: &ReadDefinition) -> Box<dyn StageReader> {
    reading::open(&PulsarConnector, config, definition).await
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

pub fn starts(definition: &ReadDefinition) -> Vec<String> {
    reading::starts(definition)
}

pub fn bounds(definition: &ReadDefinition) -> Vec<String> {
    reading::bounds(definition)
}

/// Reads every split of a bounded definition from its start to its end, by partition.
pub async fn read_all(config: &ReadConfig, definition: &ReadDefinition) -> Vec<Collected> {
    reading::read_all(&PulsarConnector, config, definition).await
}
