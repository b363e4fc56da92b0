//! One fetched message, borrowed from librdkafka's buffers until it is dropped.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr;

use rdkafka::bindings as c;
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};

/// A record, or an event of its partition (its end, an error).
pub(crate) struct Message<'a> {
    pointer: ptr::NonNull<c::rd_kafka_message_t>,
    queue: PhantomData<&'a ()>,
}

impl Message<'_> {
    /// # Safety
    /// The message must be owned by the caller, and its client must live for the lifetime that is chosen.
    pub(super) unsafe fn new(pointer: *mut c::rd_kafka_message_t) -> Self {
        let pointer = ptr::NonNull::new(pointer).expect("librdkafka returns no null messages");
        Message { pointer, queue: PhantomData }
    }

    fn raw(&self) -> &c::rd_kafka_message_t {
        // SAFETY: we own the message; nobody writes to it while it is ours.
        unsafe { self.pointer.as_ref() }
    }

    /// Why this is not a record; `None` for a record.
    pub(crate) fn error(&self) -> Option<RDKafkaErrorCode> {
        match self.raw().err {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => None,
            error => Some(error.into()),
        }
    }

    /// The record's offset; for the end of the partition, where the next record will be.
    pub(crate) fn offset(&self) -> i64 {
        self.raw().offset
    }

    /// The value. An empty one is not an absent one.
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        let raw = self.raw();
        // SAFETY: librdkafka keeps `len` bytes there until the message is destroyed.
        unsafe { bytes(raw.payload, raw.len) }
    }

    /// The key.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        let raw = self.raw();
        // SAFETY: as for the payload.
        unsafe { bytes(raw.key, raw.key_len) }
    }

    /// Milliseconds since 1970 UTC; `None` when the record has no time.
    pub(crate) fn timestamp_ms(&self) -> Option<i64> {
        let mut kind = c::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: we own the message, and `kind` outlives the call.
        let time = unsafe { c::rd_kafka_message_timestamp(self.pointer.as_ptr(), &raw mut kind) };
        (kind != c::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE).then_some(time)
    }

    /// The record's headers, in their order.
    pub(crate) fn headers(&self) -> Headers<'_> {
        let mut headers = ptr::null_mut();
        // SAFETY: we own the message; the headers stay its own.
        let error = unsafe { c::rd_kafka_message_headers(self.pointer.as_ptr(), &raw mut headers) };
        let present = error == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR;
        Headers {
            headers: if present { headers } else { ptr::null_mut() },
            next: 0,
            message: PhantomData,
        }
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` was promised that the message is ours.
        unsafe { c::rd_kafka_message_destroy(self.pointer.as_ptr()) }
    }
}

/// Name and value of each header.
pub(crate) struct Headers<'a> {
    headers: *mut c::rd_kafka_headers_t,
    next: usize,
    message: PhantomData<&'a ()>,
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a CStr, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.headers.is_null() {
            return None;
        }
        let (mut name, mut value, mut size) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the headers belong to the message that `'a` borrows; name and value point into it.
        unsafe {
            let error = c::rd_kafka_header_get_all(
                self.headers,
                self.next,
                &raw mut name,
                &raw mut value,
                &raw mut size,
            );
            if error != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
                return None;
            }
            self.next += 1;
            Some((CStr::from_ptr(name), bytes(value, size)))
        }
    }
}

/// # Safety
/// Unless it is null, `pointer` must point to `length` bytes that stay unchanged for `'a`.
unsafe fn bytes<'a>(pointer: *const c_void, length: usize) -> Option<&'a [u8]> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: promised by the caller.
    Some(unsafe { std::slice::from_raw_parts(pointer.cast(), length) })
}
