//! Where a read starts after another one, and whether a read can still start where it was told to.

use segue_connect::{ConnectError, Handoff, HandoffKind, ReadDefinition};
use segue_types::{Position, SplitId, SqlState, UserError};

use crate::api::StreamInfo;
use crate::link::{Link, what};
use crate::pin::{Pinned, identity, must_lie_within};
use crate::sequence::{must_be_known, position_of, sequence_of, split};

/// The stream as it is now, known to be the one that was pinned.
pub(crate) async fn present(
    link: &Link,
    definition: &ReadDefinition,
) -> Result<StreamInfo, ConnectError> {
    let info = link.stream(&Pinned::of(definition)?.stream).await?;
    let found = identity(link, &info);
    if found == definition.identity {
        return Ok(info);
    }
    Err(ConnectError::Replaced {
        what: what(&info.config.name),
        pinned: definition.identity.clone(),
        found,
    })
}

/// The start after what `handoff` says was covered.
pub(crate) async fn derive(
    link: &Link,
    definition: &ReadDefinition,
    handoff: &Handoff,
) -> Result<Vec<(SplitId, Position)>, ConnectError> {
    if handoff.kind == HandoffKind::LogEnds && handoff.identity != definition.identity {
        return Err(another_log(definition, handoff));
    }
    // A stream that is not named holds nothing of what was covered: it is read from its beginning.
    let mut start = Pinned::of(definition)?.first;
    for (split, position) in &handoff.ends {
        must_be_known(split)?;
        start = sequence_of(position)?;
    }
    must_lie_within(start, &present(link, definition).await?)?;
    Ok(vec![(split(), position_of(start))])
}

/// Whether the read can start at `starts`.
pub(crate) async fn check(
    link: &Link,
    definition: &ReadDefinition,
    starts: &[(SplitId, Position)],
) -> Result<(), ConnectError> {
    let info = present(link, definition).await?;
    for (split, position) in starts {
        must_be_known(split)?;
        must_lie_within(sequence_of(position)?, &info)?;
    }
    Ok(())
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
