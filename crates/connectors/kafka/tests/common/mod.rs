//! What the Kafka tests share: a broker per test binary, a read configuration to vary, readers that collect.

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
use segue_connector_kafka::KafkaConnector;
use segue_testkit::kafka::KafkaServer;
use segue_types::{Op, Position, SplitId, SqlType};

/// How long anything may take.
pub const DEADLINE: Duration = Duration::from_secs(60);

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
    let options = [
        ("topic".to_owned(), topic.to_owned()),
        ("properties.bootstrap.server".to_owned(), server.bootstrap()),
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
pub fn bounded(server: &KafkaServer, topic: &str) -> ReadConfig {
    ReadConfig { stop: Some(Stop::Latest), ..config(server, topic) }
}

/// The same with FORMAT UPSERT, keyed by `id`.
pub fn upsert(server: &KafkaServer, topic: &str) -> ReadConfig {
    let mut config = config(server, topic);
    config.format.rows = RowFormat::Upsert;
    config.key = vec![0];
    config
}

/// `{"id": …, "v": …}`.
pub fn row(id: i64) -> String {
    format!(r#"{{"id":{id},"v":"v{id}"}}"#)
}

/// Rows `ids`.
pub fn rows(ids: std::ops::Range<i64>) -> impl Iterator<Item = String> {
    ids.map(row)
}

pub fn split(partition: i32) -> SplitId {
    SplitId::new(partition.to_string())
}

pub fn at(offset: i64) -> Position {
    Position::new(offset.to_string())
}

pub fn offsets(pairs: &[(i32, i64)]) -> BTreeMap<SplitId, String> {
    pairs.iter().map(|(p, offset)| (split(*p), offset.to_string())).collect()
}

/// Fails a test instead of letting it hang.
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {DEADLINE:?} for {what}"),
    }
}

pub async fn pin(config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
    in_time("pin", KafkaConnector::new().pin(config)).await
}

pub async fn open(config: &ReadConfig, definition: &ReadDefinition) -> Box<dyn StageReader> {
    let all: Vec<usize> = (0..config.schema.fields().len()).collect();
    in_time("open", KafkaConnector::new().open(config, definition, &all)).await.unwrap()
}

/// The starts of a definition.
pub fn starts(definition: &ReadDefinition) -> Vec<i64> {
    let start = |start: &SplitStart| match start {
        SplitStart::At(position) => position.as_str().parse().unwrap(),
        SplitStart::FromHandoff => panic!("a handoff will say"),
    };
    definition.splits.iter().map(|split| start(&split.start)).collect()
}

/// The bounds of a definition.
pub fn bounds(definition: &ReadDefinition) -> Vec<i64> {
    let bound = |bound: &Option<Position>| bound.as_ref().unwrap().as_str().parse().unwrap();
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
    pub next: Option<i64>,
    pub done: Option<i64>,
}

impl Collected {
    fn add(&mut self, event: ReadEvent) {
        let number = |position: &Position| position.as_str().parse::<i64>().unwrap();
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
        collected.add(in_time("enough records", reader.next()).await.unwrap());
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

/// The ids of one delivery.
pub fn ids_of(event: ReadEvent) -> Vec<i64> {
    let mut collected = Collected::default();
    collected.add(event);
    collected.ids
}
