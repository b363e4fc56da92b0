//! The step loop: take what has arrived, run every dataflow once over it, seal an epoch when one is due.
//!
//! Nothing is done in reaction to a message alone: messages are taken in batches, at the loop's own pace.
//! Invariant: rows are applied in the same step in which the coordinator records that they were read, so what a
//! seal writes of both belongs together.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use segue_connect::{Changes, ReadEvent, Rows};
use segue_coordinate::{Event, Report, Verdict, verdict};
use segue_flow::StepInput;
use segue_store::crash_point;
use segue_types::{ConsumerId, ObjectId, SplitId, StageIndex};
use tokio::sync::OwnedSemaphorePermit;

use crate::commit::Committer;
use crate::inbox::{Content, Message, News};
use crate::relation::Inputs;
use crate::resting::ROUND_INTERVAL;
use crate::world::{RejectedRecord, World};

/// How many rows one step takes at most, so that statements and epochs are not kept waiting.
const STEP_ROWS_MAX: usize = 64 * 1024;
/// How long one step collects at most.
const STEP_COLLECT_MAX: Duration = Duration::from_millis(20);
/// Epochs are at least this far apart.
const EPOCH_INTERVAL_MIN: Duration = Duration::from_millis(10);
/// While rows keep coming, an epoch is sealed this often: each one costs a write of all that is dirty.
const EPOCH_INTERVAL_BUSY: Duration = Duration::from_millis(150);

/// While a view is being filled: it dirties much, which the others that change little would wait for.
const EPOCH_INTERVAL_FILLING: Duration = Duration::from_millis(50);

/// Runs until shutdown. The last epoch is durable when it returns.
pub(crate) fn run(mut world: World, inbox: &Receiver<Message>, mut committer: Committer) {
    world.rendezvous();
    let mut sealed_at = Instant::now() - EPOCH_INTERVAL_MIN;
    let mut rested_at = Instant::now();
    let mut shutdown = false;
    loop {
        let wants_epoch = world.wants_epoch();
        if shutdown && !wants_epoch && committer.is_idle() {
            return;
        }
        let may_seal = wants_epoch && committer.is_idle();
        let wait = match world.is_filling() {
            true => Some(Duration::ZERO),
            false => may_seal.then(|| EPOCH_INTERVAL_MIN.saturating_sub(sealed_at.elapsed())),
        };
        let wait = wait.into_iter().chain(world.until_due()).chain(world.until_round()).min();
        let taken = take(&mut world, inbox, &mut committer, wait);
        shutdown |= taken.shutdown;
        // What is not filled when the server stops is filled anew.
        if !shutdown {
            world.fill_some();
        }
        if committer.is_idle() && rested_at.elapsed() >= ROUND_INTERVAL {
            world.rest();
            rested_at = Instant::now();
        }
        // Behind one that commits a second epoch waits: that keeps the disk busy, but what comes meanwhile would wait
        // for both. So only while there is more to take than can be taken.
        let (due, has_room) = match (taken.more, world.is_filling()) {
            (true, _) => (EPOCH_INTERVAL_BUSY, committer.has_room()),
            (false, true) => (EPOCH_INTERVAL_FILLING, committer.is_idle()),
            (false, false) => (EPOCH_INTERVAL_MIN, committer.is_idle()),
        };
        let wants_epoch = world.wants_epoch() && has_room;
        if wants_epoch && (shutdown || sealed_at.elapsed() >= due) {
            let began = Instant::now();
            committer.seal(&mut world, began);
            world.check_memory();
            sealed_at = began;
        }
    }
}

/// What one round brought.
struct Taken {
    shutdown: bool,
    /// The round ended with more waiting.
    more: bool,
}

/// Takes messages, waiting at most `wait` for the first, and steps over their rows.
fn take(
    world: &mut World,
    inbox: &Receiver<Message>,
    committer: &mut Committer,
    wait: Option<Duration>,
) -> Taken {
    let mut round = Round::default();
    // What was held goes before what came after it.
    let released = world.released.pop_front().map(Message::News);
    let first = match (released, wait) {
        (Some(news), _) => Some(news),
        (None, None) => inbox.recv().ok(),
        (None, Some(wait)) => match inbox.recv_timeout(wait) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => {
                // Time alone may change what is shown.
                round.step(world);
                return Taken { shutdown: false, more: false };
            }
            Err(RecvTimeoutError::Disconnected) => None,
        },
    };
    let began = Instant::now();
    let mut next = first;
    let mut taken = Taken { shutdown: false, more: false };
    loop {
        match next {
            None | Some(Message::Shutdown) => taken.shutdown = true,
            Some(message) => round.take(world, committer, message),
        }
        if round.rows >= STEP_ROWS_MAX || began.elapsed() >= STEP_COLLECT_MAX || taken.shutdown {
            taken.more = !taken.shutdown;
            break;
        }
        next = match world.released.pop_front() {
            Some(news) => Some(Message::News(news)),
            None => match inbox.try_recv() {
                Ok(message) => Some(message),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            },
        };
    }
    round.step(world);
    taken
}

/// What has been taken and not been stepped over yet.
#[derive(Default)]
struct Round {
    inputs: BTreeMap<ObjectId, Inputs>,
    rows: usize,
    /// Held until the step has consumed the rows.
    permits: Vec<OwnedSemaphorePermit>,
}

impl Round {
    fn take(&mut self, world: &mut World, committer: &mut Committer, message: Message) {
        match message {
            Message::News(news) => self.news(world, news),
            Message::Command(command) => {
                // A command sees a step boundary: what came before it has been applied.
                self.step(world);
                command(world);
            }
            Message::Committed(committed) => {
                self.step(world);
                committer.committed(world, committed);
            }
            Message::Shutdown => unreachable!("taken by the loop"),
        }
    }

    fn step(&mut self, world: &mut World) {
        world.pending.rows += self.rows as u64;
        self.rows = 0;
        world.move_watermarks(&mut self.inputs);
        world.tick(&mut self.inputs);
        world.run(std::mem::take(&mut self.inputs));
        self.permits.clear();
        world.rendezvous();
    }

    fn news(&mut self, world: &mut World, news: News) {
        let Some(consumer) = world.consumers.get_mut(&news.consumer) else { return };
        let Some(news) = consumer.meeting.withhold(news) else { return };
        let News { consumer: id, stage, assignment, content } = news;
        let meter = &mut consumer.meters[stage.as_usize()];
        let event = match content {
            Content::Read { split, sequence, event, permit } => {
                let report = Report { assignment, sequence };
                self.permits.extend(permit);
                return self.read(world, id, (stage, split, report), event);
            }
            Content::Skipped { split, sequence, gap } => {
                meter.away = None;
                let report = Report { assignment, sequence };
                return world.skip(id, report, (stage, split), &gap);
            }
            Content::Retrying(error) => {
                tracing::info!(consumer = %id, %error, "will try again");
                meter.missed(error);
                return;
            }
            Content::Failed(error) => {
                let stopped = consumer.fail(stage, assignment, &error);
                return world.settle(id, stopped);
            }
            Content::Discovered { sequence, enumeration } => Event::Discovered {
                report: Report { assignment, sequence },
                stage,
                splits: enumeration.splits.into_iter().map(crate::source::split_plan).collect(),
                sealed: enumeration.sealed,
            },
            Content::Idle { split } => {
                return world.tell(id, Event::Idle { assignment, stage, split });
            }
            Content::HandoffResolved(starts) => {
                Event::HandoffResolved { assignment, stage, starts }
            }
            Content::StartsChecked => Event::StartsChecked { assignment, stage },
        };
        meter.away = None;
        world.tell(id, event);
    }

    /// Rows go to the dataflow exactly if the coordinator counts the report that brought them.
    fn read(
        &mut self,
        world: &mut World,
        id: ConsumerId,
        (stage, split, report): (StageIndex, SplitId, Report),
        event: ReadEvent,
    ) {
        let consumer = world.consumers.get_mut(&id).expect("its news are being taken");
        let (told, rows) = match event {
            ReadEvent::Rows(rows) => {
                let next = rows.next.clone();
                let split = split.clone();
                (Event::Progressed { report, stage, split, next }, Some(rows))
            }
            ReadEvent::Progress { next } => {
                (Event::Progressed { report, stage, split: split.clone(), next }, None)
            }
            ReadEvent::Done { at } => {
                (Event::SplitDone { report, stage, split: split.clone(), at }, None)
            }
        };
        match verdict(consumer.state(), &told) {
            Verdict::Apply => {}
            Verdict::Early => unreachable!("a task's messages arrive in its own order"),
            Verdict::Duplicate | Verdict::Stale => return world.tell(id, told),
        }
        consumer.meters[stage.as_usize()].moved(&split);
        let is_last = stage.as_usize() + 1 == consumer.source.stages.len();
        let moment = Moment::of(&told, rows.as_ref(), is_last);
        moment.before();
        let watermark = rows.as_ref().and_then(|rows| consumer.watermark_of(&rows.changes.rows));
        if let Some(rows) = rows {
            self.apply(world, id, (stage, split.clone()), rows);
        }
        world.tell(id, told);
        if let Some(watermark) = watermark {
            world.tell(id, Event::Timed { stage, split, watermark });
        }
        moment.after();
    }

    fn apply(
        &mut self,
        world: &mut World,
        id: ConsumerId,
        (stage, split): (StageIndex, SplitId),
        rows: Rows,
    ) {
        let consumer = world.consumers.get_mut(&id).expect("its news are being taken");
        let meter = &mut consumer.meters[stage.as_usize()];
        meter.took(&rows);
        let source = consumer.source.object;
        for record in rows.rejected {
            let split = split.clone();
            world.pending.rejected.push(RejectedRecord { source, stage, split, record });
        }
        if rows.changes.rows.num_rows() == 0 {
            return;
        }
        self.rows += rows.changes.rows.num_rows();
        let consumer = &world.consumers[&id];
        for taker in world.takers(consumer, stage, &split) {
            let changes = match consumer.pick(&taker) {
                Some(places) => project(&rows.changes, &places),
                None => rows.changes.clone(),
            };
            let changes = StepInput::Changes(changes);
            self.inputs.entry(taker.object).or_default().push((taker.input, changes));
        }
    }
}

/// The columns that one of several takers wants.
fn project(changes: &Changes, places: &[usize]) -> Changes {
    let rows = changes.rows.project(places).expect("readers deliver what every taker wants");
    Changes { rows, ops: changes.ops.clone() }
}

/// Where in a handoff an event stands, for the crash points there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    BoundedRows,
    LiveRows,
    Completion,
    Other,
}

impl Moment {
    fn of(event: &Event, rows: Option<&Rows>, is_last: bool) -> Moment {
        match (event, rows) {
            (Event::SplitDone { .. }, _) => Moment::Completion,
            (_, Some(_)) if is_last => Moment::LiveRows,
            (_, Some(_)) => Moment::BoundedRows,
            _ => Moment::Other,
        }
    }

    fn before(self) {
        match self {
            Moment::LiveRows => crash_point!("before-first-live-row"),
            Moment::Completion => {
                crash_point!("after-last-bounded-row");
                crash_point!("before-completion-report");
            }
            Moment::BoundedRows | Moment::Other => {}
        }
    }

    fn after(self) {
        match self {
            Moment::BoundedRows => crash_point!("mid-bounded-stage"),
            Moment::Completion => crash_point!("after-completion-report"),
            Moment::LiveRows | Moment::Other => {}
        }
    }
}
