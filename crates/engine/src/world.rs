//! Everything that changes, owned by the step thread: catalog, relations, consumers, what the next epoch writes.
//!
//! Invariant: a fact is told to anybody outside only when the epoch that contains it is durable; see
//! [`World::when_durable`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;

use segue_catalog::{Catalog, Object, ObjectState};
use segue_connect::Rejected;
use segue_coordinate::Event;
use segue_flow::{StepInput, Workers};
use segue_store::capture::Manifest;
use segue_types::{
    ConsumerId, Epoch, Generation, ObjectId, SplitId, SqlState, StageIndex, UserError,
};

use crate::api::Published;
use crate::clock;
use crate::consumer::{Consumer, Stopped, Workplace};
use crate::inbox::News;
use crate::job::Jobs;
use crate::memory::MemoryLimits;
use crate::relation::{self, Inputs, Parallelism, Relation};
use crate::release::ReleaseWrite;
use crate::resting::Resting;
use crate::source::SourceRuntime;
use crate::status::CheckpointStatus;

/// Something to do once the epoch that is open now is durable.
pub(crate) type WhenDurable = Box<dyn FnOnce(&mut World) + Send>;

/// The step thread's property.
pub(crate) struct World {
    /// The newest catalog; the published one may be an epoch or two behind.
    pub(crate) catalog: Catalog,
    /// Tables, materialized views and sinks. Ids grow, so their order is topological, but for what sinks feed.
    pub(crate) relations: BTreeMap<ObjectId, Relation>,
    /// By relation: those that read it, in their order.
    pub(crate) readers: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
    /// Sources, and tables with stages.
    pub(crate) sources: BTreeMap<ObjectId, Arc<SourceRuntime>>,
    pub(crate) consumers: BTreeMap<ConsumerId, Consumer>,
    /// Reports that were held back and are not any more, in order; taken before all others.
    pub(crate) released: VecDeque<News>,
    pub(crate) jobs: Jobs,
    pub(crate) pending: Pending,
    pub(crate) memory: MemoryLimits,
    pub(crate) resting: Resting,
    /// How many threads maintain a relation that has no number of its own, once much comes.
    pub(crate) workers: Workers,
    pub(crate) published: Arc<Published>,
    pub(crate) workplace: Workplace,
    /// The epoch that the running step belongs to.
    pub(crate) open_epoch: Epoch,
    pub(crate) next_consumer: ConsumerId,
    /// Of this process: greater than that of every consumer it has restored.
    pub(crate) generation: Generation,
    /// The newest epochs of this process, oldest first.
    pub(crate) checkpoints: VecDeque<CheckpointStatus>,
}

/// How many epochs `segue.checkpoints` shows.
const CHECKPOINTS_MAX: usize = 1024;

/// What the next epoch writes besides the state of relations and consumers.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) objects: BTreeMap<ObjectId, ObjectWrite>,
    pub(crate) captures: Vec<Manifest>,
    pub(crate) dropped: Vec<DroppedConsumer>,
    /// Objects whose operators' state goes.
    pub(crate) dropped_states: Vec<ObjectId>,
    pub(crate) rejected: Vec<RejectedRecord>,
    pub(crate) releases: BTreeMap<ObjectId, ReleaseWrite>,
    pub(crate) when_durable: Vec<WhenDurable>,
    /// Rows consumed since the last seal.
    pub(crate) rows: u64,
}

/// What becomes of an object's record.
pub(crate) enum ObjectWrite {
    Put(Box<Object>),
    Delete,
}

/// A reading that is over: its record goes.
pub(crate) struct DroppedConsumer(pub(crate) ConsumerId);

/// A malformed record on its way to `segue.dead_letters`.
pub(crate) struct RejectedRecord {
    pub(crate) source: ObjectId,
    pub(crate) stage: StageIndex,
    pub(crate) split: SplitId,
    pub(crate) record: Rejected,
}

impl World {
    /// Runs `then` when everything that has been done so far is durable.
    pub(crate) fn when_durable(&mut self, then: impl FnOnce(&mut World) + Send + 'static) {
        self.pending.when_durable.push(Box::new(then));
    }

    /// Records a new or changed object.
    pub(crate) fn put_object(&mut self, object: Object) -> Result<(), UserError> {
        self.catalog = self.catalog.with(object.clone())?;
        self.pending.objects.insert(object.id, ObjectWrite::Put(Box::new(object)));
        Ok(())
    }

    /// How many threads maintain an object's relation.
    pub(crate) fn parallelism_of(&self, object: &Object) -> Parallelism {
        let own = object.settings.parallelism.and_then(|count| NonZeroUsize::try_from(count).ok());
        match own {
            Some(count) => Parallelism::Fixed(self.workers.with_count(count)),
            None => Parallelism::Adaptive(self.workers),
        }
    }

    /// Gives a relation the workers that its object asks for, from the next seal on.
    pub(crate) fn set_workers(&mut self, id: ObjectId) {
        let Some(object) = self.catalog.get(id) else { return };
        let parallelism = self.parallelism_of(object);
        if let Some(relation) = self.relations.get_mut(&id) {
            relation.set_parallelism(parallelism);
        }
    }

    /// Forgets an object and all that works for it.
    pub(crate) fn remove_objects(&mut self, ids: &[ObjectId]) {
        self.catalog = self.catalog.without(ids);
        for consumer in self.consumers.values_mut() {
            consumer.subscribers.retain(|subscriber| !ids.contains(&subscriber.object));
        }
        self.sweep_readings();
        for id in ids {
            self.remove_relation(*id);
            self.sources.remove(id);
            self.jobs.remove(*id);
            // The store refuses to write anything of an object that is not there.
            self.pending.captures.retain(|manifest| manifest.object != *id);
            self.pending.rejected.retain(|rejected| rejected.source != *id);
            self.pending.dropped_states.retain(|object| object != id);
            self.pending.objects.insert(*id, ObjectWrite::Delete);
        }
    }

    /// Takes in a relation that is maintained.
    pub(crate) fn add_relation(&mut self, id: ObjectId, relation: Relation) {
        for read in relation.reads() {
            self.readers.entry(read).or_default().insert(id);
        }
        let former = self.relations.insert(id, relation);
        assert!(former.is_none(), "a relation is added once");
    }

    fn remove_relation(&mut self, id: ObjectId) {
        let Some(relation) = self.relations.remove(&id) else { return };
        self.readers.remove(&id);
        for read in relation.reads() {
            if let Some(readers) = self.readers.get_mut(&read) {
                readers.remove(&id);
            }
        }
    }

    /// Numbers for consumers that are about to be created.
    pub(crate) fn allocate_consumers(&mut self, n: usize) -> Vec<ConsumerId> {
        let first = self.next_consumer.0;
        self.next_consumer = ConsumerId(first + n as u64);
        (first..self.next_consumer.0).map(ConsumerId).collect()
    }

    pub(crate) fn record_timing(&mut self, status: CheckpointStatus) {
        if self.checkpoints.len() == CHECKPOINTS_MAX {
            self.checkpoints.pop_front();
        }
        self.checkpoints.push_back(status);
    }

    /// Tells one consumer something.
    pub(crate) fn tell(&mut self, id: ConsumerId, event: Event) {
        let Some(consumer) = self.consumers.get_mut(&id) else { return };
        let stopped = consumer.decide(event);
        self.settle(id, stopped);
    }

    /// Tells whoever waits for a consumer that it stands still.
    pub(crate) fn settle(&mut self, id: ConsumerId, stopped: Stopped) {
        let Some(error) = stopped else { return };
        let consumer = &self.consumers[&id];
        let source = consumer.source.object;
        tracing::warn!(consumer = %id, source = %source, %error, "a source failed");
        for subscriber in &consumer.subscribers {
            self.jobs.fail(subscriber.object, error.clone());
        }
    }

    /// Runs every relation that has something to take, lower ids first, and hands what each puts out to
    /// those that read it. A table that a sink feeds may run twice; no sink feeds what it follows from, so this ends.
    pub(crate) fn run(&mut self, mut inputs: BTreeMap<ObjectId, Inputs>) {
        let now = clock::now_us();
        while let Some((id, mut rows)) = inputs.pop_first() {
            let readers = self.readers.get(&id).cloned().unwrap_or_default();
            let Some(relation) = self.relations.get_mut(&id) else { continue };
            if relation.failed.is_some() {
                continue;
            }
            rows.extend(relation.told_time(now));
            let marks = relation.marks();
            let outflow = relation.outflow;
            let stepped = match readers.is_empty() && outflow.is_none() {
                true => relation.absorb(rows).map(|()| Vec::new()),
                false => relation.step(rows),
            };
            let deltas = match stepped {
                Ok(deltas) => deltas,
                Err(error) => {
                    self.relation_failed(id, &error.to_string());
                    continue;
                }
            };
            for reader in &readers {
                let reading = self.relations.get_mut(reader).expect("it would have been removed");
                for (input, projection) in reading.inputs_from(id) {
                    let rows = deltas.iter().map(|delta| relation::project(delta, &projection));
                    match &mut reading.filling {
                        Some(filling) => rows.for_each(|rows| filling.fall_behind(input, rows)),
                        None => {
                            let rows = rows.map(|rows| (input, StepInput::Delta(rows)));
                            inputs.entry(*reader).or_default().extend(rows);
                        }
                    }
                }
            }
            if let Some(outflow) = outflow {
                self.flow_out(outflow, &deltas, &mut inputs);
            }
            if !marks.is_empty() {
                self.pass_marks_on(id, &marks, &mut inputs);
            }
        }
    }

    /// A defect, or state that does not fit the input.
    pub(crate) fn relation_failed(&mut self, id: ObjectId, reason: &str) {
        tracing::error!(object = %id, %reason, "a relation cannot be maintained any more");
        self.stop_maintaining(id, reason);
    }

    /// The relation and all that read it stop for good, durably, for they miss rows from here on. The server goes on.
    pub(crate) fn stop_maintaining(&mut self, id: ObjectId, reason: &str) {
        for failed in self.catalog.dependents(id).into_iter().chain([id]) {
            let Some(object) = self.catalog.get(failed) else { continue };
            let mut object = (**object).clone();
            object.failure = Some(reason.to_owned());
            let error = not_maintained(&object, reason);
            self.jobs.fail(failed, error.clone());
            if let Some(relation) = self.relations.get_mut(&failed) {
                relation.failed = Some(error);
                relation.dirty = true;
                object.state = ObjectState::Failed;
                self.put_object(object).expect("it is there already under this name");
            }
        }
    }

    /// Whether anything waits for an epoch.
    pub(crate) fn wants_epoch(&self) -> bool {
        let pending = &self.pending;
        !pending.objects.is_empty()
            || !pending.captures.is_empty()
            || !pending.dropped.is_empty()
            || !pending.dropped_states.is_empty()
            || !pending.rejected.is_empty()
            || !pending.releases.is_empty()
            || !pending.when_durable.is_empty()
            || self.relations.values().any(|relation| relation.dirty)
            // A position that moved without rows too: whoever waits for it would wait for ever.
            || self.consumers.values().any(|c| c.state().changed_in() >= self.open_epoch)
    }

    /// An epoch is durable: whoever waited for it goes on.
    pub(crate) fn epoch_is_durable(&mut self, epoch: Epoch, waiting: Vec<WhenDurable>) {
        let consumers: Vec<ConsumerId> = self.consumers.keys().copied().collect();
        for id in consumers {
            self.tell(id, Event::EpochDurable { epoch });
        }
        self.rendezvous();
        for then in waiting {
            then(self);
        }
        self.check_jobs();
    }
}

/// What everybody is told who asks for an object that failed.
pub(crate) fn not_maintained(object: &Object, reason: &str) -> UserError {
    let kind = object.relation_kind();
    let message = format!("{kind} \"{}\" is not maintained any more", object.name);
    UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .with_detail(reason.to_owned())
        .with_hint("Drop it and create it again.")
}
