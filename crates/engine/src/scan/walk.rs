//! The walk: stage after stage, the splits of each side by side, every start derived as a consumer derives it.
//!
//! A system that is away is waited for, but not for ever: somebody sits in front of the statement.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use segue_connect::{
    ConnectError, Enumeration, ReadEvent, Rows, SplitDefinition, SplitStart, StageReader,
};
use segue_types::{Boundedness, Position, SplitId, StageIndex, UserError};
use tokio::sync::mpsc;

use super::Delivery;
use crate::ddl::canceled;
use crate::ddl::opening::Opening;
use crate::gaps;
use crate::patience::{Asker, Waiting};
use crate::reader::{BOUNDED_SPLITS_MAX, Range};
use crate::source::{SharedReader, StageRuntime};

/// How often a bounded stage whose splits are not all known yet is looked at.
const SEAL_INTERVAL: Duration = Duration::from_millis(500);

/// Full positions of a stage's splits.
type Positions = Vec<(SplitId, Position)>;

/// Reads every stage to its end, and the last one to the horizon.
pub(super) async fn walk(
    opening: &Opening,
    asker: &Asker,
    columns: &[usize],
    sink: &mpsc::Sender<Delivery>,
) -> Result<(), UserError> {
    let mut ends = opening.starts.clone();
    for index in 0..opening.source.stages.len() {
        let index = StageIndex(u16::try_from(index).expect("stages are counted in 16 bits"));
        let starts = starts(opening, asker, index, ends).await?;
        let stage = opening.source.stage(index);
        let shared = SharedReader::new(Arc::clone(stage), columns.into());
        let splits = splits(opening, asker, &shared).await?;
        ends = read_stage(&shared, asker, ranges(splits, &starts, stage)?, sink).await?;
    }
    Ok(())
}

/// Where the stage's splits start, as far as its definition does not say.
async fn starts(
    opening: &Opening,
    asker: &Asker,
    index: StageIndex,
    ends: Positions,
) -> Result<Positions, UserError> {
    let Some(before) = index.0.checked_sub(1).map(StageIndex) else { return Ok(ends) };
    let stage = opening.source.stage(index);
    if stage.handoff.as_ref().is_some_and(|handoff| handoff.kind.is_some()) {
        let derive = || opening.source.derive_starts(before, index, ends.clone());
        return asker.persistently(stage, derive).await;
    }
    let pinned = stage.pinned_starts();
    asker.persistently(stage, || stage.check(&pinned)).await?;
    Ok(pinned)
}

/// The splits to be read, each with its bound: of a stage without end, those that the horizon knows.
async fn splits(
    opening: &Opening,
    asker: &Asker,
    shared: &SharedReader,
) -> Result<Vec<SplitDefinition>, UserError> {
    let stage = shared.stage();
    let is_bounded = stage.definition.boundedness == Boundedness::Bounded;
    loop {
        let listed = asker.persistently(stage, || list(shared)).await?;
        if !is_bounded {
            let within = |split: SplitDefinition| {
                let (_, latest) =
                    opening.target.positions.iter().find(|(known, _)| *known == split.id)?;
                Some(SplitDefinition { bound: Some(latest.clone()), ..split })
            };
            return Ok(listed.splits.into_iter().filter_map(within).collect());
        }
        if listed.sealed {
            return Ok(listed.splits);
        }
        tokio::time::sleep(SEAL_INTERVAL).await;
    }
}

async fn list(shared: &SharedReader) -> Result<Enumeration, ConnectError> {
    let reader = shared.get().await?;
    reader.discover().await.inspect_err(|_| shared.discard(&reader))
}

/// A split to be read, and those that must be read before it.
struct Due {
    range: Range,
    after: Vec<SplitId>,
}

fn ranges(
    splits: Vec<SplitDefinition>,
    starts: &Positions,
    stage: &StageRuntime,
) -> Result<Vec<Due>, UserError> {
    let due = |split: SplitDefinition| {
        let given = starts.iter().find(|(id, _)| *id == split.id).map(|(_, at)| at.clone());
        let from = match (given, split.start) {
            (Some(at), _) | (None, SplitStart::At(at)) => at,
            (None, SplitStart::FromHandoff) => {
                let message =
                    format!("stage \"{}\": split {} was given no start", stage.name, split.id);
                return Err(UserError::internal(message));
            }
        };
        let range = Range { split: split.id, from, until: split.bound };
        Ok(Due { range, after: split.after })
    };
    splits.into_iter().map(due).collect()
}

/// Reads the splits of a stage, those first that others wait for. Returns where each ended.
async fn read_stage(
    shared: &SharedReader,
    asker: &Asker,
    mut due: Vec<Due>,
    sink: &mpsc::Sender<Delivery>,
) -> Result<Positions, UserError> {
    let mut ends = Positions::new();
    while !due.is_empty() {
        let waiting: BTreeSet<SplitId> = due.iter().map(|due| due.range.split.clone()).collect();
        let is_ready = |due: &Due| !due.after.iter().any(|split| waiting.contains(split));
        let (ready, rest): (Vec<Due>, Vec<Due>) = due.into_iter().partition(is_ready);
        assert!(!ready.is_empty(), "splits do not wait for one another in a circle");
        let reads: Vec<_> =
            ready.into_iter().map(|due| read_range(shared, asker, due.range, sink)).collect();
        let reads = stream::iter(reads).buffer_unordered(BOUNDED_SPLITS_MAX);
        ends.extend(reads.try_collect::<Positions>().await?);
        due = rest;
    }
    Ok(ends)
}

async fn read_range(
    shared: &SharedReader,
    asker: &Asker,
    mut range: Range,
    sink: &mpsc::Sender<Delivery>,
) -> Result<(SplitId, Position), UserError> {
    let name = &shared.stage().name;
    let mut waiting = Waiting::new(asker);
    loop {
        let end = match read_on(shared, &mut range, &mut waiting, sink).await {
            Ok(end) => end?,
            Err(error) => {
                match shared.stage().gap(&range, &error) {
                    Some(gap) => {
                        asker.tell(gaps::describe(name, &range.split, &gap));
                        range.from = gap.to;
                    }
                    None => waiting.after(error, name).await?,
                }
                continue;
            }
        };
        return Ok((range.split, end));
    }
}

/// Reads on from where the range is now. The outer error is the connector's.
async fn read_on(
    shared: &SharedReader,
    range: &mut Range,
    waiting: &mut Waiting<'_>,
    sink: &mpsc::Sender<Delivery>,
) -> Result<Result<Position, UserError>, ConnectError> {
    if range.is_over() {
        return Ok(Ok(range.from.clone()));
    }
    let stage: Arc<dyn StageReader> = shared.get().await?;
    let broken = |_: &ConnectError| shared.discard(&stage);
    let opened = stage.read(&range.split, &range.from, range.until.as_ref()).await;
    let mut reader = opened.inspect_err(broken)?;
    loop {
        let event = reader.next().await.inspect_err(broken)?;
        waiting.reset();
        match event {
            ReadEvent::Done { at } => return Ok(Ok(at)),
            ReadEvent::Progress { next } => range.from = next,
            ReadEvent::Rows(Rows { changes, next, rejected, .. }) => {
                range.from = next;
                let delivery = Delivery { changes, rejected: rejected.len() };
                if sink.send(delivery).await.is_err() {
                    return Ok(Err(canceled()));
                }
            }
        }
    }
}
