//! Where a read starts and ends, in sequences: whatever is symbolic is resolved here, once.
//!
//! Invariant: no start lies before what is retained or beyond the stream's end.

use segue_connect::{
    ConnectError, ReadConfig, ReadDefinition, SplitDefinition, SplitStart, Start, Stop,
};
use segue_types::{Boundedness, SqlState, UserError};
use serde::{Deserialize, Serialize};

use crate::api::StreamInfo;
use crate::link::{Link, what};
use crate::sequence::{SPLIT, must_be_known, position_of, sequence_in, split};

/// What the definition remembers beside the split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pinned {
    pub(crate) stream: String,
    /// The first sequence when the read was pinned: where it starts if a handoff does not name the split.
    pub(crate) first: u64,
}

impl Pinned {
    /// What [`resolve`] stored.
    pub(crate) fn of(definition: &ReadDefinition) -> Result<Pinned, ConnectError> {
        serde_json::from_value(definition.private.clone())
            .map_err(|error| ConnectError::Unsupported(format!("not a NATS definition: {error}")))
    }
}

/// Freezes the read.
pub(crate) async fn resolve(
    link: &Link,
    config: &ReadConfig,
) -> Result<ReadDefinition, ConnectError> {
    let stream = link.stream_name().await?;
    // Before any time is looked up: a message that arrives in between is then read, not skipped.
    let info = link.stream(&stream).await?;
    must_keep(&info)?;
    let start = start(link, config, &info).await?;
    let bound = bound(link, config, &info).await?;
    // A stop before the start is an empty range, complete at its start.
    let bound = bound.map(|bound| bound.max(start.unwrap_or(1)));
    let split = SplitDefinition {
        id: split(),
        start: start.map_or(SplitStart::FromHandoff, |at| SplitStart::At(position_of(at))),
        bound: bound.map(position_of),
        after: Vec::new(),
    };
    let pinned = Pinned { stream, first: info.state.first() };
    Ok(ReadDefinition {
        identity: identity(link, &info),
        boundedness: boundedness(config),
        splits: vec![split],
        // A stream is one log for ever, but only a read with an end is complete with it.
        sealed: config.stop.is_some(),
        remarks: Vec::new(),
        private: serde_json::to_value(pinned).expect("text and numbers have a JSON form"),
    })
}

/// A log read ends exactly when it is told where.
pub(crate) fn boundedness(config: &ReadConfig) -> Boundedness {
    match config.stop {
        Some(_) => Boundedness::Bounded,
        None => Boundedness::Continuous,
    }
}

/// What positions point into.
pub(crate) fn identity(link: &Link, info: &StreamInfo) -> String {
    let subjects = link.settings.subjects.names().join(", ");
    format!("{}, created {}, subjects {subjects}", what(&info.config.name), info.created)
}

/// The first sequence to read; `None` when the predecessor will say.
async fn start(
    link: &Link,
    config: &ReadConfig,
    info: &StreamInfo,
) -> Result<Option<u64>, ConnectError> {
    Ok(Some(match &config.start {
        Start::Handoff | Start::Query(_) | Start::Columns { .. } => return Ok(None),
        Start::Earliest => info.state.first(),
        Start::Latest => info.state.end(),
        Start::Timestamp { unix_ms } => since(link, *unix_ms, info).await?,
        Start::Offsets(named) => {
            named.keys().try_for_each(must_be_known)?;
            let Some(text) = named.get(&split()) else { return Ok(Some(info.state.first())) };
            let start = sequence_in(text)?;
            must_lie_within(start, info)?;
            start
        }
    }))
}

/// The exclusive end; `None` for a read without one.
async fn bound(
    link: &Link,
    config: &ReadConfig,
    info: &StreamInfo,
) -> Result<Option<u64>, ConnectError> {
    Ok(Some(match &config.stop {
        None => return Ok(None),
        Some(Stop::Latest) => info.state.end(),
        Some(Stop::Timestamp { unix_ms }) => since(link, *unix_ms, info).await?,
        Some(Stop::Offsets(named)) => {
            named.keys().try_for_each(must_be_known)?;
            let Some(text) = named.get(&split()) else { return Err(unnamed(info)) };
            let bound = sequence_in(text)?;
            must_lie_within(bound, info)?;
            bound
        }
    }))
}

async fn since(link: &Link, unix_ms: i64, info: &StreamInfo) -> Result<u64, ConnectError> {
    let found = link.sequence_at(&info.config.name, unix_ms).await?;
    Ok(found.clamp(info.state.first(), info.state.end()))
}

/// A sequence must be retained and must not lie beyond the stream's end.
pub(crate) fn must_lie_within(sequence: u64, info: &StreamInfo) -> Result<(), ConnectError> {
    let (first, end) = (info.state.first(), info.state.end());
    let (what, split, position) = (what(&info.config.name), split(), position_of(sequence));
    if sequence > end {
        return Err(ConnectError::Truncated { what, split, position, end: position_of(end) });
    }
    must_be_kept(sequence, info, first)
}

/// What lies at `sequence` must not be gone. A newer message of the same subject in its place does no harm.
pub(crate) fn must_be_kept(
    sequence: u64,
    info: &StreamInfo,
    first: u64,
) -> Result<(), ConnectError> {
    if sequence >= first || info.config.only_compacts() {
        return Ok(());
    }
    Err(ConnectError::Expired {
        what: what(&info.config.name),
        split: split(),
        position: position_of(sequence),
        available: position_of(first),
    })
}

/// Refuses streams whose messages go because they were read.
fn must_keep(info: &StreamInfo) -> Result<(), ConnectError> {
    if matches!(info.config.retention.as_str(), "" | "limits") {
        return Ok(());
    }
    let message = format!(
        "{} drops messages once they are read (retention \"{}\")",
        what(&info.config.name),
        info.config.retention
    );
    Err(ConnectError::Config(
        UserError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_hint("Read a mirror of the stream whose retention is \"limits\"."),
    ))
}

fn unnamed(info: &StreamInfo) -> ConnectError {
    let message =
        format!("STOP AT OFFSETS does not name split {SPLIT} of {}", what(&info.config.name));
    ConnectError::Config(
        UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .with_hint("A stream has one split, \"0\": say where it ends."),
    )
}
