//! Records: single, in bulk, and in transactions that leave their markers behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};

use super::admin::Isolation;
use super::{KafkaClient, REQUEST_DEADLINE};
use crate::wait::wait_for;

/// A record to produce. Without a value it is a tombstone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    pub partition: i32,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [(&'a str, &'a [u8])],
    pub timestamp_ms: Option<i64>,
}

impl<'a> Record<'a> {
    /// A record of partition 0 without a key.
    pub fn value(value: &'a (impl AsRef<[u8]> + ?Sized)) -> Record<'a> {
        Record { value: Some(value.as_ref()), ..Record::default() }
    }

    /// A record of partition 0 that has a key and no value.
    pub fn tombstone(key: &'a (impl AsRef<[u8]> + ?Sized)) -> Record<'a> {
        Record { key: Some(key.as_ref()), ..Record::default() }
    }

    /// The same in another partition.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Record<'a> {
        self.partition = partition;
        self
    }

    /// The same with a key.
    #[must_use]
    pub fn key(mut self, key: &'a (impl AsRef<[u8]> + ?Sized)) -> Record<'a> {
        self.key = Some(key.as_ref());
        self
    }

    /// The same with these headers.
    #[must_use]
    pub fn headers(mut self, headers: &'a [(&'a str, &'a [u8])]) -> Record<'a> {
        self.headers = headers;
        self
    }

    /// The same with this time. Zero means now to the client library.
    #[must_use]
    pub fn at(mut self, timestamp_ms: i64) -> Record<'a> {
        self.timestamp_ms = Some(timestamp_ms);
        self
    }
}

/// The first delivery that failed.
#[derive(Default)]
pub(super) struct Deliveries(Mutex<Option<KafkaError>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.0.lock().get_or_insert_with(|| error.clone());
        }
    }
}

/// A producer that finds its failures at [`Producer::flush`].
pub(super) struct Producer {
    inner: BaseProducer<Deliveries>,
    deliveries: Arc<Deliveries>,
}

impl Producer {
    fn new(client: &KafkaClient, transactional_id: Option<&str>) -> Producer {
        let mut config = client.config();
        config
            .set("linger.ms", "1")
            .set("batch.size", "1000000")
            .set("message.max.bytes", "33554432")
            .set("queue.buffering.max.messages", "1000000")
            .set("queue.buffering.max.kbytes", "262144")
            .set("enable.idempotence", "true");
        if let Some(id) = transactional_id {
            config.set("transactional.id", id);
        }
        let inner: BaseProducer<Deliveries> = config
            .create_with_context(Deliveries::default())
            .expect("the configuration is complete");
        let deliveries = Arc::clone(inner.context());
        Producer { inner, deliveries }
    }

    fn send(&self, topic: &str, record: &Record<'_>) {
        let mut base = BaseRecord::<[u8], [u8]>::to(topic).partition(record.partition);
        base.key = record.key;
        base.payload = record.value;
        base.timestamp = record.timestamp_ms;
        if !record.headers.is_empty() {
            let none = OwnedHeaders::new_with_capacity(record.headers.len());
            base.headers = Some(record.headers.iter().fold(none, |headers, (key, value)| {
                headers.insert(Header { key, value: Some(*value) })
            }));
        }
        while let Err((error, back)) = self.inner.send(base) {
            let full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
            assert!(full, "the producer refused a record: {error}");
            self.inner.poll(Duration::from_millis(10));
            base = back;
        }
    }

    /// `BaseProducer::flush` looks only every 100 ms whether it is done.
    fn flush(&self) {
        let start = Instant::now();
        while self.inner.in_flight_count() > 0 {
            assert!(start.elapsed() < REQUEST_DEADLINE, "the broker does not take the records");
            self.inner.poll(Duration::from_millis(1));
        }
        let failed = self.deliveries.0.lock().take();
        assert!(failed.is_none(), "a record was not delivered: {failed:?}");
    }
}

impl KafkaClient {
    /// Produces one record and waits until it is there.
    ///
    /// # Panics
    /// If the broker refuses it.
    pub fn produce(&self, topic: &str, record: Record<'_>) {
        self.produce_all(topic, [record]);
    }

    /// Produces records in their order and waits until all are there.
    ///
    /// # Panics
    /// If the broker refuses one.
    pub fn produce_all<'a>(&self, topic: &str, records: impl IntoIterator<Item = Record<'a>>) {
        let mut slot = self.producer.lock();
        let producer = slot.get_or_insert_with(|| Producer::new(self, None));
        for record in records {
            producer.send(topic, &record);
        }
        producer.flush();
    }

    /// Produces `values` without keys, dealt round over the first `partitions`.
    ///
    /// # Panics
    /// If the broker refuses one.
    pub fn produce_values<S: AsRef<[u8]>>(
        &self,
        topic: &str,
        partitions: i32,
        values: impl IntoIterator<Item = S>,
    ) {
        let mut slot = self.producer.lock();
        let producer = slot.get_or_insert_with(|| Producer::new(self, None));
        for (value, partition) in values.into_iter().zip((0..partitions).cycle()) {
            producer.send(topic, &Record::value(&value).partition(partition));
        }
        producer.flush();
    }

    /// Opens a transaction. It stays open until it is committed, aborted or dropped.
    ///
    /// # Panics
    /// If the broker refuses.
    pub fn begin(&self, topic: &str, transactional_id: &str) -> Transaction<'_> {
        let producer = Producer::new(self, Some(transactional_id));
        producer.inner.init_transactions(REQUEST_DEADLINE).expect("the coordinator answers");
        producer.inner.begin_transaction().expect("no transaction is open");
        Transaction { client: self, topic: topic.to_owned(), producer, ends: BTreeMap::new() }
    }
}

/// An open transaction on one topic.
pub struct Transaction<'a> {
    client: &'a KafkaClient,
    topic: String,
    producer: Producer,
    /// The end of each touched partition behind our records.
    ends: BTreeMap<i32, i64>,
}

impl Transaction<'_> {
    /// Writes records; they lie in the log afterwards, and no committed reader sees them.
    ///
    /// # Panics
    /// If the broker refuses one.
    pub fn write<'a>(&mut self, records: impl IntoIterator<Item = Record<'a>>) {
        for record in records {
            self.ends.insert(record.partition, 0);
            self.producer.send(&self.topic, &record);
        }
        self.producer.flush();
        for (partition, end) in &mut self.ends {
            *end = self.client.watermarks(&self.topic, *partition, Isolation::ReadUncommitted).1;
        }
    }

    /// Commits and waits for the markers, one offset in each partition that was written to.
    ///
    /// # Panics
    /// If the broker refuses.
    pub fn commit(self) {
        self.producer.inner.commit_transaction(REQUEST_DEADLINE).expect("the broker commits");
        self.wait_for_markers();
    }

    /// Aborts and waits for the markers, one offset in each partition that was written to.
    ///
    /// # Panics
    /// If the broker refuses.
    pub fn abort(self) {
        self.producer.inner.abort_transaction(REQUEST_DEADLINE).expect("the broker aborts");
        self.wait_for_markers();
    }

    fn wait_for_markers(&self) {
        for (partition, end) in &self.ends {
            wait_for("a transaction's marker", REQUEST_DEADLINE, || {
                let seen = |isolation| self.client.watermarks(&self.topic, *partition, isolation).1;
                (seen(Isolation::ReadUncommitted) > *end).then_some(())
            });
        }
    }
}
