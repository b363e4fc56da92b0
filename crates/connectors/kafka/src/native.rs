//! The calls of librdkafka that its wrapper crate does not offer: the id of a topic, what a group has
//! committed, and a partition's queue read in batches without an allocation per message.
//!
//! Invariant: every pointer that librdkafka hands over is owned by exactly one value here and given back
//! on drop, and none outlives the client it came from, which each owner keeps alive.

mod admin;
mod describe;
mod groups;
mod message;
mod queue;

use std::ptr::NonNull;

pub(crate) use describe::{Described, describe_topic};
pub(crate) use groups::forget_topic;
pub(crate) use message::Message;
pub(crate) use queue::PartitionQueue;

/// A pointer that librdkafka gave away, and the function that takes it back.
struct Owned<T> {
    pointer: NonNull<T>,
    give_back: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// `None` for a null pointer.
    ///
    /// # Safety
    /// The pointer must be owned by the caller, and `give_back` must be its destructor.
    unsafe fn new(pointer: *mut T, give_back: unsafe extern "C" fn(*mut T)) -> Option<Owned<T>> {
        Some(Owned { pointer: NonNull::new(pointer)?, give_back })
    }

    fn as_ptr(&self) -> *mut T {
        self.pointer.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `new` was promised that we own the pointer and that this is its destructor.
        unsafe { (self.give_back)(self.pointer.as_ptr()) }
    }
}
