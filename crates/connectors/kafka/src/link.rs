//! A client of one topic's cluster, and the questions that are put to it. Every call blocks, for at most a
//! deadline; async callers go through [`blocking`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use segue_connect::ConnectError;

use crate::native::{Described, describe_topic, forget_topic};
use crate::settings::{Purpose, Settings, config_error};

/// How long a question may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// What a client complained of, outside of any call.
#[derive(Default)]
pub(crate) struct Context {
    complaint: Mutex<Option<(Code, String)>>,
}

impl ClientContext for Context {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        if code == Code::PartitionEOF {
            return;
        }
        tracing::debug!(%code, reason, "librdkafka");
        *self.complaint.lock() = Some((code, reason.to_owned()));
    }
}

impl ConsumerContext for Context {}

/// Which offset of a partition is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The first that is still there.
    First,
    /// Where the next record that a reader of this isolation can see will be, at the least.
    End,
    /// The first whose time is at or after this.
    Since { unix_ms: i64 },
}

/// A client of the topic's cluster.
pub(crate) struct Link {
    pub(crate) consumer: Arc<BaseConsumer<Context>>,
    pub(crate) topic: String,
    servers: String,
}

impl Link {
    /// Makes a client. Connects to nothing yet.
    pub(crate) fn new(settings: &Settings, purpose: Purpose) -> Result<Link, ConnectError> {
        let consumer = settings
            .client(purpose)
            .create_with_context(Context::default())
            .map_err(|error| config_error(&error))?;
        let (topic, servers) = (settings.topic.clone(), settings.servers.clone());
        Ok(Link { consumer: Arc::new(consumer), topic, servers })
    }

    /// The topic's id and partitions.
    pub(crate) fn describe(&self, timeout: Duration) -> Result<Described, ConnectError> {
        let described = describe_topic(&self.consumer, &self.topic, timeout);
        let described = described.map_err(|code| self.failure(code))?;
        assert!(!described.partitions.is_empty(), "a topic has a partition");
        Ok(described)
    }

    /// The topic, and what its positions point into.
    pub(crate) fn identify(&self) -> Result<(Described, String), ConnectError> {
        let described = self.describe(ANSWER_DEADLINE)?;
        let cluster = self.consumer.client().fetch_cluster_id(ANSWER_DEADLINE);
        let cluster = cluster.ok_or_else(|| self.failure(Code::OperationTimedOut))?;
        let identity = self.identity(&cluster, &described.id);
        Ok((described, identity))
    }

    /// Removes what `group` has committed of the topic.
    pub(crate) fn forget(&self, group: &str) -> Result<(), ConnectError> {
        let forgotten = forget_topic(&self.consumer, group, &self.topic, ANSWER_DEADLINE);
        forgotten.map_err(|code| self.failure(code))
    }

    fn identity(&self, cluster: &str, topic_id: &str) -> String {
        format!("cluster {cluster}, topic {}, id {topic_id}", self.topic)
    }

    /// One offset of each partition; `None` where no record is as young as asked.
    pub(crate) fn offsets(
        &self,
        partitions: &[i32],
        ask: Ask,
    ) -> Result<BTreeMap<i32, Option<i64>>, ConnectError> {
        if partitions.is_empty() {
            return Ok(BTreeMap::new());
        }
        // ListOffsets takes a time; two negative ones mean the beginning and the end. librdkafka hands it
        // on as it is, and asks each leader once for all its partitions.
        let asked = match ask {
            Ask::First => Offset::Beginning,
            Ask::End => Offset::End,
            Ask::Since { unix_ms } => Offset::Offset(unix_ms.max(0)),
        };
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            list.add_partition_offset(&self.topic, *partition, asked)
                .map_err(|error| self.failure_of(&error))?;
        }
        let answered = self.consumer.offsets_for_times(list, ANSWER_DEADLINE);
        let answered = answered.map_err(|error| self.failure_of(&error))?;
        let mut offsets = BTreeMap::new();
        for element in answered.elements() {
            element.error().map_err(|error| self.failure_of(&error))?;
            let offset = match element.offset() {
                Offset::Offset(offset) => Some(offset),
                _ => None,
            };
            offsets.insert(element.partition(), offset);
        }
        Ok(offsets)
    }

    /// The first or the end of each partition: always there.
    pub(crate) fn edges(
        &self,
        partitions: &[i32],
        ask: Ask,
    ) -> Result<BTreeMap<i32, i64>, ConnectError> {
        assert!(!matches!(ask, Ask::Since { .. }), "a time may have no record");
        let offsets = self.offsets(partitions, ask)?;
        offsets
            .into_iter()
            .map(|(partition, offset)| match offset {
                Some(offset) => Ok((partition, offset)),
                None => Err(self.failure(Code::LeaderNotAvailable)),
            })
            .collect()
    }

    /// What an error code means, with what the client complained of meanwhile.
    pub(crate) fn failure(&self, code: Code) -> ConnectError {
        let unreachable = is_unreachable(code);
        let complaint = if unreachable { self.complaint() } else { None };
        let (code, reason) = complaint.unwrap_or_else(|| (code, code.to_string()));
        let system = format!("Kafka at {}", self.servers);
        match code {
            Code::UnknownTopic
            | Code::UnknownTopicOrPartition
            | Code::UnknownPartition
            | Code::InvalidTopic => ConnectError::Missing { what: self.what() },
            code if is_unreachable(code) => ConnectError::Unreachable { system, reason },
            _ => ConnectError::Denied { system, reason },
        }
    }

    fn failure_of(&self, error: &KafkaError) -> ConnectError {
        match error.rdkafka_error_code() {
            Some(code) => self.failure(code),
            None => ConnectError::Unsupported(error.to_string()),
        }
    }

    /// What the client complained of last. Complaints come through the client's own queue.
    fn complaint(&self) -> Option<(Code, String)> {
        let start = Instant::now();
        while self.consumer.poll(Duration::ZERO).is_some() && start.elapsed() < ANSWER_DEADLINE {}
        self.consumer.context().complaint.lock().take()
    }

    /// What is read, for errors.
    pub(crate) fn what(&self) -> String {
        format!("topic \"{}\"", self.topic)
    }

    /// `Replaced`, between what was pinned and what is there now.
    pub(crate) fn replaced(&self, pinned: &str, found: &str) -> ConnectError {
        ConnectError::Replaced {
            what: self.what(),
            pinned: pinned.to_owned(),
            found: found.to_owned(),
        }
    }
}

/// Whether the cluster may answer later.
fn is_unreachable(code: Code) -> bool {
    matches!(
        code,
        Code::AllBrokersDown
            | Code::BrokerTransportFailure
            | Code::Resolve
            | Code::OperationTimedOut
            | Code::MessageTimedOut
            | Code::TimedOutQueue
            | Code::RequestTimedOut
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::BrokerNotAvailable
            | Code::ReplicaNotAvailable
            | Code::NetworkException
            | Code::NotController
            | Code::KafkaStorageError
            | Code::UnknownTopicId
            | Code::OffsetNotAvailable
            | Code::FencedLeaderEpoch
            | Code::UnknownLeaderEpoch
            | Code::WaitingForCoordinator
            | Code::WaitCache
    )
}

/// Runs a call that blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
) -> Result<T, ConnectError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ConnectError::Unreachable {
                system: "Kafka".to_owned(),
                reason: "the server is shutting down".to_owned(),
            }),
        },
    }
}
