//! The tasks that work for a consumer: one per open split, one per stage that is being discovered, one per handoff.
//!
//! A task owns no truth. It works from what the coordinator gave it, reports under the assignment that it was
//! started for, and can be aborted at any await without losing a row.

use std::sync::Arc;
use std::time::Duration;

use segue_connect::{ConnectError, ReadEvent, Rows, SplitReader};
use segue_coordinate::Assignment;
use segue_types::{ConsumerId, Position, SplitId, StageIndex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::backoff::Backoff;
use crate::inbox::{Content, Inbox, Message, News};
use crate::limits::{Gate, Reading, Throttle};
use crate::source::{SharedReader, SourceRuntime, StageRuntime};

/// How many bytes of one consumer may wait for a step, in KiB.
pub(crate) const QUEUE_KIB_MAX: u32 = 64 * 1024;
/// How many bounded splits of one consumer are read at once: a folder may have thousands of files.
pub(crate) const BOUNDED_SPLITS_MAX: usize = 8;
/// How often a continuous stage is looked at for new splits, unless its options say otherwise.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(5);

/// What a task works on, and how it tells.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) inbox: Inbox,
    pub(crate) consumer: ConsumerId,
    pub(crate) stage: StageIndex,
    pub(crate) assignment: Assignment,
    pub(crate) queue: Arc<Semaphore>,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) gate: Gate,
    pub(crate) throttle: Throttle,
    /// How long a split may be read and empty before that is told.
    pub(crate) idle_after: Option<Duration>,
}

/// Where somebody asks a discovery to look at once; answered when what it found has been told.
pub(crate) type Refreshes = mpsc::UnboundedSender<oneshot::Sender<()>>;

/// Both ends.
pub(crate) fn refreshes() -> (Refreshes, mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
    mpsc::unbounded_channel()
}

impl Desk {
    fn tell(&self, content: Content) {
        self.inbox.send(Message::News(News {
            consumer: self.consumer,
            stage: self.stage,
            assignment: self.assignment,
            content,
        }));
    }

    /// Room in the queue for the rows of `event`; waits until a step has made some, and as long as rates and memory
    /// ask for.
    async fn permit(&self, reading: Reading, event: &ReadEvent) -> Option<OwnedSemaphorePermit> {
        let ReadEvent::Rows(Rows { bytes, changes, .. }) = event else { return None };
        self.gate.pass().await;
        self.throttle.pass(reading, changes.rows.num_rows()).await;
        let kib = u32::try_from(bytes / 1024).unwrap_or(QUEUE_KIB_MAX).clamp(1, QUEUE_KIB_MAX);
        let permit = Arc::clone(&self.queue).acquire_many_owned(kib).await;
        Some(permit.expect("the queue's semaphore is never closed"))
    }

    /// Waits before another attempt after a transient error; tells a definite one and returns `false`.
    async fn may_retry(&self, error: ConnectError, backoff: &mut Backoff) -> bool {
        if !error.is_transient() {
            self.tell(Content::Failed(error));
            return false;
        }
        self.tell(Content::Retrying(error));
        backoff.wait().await;
        true
    }
}

/// The part of a split that one task reads.
pub(crate) struct Range {
    pub(crate) split: SplitId,
    pub(crate) from: Position,
    pub(crate) until: Option<Position>,
}

impl Range {
    /// Whether nothing is left of it: a gap may reach up to the bound.
    pub(crate) fn is_over(&self) -> bool {
        self.until.as_ref() == Some(&self.from)
    }
}

/// Reads a range, over and over while the system is away.
pub(crate) async fn read_split(desk: Desk, reader: Arc<SharedReader>, mut range: Range) {
    // A split without a bound never gives its slot back, and all of those have to be read.
    let slot = match range.until {
        Some(_) => Some(desk.slots.acquire().await.expect("the semaphore is never closed")),
        None => None,
    };
    let mut backoff = Backoff::new();
    let mut sequence = 0;
    loop {
        match read_on(&desk, &reader, &mut range, &mut sequence, &mut backoff).await {
            Ok(()) => break,
            Err(error) => {
                if let Some(gap) = reader.stage().gap(&range, &error) {
                    sequence += 1;
                    desk.tell(Content::Skipped { split: range.split, sequence, gap });
                    break;
                }
                if !desk.may_retry(error, &mut backoff).await {
                    break;
                }
            }
        }
    }
    drop(slot);
}

async fn read_on(
    desk: &Desk,
    shared: &SharedReader,
    range: &mut Range,
    sequence: &mut u64,
    backoff: &mut Backoff,
) -> Result<(), ConnectError> {
    if range.is_over() {
        *sequence += 1;
        let (split, event) = (range.split.clone(), ReadEvent::Done { at: range.from.clone() });
        desk.tell(Content::Read { split, sequence: *sequence, event, permit: None });
        return Ok(());
    }
    let stage = shared.get().await?;
    let discard_broken = |error: ConnectError| {
        shared.discard(&stage);
        error
    };
    let opened = stage.read(&range.split, &range.from, range.until.as_ref()).await;
    let mut reader = opened.map_err(discard_broken)?;
    let reading = if range.until.is_some() { Reading::Backfill } else { Reading::Live };
    loop {
        let event = next(desk, range, reader.as_mut()).await.map_err(discard_broken)?;
        backoff.reset();
        let done = match &event {
            ReadEvent::Rows(Rows { next, .. }) | ReadEvent::Progress { next } => {
                range.from.clone_from(next);
                false
            }
            ReadEvent::Done { .. } => true,
        };
        let permit = desk.permit(reading, &event).await;
        *sequence += 1;
        let (split, sequence) = (range.split.clone(), *sequence);
        desk.tell(Content::Read { split, sequence, event, permit });
        if done {
            return Ok(());
        }
    }
}

/// The next event. The clock of idleness runs only here, where nothing but the log itself is waited for.
async fn next(
    desk: &Desk,
    range: &Range,
    reader: &mut dyn SplitReader,
) -> Result<ReadEvent, ConnectError> {
    let next = reader.next();
    let Some(idle_after) = desk.idle_after.filter(|_| range.until.is_none()) else {
        return next.await;
    };
    tokio::pin!(next);
    tokio::select! {
        event = &mut next => return event,
        () = tokio::time::sleep(idle_after) => {}
    }
    desk.tell(Content::Idle { split: range.split.clone() });
    next.await
}

/// Looks for splits until the set is sealed.
pub(crate) async fn discover(
    desk: Desk,
    shared: Arc<SharedReader>,
    mut asked: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
) {
    let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
    let interval = discovery_interval(shared.stage());
    let mut backoff = Backoff::new();
    let mut sequence = 0;
    loop {
        let found = match shared.get().await {
            Ok(reader) => reader.discover().await,
            Err(error) => Err(error),
        };
        match found {
            Ok(enumeration) => {
                let sealed = enumeration.sealed;
                sequence += 1;
                desk.tell(Content::Discovered { sequence, enumeration });
                waiting.drain(..).for_each(|answer| _ = answer.send(()));
                if sealed {
                    return;
                }
                backoff.reset();
                tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    Some(answer) = asked.recv() => waiting.push(answer),
                }
            }
            Err(error) => {
                if !desk.may_retry(error, &mut backoff).await {
                    return;
                }
            }
        }
    }
}

fn discovery_interval(stage: &StageRuntime) -> Duration {
    let seconds = stage.config.options.get("refresh.interval.sec");
    seconds.and_then(|text| text.parse().ok()).map_or(DISCOVERY_INTERVAL, Duration::from_secs)
}

/// Derives where the desk's stage starts after `from`, which has ended at `ends`.
pub(crate) async fn resolve_handoff(
    desk: Desk,
    source: Arc<SourceRuntime>,
    from: StageIndex,
    ends: Vec<(SplitId, Position)>,
) {
    let mut backoff = Backoff::new();
    loop {
        match source.derive_starts(from, desk.stage, ends.clone()).await {
            Ok(starts) => return desk.tell(Content::HandoffResolved(starts)),
            Err(error) => {
                if !desk.may_retry(error, &mut backoff).await {
                    return;
                }
            }
        }
    }
}

/// Checks that the pinned starts of the next stage still hold.
pub(crate) async fn check_starts(
    desk: Desk,
    stage: Arc<StageRuntime>,
    starts: Vec<(SplitId, Position)>,
) {
    let mut backoff = Backoff::new();
    loop {
        match stage.check(&starts).await {
            Ok(()) => return desk.tell(Content::StartsChecked),
            Err(error) => {
                if !desk.may_retry(error, &mut backoff).await {
                    return;
                }
            }
        }
    }
}
