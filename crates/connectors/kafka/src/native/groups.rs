//! What a group has committed, and how to remove it: the offsets of one topic, or the group when it has no others.

use std::ffi::{CStr, CString};
use std::slice;
use std::time::Duration;

use rdkafka::bindings as c;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::types::RDKafkaErrorCode as Code;

use super::Owned;
use super::admin::{Sending, request, succeeded};

/// Removes what `group` has committed of `topic`. Nothing is left of a group that has nothing else.
pub(crate) fn forget_topic<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    group: &str,
    topic: &str,
    timeout: Duration,
) -> Result<(), Code> {
    let name = CString::new(group).map_err(|_| Code::InvalidGroupId)?;
    let committed = committed(consumer, &name, timeout)?;
    let (ours, others): (Vec<_>, Vec<_>) = committed.into_iter().partition(|(of, _)| of == topic);
    let forgotten = match (ours.is_empty(), others.is_empty()) {
        (true, false) => Ok(()),
        (_, true) => delete_group(consumer, &name, timeout),
        (false, false) => delete_offsets(consumer, &name, &ours, timeout),
    };
    match forgotten {
        Err(Code::GroupIdNotFound) => Ok(()),
        forgotten => forgotten,
    }
}

/// Topics and partitions of which the group has an offset.
fn committed<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    group: &CStr,
    timeout: Duration,
) -> Result<Vec<(String, i32)>, Code> {
    let operation = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS;
    let event = request(consumer, operation, timeout, |sending| {
        // SAFETY: the request is ours and is copied by the call; no list asks for all partitions.
        unsafe {
            let asked = Owned::new(
                c::rd_kafka_ListConsumerGroupOffsets_new(group.as_ptr(), std::ptr::null()),
                c::rd_kafka_ListConsumerGroupOffsets_destroy,
            )
            .expect("librdkafka allocates or aborts");
            let Sending { client, options, queue } = *sending;
            let mut asked = [asked.as_ptr()];
            c::rd_kafka_ListConsumerGroupOffsets(client, asked.as_mut_ptr(), 1, options, queue);
        }
    })?;
    // SAFETY: what is read belongs to the event; counts are the lengths of the arrays they come with.
    unsafe {
        let result = c::rd_kafka_event_ListConsumerGroupOffsets_result(event.as_ptr());
        let mut count = 0;
        let groups = c::rd_kafka_ListConsumerGroupOffsets_result_groups(result, &raw mut count);
        let group = only(groups, count)?;
        let list = c::rd_kafka_group_result_partitions(group);
        let Some(list) = list.as_ref().filter(|list| list.cnt > 0) else { return Ok(Vec::new()) };
        let elements = slice::from_raw_parts(list.elems, usize::try_from(list.cnt).unwrap_or(0));
        let named = elements.iter().filter(|element| element.offset >= 0).map(|element| {
            let topic = CStr::from_ptr(element.topic).to_string_lossy().into_owned();
            (topic, element.partition)
        });
        Ok(named.collect())
    }
}

fn delete_group<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    group: &CStr,
    timeout: Duration,
) -> Result<(), Code> {
    let operation = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DELETEGROUPS;
    let event = request(consumer, operation, timeout, |sending| {
        // SAFETY: the request is ours and is copied by the call.
        unsafe {
            let asked = c::rd_kafka_DeleteGroup_new(group.as_ptr());
            let asked = Owned::new(asked, c::rd_kafka_DeleteGroup_destroy)
                .expect("librdkafka allocates or aborts");
            let Sending { client, options, queue } = *sending;
            c::rd_kafka_DeleteGroups(client, [asked.as_ptr()].as_mut_ptr(), 1, options, queue);
        }
    })?;
    // SAFETY: what is read belongs to the event; the count is the length of the array it comes with.
    unsafe {
        let result = c::rd_kafka_event_DeleteGroups_result(event.as_ptr());
        let mut count = 0;
        only(c::rd_kafka_DeleteGroups_result_groups(result, &raw mut count), count).map(drop)
    }
}

fn delete_offsets<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    group: &CStr,
    partitions: &[(String, i32)],
    timeout: Duration,
) -> Result<(), Code> {
    let operation = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DELETECONSUMERGROUPOFFSETS;
    let topics = partitions.iter().map(|(topic, partition)| {
        CString::new(topic.as_str())
            .map(|topic| (topic, *partition))
            .map_err(|_| Code::InvalidTopic)
    });
    let topics = topics.collect::<Result<Vec<_>, Code>>()?;
    let event = request(consumer, operation, timeout, |sending| {
        // SAFETY: list and request are ours; each is copied by the call that takes it.
        unsafe {
            let list = c::rd_kafka_topic_partition_list_new(0);
            let list = Owned::new(list, c::rd_kafka_topic_partition_list_destroy)
                .expect("librdkafka allocates or aborts");
            for (topic, partition) in &topics {
                c::rd_kafka_topic_partition_list_add(list.as_ptr(), topic.as_ptr(), *partition);
            }
            let asked = c::rd_kafka_DeleteConsumerGroupOffsets_new(group.as_ptr(), list.as_ptr());
            let asked = Owned::new(asked, c::rd_kafka_DeleteConsumerGroupOffsets_destroy)
                .expect("librdkafka allocates or aborts");
            let Sending { client, options, queue } = *sending;
            let mut asked = [asked.as_ptr()];
            c::rd_kafka_DeleteConsumerGroupOffsets(client, asked.as_mut_ptr(), 1, options, queue);
        }
    })?;
    // SAFETY: what is read belongs to the event; the count is the length of the array it comes with.
    unsafe {
        let result = c::rd_kafka_event_DeleteConsumerGroupOffsets_result(event.as_ptr());
        let mut count = 0;
        let groups = c::rd_kafka_DeleteConsumerGroupOffsets_result_groups(result, &raw mut count);
        only(groups, count).map(drop)
    }
}

/// The answer for the one group that was asked about.
///
/// # Safety
/// `groups` must be an array of `count` results that outlive the answer's use.
unsafe fn only(
    groups: *mut *const c::rd_kafka_group_result_t,
    count: usize,
) -> Result<*const c::rd_kafka_group_result_t, Code> {
    if groups.is_null() || count != 1 {
        return Err(Code::BadMessage);
    }
    // SAFETY: there is one, as was promised.
    unsafe {
        let group = *groups;
        let error = c::rd_kafka_group_result_error(group);
        if !error.is_null() {
            succeeded(c::rd_kafka_error_code(error))?;
        }
        Ok(group)
    }
}
