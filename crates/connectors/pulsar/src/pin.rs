//! Where a read starts and ends, in places: whatever is symbolic is resolved here, once.
//!
//! Invariant: no start lies before what is retained or beyond a partition's end, as far as the broker tells.

use std::collections::BTreeMap;

use segue_connect::{
    ConnectError, ReadConfig, ReadDefinition, SplitDefinition, SplitStart, Start, Stop,
};
use segue_types::{Boundedness, Position, SplitId, SqlState, UserError};
use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::consumer::{Consumer, Extent, Subscription, extent, place_at};
use crate::place::{Place, partition_of, place_in, place_of, split_of};
use crate::settings::Settings;

/// What the definition remembers beside the splits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pinned {
    /// The first place of each partition when the read was pinned: where a partition starts that a handoff
    /// does not name.
    pub(crate) first: BTreeMap<u32, Position>,
}

impl Pinned {
    /// What [`resolve`] stored.
    pub(crate) fn of(definition: &ReadDefinition) -> Result<Pinned, ConnectError> {
        serde_json::from_value(definition.private.clone())
            .map_err(|error| ConnectError::Unsupported(format!("not a Pulsar definition: {error}")))
    }
}

/// The partitions of the topic as they are now, each with the topic that it is.
pub(crate) async fn partitions(settings: &Settings) -> Result<BTreeMap<u32, String>, ConnectError> {
    let mut connection = Connection::open(settings, &settings.service.0, None).await?;
    let topic = &settings.topic;
    Ok(match connection.partitions(topic).await? {
        0 => [(0, topic.clone())].into(),
        count => (0..count).map(|p| (p, format!("{topic}-partition-{p}"))).collect(),
    })
}

/// What every partition holds now.
async fn extents(
    settings: &Settings,
    partitions: &BTreeMap<u32, String>,
) -> Result<BTreeMap<u32, Extent>, ConnectError> {
    let mut extents = BTreeMap::new();
    for (partition, topic) in partitions {
        if let Some(name) = &settings.subscription {
            // Before anything else: from here on nothing goes that is not acknowledged.
            Consumer::subscribe(settings, topic, Subscription::Durable { name }).await?;
        }
        extents.insert(*partition, extent(settings, topic).await?);
    }
    Ok(extents)
}

/// Freezes the read.
pub(crate) async fn resolve(
    settings: &Settings,
    config: &ReadConfig,
) -> Result<ReadDefinition, ConnectError> {
    let topics = partitions(settings).await?;
    // Before any time is looked up: a message that arrives in between is then read, not skipped.
    let extents = extents(settings, &topics).await?;
    let at = Resolving { settings, topics: &topics, extents: &extents };
    let starts = at.starts(&config.start).await?;
    let bounds = at.bounds(config.stop.as_ref()).await?;
    let splits = extents.keys().map(|partition| {
        let start = starts.as_ref().map(|starts| starts[partition]);
        let bound = bounds.as_ref().map(|bounds| bounds[partition]);
        // A stop before the start is an empty range, complete at its start.
        let bound = bound.map(|bound| start.map_or(bound, |start| bound.max(start)));
        SplitDefinition {
            id: split_of(*partition),
            start: start.map_or(SplitStart::FromHandoff, |at| SplitStart::At(at.position())),
            bound: bound.map(Place::position),
            after: Vec::new(),
        }
    });
    let first = extents.iter().map(|(p, extent)| (*p, extent.start.position())).collect();
    Ok(ReadDefinition {
        identity: settings.topic.clone(),
        boundedness: boundedness(config),
        splits: splits.collect(),
        sealed: config.stop.is_some(),
        remarks: Vec::new(),
        private: serde_json::to_value(Pinned { first }).expect("text has a JSON form"),
    })
}

/// A log read ends exactly when it is told where.
pub(crate) fn boundedness(config: &ReadConfig) -> Boundedness {
    match config.stop {
        Some(_) => Boundedness::Bounded,
        None => Boundedness::Continuous,
    }
}

struct Resolving<'a> {
    settings: &'a Settings,
    topics: &'a BTreeMap<u32, String>,
    extents: &'a BTreeMap<u32, Extent>,
}

type Places = BTreeMap<u32, Place>;

impl Resolving<'_> {
    /// The first place to read of each partition; `None` when the predecessor will say.
    async fn starts(&self, start: &Start) -> Result<Option<Places>, ConnectError> {
        let firsts = || self.extents.iter().map(|(p, extent)| (*p, extent.start));
        Ok(Some(match start {
            Start::Handoff | Start::Query(_) | Start::Columns { .. } => return Ok(None),
            Start::Earliest => firsts().collect(),
            Start::Latest => self.ends(),
            Start::Timestamp { unix_ms } => self.since(*unix_ms).await?,
            Start::Offsets(named) => {
                let named = self.named(named)?;
                firsts().map(|(p, first)| (p, named.get(&p).copied().unwrap_or(first))).collect()
            }
        }))
    }

    /// The exclusive end of each partition; `None` for a read without one.
    async fn bounds(&self, stop: Option<&Stop>) -> Result<Option<Places>, ConnectError> {
        Ok(Some(match stop {
            None => return Ok(None),
            Some(Stop::Latest) => self.ends(),
            Some(Stop::Timestamp { unix_ms }) => self.since(*unix_ms).await?,
            Some(Stop::Offsets(named)) => {
                let named = self.named(named)?;
                if let Some(partition) = self.extents.keys().find(|p| !named.contains_key(p)) {
                    return Err(unnamed(self.settings, *partition));
                }
                named
            }
        }))
    }

    fn ends(&self) -> Places {
        self.extents.iter().map(|(p, extent)| (*p, extent.end)).collect()
    }

    async fn since(&self, unix_ms: i64) -> Result<Places, ConnectError> {
        let mut places = Places::new();
        for (partition, topic) in self.topics {
            let found = place_at(self.settings, topic, unix_ms).await?;
            let extent = self.extents[partition];
            places.insert(*partition, found.max(extent.start).min(extent.end.max(extent.start)));
        }
        Ok(places)
    }

    /// Named places, of partitions that exist, each within what is there.
    fn named(&self, named: &BTreeMap<SplitId, String>) -> Result<Places, ConnectError> {
        let mut places = Places::new();
        for (split, text) in named {
            let (partition, place) = (partition_of(split)?, place_in(text)?);
            let Some(extent) = self.extents.get(&partition) else {
                return Err(missing(self.settings, partition));
            };
            must_lie_within(self.settings, partition, place, *extent)?;
            places.insert(partition, place);
        }
        Ok(places)
    }
}

/// A place must be retained and must not lie beyond the end.
pub(crate) fn must_lie_within(
    settings: &Settings,
    partition: u32,
    place: Place,
    extent: Extent,
) -> Result<(), ConnectError> {
    let (what, split, position) = (settings.what(), split_of(partition), place.position());
    if place < extent.start && settings.subscription.is_none() && extent.start < extent.end {
        let available = extent.start.position();
        return Err(ConnectError::Expired { what, split, position, available });
    }
    // Ledgers that are known are known from the broker, so only within one can a place be made up.
    if place > extent.end && place > extent.start {
        return Err(ConnectError::Truncated { what, split, position, end: extent.end.position() });
    }
    Ok(())
}

pub(crate) fn missing(settings: &Settings, partition: u32) -> ConnectError {
    ConnectError::Missing { what: format!("partition {partition} of {}", settings.what()) }
}

fn unnamed(settings: &Settings, partition: u32) -> ConnectError {
    let what = settings.what();
    let message = format!("STOP AT OFFSETS does not name partition {partition} of {what}");
    ConnectError::Config(
        UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .with_hint("Name every partition: a bounded read must know where each one ends."),
    )
}

/// Checks that every place can still be read from.
pub(crate) async fn check(
    settings: &Settings,
    starts: &[(SplitId, Position)],
) -> Result<(), ConnectError> {
    let topics = partitions(settings).await?;
    for (split, position) in starts {
        let (partition, place) = (partition_of(split)?, place_of(position)?);
        let topic = topics.get(&partition).ok_or_else(|| missing(settings, partition))?;
        must_lie_within(settings, partition, place, extent(settings, topic).await?)?;
    }
    Ok(())
}
