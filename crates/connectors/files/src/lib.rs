//! The `files` connector: JSON lines, CSV and Parquet files of one directory, read once or watched.
//!
//! | word | here |
//! |---|---|
//! | split | one file, named by its path below the root |
//! | position | byte offset of a record (JSON, CSV; inside of a compressed file) or row number (Parquet) |
//! | identity | root, pattern, and for a bounded read a digest of the manifest |
//!
//! A bounded read pins a manifest (path, size, e-tag, rows) and seals it. Invariant: no byte of a
//! file that is not the pinned one becomes a row: each request carries the pinned e-tag, and the
//! end of a file is reported only after one more look.

mod batch;
mod files;
mod glob;
mod manifest;
mod options;
mod parquet;
mod pin;
mod stage;
mod text;
mod unpack;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use segue_connect::{
    Capabilities, ConnectError, Connector, Distance, Handoff, HandoffKind, KnowsData, OptionSpec,
    Ordering, ReadConfig, ReadDefinition, Replayable, Resume, RowFormat, StageReader,
};
use segue_types::{Boundedness, Position, PositionOrder, RowSemantics, SplitId};

use crate::files::Files;
use crate::manifest::Manifest;
use crate::options::{Encoding, FilesOptions};
use crate::stage::FilesStage;

/// Reads files of a directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilesConnector;

#[async_trait]
impl Connector for FilesConnector {
    fn name(&self) -> &'static str {
        "files"
    }

    fn options(&self) -> &'static [OptionSpec] {
        options::SPECS
    }

    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError> {
        let options = FilesOptions::parse(config).map_err(ConnectError::Config)?;
        Ok(Capabilities {
            boundedness: options.boundedness(),
            semantics: match config.format.rows {
                RowFormat::Plain => RowSemantics::Append,
                RowFormat::Upsert => RowSemantics::Upsert,
            },
            resume: Resume::Position,
            produces: match options.boundedness() {
                Boundedness::Bounded => vec![HandoffKind::Columns],
                Boundedness::Continuous => Vec::new(),
            },
            accepts: Vec::new(),
            latest: true,
            has_data: KnowsData::Yes,
            replayable: Replayable::ForEver,
            ordering: Ordering::TotalPerSplit,
        })
    }

    async fn pin(&self, config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
        let options = FilesOptions::parse(config).map_err(ConnectError::Config)?;
        pin::pin(config, &options).await
    }

    async fn derive_starts(
        &self,
        _config: &ReadConfig,
        _definition: &ReadDefinition,
        _handoff: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        Err(ConnectError::Unsupported(
            "connector \"files\" cannot derive its start from another stage".to_owned(),
        ))
    }

    async fn check(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        starts: &[(SplitId, Position)],
    ) -> Result<(), ConnectError> {
        let options = FilesOptions::parse(config).map_err(ConnectError::Config)?;
        let files = Files::open(&options)?;
        let manifest = Manifest::of(definition)?;
        for (split, _) in starts {
            if let Some(entry) = manifest.entry(split.as_str()) {
                match files.verify(entry, definition.boundedness).await {
                    // In a watched directory, files may go.
                    Err(ConnectError::Missing { .. })
                        if definition.boundedness == Boundedness::Continuous => {}
                    verified => drop(verified?),
                }
            }
        }
        Ok(())
    }

    async fn open(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        let options = FilesOptions::parse(config).map_err(ConnectError::Config)?;
        Ok(Box::new(FilesStage::open(config, options, definition, projection)?))
    }

    fn distance(&self, config: &ReadConfig, from: &Position, to: &Position) -> Option<Distance> {
        let between = parse_position(to)?.saturating_sub(parse_position(from)?);
        match FilesOptions::parse(config).ok()?.encoding {
            Encoding::Parquet => Some(Distance::Records(between)),
            Encoding::Json(_) | Encoding::Csv(_) => Some(Distance::Bytes(between)),
        }
    }

    fn compare(&self, a: &Position, b: &Position) -> PositionOrder {
        match (parse_position(a), parse_position(b)) {
            (Some(a), Some(b)) => a.cmp(&b).into(),
            _ => PositionOrder::Incomparable,
        }
    }
}

/// The number that a position is.
fn parse_position(position: &Position) -> Option<u64> {
    position.as_str().parse().ok()
}

/// The number that a position must be.
fn number_of(split: &SplitId, position: &Position) -> Result<u64, ConnectError> {
    parse_position(position).ok_or_else(|| {
        ConnectError::Unsupported(format!(
            "position \"{position}\" of file \"{split}\" is not a number"
        ))
    })
}

fn position(number: u64) -> Position {
    Position::new(number.to_string())
}

/// The declared columns of a configuration.
fn declared_schema(config: &ReadConfig) -> SchemaRef {
    let declared: Vec<usize> = (0..config.declared_columns).collect();
    config.schema.project(&declared).expect("declared columns lie in the schema").into()
}
