//! Where a read starts after another one, and whether a read can still start where it was told to.

use std::collections::BTreeMap;

use segue_connect::{ConnectError, Handoff, HandoffKind, ReadDefinition};
use segue_types::{Position, SplitId, SqlState, UserError};

use crate::link::Link;
use crate::pin::{Extent, Pinned, as_offsets, extents, must_lie_within};
use crate::settings::{Purpose, Settings};
use crate::splits::{position_of, split_of};

/// The topic as it is now, known to be the one that was pinned.
struct Present {
    link: Link,
    extents: BTreeMap<i32, Extent>,
}

fn present(settings: &Settings, definition: &ReadDefinition) -> Result<Present, ConnectError> {
    let link = Link::new(settings, Purpose::Questions)?;
    let (described, identity) = link.identify()?;
    if identity != definition.identity {
        return Err(link.replaced(&definition.identity, &identity));
    }
    let extents = extents(&link, &described.partitions)?;
    Ok(Present { link, extents })
}

impl Present {
    fn check(&self, settings: &Settings, starts: &BTreeMap<i32, i64>) -> Result<(), ConnectError> {
        if let Some(partition) = starts.keys().find(|p| !self.extents.contains_key(p)) {
            let what = format!("partition {partition} of {}", self.link.what());
            return Err(ConnectError::Missing { what });
        }
        let pairs = starts.iter().map(|(partition, offset)| (*partition, *offset));
        must_lie_within(settings, &self.link, pairs, &self.extents)
    }
}

/// The start of every partition after what `handoff` says was covered.
pub(crate) fn derive(
    settings: &Settings,
    definition: &ReadDefinition,
    handoff: &Handoff,
) -> Result<Vec<(SplitId, Position)>, ConnectError> {
    if handoff.kind == HandoffKind::LogEnds && handoff.identity != definition.identity {
        return Err(another_log(definition, handoff));
    }
    let pinned = Pinned::of(definition)?;
    let named = as_offsets(&handoff.ends)?;
    let present = present(settings, definition)?;
    // A partition that is not named holds nothing of what was covered: it is read from its beginning.
    let unnamed = |partition: &i32| pinned.first.get(partition).copied().unwrap_or(0);
    let mut starts: BTreeMap<i32, i64> =
        present.extents.keys().map(|partition| (*partition, unnamed(partition))).collect();
    starts.extend(named);
    present.check(settings, &starts)?;
    Ok(starts.into_iter().map(|(p, offset)| (split_of(p), position_of(offset))).collect())
}

/// Whether the read can start at `starts`.
pub(crate) fn check(
    settings: &Settings,
    definition: &ReadDefinition,
    starts: &[(SplitId, Position)],
) -> Result<(), ConnectError> {
    let starts = as_offsets(starts)?;
    present(settings, definition)?.check(settings, &starts)
}

fn another_log(definition: &ReadDefinition, handoff: &Handoff) -> ConnectError {
    let message = "the stage before read another log, so its end says nothing about this one";
    ConnectError::Config(
        UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .with_detail(format!(
                "It read {}; this stage reads {}.",
                handoff.identity, definition.identity
            ))
            .with_hint("State where this stage starts: START AT OFFSETS, QUERY or COLUMNS."),
    )
}
