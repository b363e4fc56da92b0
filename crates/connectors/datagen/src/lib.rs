//! The `datagen` connector: rows out of nothing, the same ones each time.
//!
//! A value depends on the column's seed and the row's number alone, so any row can be made again,
//! and a read goes on exactly at any position. A paced read is a log that began to grow when it
//! was pinned: row `n` exists once `n / rate` seconds have passed. So a later consumer catches up
//! at full speed, and `latest` has an answer.
//!
//! | word | here |
//! |---|---|
//! | split | every n-th row, beginning with the split's number |
//! | position | how many rows of the split came before |

mod fields;
mod generator;
mod options;
mod pace;
mod reader;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use segue_connect::{
    Capabilities, ConnectError, Connector, Distance, Handoff, HandoffKind, KnowsData, OptionSpec,
    Ordering, ReadConfig, ReadDefinition, Replayable, Resume, SplitDefinition, SplitStart,
    StageReader, Start,
};
use segue_types::{Boundedness, Position, PositionOrder, RowSemantics, SplitId};

use crate::options::DatagenOptions;
use crate::pace::Pace;
use crate::reader::DatagenStage;

/// Generates rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatagenConnector;

#[async_trait]
impl Connector for DatagenConnector {
    fn name(&self) -> &'static str {
        "datagen"
    }

    fn options(&self) -> &'static [OptionSpec] {
        options::SPECS
    }

    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError> {
        let options = DatagenOptions::parse(config).map_err(ConnectError::Config)?;
        let boundedness = options.boundedness();
        // Who generates without a pause and without an end has no last row.
        let latest = boundedness == Boundedness::Bounded || options.rows_per_s.is_some();
        Ok(Capabilities {
            boundedness,
            semantics: RowSemantics::Append,
            resume: Resume::Position,
            produces: match boundedness {
                Boundedness::Bounded => vec![HandoffKind::Columns],
                Boundedness::Continuous => Vec::new(),
            },
            accepts: Vec::new(),
            latest,
            has_data: KnowsData::Yes,
            replayable: Replayable::ForEver,
            ordering: Ordering::TotalPerSplit,
        })
    }

    async fn pin(&self, config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
        let options = DatagenOptions::parse(config).map_err(ConnectError::Config)?;
        let pace = Pace::starting_now(&options);
        let mut splits = Vec::with_capacity(options.splits as usize);
        for split in 0..options.splits {
            let id = SplitId::new(split.to_string());
            let start = match &config.start {
                Start::Offsets(offsets) => match offsets.get(&id) {
                    Some(given) => number_of(&id, &Position::new(given.as_str()))?,
                    None => 0,
                },
                _ => 0,
            };
            let bound = options.rows_of_split(split).map(position);
            splits.push(SplitDefinition {
                id,
                start: SplitStart::At(position(start)),
                bound,
                after: Vec::new(),
            });
        }
        Ok(ReadDefinition {
            identity: format!("datagen:{}", pace.began_us()),
            boundedness: options.boundedness(),
            splits,
            // The splits of a continuous read are all there will be, but only a bounded stage is
            // sealed.
            sealed: options.boundedness() == Boundedness::Bounded,
            remarks: Vec::new(),
            private: pace.to_json(),
        })
    }

    async fn derive_starts(
        &self,
        _config: &ReadConfig,
        _definition: &ReadDefinition,
        _handoff: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        Err(ConnectError::Unsupported(
            "connector \"datagen\" cannot derive its start from another stage".to_owned(),
        ))
    }

    async fn check(
        &self,
        _config: &ReadConfig,
        _definition: &ReadDefinition,
        _starts: &[(SplitId, Position)],
    ) -> Result<(), ConnectError> {
        Ok(())
    }

    async fn open(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        let options = DatagenOptions::parse(config).map_err(ConnectError::Config)?;
        Ok(Box::new(DatagenStage::open(config, &options, definition, projection)?))
    }

    fn distance(&self, _config: &ReadConfig, from: &Position, to: &Position) -> Option<Distance> {
        Some(Distance::Records(parse_position(to)?.saturating_sub(parse_position(from)?)))
    }

    fn compare(&self, a: &Position, b: &Position) -> PositionOrder {
        match (parse_position(a), parse_position(b)) {
            (Some(a), Some(b)) => a.cmp(&b).into(),
            _ => PositionOrder::Incomparable,
        }
    }
}

fn position(number: u64) -> Position {
    Position::new(number.to_string())
}

fn parse_position(position: &Position) -> Option<u64> {
    position.as_str().parse().ok()
}

/// The number that a split's id or a position must be.
fn number_of(split: &SplitId, position: &Position) -> Result<u64, ConnectError> {
    parse_position(position).ok_or_else(|| {
        ConnectError::Unsupported(format!(
            "position \"{position}\" of split \"{split}\" is not a row number"
        ))
    })
}

/// The columns that are generated, without the INCLUDE columns.
fn declared_schema(config: &ReadConfig) -> SchemaRef {
    let declared: Vec<usize> = (0..config.declared_columns).collect();
    config.schema.project(&declared).expect("declared columns lie in the schema").into()
}
