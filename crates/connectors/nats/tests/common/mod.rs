//! What the NATS tests share: a server per test binary, a read configuration to vary, readers that collect.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::allow_attributes, reason = "what one binary does not use, another does")]

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use segue_connect::{ConnectError, ReadConfig, ReadDefinition, SplitReader, StageReader};
use segue_connector_nats::NatsConnector;
use segue_testkit::nats::{NatsClient, NatsServer, Publish};
use segue_testkit::reading;
pub use segue_testkit::reading::{DEADLINE, in_time, row};
use segue_types::{Position, SplitId};
use serde_json::json;

/// The server of this test binary.
pub fn server() -> &'static NatsServer {
    static SERVER: OnceLock<NatsServer> = OnceLock::new();
    SERVER.get_or_init(NatsServer::start)
}

/// A stream of its own for each test: its name, and `name.>` as its subjects.
pub struct Stream {
    pub name: String,
    pub client: NatsClient,
}

impl Stream {
    pub async fn new(of: &str) -> Stream {
        Stream::with(of, json!({})).await
    }

    /// With more members of its configuration.
    pub async fn with(of: &str, more: serde_json::Value) -> Stream {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{of}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let client = server().client().await;
        client.create_stream(&name, &[&format!("{name}.>")], more).await;
        Stream { name, client }
    }

    /// Publishes rows `ids`, each to a subject of its own.
    pub async fn publish(&self, ids: std::ops::Range<i64>) {
        for id in ids.clone().step_by(5000) {
            let some = id..ids.end.min(id + 5000);
            let rows: Vec<(String, String)> =
                some.map(|id| (format!("{}.{id}", self.name), row(id))).collect();
            let messages = rows.iter().map(|(subject, payload)| Publish {
                subject,
                payload: payload.clone(),
                headers: &[],
            });
            self.client.publish_all(messages).await;
        }
    }

    /// Publishes payloads to subjects below the stream's name.
    pub async fn publish_to(&self, messages: &[(&str, &str)]) {
        for (subject, payload) in messages {
            let subject = format!("{}.{subject}", self.name);
            let payload = (*payload).to_owned();
            self.client.publish_all([Publish { subject: &subject, payload, headers: &[] }]).await;
        }
    }
}

/// `(id bigint not null, v text)` as FORMAT PLAIN ENCODE JSON, from the earliest message on, without an end.
pub fn config(stream: &Stream) -> ReadConfig {
    config_at(&server().url(), stream)
}

/// The same through another address.
pub fn config_at(url: &str, stream: &Stream) -> ReadConfig {
    let subject = format!("{}.>", stream.name);
    reading::config(&[("server_url", url), ("subject", &subject), ("stream", &stream.name)])
}

/// The same, up to what is there now.
pub fn bounded(stream: &Stream) -> ReadConfig {
    reading::bounded(config(stream))
}

/// The same configuration with another subject.
pub fn of_subject(mut config: ReadConfig, subject: String) -> ReadConfig {
    config.options.0.insert("subject".to_owned(), subject);
    config
}

pub fn split() -> SplitId {
    reading::split(0)
}

pub fn at(sequence: u64) -> Position {
    Position::new(sequence.to_string())
}

pub fn offsets(sequence: u64) -> BTreeMap<SplitId, String> {
    [(split(), sequence.to_string())].into()
}

pub type Collected = reading::Collected<u64>;

pub async fn pin(config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
    reading::pin(&NatsConnector, config).await
}

pub async fn open(config: &ReadConfig, definition: &ReadDefinition) -> Box<dyn StageReader> {
    reading::open(&NatsConnector, config, definition).await
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

/// The start of a definition.
pub fn start(definition: &ReadDefinition) -> u64 {
    reading::starts(definition)[0]
}

/// The bound of a definition.
pub fn bound(definition: &ReadDefinition) -> u64 {
    reading::bounds(definition)[0]
}

/// Reads a bounded definition from its start to its end.
pub async fn read_all(config: &ReadConfig, definition: &ReadDefinition) -> Collected {
    reading::read_all(&NatsConnector, config, definition).await.remove(0)
}
