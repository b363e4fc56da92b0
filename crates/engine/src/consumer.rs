//! A consumer at run time: its coordinator's state, the tasks that work for it, what they have read.
//!
//! Invariant: tasks start and stop only as effects of [`segue_coordinate::decide`]; a task that is no longer in the
//! table has been aborted, and what it still sends is stale by its assignment.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use segue_connect::{ConnectError, StageReader};
use segue_coordinate::{Assignment, ConsumerState, Effect, Event, FailedBy, Mode, decide, mode};
use segue_flow::Mark;
use segue_store::crash_point;
use segue_types::{ConsumerId, ObjectId, Position, SplitId, SqlState, StageIndex, UserError};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::AbortHandle;

use crate::inbox::Inbox;
use crate::limits::{Gate, Pace, Passage, Throttle};
use crate::meeting::Meeting;
use crate::meter::StageMeter;
use crate::reader::{self, Desk, Range, Refreshes};
use crate::source::{SharedReader, SourceRuntime};

/// Where a consumer's tasks run and where they tell.
#[derive(Clone)]
pub(crate) struct Workplace {
    pub(crate) runtime: Handle,
    pub(crate) inbox: Inbox,
    /// Of all readers of the server.
    pub(crate) gate: Gate,
}

/// Who takes the rows of a reading.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    /// The view or table.
    pub(crate) object: ObjectId,
    /// The input of its dataflow.
    pub(crate) input: usize,
    /// The columns of the source that it wants, ascending.
    pub(crate) columns: Arc<[usize]>,
    /// The input that is told of the watermark.
    pub(crate) mark: Option<usize>,
    /// What it was told last.
    pub(crate) told: Mark,
}

/// One reading of a source.
pub(crate) struct Consumer {
    pub(crate) id: ConsumerId,
    /// One for a reading of its own, any number for the live one.
    pub(crate) subscribers: Vec<Subscriber>,
    pub(crate) source: Arc<SourceRuntime>,
    /// What the live reading has to do with those that will meet it; empty for every other.
    pub(crate) meeting: Meeting,
    /// Always there between two decisions; `decide` takes it by value.
    state: Option<ConsumerState>,
    pub(crate) meters: Vec<StageMeter>,
    /// The columns that readers deliver, ascending: all that subscribers want, or those of the past did.
    projection: Arc<[usize]>,
    /// By stage and number: splits are spread over as many as the pace asks for.
    readers: BTreeMap<(StageIndex, u32), Arc<SharedReader>>,
    pace: Pace,
    throttle: Throttle,
    refreshes: BTreeMap<StageIndex, Refreshes>,
    tasks: BTreeMap<(StageIndex, Task), AbortHandle>,
    acknowledging: Vec<AbortHandle>,
    queue: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    /// What a task of this process failed with; the coordinator keeps the message alone.
    reported: Option<UserError>,
    workplace: Workplace,
}

const STATE_IS_THERE: &str = "the state is away only while decide runs";

/// What a task does for a stage.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Discover,
    Handoff,
    Read(SplitId),
}

/// Why a consumer stands still from now on; for the world to tell.
pub(crate) type Stopped = Option<UserError>;

impl Consumer {
    pub(crate) fn new(
        id: ConsumerId,
        subscribers: Vec<Subscriber>,
        source: Arc<SourceRuntime>,
        state: ConsumerState,
        workplace: Workplace,
    ) -> Consumer {
        let meters = vec![StageMeter::default(); source.stages.len()];
        let wanted = subscribers.iter().flat_map(|s| s.columns.iter().copied());
        // Whoever comes later may wait for the watermark of rows that came before.
        let timed = source.watermark.map(|watermark| watermark.column);
        let projection = union(&[], wanted.chain(timed));
        Consumer {
            id,
            subscribers,
            source,
            meeting: Meeting::default(),
            state: Some(state),
            meters,
            projection,
            readers: BTreeMap::new(),
            pace: Pace::default(),
            throttle: Throttle::new(Pace::default()),
            refreshes: BTreeMap::new(),
            tasks: BTreeMap::new(),
            acknowledging: Vec::new(),
            queue: Arc::new(Semaphore::new(reader::QUEUE_KIB_MAX as usize)),
            slots: Arc::new(Semaphore::new(reader::BOUNDED_SPLITS_MAX)),
            reported: None,
            workplace,
        }
    }

    /// Decides what `event` means, and does it.
    pub(crate) fn decide(&mut self, event: Event) -> Stopped {
        let (state, effects) = decide(self.state.take().expect(STATE_IS_THERE), event);
        self.state = Some(state);
        self.perform(effects)
    }

    /// What the coordinator knows.
    pub(crate) fn state(&self) -> &ConsumerState {
        self.state.as_ref().expect(STATE_IS_THERE)
    }

    /// Makes readers deliver these columns too. Those at work deliver others: their work moves to new ones.
    pub(crate) fn widen(&mut self, columns: &[usize]) -> Stopped {
        let wide = union(&self.projection, columns.iter().copied());
        if wide == self.projection {
            return None;
        }
        self.projection = wide;
        let generation = self.state().generation().next();
        self.decide(Event::Reassigned { generation })
    }

    /// The columns of `subscriber` among those that a batch has.
    pub(crate) fn pick(&self, subscriber: &Subscriber) -> Option<Vec<usize>> {
        if subscriber.columns == self.projection {
            return None;
        }
        let place = |column| self.projection.binary_search(column);
        let places = subscriber.columns.iter().map(place).collect::<Result<_, _>>();
        Some(places.expect("readers deliver what every subscriber wants"))
    }

    /// Where a column of the source is among those that readers deliver.
    pub(crate) fn place_of(&self, column: usize) -> usize {
        let place = self.projection.binary_search(&column);
        place.expect("readers deliver what is asked for here")
    }

    /// Carries out effects in order.
    pub(crate) fn perform(&mut self, effects: Vec<Effect>) -> Stopped {
        effects.into_iter().filter_map(|effect| self.perform_one(effect)).last()
    }

    fn perform_one(&mut self, effect: Effect) -> Stopped {
        match effect {
            Effect::Discover { assignment, stage } => {
                let (desk, shared) = (self.desk(stage, assignment), self.reader(stage, 0));
                let (ask, asked) = reader::refreshes();
                self.refreshes.insert(stage, ask);
                self.spawn(stage, Task::Discover, reader::discover(desk, shared, asked));
            }
            Effect::OpenSplit { assignment, stage, split, from, until } => {
                if stage.0 > 0 {
                    crash_point!("after-activation");
                }
                let number = split_number(&split) % self.reader_count();
                let (desk, shared) = (self.desk(stage, assignment), self.reader(stage, number));
                let task = Task::Read(split.clone());
                let range = Range { split, from, until };
                self.spawn(stage, task, reader::read_split(desk, shared, range));
            }
            Effect::CloseSplit { stage, split } => self.abort(stage, Task::Read(split)),
            Effect::CloseStage { stage } => self.close_stage(stage),
            Effect::ResolveHandoff { assignment, from, to, ends } => {
                let (desk, source) = (self.desk(to, assignment), Arc::clone(&self.source));
                self.spawn(to, Task::Handoff, reader::resolve_handoff(desk, source, from, ends));
            }
            Effect::CheckStarts { assignment, stage, starts } => {
                let (desk, runtime) =
                    (self.desk(stage, assignment), Arc::clone(self.source.stage(stage)));
                self.spawn(stage, Task::Handoff, reader::check_starts(desk, runtime, starts));
            }
            Effect::Acknowledge { stage, positions } => self.acknowledge(stage, positions),
            // Whoever waits for the end looks at the state.
            Effect::Completed => {}
            Effect::Fail { .. } => return self.failure(),
        }
        None
    }

    fn acknowledge(&mut self, stage: StageIndex, positions: Vec<(SplitId, Position)>) {
        let runtime = Arc::clone(self.source.stage(stage));
        if runtime.is_captured() {
            return;
        }
        // The last positions of a stage are durable only when its readers have been closed.
        let shared = self.readers.get(&(stage, 0)).map(Arc::clone);
        let projection = Arc::clone(&self.projection);
        let shared = shared.unwrap_or_else(|| Arc::new(SharedReader::new(runtime, projection)));
        self.acknowledging.retain(|task| !task.is_finished());
        let task = self.workplace.runtime.spawn(async move {
            let told = match shared.get().await {
                Ok(reader) => reader.acknowledge(&positions).await,
                Err(error) => Err(error),
            };
            // An acknowledgment only lets the system release data; the next one covers a lost one.
            if let Err(error) = told {
                tracing::debug!(%error, "could not acknowledge");
            }
        });
        self.acknowledging.push(task.abort_handle());
    }

    fn desk(&self, stage: StageIndex, assignment: Assignment) -> Desk {
        Desk {
            inbox: self.workplace.inbox.clone(),
            consumer: self.id,
            stage,
            assignment,
            queue: Arc::clone(&self.queue),
            slots: Arc::clone(&self.slots),
            gate: self.workplace.gate.clone(),
            throttle: self.throttle.clone(),
            idle_after: self.source.watermark.map(|watermark| watermark.idle_after),
        }
    }

    fn reader(&mut self, stage: StageIndex, number: u32) -> Arc<SharedReader> {
        let reader = self.readers.entry((stage, number)).or_insert_with(|| {
            let runtime = Arc::clone(self.source.stage(stage));
            Arc::new(SharedReader::new(runtime, Arc::clone(&self.projection)))
        });
        Arc::clone(reader)
    }

    fn spawn(
        &mut self,
        stage: StageIndex,
        task: Task,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let handle = self.workplace.runtime.spawn(work).abort_handle();
        if let Some(former) = self.tasks.insert((stage, task), handle) {
            former.abort();
        }
    }

    fn abort(&mut self, stage: StageIndex, task: Task) {
        if let Some(handle) = self.tasks.remove(&(stage, task)) {
            handle.abort();
        }
    }

    fn close_stage(&mut self, stage: StageIndex) {
        self.tasks.retain(|(of, _), handle| {
            let keep = *of != stage;
            if !keep {
                handle.abort();
            }
            keep
        });
        self.readers.retain(|(of, _), _| *of != stage);
        self.refreshes.remove(&stage);
    }

    /// Whether nothing passes because memory is short.
    pub(crate) fn is_starved(&self) -> bool {
        self.workplace.gate.passage() == Passage::Closed
    }

    fn reader_count(&self) -> u32 {
        self.pace.parallelism.map_or(1, NonZeroU32::get)
    }

    /// Obeys these settings from now on. Another number of readers moves all work to new ones.
    pub(crate) fn set_pace(&mut self, pace: Pace) -> Stopped {
        let former = std::mem::replace(&mut self.pace, pace);
        self.throttle.set(pace);
        if former.parallelism == pace.parallelism {
            return None;
        }
        let slots = pace.parallelism.map_or(reader::BOUNDED_SPLITS_MAX, |n| n.get() as usize);
        self.slots = Arc::new(Semaphore::new(slots));
        let generation = self.state().generation().next();
        self.decide(Event::Reassigned { generation })
    }

    /// Asks the running discovery to look at once; `None` when no stage is being discovered.
    pub(crate) fn refresh(&self) -> Option<oneshot::Receiver<()>> {
        let (answer, answered) = oneshot::channel();
        let asked = self.refreshes.get(&self.state().current_stage())?.send(answer);
        asked.is_ok().then_some(answered)
    }

    /// A reader of a stage, if one is open.
    pub(crate) fn opened(&self, stage: StageIndex) -> Option<Arc<dyn StageReader>> {
        let of_stage = self.readers.range((stage, 0)..=(stage, u32::MAX));
        of_stage.map(|(_, reader)| reader).find_map(|reader| reader.opened())
    }

    /// Bytes that wait for a step.
    pub(crate) fn queued_bytes(&self) -> u64 {
        let kib = (reader::QUEUE_KIB_MAX as usize).saturating_sub(self.queue.available_permits());
        kib as u64 * 1024
    }

    /// Why the consumer stands still, if it does.
    pub(crate) fn failure(&self) -> Option<UserError> {
        let Mode::Failed(failure) = mode(self.state()) else { return None };
        let message = failure.to_string();
        let reported = self.reported.as_ref().filter(|reported| reported.message == message);
        let stored = || UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message.clone());
        Some(reported.cloned().unwrap_or_else(stored))
    }

    /// A task failed for good.
    pub(crate) fn fail(
        &mut self,
        stage: StageIndex,
        by: Assignment,
        error: &ConnectError,
    ) -> Stopped {
        let error = error.to_user_error(&self.source.stage(stage).name);
        let message = error.message.clone();
        self.reported = Some(error);
        self.decide(Event::Failed { by: FailedBy::Work(by), stage, message, retriable: false })
    }
}

/// A number that spreads splits over readers.
fn split_number(split: &SplitId) -> u32 {
    let digest = |sum: u32, byte: u8| sum.wrapping_mul(31).wrapping_add(u32::from(byte));
    split.as_str().bytes().fold(0, digest)
}

/// Ascending, each once.
fn union(columns: &[usize], more: impl Iterator<Item = usize>) -> Arc<[usize]> {
    columns.iter().copied().chain(more).collect::<BTreeSet<_>>().into_iter().collect()
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // A late acknowledgment would make anew what is removed outside when a source is dropped.
        for handle in self.tasks.values().chain(&self.acknowledging) {
            handle.abort();
        }
    }
}
