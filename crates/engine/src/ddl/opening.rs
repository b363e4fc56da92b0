//! What has to be asked of a source's systems before a consumer of it is created: where a first stage starts that
//! begins at what is retained, and how far the last stage has come by now.

use std::collections::BTreeMap;
use std::sync::Arc;

use segue_connect::{ConnectError, Latest, Replayable, Start};
use segue_types::{Boundedness, ObjectId, Position, SplitId, SqlState, StageIndex, UserError};

use super::stopping;
use crate::engine::Engine;
use crate::job::Target;
use crate::patience::{Asker, Patience};
use crate::source::{SourceRuntime, StageRuntime};

/// A source as one new consumer will read it.
pub(crate) struct Opening {
    pub(crate) source: Arc<SourceRuntime>,
    /// Starts of the first stage that are not the pinned ones.
    pub(crate) starts: Vec<(SplitId, Position)>,
    pub(crate) target: Target,
}

/// Asks for every source, by input.
pub(super) async fn open_all(
    engine: &Engine,
    sources: &BTreeMap<usize, ObjectId>,
    asker: &Asker,
) -> Result<BTreeMap<usize, Opening>, UserError> {
    let mut openings = BTreeMap::new();
    for (input, id) in sources {
        let id = *id;
        let found = engine.inbox().ask(move |world| world.sources.get(&id).map(Arc::clone)).await;
        let gone = || UserError::new(SqlState::UNDEFINED_TABLE, "the source has been dropped");
        let source = found.ok_or_else(stopping)?.ok_or_else(gone)?;
        openings.insert(*input, open(source, asker).await?);
    }
    Ok(openings)
}

/// The same, for as long as a system is away: nobody is there who could run the statement again.
pub(super) async fn open_all_at_last(
    engine: &Engine,
    sources: &BTreeMap<usize, ObjectId>,
) -> Result<BTreeMap<usize, Opening>, UserError> {
    open_all(engine, sources, &Asker::silent(Patience::Endless)).await
}

/// Asks for one source.
pub(crate) async fn open(source: Arc<SourceRuntime>, asker: &Asker) -> Result<Opening, UserError> {
    let target = target(&source, asker).await?;
    let first = source.stage(StageIndex(0));
    let starts = asker.persistently(first, || fresh_starts(first)).await?;
    Ok(Opening { source, starts, target })
}

/// EARLIEST of a first stage means what is retained now, not what was when the source was created.
async fn fresh_starts(stage: &StageRuntime) -> Result<Vec<(SplitId, Position)>, ConnectError> {
    let may_expire = stage.capabilities.replayable == Replayable::UntilRetention;
    if stage.config.start != Start::Earliest || !may_expire {
        return Ok(Vec::new());
    }
    let fresh = stage.connector.pin(&stage.config).await?;
    if fresh.identity != stage.definition.identity {
        return Err(ConnectError::Replaced {
            what: format!("what stage \"{}\" reads", stage.name),
            pinned: stage.definition.identity.clone(),
            found: fresh.identity,
        });
    }
    Ok(crate::source::pinned_starts(&fresh))
}

/// What the last stage has by now, if it is one that never ends.
async fn target(source: &SourceRuntime, asker: &Asker) -> Result<Target, UserError> {
    let last = source.stages.len() - 1;
    let index = StageIndex(u16::try_from(last).expect("stages are counted in 16 bits"));
    let stage = source.stage(index);
    let positions = match stage.definition.boundedness {
        // A bounded stage has to be complete; there is nothing to reach beyond that.
        Boundedness::Bounded => Vec::new(),
        Boundedness::Continuous => {
            let latest = asker.persistently(stage, || latest(stage)).await?;
            asker.remark(&stage.name, latest.iter().filter_map(|(_, end)| end.remark.as_deref()));
            latest.into_iter().map(|(split, end)| (split, end.position)).collect()
        }
    };
    Ok(Target { stage: index, positions })
}

/// The same, for as long as the system is away: nobody is there who could run the statement again.
pub(super) async fn target_at_last(source: &SourceRuntime) -> Result<Target, UserError> {
    target(source, &Asker::silent(Patience::Endless)).await
}

/// The latest position of each split of a stage, where the system can tell.
async fn latest(stage: &Arc<StageRuntime>) -> Result<Vec<(SplitId, Latest)>, ConnectError> {
    let projection: Vec<usize> = (0..stage.config.schema.fields().len()).collect();
    let reader = stage.open(&projection).await?;
    let mut positions = Vec::new();
    for split in reader.discover().await?.splits {
        if let Some(latest) = reader.latest(&split.id).await? {
            positions.push((split.id, latest));
        }
    }
    Ok(positions)
}
