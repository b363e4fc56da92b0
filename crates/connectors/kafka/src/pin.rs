//! Where a read starts and ends, in numbers: whatever is symbolic is resolved here, once.
//!
//! Invariant: a bound is an end that a committed reader reaches, and no start lies before what is retained
//! or beyond the log's end.

use std::collections::{BTreeMap, BTreeSet};

use segue_connect::{
    ConnectError, ReadConfig, ReadDefinition, SplitDefinition, SplitStart, Start, Stop,
};
use segue_types::{Boundedness, Position, SplitId, SqlState, UserError};
use serde::{Deserialize, Serialize};

use crate::link::{Ask, Link};
use crate::settings::{Purpose, Settings};
use crate::splits::{offset_in, partition_of, position_of, split_of};
use crate::stable::stable_ends;

/// What the definition remembers beside the splits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pinned {
    /// The first offset of each partition when the read was pinned: where a partition starts that a
    /// handoff does not name.
    pub(crate) first: BTreeMap<i32, i64>,
}

impl Pinned {
    /// What [`resolve`] stored.
    pub(crate) fn of(definition: &ReadDefinition) -> Result<Pinned, ConnectError> {
        serde_json::from_value(definition.private.clone())
            .map_err(|error| ConnectError::Unsupported(format!("not a Kafka definition: {error}")))
    }
}

/// A partition's first offset and its end, as a committed reader sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: i64,
    pub(crate) end: i64,
}

/// Asks for the extents of all partitions.
pub(crate) fn extents(
    link: &Link,
    partitions: &[i32],
) -> Result<BTreeMap<i32, Extent>, ConnectError> {
    let first = link.edges(partitions, Ask::First)?;
    let end = link.edges(partitions, Ask::End)?;
    Ok(first
        .into_iter()
        .map(|(partition, first)| (partition, Extent { first, end: end[&partition] }))
        .collect())
}

/// Freezes the read.
pub(crate) fn resolve(
    settings: &Settings,
    config: &ReadConfig,
) -> Result<ReadDefinition, ConnectError> {
    let link = Link::new(settings, Purpose::Questions)?;
    let (described, identity) = link.identify()?;
    // Before any time is looked up: a record that arrives in between is then read, not skipped.
    let extents = extents(&link, &described.partitions)?;
    let starts = starts(settings, &link, config, &extents)?;
    let bounds = bounds(settings, &link, config, &extents)?;
    let splits = described.partitions.iter().map(|partition| {
        let start = starts.as_ref().map(|starts| starts[partition]);
        // A stop before the start is an empty range, complete at its start.
        let bound = bounds.as_ref().map(|bounds| bounds[partition].max(start.unwrap_or(0)));
        SplitDefinition {
            id: split_of(*partition),
            start: start.map_or(SplitStart::FromHandoff, |at| SplitStart::At(position_of(at))),
            bound: bound.map(position_of),
            after: Vec::new(),
        }
    });
    let remarks = match config.stop {
        Some(Stop::Latest) => hidden(settings, &link, &extents)?,
        _ => Vec::new(),
    };
    let pinned = Pinned { first: extents.iter().map(|(p, extent)| (*p, extent.first)).collect() };
    Ok(ReadDefinition {
        identity,
        boundedness: boundedness(config),
        splits: splits.collect(),
        sealed: config.stop.is_some(),
        remarks,
        private: serde_json::to_value(pinned).expect("numbers have a JSON form"),
    })
}

/// What open transactions hide behind the bounds.
fn hidden(
    settings: &Settings,
    link: &Link,
    extents: &BTreeMap<i32, Extent>,
) -> Result<Vec<String>, ConnectError> {
    let partitions: Vec<i32> = extents.keys().copied().collect();
    let uncommitted = Link::new(settings, Purpose::UncommittedQuestions)?;
    let ends = stable_ends(link, &uncommitted, &partitions)?;
    Ok(ends.iter().filter_map(|(partition, end)| end.remark(&link.what(), *partition)).collect())
}

/// A log read ends exactly when it is told where.
pub(crate) fn boundedness(config: &ReadConfig) -> Boundedness {
    match config.stop {
        Some(_) => Boundedness::Bounded,
        None => Boundedness::Continuous,
    }
}

/// The first offset to read of each partition; `None` when the predecessor will say.
fn starts(
    settings: &Settings,
    link: &Link,
    config: &ReadConfig,
    extents: &BTreeMap<i32, Extent>,
) -> Result<Option<BTreeMap<i32, i64>>, ConnectError> {
    Ok(Some(match &config.start {
        Start::Handoff | Start::Query(_) | Start::Columns { .. } => return Ok(None),
        Start::Earliest => extents.iter().map(|(p, extent)| (*p, extent.first)).collect(),
        Start::Latest => ends(extents),
        Start::Timestamp { unix_ms } => since(link, *unix_ms, extents)?,
        Start::Offsets(named) => {
            let named = offsets(link, named.iter(), extents)?;
            let pairs = named.iter().map(|(partition, offset)| (*partition, *offset));
            must_lie_within(settings, link, pairs, extents)?;
            let start =
                |(p, extent): (&i32, &Extent)| (*p, named.get(p).copied().unwrap_or(extent.first));
            extents.iter().map(start).collect()
        }
    }))
}

/// The exclusive end of each partition; `None` for a read without one.
fn bounds(
    settings: &Settings,
    link: &Link,
    config: &ReadConfig,
    extents: &BTreeMap<i32, Extent>,
) -> Result<Option<BTreeMap<i32, i64>>, ConnectError> {
    let Some(stop) = &config.stop else { return Ok(None) };
    Ok(Some(match stop {
        // The last stable offset: a reader that waited for the high watermark would hang on an open
        // transaction.
        Stop::Latest => ends(extents),
        Stop::Timestamp { unix_ms } => since(link, *unix_ms, extents)?,
        Stop::Offsets(named) => {
            let named = offsets(link, named.iter(), extents)?;
            if let Some(partition) = extents.keys().find(|p| !named.contains_key(p)) {
                return Err(unnamed(link, *partition));
            }
            let pairs = named.iter().map(|(partition, offset)| (*partition, *offset));
            must_lie_within(settings, link, pairs, extents)?;
            named
        }
    }))
}

fn ends(extents: &BTreeMap<i32, Extent>) -> BTreeMap<i32, i64> {
    extents.iter().map(|(partition, extent)| (*partition, extent.end)).collect()
}

/// The first offset as young as `unix_ms`; the end where there is none.
fn since(
    link: &Link,
    unix_ms: i64,
    extents: &BTreeMap<i32, Extent>,
) -> Result<BTreeMap<i32, i64>, ConnectError> {
    let partitions: Vec<i32> = extents.keys().copied().collect();
    let found = link.offsets(&partitions, Ask::Since { unix_ms })?;
    Ok(extents
        .iter()
        .map(|(p, extent)| (*p, found.get(p).copied().flatten().unwrap_or(extent.end)))
        .collect())
}

/// Named offsets, of partitions that exist.
pub(crate) fn offsets<'a>(
    link: &Link,
    named: impl Iterator<Item = (&'a SplitId, &'a String)>,
    extents: &BTreeMap<i32, Extent>,
) -> Result<BTreeMap<i32, i64>, ConnectError> {
    let mut offsets = BTreeMap::new();
    for (split, text) in named {
        let partition = partition_of(split)?;
        if !extents.contains_key(&partition) {
            return Err(ConnectError::Missing {
                what: format!("partition {partition} of {}", link.what()),
            });
        }
        offsets.insert(partition, offset_in(text)?);
    }
    Ok(offsets)
}

/// Each offset must be retained and must not lie beyond the log's end.
pub(crate) fn must_lie_within(
    settings: &Settings,
    link: &Link,
    offsets: impl Iterator<Item = (i32, i64)>,
    extents: &BTreeMap<i32, Extent>,
) -> Result<(), ConnectError> {
    let mut beyond = Vec::new();
    for (partition, offset) in offsets {
        let extent = extents[&partition];
        let (what, split, position) = (link.what(), split_of(partition), position_of(offset));
        if offset < extent.first {
            let available = position_of(extent.first);
            return Err(ConnectError::Expired { what, split, position, available });
        }
        if offset > extent.end {
            beyond.push((partition, position, offset));
        }
    }
    if beyond.is_empty() {
        return Ok(());
    }
    // Beyond the last stable offset there may be an open transaction, and that is still inside the log.
    let partitions: BTreeSet<i32> = beyond.iter().map(|(partition, _, _)| *partition).collect();
    let partitions: Vec<i32> = partitions.into_iter().collect();
    let uncommitted = Link::new(settings, Purpose::UncommittedQuestions)?;
    let ends = uncommitted.edges(&partitions, Ask::End)?;
    match beyond.into_iter().find(|(partition, _, offset)| *offset > ends[partition]) {
        None => Ok(()),
        Some((partition, position, _)) => Err(ConnectError::Truncated {
            what: link.what(),
            split: split_of(partition),
            position,
            end: position_of(ends[&partition]),
        }),
    }
}

fn unnamed(link: &Link, partition: i32) -> ConnectError {
    let message = format!("STOP AT OFFSETS does not name partition {partition} of {}", link.what());
    ConnectError::Config(
        UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .with_hint("Name every partition: a bounded read must know where each one ends."),
    )
}

/// Starts as numbers.
pub(crate) fn as_offsets(
    starts: &[(SplitId, Position)],
) -> Result<BTreeMap<i32, i64>, ConnectError> {
    starts
        .iter()
        .map(|(split, position)| Ok((partition_of(split)?, offset_in(position.as_str())?)))
        .collect()
}
