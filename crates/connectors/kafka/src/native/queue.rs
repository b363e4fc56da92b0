//! The queue of one partition: many messages per call, an end with its offset, errors in their place.

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as c;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};

use super::{Message, Owned};

/// How many messages one call takes.
const BATCH_MESSAGES: usize = 1024;

/// A partition's messages, apart from the consumer's own queue.
pub(crate) struct PartitionQueue<C: ConsumerContext> {
    queue: Owned<c::rd_kafka_queue_t>,
    /// Messages taken from the queue and not yet handed out, from `handed` on.
    batch: Vec<*mut c::rd_kafka_message_t>,
    handed: usize,
    /// Declared last, so dropped last: the queue and the messages belong to it.
    _consumer: Arc<BaseConsumer<C>>,
}

// SAFETY: librdkafka's queues and messages may be used from any thread, by one at a time, and `&mut self`
// sees to it.
unsafe impl<C: ConsumerContext> Send for PartitionQueue<C> {}

impl<C: ConsumerContext> PartitionQueue<C> {
    /// Takes the partition's queue out of the consumer's. Done before the partition is assigned, so that no
    /// message goes the other way.
    pub(crate) fn split(
        consumer: &Arc<BaseConsumer<C>>,
        topic: &str,
        partition: i32,
    ) -> Option<PartitionQueue<C>> {
        let name = CString::new(topic).ok()?;
        let client = consumer.client().native_ptr();
        // SAFETY: the client is alive and is kept alive by the clone below; the queue is ours.
        let queue = unsafe {
            let queue = c::rd_kafka_queue_get_partition(client, name.as_ptr(), partition);
            Owned::new(queue, c::rd_kafka_queue_destroy)?
        };
        // SAFETY: the queue is alive; null means that it is forwarded to nowhere.
        unsafe { c::rd_kafka_queue_forward(queue.as_ptr(), ptr::null_mut()) };
        Some(PartitionQueue {
            queue,
            batch: Vec::with_capacity(BATCH_MESSAGES),
            handed: 0,
            _consumer: Arc::clone(consumer),
        })
    }

    /// Waits up to `wait` for a first message and takes with it what else is there. Whether anything came.
    pub(crate) fn poll(&mut self, wait: Duration) -> bool {
        assert_eq!(self.handed, self.batch.len(), "the last batch was not taken to its end");
        self.batch.clear();
        self.handed = 0;
        if self.take(wait, 1) == 0 {
            return false;
        }
        self.take(Duration::ZERO, BATCH_MESSAGES - 1);
        true
    }

    /// librdkafka waits until it has as many as it is asked for: one to be woken, then the rest without
    /// waiting.
    fn take(&mut self, wait: Duration, count: usize) -> usize {
        let filled = self.batch.len();
        assert!(filled + count <= self.batch.capacity(), "the batch has room for what is asked");
        let wait_ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the queue is alive; there is room for `count` pointers behind `filled`, and librdkafka says
        // how many of them it wrote (-1, an error, when none).
        unsafe {
            let room = self.batch.as_mut_ptr().add(filled);
            let taken = c::rd_kafka_consume_batch_queue(self.queue.as_ptr(), wait_ms, room, count);
            let taken = usize::try_from(taken).unwrap_or(0);
            self.batch.set_len(filled + taken);
            taken
        }
    }

    /// The next message of the batch.
    pub(crate) fn next(&mut self) -> Option<Message<'_>> {
        let pointer = *self.batch.get(self.handed)?;
        self.handed += 1;
        // SAFETY: each pointer of the batch is ours and is handed out once; the client lives as long as
        // `self`.
        Some(unsafe { Message::new(pointer) })
    }
}

impl<C: ConsumerContext> Drop for PartitionQueue<C> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
