//! What has to be asked of a source's systems before a consumer of it is created: where a first stage starts that
//! begins at what is retained, and how far the last stage has come by now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use segue_connect::{ConnectError, Replayable, Start};
use segue_types::{Boundedness, ObjectId, Position, SplitId, SqlState, StageIndex, UserError};

use super::stopping;
use crate::backoff::Backoff;
use crate::engine::Engine;
use crate::job::Target;
use crate::source::{SourceRuntime, StageRuntime};

/// How long a system may take to answer before the statement gives up.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

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
) -> Result<BTreeMap<usize, Opening>, UserError> {
    let mut openings = BTreeMap::new();
    for (input, id) in sources {
        let id = *id;
        let found = engine.inbox().ask(move |world| world.sources.get(&id).map(Arc::clone)).await;
        let gone = || UserError::new(SqlState::UNDEFINED_TABLE, "the source has been dropped");
        let source = found.ok_or_else(stopping)?.ok_or_else(gone)?;
        openings.insert(*input, open(source).await?);
    }
    Ok(openings)
}

/// The same, for as long as a system is away: nobody is there who could run the statement again.
pub(super) async fn open_all_at_last(
    engine: &Engine,
    sources: &BTreeMap<usize, ObjectId>,
) -> Result<BTreeMap<usize, Opening>, UserError> {
    let mut backoff = Backoff::new();
    loop {
        match open_all(engine, sources).await {
            Err(error) if error.state == SqlState::CONNECTION_FAILURE => backoff.wait().await,
            answer => return answer,
        }
    }
}

/// Asks for one source.
pub(crate) async fn open(source: Arc<SourceRuntime>) -> Result<Opening, UserError> {
    let target = target(&source).await?;
    let first = source.stage(StageIndex(0));
    let starts = answered(first, fresh_starts(first)).await?;
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
pub(super) async fn target(source: &SourceRuntime) -> Result<Target, UserError> {
    let last = source.stages.len() - 1;
    let index = StageIndex(u16::try_from(last).expect("stages are counted in 16 bits"));
    let stage = source.stage(index);
    let positions = match stage.definition.boundedness {
        // A bounded stage has to be complete; there is nothing to reach beyond that.
        Boundedness::Bounded => Vec::new(),
        Boundedness::Continuous => answered(stage, latest(stage)).await?,
    };
    Ok(Target { stage: index, positions })
}

/// The same, for as long as the system is away: nobody is there who could run the statement again.
pub(super) async fn target_at_last(source: &SourceRuntime) -> Result<Target, UserError> {
    let mut backoff = Backoff::new();
    loop {
        match target(source).await {
            Err(error) if error.state == SqlState::CONNECTION_FAILURE => backoff.wait().await,
            answer => return answer,
        }
    }
}

/// The latest position of each split of a stage, where the system can tell.
async fn latest(stage: &Arc<StageRuntime>) -> Result<Vec<(SplitId, Position)>, ConnectError> {
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

async fn answered<T>(
    stage: &StageRuntime,
    question: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, UserError> {
    match tokio::time::timeout(ANSWER_DEADLINE, question).await {
        Ok(answer) => answer.map_err(|error| error.to_user_error(&stage.name)),
        Err(_) => {
            let message = format!(
                "stage \"{}\": {} did not answer in {} s",
                stage.name,
                stage.connector.name(),
                ANSWER_DEADLINE.as_secs()
            );
            Err(UserError::new(SqlState::CONNECTION_FAILURE, message))
        }
    }
}
