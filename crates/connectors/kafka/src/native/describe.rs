//! DescribeTopics: the one request that tells a topic's id, which is what changes when a topic is re-created
//! under its old name.

use std::ffi::CStr;
use std::ffi::CString;
use std::time::Duration;

use rdkafka::bindings as c;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::types::RDKafkaErrorCode;

use super::Owned;
use super::admin::{Sending, request, succeeded};

/// What a topic is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// The topic's id as Kafka's tools print it.
    pub(crate) id: String,
    /// The numbers of its partitions, ascending.
    pub(crate) partitions: Vec<i32>,
}

/// Asks for a topic. Blocks for at most `timeout` and a little.
pub(crate) fn describe_topic<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    timeout: Duration,
) -> Result<Described, RDKafkaErrorCode> {
    let name = CString::new(topic).map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
    let operation = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
    let event = request(consumer, operation, timeout, |sending| {
        let mut names = [name.as_ptr()];
        // SAFETY: the names outlive the call that copies them.
        unsafe {
            let topics = Owned::new(
                c::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len()),
                c::rd_kafka_TopicCollection_destroy,
            )
            .expect("librdkafka allocates or aborts");
            let Sending { client, options, queue } = *sending;
            c::rd_kafka_DescribeTopics(client, topics.as_ptr(), options, queue);
        }
    })?;
    answer(&event)
}

fn answer(event: &Owned<c::rd_kafka_event_t>) -> Result<Described, RDKafkaErrorCode> {
    // SAFETY: all that is read below belongs to the event, which outlives this function; the counts that
    // librdkafka writes are the lengths of the arrays it returns with them.
    unsafe {
        let result = c::rd_kafka_event_DescribeTopics_result(event.as_ptr());
        if result.is_null() {
            return Err(RDKafkaErrorCode::BadMessage);
        }
        let mut count = 0;
        let topics = c::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
        if topics.is_null() || count != 1 {
            return Err(RDKafkaErrorCode::UnknownTopic);
        }
        let topic = *topics;
        let error = c::rd_kafka_TopicDescription_error(topic);
        if !error.is_null() {
            succeeded(c::rd_kafka_error_code(error))?;
        }
        let id = c::rd_kafka_Uuid_base64str(c::rd_kafka_TopicDescription_topic_id(topic));
        let id = CStr::from_ptr(id).to_string_lossy().into_owned();
        let infos = c::rd_kafka_TopicDescription_partitions(topic, &raw mut count);
        let mut partitions: Vec<i32> =
            (0..count).map(|i| c::rd_kafka_TopicPartitionInfo_partition(*infos.add(i))).collect();
        partitions.sort_unstable();
        Ok(Described { id, partitions })
    }
}
