//! A configured files stage over a temporary directory, and its rows as text.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use segue_connect::{
    ConnectError, Connector, Format, Include, IncludeKind, OnError, Options, ReadConfig,
    ReadDefinition, ReadEvent, Rejected, RowFormat, SplitReader, StageReader, Start,
};
use segue_connector_files::FilesConnector;
use segue_types::{Position, SplitId, SqlType};

/// How long an event may take.
const DEADLINE: Duration = Duration::from_secs(20);

pub fn options(pairs: &[(&str, &str)]) -> Options {
    Options(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

/// Columns `id bigint not null, name text, amount numeric(10,2)`, then file, offset and stage.
pub fn config(directory: &Path, encode: &str) -> ReadConfig {
    let fields = vec![
        SqlType::BigInt.field("id", false),
        SqlType::Text.field("name", true),
        SqlType::Numeric { precision: 10, scale: 2 }.field("amount", true),
        SqlType::Text.field("f", true),
        SqlType::Text.field("o", true),
        SqlType::Text.field("s", true),
    ];
    let include = |kind, column: &str| Include { kind, column: column.to_owned() };
    ReadConfig {
        stage: "history".to_owned(),
        options: options(&[("path", directory.to_str().expect("a UTF-8 path"))]),
        format: Format {
            rows: RowFormat::Plain,
            encode: encode.to_owned(),
            options: Options(BTreeMap::new()),
        },
        start: Start::Earliest,
        stop: None,
        schema: Arc::new(Schema::new(fields)),
        declared_columns: 3,
        key: vec![0],
        includes: vec![
            include(IncludeKind::File, "f"),
            include(IncludeKind::Offset, "o"),
            include(IncludeKind::Stage, "s"),
        ],
        on_error: OnError::DeadLetter,
    }
}

pub fn watched(mut config: ReadConfig, refresh_sec: &str) -> ReadConfig {
    config.options.0.insert("refresh.interval.sec".to_owned(), refresh_sec.to_owned());
    config
}

pub async fn pin(config: &ReadConfig) -> ReadDefinition {
    FilesConnector.pin(config).await.expect("the files can be pinned")
}

pub async fn open(
    config: &ReadConfig,
    definition: &ReadDefinition,
    projection: &[usize],
) -> Box<dyn StageReader> {
    FilesConnector.open(config, definition, projection).await.expect("the read can be opened")
}

/// What one split delivered.
#[derive(Debug, Default)]
pub struct Delivered {
    pub rows: Vec<String>,
    pub rejected: Vec<Rejected>,
    /// The position after each event.
    pub positions: Vec<Position>,
    pub done: bool,
}

impl Delivered {
    pub fn add(&mut self, event: ReadEvent) {
        match event {
            ReadEvent::Rows(rows) => {
                self.rows.extend(shown(&rows.changes.rows));
                self.rejected.extend(rows.rejected);
                self.positions.push(rows.next);
            }
            ReadEvent::Progress { next } => self.positions.push(next),
            ReadEvent::Done { at } => {
                self.positions.push(at);
                self.done = true;
            }
        }
    }
}

pub async fn next(reader: &mut dyn SplitReader) -> Result<ReadEvent, ConnectError> {
    tokio::time::timeout(DEADLINE, reader.next()).await.expect("an event comes in time")
}

/// Reads a split to its end.
pub async fn drain(
    stage: &dyn StageReader,
    split: &str,
    from: &str,
    until: Option<&str>,
) -> Result<Delivered, ConnectError> {
    let until = until.map(Position::new);
    let split = SplitId::new(split);
    let mut reader = stage.read(&split, &Position::new(from), until.as_ref()).await?;
    let mut delivered = Delivered::default();
    while !delivered.done {
        delivered.add(next(reader.as_mut()).await?);
    }
    Ok(delivered)
}

/// Rows as text, `|` between columns.
pub fn shown(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns = batch.columns().iter();
    let columns =
        columns.map(|array| ArrayFormatter::try_new(array, &options).expect("plain types"));
    let columns: Vec<_> = columns.collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>();
    (0..batch.num_rows()).map(|index| row(index).join("|")).collect()
}
