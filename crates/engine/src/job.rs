//! Jobs: the CREATEs that are under way. A job is a catalog object in state *creating* and what it still waits for.
//!
//! Word defined here: *target*, the latest position of a split when the statement began.
//! Invariant: jobs are derived from the catalog, so a restart finds them again; a job's number is its object's id.

use std::collections::BTreeMap;
use std::sync::Arc;

use segue_catalog::{CaptureSwitch, ObjectState};
use segue_coordinate::{bounded_stages_complete, is_complete, reached};
use segue_types::{ConsumerId, ObjectId, Position, SplitId, SqlState, StageIndex, UserError};
use tokio::sync::{mpsc, oneshot};

use crate::capture::Progress;
use crate::consumer::Consumer;
use crate::limits::Passage;
use crate::world::World;

/// How many remarks are kept for a statement that does not listen yet.
const REMARKS_MAX: usize = 64;

/// The jobs, by the object that each creates.
#[derive(Default)]
pub(crate) struct Jobs(BTreeMap<ObjectId, Job>);

/// One CREATE.
pub(crate) struct Job {
    pub(crate) phase: Phase,
    waiters: Vec<oneshot::Sender<Result<(), UserError>>>,
    /// What its statement is to be told, and has not been yet.
    remarks: Vec<String>,
    listener: Option<mpsc::Sender<String>>,
    pub(crate) failed: Option<UserError>,
}

/// What a job waits for.
pub(crate) enum Phase {
    /// Bounded queries are being captured; the counter is shared with the task that does it.
    Capturing(Arc<Progress>),
    /// The external systems are asked how far they have come.
    Asking,
    /// A view takes what the relations that it reads hold.
    Filling,
    /// Consumers have to pass their targets.
    CatchingUp(BTreeMap<ConsumerId, Target>),
    /// The object is ready as soon as the open epoch is durable.
    Finishing,
}

/// What one consumer has to reach: every bounded stage complete, and these positions of the last stage.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) stage: StageIndex,
    pub(crate) positions: Vec<(SplitId, Position)>,
}

impl Jobs {
    /// Registers or replaces what the job of `object` waits for.
    pub(crate) fn set_phase(&mut self, object: ObjectId, phase: Phase) {
        let job = self.0.entry(object).or_insert_with(|| Job {
            phase: Phase::Finishing,
            waiters: Vec::new(),
            remarks: Vec::new(),
            listener: None,
            failed: None,
        });
        job.phase = phase;
        job.failed = None;
    }

    /// Answers when the job is done, or has failed. At once when there is none.
    pub(crate) fn wait(&mut self, object: ObjectId) -> oneshot::Receiver<Result<(), UserError>> {
        let (answer, answered) = oneshot::channel();
        match self.0.get_mut(&object) {
            Some(Job { failed: Some(error), .. }) => drop(answer.send(Err(error.clone()))),
            Some(job) => job.waiters.push(answer),
            None => drop(answer.send(Ok(()))),
        }
        answered
    }

    /// The job failed: whoever waits is told; it stays listed until it is cancelled.
    pub(crate) fn fail(&mut self, object: ObjectId, error: UserError) {
        let Some(job) = self.0.get_mut(&object) else { return };
        for waiter in job.waiters.drain(..) {
            drop(waiter.send(Err(error.clone())));
        }
        job.failed = Some(error);
    }

    /// Something that the statement behind a job should know. A full channel drops it: the log has it, too.
    pub(crate) fn remark(&mut self, object: ObjectId, remark: &str) {
        let Some(job) = self.0.get_mut(&object) else { return };
        match &job.listener {
            Some(listener) => drop(listener.try_send(remark.to_owned())),
            None if job.remarks.len() < REMARKS_MAX => job.remarks.push(remark.to_owned()),
            None => {}
        }
    }

    /// Remarks go to `listener` from now on, and those that were made before.
    pub(crate) fn listen(&mut self, object: ObjectId, listener: mpsc::Sender<String>) {
        let Some(job) = self.0.get_mut(&object) else { return };
        for remark in job.remarks.drain(..) {
            drop(listener.try_send(remark));
        }
        job.listener = Some(listener);
    }

    /// What failed is read again: the job is under way once more.
    pub(crate) fn retry(&mut self, object: ObjectId) {
        if let Some(job) = self.0.get_mut(&object) {
            job.failed = None;
        }
    }

    /// The job is over: the object is ready, durably.
    fn finish(&mut self, object: ObjectId) {
        let Some(job) = self.0.remove(&object) else { return };
        for waiter in job.waiters {
            drop(waiter.send(Ok(())));
        }
    }

    /// Whoever waits for `from` waits for `to` from now on: they stand at the same place.
    pub(crate) fn retarget(&mut self, from: ConsumerId, to: ConsumerId) {
        for job in self.0.values_mut() {
            if let Phase::CatchingUp(targets) = &mut job.phase {
                let target = targets.remove(&from);
                targets.extend(target.map(|target| (to, target)));
            }
        }
    }

    /// The object is gone.
    pub(crate) fn remove(&mut self, object: ObjectId) {
        let Some(job) = self.0.remove(&object) else { return };
        for waiter in job.waiters {
            let gone = UserError::new(SqlState::QUERY_CANCELED, "job was canceled");
            drop(waiter.send(Err(gone)));
        }
    }

    pub(crate) fn get(&self, object: ObjectId) -> Option<&Job> {
        self.0.get(&object)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ObjectId, &Job)> {
        self.0.iter().map(|(object, job)| (*object, job))
    }
}

impl World {
    /// Finishes every job whose targets are reached, durably, and fails those that wait for a consumer that has
    /// failed: it may have done so before the job was there, or before a restart.
    pub(crate) fn check_jobs(&mut self) {
        for (object, error) in self.hopeless() {
            self.jobs.fail(object, error);
        }
        let reached: Vec<ObjectId> = self
            .jobs
            .iter()
            .filter(|(_, job)| match &job.phase {
                Phase::CatchingUp(targets) if job.failed.is_none() => {
                    targets.iter().all(|(consumer, target)| self.has_reached(*consumer, target))
                }
                _ => false,
            })
            .map(|(object, _)| object)
            .collect();
        for object in reached {
            self.finish_job(object);
        }
    }

    fn hopeless(&self) -> Vec<(ObjectId, UserError)> {
        let failure = |id: &ConsumerId| {
            let consumer = self.consumers.get(id)?;
            // What has not met a leader that stands still never will.
            consumer.failure().or_else(|| self.leader_of(consumer)?.failure())
        };
        let failed = |(object, job): (ObjectId, &Job)| match &job.phase {
            Phase::CatchingUp(targets) if job.failed.is_none() => {
                Some((object, targets.keys().find_map(failure)?))
            }
            _ => None,
        };
        self.jobs.iter().filter_map(failed).collect()
    }

    fn has_reached(&self, consumer: ConsumerId, target: &Target) -> bool {
        let Some(consumer) = self.consumers.get(&consumer) else { return false };
        let state = consumer.state();
        let leader = self.leader_of(consumer).map(Consumer::state);
        let connector = &consumer.source.stage(target.stage).connector;
        let compare = |a: &Position, b: &Position| connector.compare(a, b);
        is_complete(state)
            || bounded_stages_complete(state)
                && reached(state, leader, target.stage, &target.positions, compare)
    }

    /// The bounded queries of `id` are captured, unless they are paused.
    pub(crate) fn begin_capture(&mut self, id: ObjectId, progress: Arc<Progress>) {
        let capture = self.catalog.get(id).map(|object| object.settings.capture);
        progress.gate.set(passage(capture.unwrap_or_default()));
        self.jobs.set_phase(id, Phase::Capturing(progress));
    }

    /// Pauses or resumes what is still to be captured; `None` when nothing is.
    pub(crate) fn switch_capture(
        &mut self,
        id: ObjectId,
        to: CaptureSwitch,
    ) -> Option<Result<(), UserError>> {
        let object = self.catalog.get(id)?;
        let needs_capture = self.sources.get(&id)?.needs_capture();
        let has_failed = self.jobs.get(id).is_none_or(|job| job.failed.is_some());
        if object.state != ObjectState::Creating || !needs_capture || has_failed {
            return None;
        }
        let mut object = (**object).clone();
        object.settings.capture = to;
        if let Some(Job { phase: Phase::Capturing(progress), .. }) = self.jobs.get(id) {
            progress.gate.set(passage(to));
        }
        Some(self.put_object(object))
    }

    /// Makes the object ready in the open epoch, and tells when that is durable. A view of which a subquery has several
    /// rows where one is wanted is refused now; later it would go on with NULL.
    pub(crate) fn finish_job(&mut self, id: ObjectId) {
        let relation = self.relations.get(&id);
        if relation.is_some_and(|relation| relation.dataflow.has_several_rows()) {
            return self.jobs.fail(id, several_rows());
        }
        self.jobs.set_phase(id, Phase::Finishing);
        let mut object = (**self.catalog.get(id).expect("a job has an object")).clone();
        object.state = ObjectState::Ready;
        self.put_object(object).expect("it is there already under this name");
        self.when_durable(move |world| world.jobs.finish(id));
    }
}

fn several_rows() -> UserError {
    UserError::new(SqlState::CARDINALITY_VIOLATION, segue_flow::SeveralRows.to_string())
        .with_hint("Aggregate in the subquery, or give it ORDER BY … LIMIT 1.")
}

fn passage(capture: CaptureSwitch) -> Passage {
    match capture {
        CaptureSwitch::Running => Passage::Open,
        CaptureSwitch::Paused => Passage::Closed,
    }
}
