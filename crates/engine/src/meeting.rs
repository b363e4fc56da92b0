//! Readings of one source meet: who follows whom, whose rows wait, and how a follower becomes a subscriber.
//!
//! Word defined here: *live reading*, the consumer that the first view of a source starts and that later ones meet.
//! What meets when is decided in [`segue_coordinate`]; this carries it out at every step boundary.
//! Invariants: the live reading lives as long as anybody subscribes to it or follows it, whoever began it;
//! reports that are held keep their order and their room in the queue.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use segue_catalog::{ConsumerRef, ObjectKind, Settings};
use segue_connect::{Ordering, Resume};
use segue_coordinate::{
    ConsumerState, Event, Mode, Role, StagePlan, has_met, has_met_all, held, lead, lead_since,
    led_by, mode, positions,
};
use segue_plan::stages::OnExpiry;
use segue_types::{
    Boundedness, ConsumerId, ObjectId, Position, PositionOrder, SplitId, SqlState, StageIndex,
    UserError,
};

use crate::consumer::{Consumer, Subscriber};
use crate::inbox::{Content, News};
use crate::limits::Pace;
use crate::source::{SourceRuntime, StageRuntime};
use crate::world::{DroppedConsumer, World};

/// The live reading's side of it.
#[derive(Default)]
pub(crate) struct Meeting {
    pub(crate) followers: Vec<ConsumerId>,
    /// Splits whose reports wait until a follower has met them.
    held: BTreeSet<SplitId>,
    withheld: VecDeque<News>,
}

impl Meeting {
    /// Keeps the news back if its split is held.
    pub(crate) fn withhold(&mut self, news: News) -> Option<News> {
        let is_held = match &news.content {
            Content::Read { split, .. } | Content::Skipped { split, .. } => {
                self.held.contains(split)
            }
            _ => false,
        };
        if is_held {
            self.withheld.push_back(news);
            return None;
        }
        Some(news)
    }

    /// Holds these splits from now on, and returns what waited for others, in order.
    fn hold(&mut self, held: BTreeSet<SplitId>) -> VecDeque<News> {
        if held == self.held {
            return VecDeque::new();
        }
        self.held = held;
        let (withheld, released) = std::mem::take(&mut self.withheld).into_iter().partition(|news| {
            matches!(
                &news.content,
                Content::Read { split, .. } | Content::Skipped { split, .. } if self.held.contains(split)
            )
        });
        self.withheld = withheld;
        released
    }
}

/// Whether one reading of the source can serve several views: it never ends, and where two readers of a split
/// stand can be told from their positions.
pub(crate) fn is_shareable(source: &SourceRuntime) -> bool {
    let last = source.stages.last().expect("a source has a stage");
    last.definition.boundedness == Boundedness::Continuous
        && last.capabilities.ordering == Ordering::TotalPerSplit
        && last.capabilities.resume == Resume::Position
}

/// A new reading of a source on behalf of an object.
pub(crate) struct NewReading<'a> {
    pub(crate) reference: ConsumerRef,
    pub(crate) subscriber: Subscriber,
    pub(crate) source: Arc<SourceRuntime>,
    /// Starts of the first stage that are not the pinned ones.
    pub(crate) starts: &'a [(SplitId, Position)],
}

impl World {
    /// Starts a new reading. It reads its first row when the open epoch is durable. The first one of a source whose
    /// readings can be shared is the live one; later ones follow it until they meet.
    pub(crate) fn open_reading(&mut self, new: NewReading<'_>) {
        let NewReading { reference, subscriber, source, starts } = new;
        let (id, generation, open) = (reference.id, self.generation, self.open_epoch);
        let shares = reference.source != subscriber.object && is_shareable(&source);
        let live = self.live(reference.source);
        let starts = match live {
            Some(live) if shares => self.join_at(live, starts),
            _ => starts.to_vec(),
        };
        let plan = |(index, stage): (usize, &Arc<StageRuntime>)| {
            stage.plan(if index == 0 { &starts[..] } else { &[] })
        };
        let plans: Vec<StagePlan> = source.stages.iter().enumerate().map(plan).collect();
        let state = match live {
            Some(live) if shares => {
                self.follow(live, id, &subscriber.columns);
                ConsumerState::follower(generation, open, plans)
            }
            _ => ConsumerState::new(generation, open, plans),
        };
        if shares && live.is_none() {
            self.set_live(reference.source, Some(id));
        }
        let consumer = Consumer::new(id, vec![subscriber], source, state, self.workplace.clone());
        let former = self.consumers.insert(id, consumer);
        assert!(former.is_none(), "a consumer is opened once");
        self.set_pace(id);
    }

    /// What the settings of the source and of whoever takes the rows ask of a reading.
    pub(crate) fn set_pace(&mut self, id: ConsumerId) {
        let Some(consumer) = self.consumers.get(&id) else { return };
        let settings =
            |id: ObjectId| self.catalog.get(id).map_or_else(Settings::default, |o| o.settings);
        let source = settings(consumer.source.object);
        let takers = consumer.subscribers.iter().map(|subscriber| settings(subscriber.object));
        let backfill =
            takers.chain([source]).filter_map(|settings| settings.backfill_rows_per_second);
        let pace = Pace {
            live_rows_per_second: source.source_rows_per_second,
            backfill_rows_per_second: backfill.min(),
            parallelism: source.parallelism,
        };
        let consumer = self.consumers.get_mut(&id).expect("it was just looked up");
        let stopped = consumer.set_pace(pace);
        self.settle(id, stopped);
    }

    /// The live reading of a source.
    pub(crate) fn live(&self, source: ObjectId) -> Option<ConsumerId> {
        match &self.catalog.get(source)?.kind {
            ObjectKind::Source(source) => source.live,
            _ => None,
        }
    }

    fn set_live(&mut self, source: ObjectId, live: Option<ConsumerId>) {
        let Some(object) = self.catalog.get(source) else { return };
        let mut object = (**object).clone();
        if let ObjectKind::Source(source) = &mut object.kind {
            source.live = live;
        }
        self.put_object(object).expect("it is there already under this name");
    }

    /// A first stage that starts at what is retained may start behind the live reading, never before it has come
    /// there: then the live reading has lost rows, and the two would never meet.
    pub(crate) fn refuse_gap(
        &self,
        source: ObjectId,
        starts: &[(SplitId, Position)],
    ) -> Result<(), UserError> {
        let Some(live) = self.live(source).and_then(|live| self.consumers.get(&live)) else {
            return Ok(());
        };
        let stage = live.source.stage(StageIndex(0));
        let is_alone = live.source.stages.len() == 1;
        // With ALLOW GAP the two begin at the same place: see `join_at`.
        if starts.is_empty() || !is_alone || stage.on_expiry == OnExpiry::Skip {
            return Ok(());
        }
        let reached = positions(live.state(), StageIndex(0));
        let is_ahead = |(split, start): &&(SplitId, Position)| {
            let at = reached.get(split);
            at.is_some_and(|at| stage.connector.compare(start, at) == PositionOrder::Greater)
        };
        match starts.iter().find(is_ahead) {
            None => Ok(()),
            Some((split, start)) => {
                let message = "the live reading is behind what the system still has";
                Err(UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                    .with_detail(format!(
                        "Split {split} of stage \"{}\" is read up to {}; the first record left is {start}.",
                        stage.name, reached[split]
                    ))
                    .with_hint("Drop the views that read the source and create them again."))
            }
        }
    }

    /// Where a new reading begins beside the live one: no later than that stands, where what lies between is a gap that
    /// both may pass over.
    fn join_at(
        &self,
        live: ConsumerId,
        starts: &[(SplitId, Position)],
    ) -> Vec<(SplitId, Position)> {
        let live = &self.consumers[&live];
        let stage = live.source.stage(StageIndex(0));
        if live.source.stages.len() > 1 || stage.on_expiry == OnExpiry::Stop {
            return starts.to_vec();
        }
        let reached = positions(live.state(), StageIndex(0));
        let earlier = |(split, start): &(SplitId, Position)| {
            let behind = reached
                .get(split)
                .filter(|at| stage.connector.compare(start, at) == PositionOrder::Greater);
            (split.clone(), behind.unwrap_or(start).clone())
        };
        starts.iter().map(earlier).collect()
    }

    fn follow(&mut self, live: ConsumerId, follower: ConsumerId, columns: &[usize]) {
        let consumer = self.consumers.get_mut(&live).expect("a source's live reading is there");
        consumer.meeting.followers.push(follower);
        let stopped = consumer.widen(columns);
        self.settle(live, stopped);
    }

    /// After a restart: the leader knows its follower again, and delivers what that wants.
    pub(crate) fn follow_again(&mut self, follower: ConsumerId) {
        let consumer = &self.consumers[&follower];
        let live = self.live(consumer.source.object).expect("a leader stays while it is followed");
        let columns: Vec<usize> =
            consumer.subscribers.iter().flat_map(|s| s.columns.iter().copied()).collect();
        self.follow(live, follower, &columns);
    }

    /// Whom this consumer will meet.
    pub(crate) fn leader_of(&self, consumer: &Consumer) -> Option<&Consumer> {
        match consumer.state().role() {
            Role::Leads => None,
            Role::Follows => self.consumers.get(&self.live(consumer.source.object)?),
        }
    }

    /// Everybody who takes the rows of a split: the subscribers, and those of followers that have met it.
    pub(crate) fn takers(
        &self,
        consumer: &Consumer,
        stage: StageIndex,
        split: &SplitId,
    ) -> Vec<Subscriber> {
        let is_last = stage.as_usize() + 1 == consumer.source.stages.len();
        let followers = consumer.meeting.followers.iter().filter_map(|id| self.consumers.get(id));
        let met = followers.filter(|follower| is_last && has_met(follower.state(), split));
        std::iter::once(consumer)
            .chain(met)
            .flat_map(|taker| taker.subscribers.iter().cloned())
            .collect()
    }

    /// At a step boundary: every follower learns where its leader stands, and what has met is met.
    pub(crate) fn rendezvous(&mut self) {
        let leads = |consumer: &&Consumer| !consumer.meeting.followers.is_empty();
        let leaders: Vec<ConsumerId> =
            self.consumers.values().filter(leads).map(|c| c.id).collect();
        for leader in leaders {
            let mut holds = BTreeSet::new();
            for follower in self.consumers[&leader].meeting.followers.clone() {
                let since = led_by(self.consumers[&follower].state());
                let Some(lead) = lead_since(self.consumers[&leader].state(), since) else {
                    continue;
                };
                self.tell(follower, Event::Led { lead });
                let state = self.consumers[&follower].state();
                holds.extend(held(state));
                if has_met_all(state) {
                    self.merge(leader, follower);
                }
            }
            let live = self.consumers.get_mut(&leader).expect("it was just listed");
            self.released.extend(live.meeting.hold(holds));
        }
    }

    /// The follower is where its leader is, in every split: whoever took its rows takes the leader's.
    fn merge(&mut self, leader: ConsumerId, follower: ConsumerId) {
        let merged = self.consumers.remove(&follower).expect("it was just told something");
        let live = self.consumers.get_mut(&leader).expect("it was just listed");
        live.meeting.followers.retain(|id| *id != follower);
        live.subscribers.extend(merged.subscribers.iter().cloned());
        for subscriber in &merged.subscribers {
            self.redirect(subscriber.object, follower, leader);
        }
        self.jobs.retarget(follower, leader);
        self.set_pace(leader);
        self.pending.dropped.push(DroppedConsumer(follower));
        tracing::info!(source = %merged.source.object, consumer = %follower, "a backfill has met the live reading");
    }

    /// What an object's record says of who reads for it.
    fn redirect(&mut self, object: ObjectId, from: ConsumerId, to: ConsumerId) {
        let Some(object) = self.catalog.get(object) else { return };
        let mut object = (**object).clone();
        object.consumers.iter_mut().filter(|c| c.id == from).for_each(|c| c.id = to);
        self.put_object(object).expect("it is there already under this name");
    }

    /// Takes one object away from the live reading, to stand where that stands until it is resumed.
    pub(crate) fn part(&mut self, object: ObjectId, live: ConsumerId) -> Result<(), UserError> {
        let [id] = self.allocate_consumers(1)[..] else { unreachable!("one was asked for") };
        let leader = self.consumers.get_mut(&live).expect("the caller looked it up");
        if lead(leader.state()).is_none() {
            let message = "the live reading that the view shares is still in the history";
            return Err(UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_hint("Pause the source, or wait until its history is read."));
        }
        let (parting, staying) =
            std::mem::take(&mut leader.subscribers).into_iter().partition(|s| s.object == object);
        leader.subscribers = staying;
        let state = ConsumerState::parted(leader.state(), self.generation);
        let source = Arc::clone(&leader.source);
        leader.meeting.followers.push(id);
        let consumer = Consumer::new(id, parting, source, state, self.workplace.clone());
        self.consumers.insert(id, consumer);
        self.set_pace(id);
        self.redirect(object, live, id);
        Ok(())
    }

    /// Ends every reading that nobody takes rows of and nobody will.
    pub(crate) fn sweep_readings(&mut self) {
        loop {
            let is_idle =
                |c: &&Consumer| c.subscribers.is_empty() && c.meeting.followers.is_empty();
            let Some(id) = self.consumers.values().find(is_idle).map(|c| c.id) else { return };
            let consumer = self.consumers.remove(&id).expect("it was just found");
            self.pending.dropped.push(DroppedConsumer(id));
            // Its source may be gone from the catalog already: whom it followed is asked of the readings.
            for other in self.consumers.values_mut() {
                other.meeting.followers.retain(|follower| *follower != id);
            }
            let source = consumer.source.object;
            if self.live(source) == Some(id) {
                self.set_live(source, None);
            }
        }
    }

    /// Whether a consumer reads at all.
    pub(crate) fn is_paused(&self, id: ConsumerId) -> bool {
        self.consumers.get(&id).is_some_and(|consumer| *mode(consumer.state()) == Mode::Paused)
    }
}
