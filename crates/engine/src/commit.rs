//! Epochs: sealed by the step thread, made durable by the commit thread, then published and told.
//!
//! ```text
//! step thread    seal ──(sealed epoch)──▶ commit thread: encode, one transaction, publish ─▶ inbox: Committed
//!                  └ goes on stepping                                                     │
//! step thread                                            coordinators, waiters, jobs ◀────┘
//! ```
//!
//! Invariants: epochs are committed in order; what is published is durable; at most [`IN_FLIGHT_MAX`] are under way.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use segue_coordinate::{Event, StagePhase, stage_status};
use segue_flow::{RelationVersion, SealedBlob};
use segue_store::{Commit, CommitError, DeadLetter, Store, crash_point};
use segue_types::{Epoch, ObjectId};

use crate::api::Published;
use crate::inbox::{Inbox, Message};
use crate::release::ReleaseWrite;
use crate::status::CheckpointStatus;
use crate::world::{DroppedConsumer, ObjectWrite, WhenDurable, World};

/// One that commits and one behind it, which is taken only while more rows wait than a step takes. Then the next seal
/// waits, and so merges what comes.
const IN_FLIGHT_MAX: usize = 2;

/// An epoch on its way to the disk.
struct Sealed {
    commit: Commit,
    /// State of relations, to be encoded by the commit thread.
    states: Vec<SealedBlob>,
    /// When it was sealed.
    unix_ms: i64,
    published: Arc<Published>,
    news: Committed,
    /// Whether a stage is complete as of this epoch.
    completes_stage: bool,
}

/// A durable epoch, as the step thread learns of it.
pub(crate) struct Committed {
    waiting: Vec<WhenDurable>,
    checkpoint: CheckpointStatus,
}

/// The step thread's side of the pipeline.
pub(crate) struct Committer {
    next: Epoch,
    in_flight: usize,
    sealed: Option<mpsc::Sender<Sealed>>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the commit thread. `failed` is told if a commit fails; nothing is written after that.
    pub(crate) fn start(
        store: Arc<Store>,
        durable: Epoch,
        published: Arc<ArcSwap<Published>>,
        inbox: Inbox,
        failed: impl FnOnce(CommitError) + Send + 'static,
    ) -> std::io::Result<Committer> {
        let (sealed, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("segue-commit".to_owned())
            .spawn(move || commit_all(&store, &receiver, &published, &inbox, failed))?;
        Ok(Committer {
            next: durable.next(),
            in_flight: 0,
            sealed: Some(sealed),
            thread: Some(thread),
        })
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    pub(crate) fn has_room(&self) -> bool {
        self.in_flight < IN_FLIGHT_MAX
    }

    /// Takes everything that changed since the last seal, and sends it off.
    pub(crate) fn seal(&mut self, world: &mut World, began: Instant) {
        let epoch = self.next;
        self.next = epoch.next();
        let mut commit = Commit::new(epoch);
        let (relations, states) = seal_relations(world);
        let completes_stage = seal_consumers(world, epoch, &mut commit);
        let pending = std::mem::take(&mut world.pending);
        write_objects(pending.objects, &mut commit);
        for DroppedConsumer(consumer) in pending.dropped {
            commit.delete_consumer(consumer);
        }
        for object in pending.dropped_states {
            commit.drop_operator_state(object);
        }
        for manifest in pending.captures {
            commit.publish_capture(manifest);
        }
        for (id, write) in pending.releases {
            match write {
                ReleaseWrite::Put(object) => commit.put_release(id, object.encode()),
                ReleaseWrite::Done => commit.delete_release(id),
            }
        }
        for rejected in pending.rejected {
            commit.put_dead_letter(DeadLetter {
                object: rejected.source,
                stage: rejected.stage,
                split: rejected.split,
                position: rejected.record.position,
                reason: rejected.record.reason,
                unix_ms: unix_ms(),
                payload: rejected.record.payload,
            });
        }
        let catalog = Arc::new(world.catalog.clone());
        let published = Arc::new(Published { epoch, catalog, relations });
        world.published = Arc::clone(&published);
        world.open_epoch = self.next;
        let checkpoint = CheckpointStatus {
            epoch,
            committed_at_unix_ms: 0,
            rows: pending.rows,
            bytes: 0,
            pause_us: micros(began),
            commit_us: 0,
        };
        let news = Committed { waiting: pending.when_durable, checkpoint };
        self.in_flight += 1;
        let sealed =
            Sealed { commit, states, unix_ms: unix_ms(), published, news, completes_stage };
        let sender =
            self.sealed.as_ref().expect("the channel closes when the committer is dropped");
        // A commit thread that has ended has told why; the server is on its way down.
        drop(sender.send(sealed));
    }

    /// Takes note of a durable epoch.
    pub(crate) fn committed(&mut self, world: &mut World, committed: Committed) {
        assert!(self.in_flight > 0, "an epoch is durable once");
        self.in_flight -= 1;
        let epoch = committed.checkpoint.epoch;
        world.record_timing(committed.checkpoint);
        world.epoch_is_durable(epoch, committed.waiting);
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.sealed = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The versions to publish, and the state of every dirty relation.
fn seal_relations(world: &mut World) -> (HashMap<ObjectId, RelationVersion>, Vec<SealedBlob>) {
    let mut versions = HashMap::with_capacity(world.relations.len());
    let mut states = Vec::new();
    for (id, relation) in &mut world.relations {
        let unchanged = world.published.relations.get(id).filter(|_| !relation.dirty);
        if let Some(version) = unchanged {
            versions.insert(*id, version.clone());
            continue;
        }
        relation.dirty = false;
        // Rows that are not maintained any more are shown to nobody.
        if relation.failed.is_some() {
            continue;
        }
        states.extend(relation.dataflow.seal());
        relation.reshard();
        versions.insert(*id, relation.dataflow.version());
        relation.weigh();
    }
    (versions, states)
}

/// Writes every consumer that changed; returns whether one of them has just drained a stage.
fn seal_consumers(world: &mut World, epoch: Epoch, commit: &mut Commit) -> bool {
    let mut completes_stage = false;
    let ids: Vec<_> = world.consumers.keys().copied().collect();
    for id in ids {
        world.tell(id, Event::EpochSealed { epoch });
        let state = world.consumers[&id].state();
        if state.changed_in() == epoch {
            let record = serde_json::to_vec(state).expect("a consumer's state is plain data");
            commit.put_consumer(id, record);
            let current = &stage_status(state)[state.current_stage().as_usize()];
            completes_stage |= current.phase == StagePhase::Drained;
        }
    }
    completes_stage
}

fn write_objects(objects: impl IntoIterator<Item = (ObjectId, ObjectWrite)>, commit: &mut Commit) {
    for (id, write) in objects {
        match write {
            ObjectWrite::Put(object) => commit.put_object(id, object.encode()),
            ObjectWrite::Delete => commit.drop_object(id),
        }
    }
}

fn commit_all(
    store: &Store,
    sealed: &mpsc::Receiver<Sealed>,
    published: &ArcSwap<Published>,
    inbox: &Inbox,
    failed: impl FnOnce(CommitError),
) {
    for mut epoch in sealed {
        let began = Instant::now();
        for state in std::mem::take(&mut epoch.states) {
            epoch.commit.put_state(state.encode());
        }
        let checkpoint = &mut epoch.news.checkpoint;
        checkpoint.bytes = epoch.commit.bytes();
        epoch.commit.put_checkpoint(epoch.unix_ms, checkpoint.rows);
        if epoch.completes_stage {
            crash_point!("before-completion-commit");
        }
        if let Err(error) = store.commit(&epoch.commit) {
            // Nobody can say whether the epoch is durable; the next start reads which side it is on.
            tracing::error!(%error, epoch = %epoch.commit.epoch(), "could not commit");
            return failed(error);
        }
        if epoch.completes_stage {
            crash_point!("after-completion-commit");
        }
        epoch.news.checkpoint.commit_us = micros(began);
        epoch.news.checkpoint.committed_at_unix_ms = unix_ms();
        tracing::debug!(checkpoint = ?epoch.news.checkpoint, "durable");
        published.store(epoch.published);
        inbox.send(Message::Committed(epoch.news));
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn unix_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
