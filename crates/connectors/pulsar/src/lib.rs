//! The `pulsar` connector: topics of Apache Pulsar, bounded with `STOP AT` and continuous without.
//!
//! Splits are partitions; a position is `ledger:entry:index` of the next message, the index being its place in its
//! batch. A topic has no id, but a ledger's id is never given out twice, so a position of a topic that was deleted
//! is found in no other. The protocol is spoken by this crate itself: what exactness hangs on (where a
//! subscription really started, what the last message is) is not to be had from the client crate.
//!
//! ```text
//! Settings ─▶ Consumer (a connection; questions) ─▶ pin / handoff
//!                └─▶ Feed: a task per partition, with a Consumer that it makes anew whenever in doubt ─▶ ReadEvent
//! ```
//!
//! Not supported: TLS and authentication, chunked and encrypted messages (they are set aside), the end of a topic whose
//! last entry is a transaction's marker (it is reported as not delivered).

mod acknowledge;
mod connection;
mod consumer;
mod entry;
mod feed;
mod handoff;
mod pin;
mod place;
mod reader;
mod settings;
mod wire;

use arrow_schema::DataType;
use async_trait::async_trait;
use segue_connect::{
    Capabilities, ConnectError, Connector, Handoff, HandoffKind, IncludeKind, KnowsData,
    OptionSpec, Ordering, ReadConfig, ReadDefinition, Replayable, Resume, RowFormat, StageReader,
    Start, Stop,
};
use segue_records::{Origin, Records};
use segue_types::{Position, PositionOrder, RowSemantics, SplitId, SqlState, UserError};

use crate::place::{partition_of, place_in, place_of};
use crate::reader::PulsarReader;
use crate::settings::Settings;

/// Reads topics of Apache Pulsar.
#[derive(Clone, Copy, Debug, Default)]
pub struct PulsarConnector;

#[async_trait]
impl Connector for PulsarConnector {
    fn name(&self) -> &'static str {
        "pulsar"
    }

    fn options(&self) -> &'static [OptionSpec] {
        settings::OPTIONS
    }

    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError> {
        Settings::parse(config)?;
        let all: Vec<usize> = (0..config.schema.fields().len()).collect();
        records(config, &all, 0)?;
        refuse_number(config)?;
        let start = match &config.start {
            Start::Offsets(offsets) => Some(offsets),
            _ => None,
        };
        let stop = match &config.stop {
            Some(Stop::Offsets(offsets)) => Some(offsets),
            _ => None,
        };
        for (split, place) in start.into_iter().chain(stop).flatten() {
            partition_of(split)?;
            place_in(place)?;
        }
        Ok(Capabilities {
            boundedness: pin::boundedness(config),
            semantics: match config.format.rows {
                RowFormat::Plain => RowSemantics::Append,
                RowFormat::Upsert => RowSemantics::Upsert,
            },
            resume: Resume::Position,
            produces: vec![HandoffKind::LogEnds],
            // A place is no number, so the greatest in a column of numbers says nothing.
            accepts: vec![HandoffKind::LogEnds, HandoffKind::Query],
            latest: true,
            has_data: KnowsData::Maybe,
            replayable: Replayable::UntilRetention,
            ordering: Ordering::TotalPerSplit,
        })
    }

    async fn pin(&self, config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
        pin::resolve(&Settings::parse(config)?, config).await
    }

    async fn derive_starts(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        handoff: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        handoff::derive(&Settings::parse(config)?, definition, handoff).await
    }

    async fn check(
        &self,
        config: &ReadConfig,
        _definition: &ReadDefinition,
        starts: &[(SplitId, Position)],
    ) -> Result<(), ConnectError> {
        pin::check(&Settings::parse(config)?, starts).await
    }

    async fn open(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        let settings = Settings::parse(config)?;
        Ok(Box::new(PulsarReader::open(settings, config, definition, projection).await?))
    }

    fn leaves(&self, config: &ReadConfig) -> Option<String> {
        let settings = Settings::parse(config).ok()?;
        let name = settings.subscription.as_ref()?;
        Some(format!("subscription \"{name}\" of {} at {}", settings.what(), settings.service.0))
    }

    /// The position of a subscription is that of its one reader.
    fn owns(&self, config: &ReadConfig) -> Option<String> {
        self.leaves(config)
    }

    async fn release(&self, config: &ReadConfig) -> Result<(), ConnectError> {
        let settings = Settings::parse(config)?;
        match &settings.subscription {
            Some(name) => acknowledge::release(&settings, name).await,
            None => Ok(()),
        }
    }

    fn compare(&self, a: &Position, b: &Position) -> PositionOrder {
        match (place_of(a), place_of(b)) {
            (Ok(a), Ok(b)) => a.cmp(&b).into(),
            _ => PositionOrder::Incomparable,
        }
    }
}

/// An empty collection of rows.
fn records(
    config: &ReadConfig,
    projection: &[usize],
    partition: u32,
) -> Result<Records, ConnectError> {
    let partition = partition.to_string();
    Records::new(config, projection, Origin { connector: "pulsar", partition: &partition })
}

fn refuse_number(config: &ReadConfig) -> Result<(), ConnectError> {
    let fields = &config.schema.fields()[config.declared_columns..];
    for (include, field) in config.includes.iter().zip(fields) {
        if include.kind == IncludeKind::Offset && *field.data_type() != DataType::Utf8 {
            let message = format!(
                "INCLUDE OFFSET column \"{}\" is a number, and a position of Pulsar is not one",
                include.column
            );
            return Err(ConnectError::Config(
                UserError::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint("Leave it out."),
            ));
        }
    }
    Ok(())
}
