//! The `nats` connector: streams of NATS JetStream, bounded with `STOP AT` and continuous without.
//!
//! A stream is one log, so a read has one split, `0`; a position is the stream sequence of the next message.
//! The identity of a read is the stream's name, the time of its creation and the subjects that are read, so
//! that a stream that was made again is an error. Readers leave nothing on the server: their consumers are
//! nameless to others, delete themselves, and acknowledge nothing.
//!
//! ```text
//! Settings ─▶ Link (a client; questions) ─▶ pin / handoff
//!                └─▶ Feed: a task per read, with a Consumer that it makes anew whenever in doubt ─▶ ReadEvent
//! ```
//!
//! Invariant: what is not known to have been delivered is asked for again, by position.

mod api;
mod consumer;
mod feed;
mod handoff;
mod link;
mod message;
mod pin;
mod reader;
mod sequence;
mod settings;
mod subjects;

use async_trait::async_trait;
use segue_connect::{
    Capabilities, ConnectError, Connector, Distance, Handoff, HandoffKind, KnowsData, OptionSpec,
    Ordering, ReadConfig, ReadDefinition, Replayable, Resume, RowFormat, StageReader, Start, Stop,
};
use segue_records::{Origin, Records};
use segue_types::{Position, PositionOrder, RowSemantics, SplitId, SqlState, UserError};

use crate::link::Link;
use crate::reader::NatsReader;
use crate::sequence::{SPLIT, sequence_in, sequence_of};
use crate::settings::Settings;

/// Reads streams of NATS JetStream.
#[derive(Clone, Copy, Debug, Default)]
pub struct NatsConnector;

#[async_trait]
impl Connector for NatsConnector {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn options(&self) -> &'static [OptionSpec] {
        settings::OPTIONS
    }

    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError> {
        Settings::parse(config)?;
        let all: Vec<usize> = (0..config.schema.fields().len()).collect();
        records(config, &all)?;
        refuse_wide_key(config)?;
        let start = match &config.start {
            Start::Offsets(offsets) => Some(offsets),
            _ => None,
        };
        let stop = match &config.stop {
            Some(Stop::Offsets(offsets)) => Some(offsets),
            _ => None,
        };
        for (split, sequence) in start.into_iter().chain(stop).flatten() {
            sequence::must_be_known(split)?;
            sequence_in(sequence)?;
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
            has_data: KnowsData::Yes,
            replayable: Replayable::UntilRetention,
            ordering: Ordering::TotalPerSplit,
        })
    }

    async fn pin(&self, config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
        let link = Link::connect(Settings::parse(config)?).await?;
        pin::resolve(&link, config).await
    }

    async fn derive_starts(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        handoff: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        let link = Link::connect(Settings::parse(config)?).await?;
        handoff::derive(&link, definition, handoff).await
    }

    async fn check(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        starts: &[(SplitId, Position)],
    ) -> Result<(), ConnectError> {
        let link = Link::connect(Settings::parse(config)?).await?;
        handoff::check(&link, definition, starts).await
    }

    async fn open(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        let link = Link::connect(Settings::parse(config)?).await?;
        Ok(Box::new(NatsReader::open(link, config, definition, projection).await?))
    }

    fn distance(&self, _config: &ReadConfig, from: &Position, to: &Position) -> Option<Distance> {
        let (from, to) = (sequence_of(from).ok()?, sequence_of(to).ok()?);
        Some(Distance::Records(to.saturating_sub(from)))
    }

    fn compare(&self, a: &Position, b: &Position) -> PositionOrder {
        match (sequence_of(a), sequence_of(b)) {
            (Ok(a), Ok(b)) => a.cmp(&b).into(),
            _ => PositionOrder::Incomparable,
        }
    }
}

/// An empty collection of rows.
fn records(config: &ReadConfig, projection: &[usize]) -> Result<Records, ConnectError> {
    Records::new(config, projection, Origin { connector: "nats", partition: SPLIT })
}

/// A message that removes a row has nothing but its subject, and a subject is one key column's text.
fn refuse_wide_key(config: &ReadConfig) -> Result<(), ConnectError> {
    if config.format.rows == RowFormat::Plain || config.key.len() <= 1 {
        return Ok(());
    }
    let message = "the subject of a NATS message holds a PRIMARY KEY of one column only";
    Err(ConnectError::Config(
        UserError::new(SqlState::INVALID_OBJECT_DEFINITION, message).with_hint(
            "Declare a key of one column, or INCLUDE KEY AS a column and make that the key.",
        ),
    ))
}
