//! What the Pulsar tests share: a broker per test binary, a read configuration to vary, readers that collect.

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
use segue_connector_pulsar::PulsarConnector;
use segue_testkit::pulsar::PulsarServer;
use segue_types::{Op, Position, PositionOrder, SplitId, SqlType};

/// How long anything may take.
pub const DEADLINE: Duration = Duration::from_secs(60);

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
    let options =
        [("service.url".to_owned(), server.url()), ("topic".to_owned(), topic.to_owned())];
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
pub fn bounded(topic: &str) -> ReadConfig {
    ReadConfig { stop: Some(Stop::Latest), ..config(topic) }
}

/// `{"id": …, "v": …}`.
pub fn row(id: i64) -> String {
    format!(r#"{{"id":{id},"v":"v{id}"}}"#)
}

/// Rows `ids`.
pub fn rows(ids: std::ops::Range<i64>) -> impl Iterator<Item = String> {
    ids.map(row)
}

pub fn split(partition: u32) -> SplitId {
    SplitId::new(partition.to_string())
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

/// Fails a test instead of letting it hang.
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {DEADLINE:?} for {what}"),
    }
}

pub async fn pin(config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
    in_time("pin", PulsarConnector.pin(config)).await
}

pub async fn open(config: &ReadConfig, definition: &ReadDefinition) -> Box<dyn StageReader> {
    let all: Vec<usize> = (0..config.schema.fields().len()).collect();
    in_time("open", PulsarConnector.open(config, definition, &all)).await.unwrap()
}

/// The starts of a definition.
pub fn starts(definition: &ReadDefinition) -> Vec<String> {
    let start = |start: &SplitStart| match start {
        SplitStart::At(position) => position.as_str().to_owned(),
        SplitStart::FromHandoff => panic!("a handoff will say"),
    };
    definition.splits.iter().map(|split| start(&split.start)).collect()
}

/// The bounds of a definition.
pub fn bounds(definition: &ReadDefinition) -> Vec<String> {
    let bound = |bound: &Option<Position>| bound.as_ref().unwrap().as_str().to_owned();
    definition.splits.iter().map(|split| bound(&split.bound)).collect()
}

/// What a reader delivered.
#[derive(Debug, Default)]
pub struct Collected {
    pub ids: Vec<i64>,
    pub ops: Vec<Op>,
    pub batches: Vec<RecordBatch>,
    pub rejected: Vec<Rejected>,
    /// The last position told.
    pub next: Option<String>,
    pub done: Option<String>,
}

impl Collected {
    pub fn add(&mut self, event: ReadEvent) {
        let text = |position: &Position| Some(position.as_str().to_owned());
        match event {
            ReadEvent::Rows(rows) => {
                self.grow(&rows.next);
                self.next = text(&rows.next);
                self.rejected.extend(rows.rejected);
                self.add_changes(&rows.changes);
            }
            ReadEvent::Progress { next } => {
                self.grow(&next);
                self.next = text(&next);
            }
            ReadEvent::Done { at } => self.done = text(&at),
        }
    }

    fn grow(&self, next: &Position) {
        let Some(last) = &self.next else { return };
        let order = PulsarConnector.compare(&Position::new(last.as_str()), next);
        assert_eq!(order, PositionOrder::Less, "positions grow: {last}, then {next}");
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

/// Reads every split of a bounded definition from its start to its end, by partition.
pub async fn read_all(config: &ReadConfig, definition: &ReadDefinition) -> Vec<Collected> {
    let reader = open(config, definition).await;
    let mut all = Vec::new();
    for split in &definition.splits {
        let SplitStart::At(from) = &split.start else { panic!("a handoff will say") };
        let mut split = reader.read(&split.id, from, split.bound.as_ref()).await.unwrap();
        all.push(until_done(&mut split).await);
    }
    all
}
