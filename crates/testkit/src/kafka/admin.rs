//! Topics: made, deleted, grown, cut; and what a reader of either isolation can see of them.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::executor::block_on;
use rdkafka::admin::{
    AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication, TopicResult,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::{KafkaClient, REQUEST_DEADLINE};
use crate::wait::wait_for;

/// Which end of a partition is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The last stable offset.
    ReadCommitted,
    /// The high watermark.
    ReadUncommitted,
}

impl Isolation {
    fn as_str(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "read_committed",
            Isolation::ReadUncommitted => "read_uncommitted",
        }
    }
}

impl KafkaClient {
    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().expect("the configuration is complete")
    }

    /// Makes a topic and waits until every partition has a leader.
    ///
    /// # Panics
    /// If the broker refuses.
    pub fn create_topic(&self, topic: &str, partitions: i32, configs: &[(&str, &str)]) {
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        for (name, value) in configs {
            new = new.set(name, value);
        }
        let results = block_on(self.admin().create_topics([&new], &options()));
        all_succeeded(results.expect("the broker answers"));
        self.wait_for_partitions(topic, partitions);
    }

    /// Deletes a topic and waits until it is gone, so that its name can be used again.
    ///
    /// # Panics
    /// If the broker refuses.
    pub fn delete_topic(&self, topic: &str) {
        let results = block_on(self.admin().delete_topics(&[topic], &options()));
        all_succeeded(results.expect("the broker answers"));
        let client = self.metadata_client();
        wait_for("the topic to go", REQUEST_DEADLINE, || {
            let metadata = client.fetch_metadata(Some(topic), REQUEST_DEADLINE).ok()?;
            metadata.topics().first().is_none_or(|found| found.error().is_some()).then_some(())
        });
    }

    /// Grows a topic to `partitions`.
    ///
    /// # Panics
    /// If the broker refuses.
    pub fn add_partitions(&self, topic: &str, partitions: i32) {
        let count = usize::try_from(partitions).expect("a count is not negative");
        let new = NewPartitions::new(topic, count);
        let results = block_on(self.admin().create_partitions([&new], &options()));
        all_succeeded(results.expect("the broker answers"));
        self.wait_for_partitions(topic, partitions);
        // It knows the old number; another one asks for the new.
        self.forget_producer();
    }

    /// Deletes the records of a partition before `offset`, as retention does.
    ///
    /// # Panics
    /// If the broker refuses.
    pub fn delete_records(&self, topic: &str, partition: i32, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset))
            .expect("a valid offset");
        let answer = block_on(self.admin().delete_records(&list, &options()));
        for element in answer.expect("the broker answers").elements() {
            element.error().expect("the records can be deleted");
        }
        wait_for("the low watermark to move", REQUEST_DEADLINE, || {
            let (low, _) = self.watermarks(topic, partition, Isolation::ReadUncommitted);
            (low >= offset).then_some(())
        });
    }

    fn wait_for_partitions(&self, topic: &str, partitions: i32) {
        let client = self.metadata_client();
        wait_for("every partition to have a leader", REQUEST_DEADLINE, || {
            let metadata = client.fetch_metadata(Some(topic), REQUEST_DEADLINE).ok()?;
            let found = metadata.topics().first()?.partitions();
            let led = found.iter().filter(|partition| partition.leader() >= 0).count();
            (i32::try_from(led) == Ok(partitions)).then_some(())
        });
        for partition in 0..partitions {
            wait_for("the partition to answer", REQUEST_DEADLINE, || {
                client.fetch_watermarks(topic, partition, REQUEST_DEADLINE).ok()
            });
        }
    }

    /// The first offset of a partition and its exclusive end.
    ///
    /// # Panics
    /// If the broker does not answer.
    pub fn watermarks(&self, topic: &str, partition: i32, isolation: Isolation) -> (i64, i64) {
        let client: BaseConsumer = self
            .config()
            .set("isolation.level", isolation.as_str())
            .create()
            .expect("the configuration is complete");
        client.fetch_watermarks(topic, partition, REQUEST_DEADLINE).expect("the broker answers")
    }

    /// What a group has committed for a partition.
    ///
    /// # Panics
    /// If the broker does not answer.
    pub fn committed_offset(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let mut config = self.config();
        let client: BaseConsumer =
            config.set("group.id", group).create().expect("the configuration is complete");
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let list = client.committed_offsets(list, REQUEST_DEADLINE).expect("the broker answers");
        match list.elements().first()?.offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }
    }

    /// The groups that the broker knows.
    ///
    /// # Panics
    /// If the broker does not answer.
    pub fn groups(&self) -> Vec<String> {
        let groups = self.metadata_client().fetch_group_list(None, REQUEST_DEADLINE);
        let groups = groups.expect("the broker answers");
        groups.groups().iter().map(|group| group.name().to_owned()).collect()
    }

    /// The offsets of every record that a committed reader sees now, by partition.
    ///
    /// # Panics
    /// If the partitions do not end in time.
    pub fn visible_offsets(&self, topic: &str, partitions: i32) -> BTreeMap<i32, Vec<i64>> {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", "segue-testkit")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .create()
            .expect("the configuration is complete");
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition_offset(topic, partition, Offset::Beginning).expect("a valid offset");
        }
        consumer.assign(&list).expect("the partitions exist");
        let mut seen: BTreeMap<i32, Vec<i64>> = (0..partitions).map(|p| (p, vec![])).collect();
        let mut ended = 0;
        wait_for("the end of every partition", REQUEST_DEADLINE, || {
            match consumer.poll(Duration::from_millis(100)) {
                Some(Ok(message)) => {
                    seen.entry(message.partition()).or_default().push(message.offset());
                }
                Some(Err(KafkaError::PartitionEOF(_))) => ended += 1,
                Some(Err(error)) => panic!("reading back failed: {error}"),
                None => {}
            }
            (ended >= partitions).then_some(())
        });
        seen
    }
}

fn options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(REQUEST_DEADLINE))
        .operation_timeout(Some(REQUEST_DEADLINE))
}

fn all_succeeded(results: Vec<TopicResult>) {
    for result in results {
        result.expect("the broker does what it was asked");
    }
}
