//! What the NATS tests share: a server per test binary, a read configuration to vary, readers that collect.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::allow_attributes, reason = "what one binary does not use, another does")]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, Schema};
use segue_connect::{
    Changes, ConnectError, Connector as _, Format, OnError, Options, ReadConfig, ReadDefinition,
    ReadEvent, Rejected, RowFormat, SplitReader, SplitStart, StageReader, Start, Stop,
};
use segue_connector_nats::NatsConnector;
use segue_testkit::nats::{NatsClient, NatsServer, Publish};
use segue_types::{Op, Position, SplitId, SqlType};
use serde_json::json;

/// How long anything may take.
pub const DEADLINE: Duration = Duration::from_secs(60);

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
    let options = [
        ("server_url".to_owned(), url.to_owned()),
        ("subject".to_owned(), format!("{}.>", stream.name)),
        ("stream".to_owned(), stream.name.clone()),
    ];
    let columns = [SqlType::BigInt.field("id", false), SqlType::Text.field("v", true)];
    ReadConfig {
        stage: "live".to_owned(),
        options: Options(options.into()),
        format: Format {
            rows: RowFormat::Plain,
            encode: "json".to_owned(),
            options: Options::default(),
        },
        start: Start::Earliest,
        stop: None,
        schema: Arc::new(Schema::new(columns.to_vec())),
        declared_columns: 2,
        key: vec![],
        includes: vec![],
        on_error: OnError::DeadLetter,
    }
}

/// The same, up to what is there now.
pub fn bounded(stream: &Stream) -> ReadConfig {
    ReadConfig { stop: Some(Stop::Latest), ..config(stream) }
}

/// The same configuration with another subject.
pub fn of_subject(mut config: ReadConfig, subject: String) -> ReadConfig {
    config.options.0.insert("subject".to_owned(), subject);
    config
}

/// `{"id": …, "v": …}`.
pub fn row(id: i64) -> String {
    format!(r#"{{"id":{id},"v":"v{id}"}}"#)
}

pub fn split() -> SplitId {
    SplitId::new("0")
}

pub fn at(sequence: u64) -> Position {
    Position::new(sequence.to_string())
}

pub fn offsets(sequence: u64) -> BTreeMap<SplitId, String> {
    [(split(), sequence.to_string())].into()
}

/// Fails a test instead of letting it hang.
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {DEADLINE:?} for {what}"),
    }
}

pub async fn pin(config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
    in_time("pin", NatsConnector.pin(config)).await
}

pub async fn open(config: &ReadConfig, definition: &ReadDefinition) -> Box<dyn StageReader> {
    let all: Vec<usize> = (0..config.schema.fields().len()).collect();
    in_time("open", NatsConnector.open(config, definition, &all)).await.unwrap()
}

/// The start of a definition.
pub fn start(definition: &ReadDefinition) -> u64 {
    match &definition.splits[0].start {
        SplitStart::At(position) => position.as_str().parse().unwrap(),
        SplitStart::FromHandoff => panic!("a handoff will say"),
    }
}

/// The bound of a definition.
pub fn bound(definition: &ReadDefinition) -> u64 {
    definition.splits[0].bound.as_ref().unwrap().as_str().parse().unwrap()
}

/// What a reader delivered.
#[derive(Debug, Default)]
pub struct Collected {
    pub ids: Vec<i64>,
    pub ops: Vec<Op>,
    pub batches: Vec<RecordBatch>,
    pub rejected: Vec<Rejected>,
    /// The last position told.
    pub next: Option<u64>,
    pub done: Option<u64>,
}

impl Collected {
    pub fn add(&mut self, event: ReadEvent) {
        let number = |position: &Position| position.as_str().parse::<u64>().unwrap();
        match event {
            ReadEvent::Rows(rows) => {
                let next = number(&rows.next);
                assert!(self.next.is_none_or(|last| last < next), "positions grow");
                self.next = Some(next);
                self.rejected.extend(rows.rejected);
                self.add_changes(&rows.changes);
            }
            ReadEvent::Progress { next } => {
                assert!(self.next.is_none_or(|last| last < number(&next)), "positions grow");
                self.next = Some(number(&next));
            }
            ReadEvent::Done { at } => self.done = Some(number(&at)),
        }
    }

    fn add_changes(&mut self, changes: &Changes) {
        if let Some(ids) = changes.rows.column_by_name("id") {
            let ids = ids.as_primitive::<Int64Type>();
            assert_eq!(ids.null_count(), 0);
            self.ids.extend(ids.values());
        }
        self.ops.extend((0..changes.rows.num_rows()).filter_map(|row| changes.ops.get(row)));
        self.batches.push(changes.rows.clone());
    }

    /// The texts of a column, over all batches.
    pub fn texts(&self, column: &str) -> Vec<Option<String>> {
        let texts = |batch: &RecordBatch| {
            let column = batch.column_by_name(column).unwrap().as_string::<i32>();
            column.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(texts).collect()
    }
}

/// Reads until the split is done.
pub async fn until_done(reader: &mut Box<dyn SplitReader>) -> Collected {
    let mut collected = Collected::default();
    while collected.done.is_none() {
        collected.add(in_time("the end of the split", reader.next()).await.unwrap());
    }
    collected
}

/// Reads until `enough` holds.
pub async fn until(
    reader: &mut Box<dyn SplitReader>,
    enough: impl Fn(&Collected) -> bool,
) -> Collected {
    let mut collected = Collected::default();
    while !enough(&collected) {
        collected.add(in_time("enough messages", reader.next()).await.unwrap());
    }
    collected
}

/// Reads until the read fails.
pub async fn until_error(reader: &mut Box<dyn SplitReader>) -> (Collected, ConnectError) {
    let mut collected = Collected::default();
    loop {
        match in_time("an error", reader.next()).await {
            Ok(event) => collected.add(event),
            Err(error) => return (collected, error),
        }
    }
}

/// Reads a bounded definition from its start to its end.
pub async fn read_all(config: &ReadConfig, definition: &ReadDefinition) -> Collected {
    let reader = open(config, definition).await;
    let split = &definition.splits[0];
    let SplitStart::At(from) = &split.start else { panic!("a handoff will say") };
    let mut split = reader.read(&split.id, from, split.bound.as_ref()).await.unwrap();
    until_done(&mut split).await
}
