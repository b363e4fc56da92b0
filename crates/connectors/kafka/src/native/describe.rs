//! DescribeTopics: the one request that tells a topic's id, which is what changes when a topic is re-created
//! under its old name.

use std::ffi::CStr;
use std::ffi::CString;
use std::time::Duration;

use rdkafka::bindings as c;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};

use super::Owned;

/// What a topic is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// The topic's id as Kafka's tools print it.
    pub(crate) id: String,
    /// The numbers of its partitions, ascending.
    pub(crate) partitions: Vec<i32>,
}

/// How much longer than the request itself its answer may take to reach us.
const ANSWER_MARGIN: Duration = Duration::from_millis(500);

/// Asks for a topic. Blocks for at most `timeout` and a little.
pub(crate) fn describe_topic<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    timeout: Duration,
) -> Result<Described, RDKafkaErrorCode> {
    let name = CString::new(topic).map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
    let client = consumer.client().native_ptr();
    // SAFETY: the client lives as long as `consumer`, which outlives this call; the queue is ours.
    let queue = unsafe { Owned::new(c::rd_kafka_queue_new(client), c::rd_kafka_queue_destroy) }
        .expect("librdkafka allocates or aborts");
    ask(client, &name, &queue, timeout);
    // SAFETY: the queue is alive, and the event it returns is ours.
    let event = unsafe {
        let wait = millis(timeout + ANSWER_MARGIN);
        Owned::new(c::rd_kafka_queue_poll(queue.as_ptr(), wait), c::rd_kafka_event_destroy)
    }
    .ok_or(RDKafkaErrorCode::OperationTimedOut)?;
    answer(&event)
}

fn ask(
    client: *mut c::rd_kafka_t,
    name: &CStr,
    queue: &Owned<c::rd_kafka_queue_t>,
    timeout: Duration,
) {
    let operation = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
    let mut names = [name.as_ptr()];
    let mut complaint = [0; 256];
    // SAFETY: the client is alive; names and complaint outlive the calls that borrow them; librdkafka
    // copies the names and the options before `rd_kafka_DescribeTopics` returns.
    unsafe {
        let options = Owned::new(
            c::rd_kafka_AdminOptions_new(client, operation),
            c::rd_kafka_AdminOptions_destroy,
        )
        .expect("librdkafka allocates or aborts");
        c::rd_kafka_AdminOptions_set_request_timeout(
            options.as_ptr(),
            millis(timeout),
            complaint.as_mut_ptr(),
            complaint.len(),
        );
        let topics = Owned::new(
            c::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len()),
            c::rd_kafka_TopicCollection_destroy,
        )
        .expect("librdkafka allocates or aborts");
        c::rd_kafka_DescribeTopics(client, topics.as_ptr(), options.as_ptr(), queue.as_ptr());
    }
}

fn answer(event: &Owned<c::rd_kafka_event_t>) -> Result<Described, RDKafkaErrorCode> {
    // SAFETY: all that is read below belongs to the event, which outlives this function; the counts that
    // librdkafka writes are the lengths of the arrays it returns with them.
    unsafe {
        succeeded(c::rd_kafka_event_error(event.as_ptr()))?;
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

fn succeeded(error: RDKafkaRespErr) -> Result<(), RDKafkaErrorCode> {
    match error {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
        error => Err(error.into()),
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
