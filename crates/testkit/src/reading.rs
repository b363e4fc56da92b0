//! What the tests of connectors share: a read configuration to vary, and readers that collect what they are given.
//!
//! Word defined here: *place*, a position as the tests of one connector write it.
//! Invariant: whatever is collected came in order: every position lies behind the one before.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, Schema};
use segue_connect::{
    Changes, ConnectError, Connector, Format, OnError, Options, ReadConfig, ReadDefinition,
    ReadEvent, Rejected, RowFormat, SplitReader, SplitStart, StageReader, Start, Stop,
};
use segue_types::{Op, Position, SplitId, SqlType};

/// How long anything may take.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Fails a test instead of letting it hang.
///
/// # Panics
/// After [`DEADLINE`], naming `what` it waited for.
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {DEADLINE:?} for {what}"),
    }
}

/// `(id bigint not null, v text)` as FORMAT PLAIN ENCODE JSON, from the earliest record on, without an end.
pub fn config(options: &[(&str, &str)]) -> ReadConfig {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let columns = [SqlType::BigInt.field("id", false), SqlType::Text.field("v", true)];
    ReadConfig {
        stage: "live".to_owned(),
        options: Options(options.collect()),
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
#[must_use]
pub fn bounded(config: ReadConfig) -> ReadConfig {
    ReadConfig { stop: Some(Stop::Latest), ..config }
}

/// The same with FORMAT UPSERT, keyed by `id`.
#[must_use]
pub fn upsert(mut config: ReadConfig) -> ReadConfig {
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

/// A split that a number names.
pub fn split(number: impl std::fmt::Display) -> SplitId {
    SplitId::new(number.to_string())
}

/// A position as a connector's tests write it.
pub trait Place: Clone + Debug {
    fn of(position: &Position) -> Self;

    fn lies_before(&self, next: &Self) -> bool;
}

macro_rules! numbers {
    ($($ty:ty),*) => {
        $(impl Place for $ty {
            fn of(position: &Position) -> $ty {
                position.as_str().parse().expect("a number")
            }

            fn lies_before(&self, next: &$ty) -> bool {
                self < next
            }
        })*
    };
}

numbers!(i64, u64);

/// Numbers between colons.
impl Place for String {
    fn of(position: &Position) -> String {
        position.as_str().to_owned()
    }

    fn lies_before(&self, next: &String) -> bool {
        let numbers = |text: &str| -> Vec<u64> {
            text.split(':').map(|number| number.parse().expect("numbers between colons")).collect()
        };
        numbers(self) < numbers(next)
    }
}

/// Pins a read, in time.
///
/// # Errors
/// The connector's.
pub async fn pin(
    connector: &dyn Connector,
    config: &ReadConfig,
) -> Result<ReadDefinition, ConnectError> {
    in_time("pin", connector.pin(config)).await
}

/// Opens a read of all columns.
///
/// # Panics
/// If it cannot be opened.
pub async fn open(
    connector: &dyn Connector,
    config: &ReadConfig,
    definition: &ReadDefinition,
) -> Box<dyn StageReader> {
    let all: Vec<usize> = (0..config.schema.fields().len()).collect();
    let opened = in_time("open", connector.open(config, definition, &all)).await;
    opened.unwrap_or_else(|error| panic!("open: {error}"))
}

/// The starts of a definition.
///
/// # Panics
/// If a handoff will say.
pub fn starts<P: Place>(definition: &ReadDefinition) -> Vec<P> {
    definition.splits.iter().map(|split| P::of(pinned(&split.start))).collect()
}

fn pinned(start: &SplitStart) -> &Position {
    match start {
        SplitStart::At(position) => position,
        SplitStart::FromHandoff => panic!("a handoff will say"),
    }
}

/// The bounds of a definition.
///
/// # Panics
/// If a split has none.
pub fn bounds<P: Place>(definition: &ReadDefinition) -> Vec<P> {
    let bound = |bound: &Option<Position>| P::of(bound.as_ref().expect("a bounded read"));
    definition.splits.iter().map(|split| bound(&split.bound)).collect()
}

/// What a reader delivered.
#[derive(Debug, Default)]
pub struct Collected<P> {
    pub ids: Vec<i64>,
    pub ops: Vec<Op>,
    pub batches: Vec<RecordBatch>,
    pub rejected: Vec<Rejected>,
    /// The last position told.
    pub next: Option<P>,
    pub done: Option<P>,
}

impl<P: Place> Collected<P> {
    /// Takes an event.
    ///
    /// # Panics
    /// If its position does not lie behind the last.
    pub fn add(&mut self, event: ReadEvent) {
        match event {
            ReadEvent::Rows(rows) => {
                self.move_to(&rows.next);
                self.rejected.extend(rows.rejected);
                self.add_changes(&rows.changes);
            }
            ReadEvent::Progress { next } => self.move_to(&next),
            ReadEvent::Done { at } => self.done = Some(P::of(&at)),
        }
    }

    fn move_to(&mut self, next: &Position) {
        let next = P::of(next);
        if let Some(last) = &self.next {
            assert!(last.lies_before(&next), "positions grow: {last:?}, then {next:?}");
        }
        self.next = Some(next);
    }

    fn add_changes(&mut self, changes: &Changes) {
        if let Some(ids) = changes.rows.column_by_name("id") {
            let ids = ids.as_primitive::<Int64Type>();
            assert_eq!(ids.null_count(), 0, "an id is never NULL");
            self.ids.extend(ids.values());
        }
        self.ops.extend((0..changes.rows.num_rows()).filter_map(|row| changes.ops.get(row)));
        self.batches.push(changes.rows.clone());
    }

    /// The texts of a column, over all batches.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn texts(&self, column: &str) -> Vec<Option<String>> {
        let texts = |batch: &RecordBatch| {
            let column = batch.column_by_name(column).expect("a column of the batch");
            let texts = column.as_string::<i32>().iter();
            texts.map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(texts).collect()
    }
}

/// Reads until the split is done.
///
/// # Panics
/// If the read fails.
pub async fn until_done<P: Place + Default>(reader: &mut Box<dyn SplitReader>) -> Collected<P> {
    until(reader, |collected| collected.done.is_some()).await
}

/// Reads until `enough` holds.
///
/// # Panics
/// If the read fails.
pub async fn until<P: Place + Default>(
    reader: &mut Box<dyn SplitReader>,
    enough: impl Fn(&Collected<P>) -> bool,
) -> Collected<P> {
    let mut collected = Collected::default();
    while !enough(&collected) {
        let event = in_time("enough records", reader.next()).await;
        collected.add(event.unwrap_or_else(|error| panic!("the read failed: {error}")));
    }
    collected
}

/// Reads until the read fails.
pub async fn until_error<P: Place + Default>(
    reader: &mut Box<dyn SplitReader>,
) -> (Collected<P>, ConnectError) {
    let mut collected = Collected::default();
    loop {
        match in_time("an error", reader.next()).await {
            Ok(event) => collected.add(event),
            Err(error) => return (collected, error),
        }
    }
}

/// Reads every split of a bounded definition from its start to its end.
///
/// # Panics
/// If a read fails.
pub async fn read_all<P: Place + Default>(
    connector: &dyn Connector,
    config: &ReadConfig,
    definition: &ReadDefinition,
) -> Vec<Collected<P>> {
    let reader = open(connector, config, definition).await;
    let mut all = Vec::new();
    for split in &definition.splits {
        let from = pinned(&split.start);
        let opened = reader.read(&split.id, from, split.bound.as_ref()).await;
        let mut reading = opened.unwrap_or_else(|error| panic!("split {}: {error}", split.id));
        all.push(until_done(&mut reading).await);
    }
    all
}
