//! One request of librdkafka's admin interface and its answer, as an event that is owned here.

use std::time::Duration;

use rdkafka::bindings as c;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};

use super::Owned;

/// How much longer than the request itself its answer may take to reach us.
const ANSWER_MARGIN: Duration = Duration::from_millis(500);

/// What a request is sent with; all of it outlives the call that sends it.
pub(super) struct Sending {
    pub(super) client: *mut c::rd_kafka_t,
    pub(super) options: *const c::rd_kafka_AdminOptions_t,
    pub(super) queue: *mut c::rd_kafka_queue_t,
}

/// Sends a request and waits for its answer, for at most `timeout` and a little.
pub(super) fn request<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    operation: c::rd_kafka_admin_op_t,
    timeout: Duration,
    send: impl FnOnce(&Sending),
) -> Result<Owned<c::rd_kafka_event_t>, RDKafkaErrorCode> {
    let client = consumer.client().native_ptr();
    let mut complaint = [0; 256];
    // SAFETY: the client lives as long as `consumer`, which outlives this call; queue and options are ours, and
    // librdkafka copies the options before a request's call returns.
    let queue = unsafe {
        let queue = Owned::new(c::rd_kafka_queue_new(client), c::rd_kafka_queue_destroy)
            .expect("librdkafka allocates or aborts");
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
        send(&Sending { client, options: options.as_ptr(), queue: queue.as_ptr() });
        queue
    };
    // SAFETY: the queue is alive, and the event it returns is ours.
    let event = unsafe {
        let wait = millis(timeout + ANSWER_MARGIN);
        Owned::new(c::rd_kafka_queue_poll(queue.as_ptr(), wait), c::rd_kafka_event_destroy)
    }
    .ok_or(RDKafkaErrorCode::OperationTimedOut)?;
    // SAFETY: the event is alive.
    succeeded(unsafe { c::rd_kafka_event_error(event.as_ptr()) })?;
    Ok(event)
}

pub(super) fn succeeded(error: RDKafkaRespErr) -> Result<(), RDKafkaErrorCode> {
    match error {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
        error => Err(error.into()),
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
