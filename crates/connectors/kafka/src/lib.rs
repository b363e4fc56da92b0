//! The `kafka` connector: topics as append or upsert streams, bounded with `STOP AT` and continuous without.
//!
//! Splits are partitions, positions are offsets of the next record, all as a committed reader sees them.
//! The identity of a read is the cluster's id with the topic's name and id, so that a topic that was
//! re-created under its name is an error.
//!
//! ```text
//! Settings ─▶ Link (a client; questions) ─▶ pin / handoff
//!                └─▶ Shared ─▶ a Reading thread per partition: PartitionQueue ─▶ Records ─▶ ReadEvent
//! ```

mod handoff;
mod link;
mod native;
mod partition;
mod pin;
mod reader;
mod record;
mod sentinel;
mod settings;
mod splits;
mod stable;

use async_trait::async_trait;
use segue_connect::{
    Capabilities, ConnectError, Connector, Distance, Handoff, HandoffKind, KnowsData, OptionSpec,
    Ordering, ReadConfig, ReadDefinition, Replayable, Resume, RowFormat, StageReader, Start, Stop,
};
use segue_types::{Position, PositionOrder, RowSemantics, SplitId};

use crate::link::{Link, blocking};
use crate::reader::KafkaReader;
use crate::record::records;
use crate::settings::{Purpose, Settings};
use crate::splits::{offset_in, offset_of, partition_of};

/// Reads topics of Apache Kafka and what speaks its protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct KafkaConnector;

impl KafkaConnector {
    /// The connector.
    pub fn new() -> KafkaConnector {
        KafkaConnector
    }
}

#[async_trait]
impl Connector for KafkaConnector {
    fn name(&self) -> &'static str {
        "kafka"
    }

    fn options(&self) -> &'static [OptionSpec] {
        settings::OPTIONS
    }

    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError> {
        Settings::parse(config)?;
        let all: Vec<usize> = (0..config.schema.fields().len()).collect();
        records(config, &all, 0)?;
        let start = match &config.start {
            Start::Offsets(offsets) => Some(offsets),
            _ => None,
        };
        let stop = match &config.stop {
            Some(Stop::Offsets(offsets)) => Some(offsets),
            _ => None,
        };
        for (split, offset) in start.into_iter().chain(stop).flatten() {
            partition_of(split)?;
            offset_in(offset)?;
        }
        Ok(Capabilities {
            boundedness: pin::boundedness(config),
            semantics: match config.format.rows {
                RowFormat::Plain => RowSemantics::Append,
                RowFormat::Upsert => RowSemantics::Upsert,
            },
            resume: Resume::Position,
            produces: vec![HandoffKind::LogEnds],
            accepts: vec![HandoffKind::LogEnds, HandoffKind::Query, HandoffKind::Columns],
            latest: true,
            has_data: KnowsData::Maybe,
            replayable: Replayable::UntilRetention,
            ordering: Ordering::TotalPerSplit,
        })
    }

    async fn pin(&self, config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
        let (settings, config) = (Settings::parse(config)?, config.clone());
        blocking(move || pin::resolve(&settings, &config)).await
    }

    async fn derive_starts(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        handoff: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        let settings = Settings::parse(config)?;
        let (definition, handoff) = (definition.clone(), handoff.clone());
        blocking(move || handoff::derive(&settings, &definition, &handoff)).await
    }

    async fn check(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        starts: &[(SplitId, Position)],
    ) -> Result<(), ConnectError> {
        let settings = Settings::parse(config)?;
        let (definition, starts) = (definition.clone(), starts.to_vec());
        blocking(move || handoff::check(&settings, &definition, &starts)).await
    }

    async fn open(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        let settings = Settings::parse(config)?;
        let (config, definition) = (config.clone(), definition.clone());
        let reader = KafkaReader::open(settings, config, definition, projection.to_vec()).await?;
        Ok(Box::new(reader))
    }

    fn leaves(&self, config: &ReadConfig) -> Option<String> {
        let settings = Settings::parse(config).ok()?;
        let group = settings.group.as_ref()?;
        let Settings { topic, servers, .. } = &settings;
        Some(format!("what group \"{group}\" committed of topic \"{topic}\" of Kafka at {servers}"))
    }

    async fn release(&self, config: &ReadConfig) -> Result<(), ConnectError> {
        let settings = Settings::parse(config)?;
        let Some(group) = settings.group.clone() else { return Ok(()) };
        blocking(move || Link::new(&settings, Purpose::Questions)?.forget(&group)).await
    }

    fn distance(&self, _config: &ReadConfig, from: &Position, to: &Position) -> Option<Distance> {
        let (from, to) = (offset_of(from).ok()?, offset_of(to).ok()?);
        Some(Distance::Records(u64::try_from(to.saturating_sub(from)).unwrap_or(0)))
    }

    fn compare(&self, a: &Position, b: &Position) -> PositionOrder {
        match (offset_of(a), offset_of(b)) {
            (Ok(a), Ok(b)) => a.cmp(&b).into(),
            _ => PositionOrder::Incomparable,
        }
    }
}
