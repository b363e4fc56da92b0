//! An open read: one client for all partitions of the topic, a thread that serves it, and a thread for each
//! partition that is being read.
//!
//! Invariant: the client is never closed on a thread of the async runtime, for closing blocks: the serving
//! thread outlives every other holder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::{Condvar, Mutex};
use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use segue_connect::{
    ConnectError, Enumeration, HasData, Latest, ReadConfig, ReadDefinition, SplitDefinition,
    SplitReader, SplitStart, StageReader,
};
use segue_types::{Boundedness, Position, SplitId};

use crate::link::{Ask, Context, Link, blocking};
use crate::native::PartitionQueue;
use crate::partition::{PartitionReader, Range, Reading};
use crate::record::records;
use crate::sentinel::Sentinel;
use crate::settings::{Purpose, Settings};
use crate::splits::{offset_of, partition_of, position_of, split_of};
use crate::stable::stable_ends;

/// How often a quiet topic's identity is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// How long the serving thread waits for the client's own events.
const SERVE_WAIT: Duration = Duration::from_millis(50);
/// How long a reader waits for the previous one of its partition to end.
const PREDECESSOR_DEADLINE: Duration = Duration::from_secs(5);
/// How long a client may take to learn of a new partition.
const METADATA_DEADLINE: Duration = Duration::from_secs(5);

/// What the threads of an open read share.
pub(crate) struct Shared {
    /// The client that reads.
    pub(crate) link: Link,
    /// The client that asks: on a connection of its own, for a broker answers one request of a connection
    /// after the other, and a fetch that waits for records would hold up every question.
    pub(crate) questions: Link,
    /// The client that asks what open transactions hide; made when it is first needed.
    uncommitted: Mutex<Option<Arc<Link>>>,
    pub(crate) settings: Settings,
    pub(crate) sentinel: Sentinel,
    pub(crate) config: ReadConfig,
    projection: Vec<usize>,
    definition: ReadDefinition,
    /// Partitions that the client has heard of.
    known: Mutex<BTreeSet<i32>>,
    /// Partitions that are being read.
    active: Mutex<BTreeMap<i32, Arc<Latch>>>,
}

/// Opens when its partition's thread has ended.
#[derive(Default)]
struct Latch {
    opened: Mutex<bool>,
    changed: Condvar,
}

impl Latch {
    fn open(&self) {
        *self.opened.lock() = true;
        self.changed.notify_all();
    }

    fn wait(&self, deadline: Duration) -> bool {
        let mut opened = self.opened.lock();
        self.changed.wait_while_for(&mut opened, |opened| !*opened, deadline);
        *opened
    }
}

/// Opens the latch when it is dropped, also by a panic.
pub(crate) struct OpensLatch(Arc<Latch>);

impl Drop for OpensLatch {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Shared {
    fn connect(
        settings: Settings,
        config: ReadConfig,
        definition: ReadDefinition,
        projection: Vec<usize>,
    ) -> Result<Shared, ConnectError> {
        records(&config, &projection, 0)?;
        let partitions = definition.splits.len();
        let link = Link::new(&settings, Purpose::Reading { partitions })?;
        let questions = Link::new(&settings, Purpose::Questions)?;
        let (described, identity) = questions.identify()?;
        if identity != definition.identity {
            return Err(link.replaced(&definition.identity, &identity));
        }
        Ok(Shared {
            sentinel: Sentinel::new(described.id, identity),
            known: Mutex::new(described.partitions.into_iter().collect()),
            active: Mutex::default(),
            link,
            questions,
            uncommitted: Mutex::default(),
            settings,
            config,
            projection,
            definition,
        })
    }

    /// Starts the thread of a partition.
    fn start(
        self: &Arc<Self>,
        partition: i32,
        range: Range,
    ) -> Result<PartitionReader, ConnectError> {
        self.make_known(partition);
        let ended = self.occupy(partition)?;
        let records = records(&self.config, &self.projection, partition)?;
        let queue = PartitionQueue::split(&self.link.consumer, &self.link.topic, partition)
            .ok_or_else(|| ConnectError::Missing { what: self.link.what() })?;
        self.assign(partition, range.from)?;
        Ok(Reading::start(Arc::clone(self), queue, records, partition, range, ended))
    }

    fn make_known(&self, partition: i32) {
        if self.known.lock().contains(&partition) {
            return;
        }
        let topic = Some(self.link.topic.as_str());
        // Should this fail, the client learns of the partition by itself, only later.
        let metadata = self.link.consumer.fetch_metadata(topic, METADATA_DEADLINE);
        if let Ok(metadata) = metadata {
            let found = metadata.topics().iter().flat_map(|topic| topic.partitions());
            self.known.lock().extend(found.map(|partition| partition.id()));
        }
    }

    /// Waits for the partition's previous reader, which may have been dropped just now.
    fn occupy(&self, partition: i32) -> Result<OpensLatch, ConnectError> {
        let deadline = Instant::now() + PREDECESSOR_DEADLINE;
        loop {
            let previous = {
                let mut active = self.active.lock();
                match active.get(&partition) {
                    Some(latch) if !*latch.opened.lock() => Arc::clone(latch),
                    _ => {
                        let latch = Arc::new(Latch::default());
                        active.insert(partition, Arc::clone(&latch));
                        return Ok(OpensLatch(latch));
                    }
                }
            };
            if !previous.wait(deadline.saturating_duration_since(Instant::now())) {
                let message = format!("partition {partition} is being read already");
                return Err(ConnectError::Unsupported(message));
            }
        }
    }

    pub(crate) fn assign(&self, partition: i32, offset: i64) -> Result<(), ConnectError> {
        let list = self.list([(partition, offset)])?;
        self.link.consumer.incremental_assign(&list).map_err(|error| unsupported(&error))
    }

    pub(crate) fn unassign(&self, partition: i32) -> Result<(), ConnectError> {
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.link.topic, partition);
        self.link.consumer.incremental_unassign(&list).map_err(|error| unsupported(&error))
    }

    fn list(
        &self,
        offsets: impl IntoIterator<Item = (i32, i64)>,
    ) -> Result<TopicPartitionList, ConnectError> {
        let mut list = TopicPartitionList::new();
        for (partition, offset) in offsets {
            list.add_partition_offset(&self.link.topic, partition, Offset::Offset(offset))
                .map_err(|error| unsupported(&error))?;
        }
        Ok(list)
    }

    fn enumerate(&self) -> Result<Enumeration, ConnectError> {
        let mut splits = self.definition.splits.clone();
        let sealed = self.definition.boundedness == Boundedness::Bounded;
        let (described, identity) = self.questions.identify()?;
        if identity != self.definition.identity {
            return Err(self.link.replaced(&self.definition.identity, &identity));
        }
        if !sealed {
            let known: BTreeSet<SplitId> = splits.iter().map(|split| split.id.clone()).collect();
            let added = described.partitions.into_iter().map(split_of);
            splits.extend(added.filter(|id| !known.contains(id)).map(|id| SplitDefinition {
                id,
                start: SplitStart::At(position_of(0)),
                bound: None,
                after: Vec::new(),
            }));
        }
        Ok(Enumeration { splits, sealed })
    }

    /// The last stable offset, with what an open transaction hides behind it.
    fn latest(&self, partition: i32) -> Result<Latest, ConnectError> {
        let uncommitted = self.uncommitted()?;
        let ends = stable_ends(&self.questions, &uncommitted, &[partition])?;
        let end = ends.get(&partition).ok_or_else(|| self.missing(partition))?;
        let remark = end.remark(&self.link.what(), partition);
        Ok(Latest { position: position_of(end.stable), remark })
    }

    fn uncommitted(&self) -> Result<Arc<Link>, ConnectError> {
        let mut link = self.uncommitted.lock();
        if let Some(link) = &*link {
            return Ok(Arc::clone(link));
        }
        let made = Arc::new(Link::new(&self.settings, Purpose::UncommittedQuestions)?);
        *link = Some(Arc::clone(&made));
        Ok(made)
    }

    fn missing(&self, partition: i32) -> ConnectError {
        ConnectError::Missing { what: format!("partition {partition} of {}", self.link.what()) }
    }

    fn edge(&self, partition: i32, ask: Ask) -> Result<i64, ConnectError> {
        let edges = self.questions.edges(&[partition], ask)?;
        edges.get(&partition).copied().ok_or_else(|| self.missing(partition))
    }
}

fn unsupported(error: &rdkafka::error::KafkaError) -> ConnectError {
    ConnectError::Unsupported(error.to_string())
}

/// Serves the client's own events and checks the topic's identity, until nobody else holds the client.
fn serve(shared: &Arc<Shared>, closing: &Receiver<Arc<Shared>>) {
    let mut closed = false;
    let mut checked = Instant::now();
    loop {
        // Errors and logs; records go to the queues of their partitions.
        drop(shared.link.consumer.poll(SERVE_WAIT));
        closed |= !matches!(closing.try_recv(), Err(TryRecvError::Empty));
        if closed && Arc::strong_count(shared) == 1 {
            return;
        }
        if !closed && checked.elapsed() >= CHECK_INTERVAL {
            // The outcome is kept for the partitions' threads.
            shared.sentinel.confirm(&shared.questions, CHECK_INTERVAL).ok();
            checked = Instant::now();
        }
    }
}

/// The open read of a stage.
pub(crate) struct KafkaReader {
    shared: Option<Arc<Shared>>,
    closing: Sender<Arc<Shared>>,
}

impl KafkaReader {
    pub(crate) async fn open(
        settings: Settings,
        config: ReadConfig,
        definition: ReadDefinition,
        projection: Vec<usize>,
    ) -> Result<KafkaReader, ConnectError> {
        blocking(move || {
            let shared = Arc::new(Shared::connect(settings, config, definition, projection)?);
            let (closing, closed) = channel();
            let served = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("kafka-serve".to_owned())
                .spawn(move || serve(&served, &closed))
                .expect("the system has threads");
            Ok(KafkaReader { shared: Some(shared), closing })
        })
        .await
    }

    fn shared(&self) -> &Arc<Shared> {
        self.shared.as_ref().expect("taken only on drop")
    }

    /// Runs a call that blocks, with what it needs of this read.
    async fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Arc<Shared>) -> Result<T, ConnectError> + Send + 'static,
    ) -> Result<T, ConnectError> {
        let shared = Arc::clone(self.shared());
        blocking(move || call(&shared)).await
    }
}

impl Drop for KafkaReader {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            // Should the serving thread be gone, the client is closed here.
            self.closing.send(shared).ok();
        }
    }
}

#[async_trait]
impl StageReader for KafkaReader {
    async fn discover(&self) -> Result<Enumeration, ConnectError> {
        self.ask(|shared| shared.enumerate()).await
    }

    async fn read(
        &self,
        split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let partition = partition_of(split)?;
        let range = Range { from: offset_of(from)?, until: until.map(offset_of).transpose()? };
        if range.until.is_some_and(|until| range.from >= until) {
            return Ok(Box::new(PartitionReader::done(range)));
        }
        let reader = self.ask(move |shared| shared.start(partition, range)).await?;
        Ok(Box::new(reader))
    }

    async fn latest(&self, split: &SplitId) -> Result<Option<Latest>, ConnectError> {
        let partition = partition_of(split)?;
        self.ask(move |shared| shared.latest(partition)).await.map(Some)
    }

    async fn has_data(&self, split: &SplitId, from: &Position) -> Result<HasData, ConnectError> {
        let (partition, from) = (partition_of(split)?, offset_of(from)?);
        self.ask(move |shared| {
            let end = shared.edge(partition, Ask::End)?;
            let first = shared.edge(partition, Ask::First)?;
            Ok(if from.max(first) < end { HasData::Yes } else { HasData::No })
        })
        .await
    }

    async fn acknowledge(&self, positions: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        if self.shared().settings.group.is_none() {
            return Ok(());
        }
        let offsets = positions
            .iter()
            .map(|(split, position)| Ok((partition_of(split)?, offset_of(position)?)))
            .collect::<Result<Vec<_>, ConnectError>>()?;
        let list = self.shared().list(offsets)?;
        // The outcome comes back as an event: what is committed there is for others to look at.
        let committed = self.shared().link.consumer.commit(&list, CommitMode::Async);
        committed.map_err(|error| unsupported(&error))
    }
}

/// The queue of a partition of our client.
pub(crate) type Queue = PartitionQueue<Context>;
