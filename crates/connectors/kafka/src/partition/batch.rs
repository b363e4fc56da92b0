//! Rows, rejected records and the position behind them, until they are delivered together.

use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode as Code;
use segue_connect::{ConnectError, OnError, Rejected, Rows};

use super::Range;
use crate::native::Message;
use crate::records::Records;
use crate::splits::{position_of, split_of};

/// Rows of one delivery.
const ROWS_MAX: usize = 8192;
/// Bytes of input of one delivery; a larger record travels alone.
const BYTES_MAX: usize = 4 << 20;
/// Rejected records of one delivery; each may hold 16 KiB.
const REJECTED_MAX: usize = 256;

/// What [`Batch::take`] made of a message.
pub(super) enum Taken {
    Record,
    /// The record is the last before the bound, or lies behind it and was left out.
    Bound {
        at: i64,
    },
    EndOfPartition {
        at: i64,
    },
    /// A record that cannot be decoded, where that ends the read.
    Malformed(ConnectError),
    Trouble(Code),
}

/// What waits for its delivery.
pub(super) struct Batch {
    records: Records,
    rejected: Vec<Rejected>,
    rejected_bytes: usize,
    next: i64,
    /// When the first of the waiting records came.
    since: Option<Instant>,
    partition: i32,
    until: i64,
    on_error: OnError,
}

impl Batch {
    pub(super) fn new(records: Records, partition: i32, range: Range, on_error: OnError) -> Batch {
        Batch {
            records,
            rejected: Vec::new(),
            rejected_bytes: 0,
            next: range.from,
            since: None,
            partition,
            until: range.until.unwrap_or(i64::MAX),
            on_error,
        }
    }

    /// Adds a message.
    #[inline]
    pub(super) fn take(&mut self, message: &Message<'_>) -> Taken {
        let offset = message.offset();
        match message.error() {
            None => {}
            Some(Code::PartitionEOF) => return Taken::EndOfPartition { at: offset },
            Some(code) => return Taken::Trouble(code),
        }
        assert!(offset >= self.next, "offsets grow: {offset} came where {} was next", self.next);
        if offset >= self.until {
            self.next = self.until;
            return Taken::Bound { at: self.until };
        }
        if let Err(reason) = self.records.push(message) {
            match self.on_error {
                OnError::DeadLetter => self.reject(message, reason),
                OnError::Fail => {
                    let (split, position) = (split_of(self.partition), position_of(offset));
                    return Taken::Malformed(ConnectError::Malformed { split, position, reason });
                }
            }
        }
        self.since.get_or_insert_with(Instant::now);
        self.next = offset + 1;
        if self.next == self.until { Taken::Bound { at: self.until } } else { Taken::Record }
    }

    #[cold]
    fn reject(&mut self, message: &Message<'_>, reason: String) {
        let payload = message.payload().or_else(|| message.key()).unwrap_or_default();
        let kept = &payload[..payload.len().min(Rejected::PAYLOAD_BYTES_MAX)];
        self.rejected_bytes += payload.len();
        self.rejected.push(Rejected {
            position: position_of(message.offset()),
            payload: kept.to_vec(),
            reason,
        });
    }

    /// Everything before `at` has been seen.
    pub(super) fn pass(&mut self, at: i64) {
        self.next = self.next.max(at);
    }

    /// The read ends at `at`, although more has been seen.
    pub(super) fn cut(&mut self, at: i64) {
        self.next = self.next.min(at);
    }

    /// The next offset.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.len() == 0 && self.rejected.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= ROWS_MAX
            || self.records.bytes() + self.rejected_bytes >= BYTES_MAX
            || self.rejected.len() >= REJECTED_MAX
    }

    /// How long the oldest record has waited.
    pub(super) fn age(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Takes all out.
    pub(super) fn finish(&mut self) -> Rows {
        self.since = None;
        let bytes = self.records.bytes() + std::mem::take(&mut self.rejected_bytes);
        Rows {
            changes: self.records.finish(),
            next: position_of(self.next),
            rejected: std::mem::take(&mut self.rejected),
            bytes,
        }
    }
}
