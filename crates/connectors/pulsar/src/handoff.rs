//! Where a read starts after another one.

use std::collections::BTreeMap;

use segue_connect::{ConnectError, Handoff, HandoffKind, ReadDefinition};
use segue_types::{Position, SplitId, SqlState, UserError};

use crate::consumer::extent;
use crate::pin::{Pinned, missing, must_lie_within, partitions};
use crate::place::{Place, partition_of, place_of, split_of};
use crate::settings::Settings;

/// The start of every partition after what `handoff` says was covered.
pub(crate) async fn derive(
    settings: &Settings,
    definition: &ReadDefinition,
    handoff: &Handoff,
) -> Result<Vec<(SplitId, Position)>, ConnectError> {
    if handoff.kind == HandoffKind::LogEnds && handoff.identity != definition.identity {
        return Err(another_log(definition, handoff));
    }
    let pinned = Pinned::of(definition)?;
    let mut named: BTreeMap<u32, Place> = BTreeMap::new();
    for (split, position) in &handoff.ends {
        named.insert(partition_of(split)?, place_of(position)?);
    }
    let topics = partitions(settings).await?;
    if let Some(partition) = named.keys().find(|partition| !topics.contains_key(partition)) {
        return Err(missing(settings, *partition));
    }
    let mut starts = Vec::new();
    for (partition, topic) in &topics {
        let extent = extent(settings, topic).await?;
        // A partition that is not named holds nothing of what was covered: it is read from its beginning.
        let first = pinned.first.get(partition).map(place_of).transpose()?;
        let start = named.get(partition).copied().or(first).unwrap_or(extent.start);
        must_lie_within(settings, *partition, start, extent)?;
        starts.push((split_of(*partition), start.position()));
    }
    Ok(starts)
}

fn another_log(definition: &ReadDefinition, handoff: &Handoff) -> ConnectError {
    let message = "the stage before read another log, so its end says nothing about this one";
    ConnectError::Config(
        UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .with_detail(format!(
                "It read {}; this stage reads {}.",
                handoff.identity, definition.identity
            ))
            .with_hint("State where this stage starts: START AT OFFSETS or QUERY."),
    )
}
