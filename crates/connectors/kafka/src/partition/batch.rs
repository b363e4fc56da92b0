//! Rows, rejected records and the position behind them, until they are delivered together.

use std::time::Duration;

use rdkafka::error::RDKafkaErrorCode as Code;
use segue_connect::{ConnectError, OnError, Rows};
use segue_records::Records;

use super::Range;
use crate::native::Message;
use crate::splits::{position_of, split_of};

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
    rows: segue_records::Batch,
    next: i64,
    partition: i32,
    until: i64,
}

impl Batch {
    pub(super) fn new(records: Records, partition: i32, range: Range, on_error: OnError) -> Batch {
        Batch {
            rows: segue_records::Batch::new(records, on_error),
            next: range.from,
            partition,
            until: range.until.unwrap_or(i64::MAX),
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
        if let Err(reason) = self.rows.push(message, || position_of(offset)) {
            let (split, position) = (split_of(self.partition), position_of(offset));
            return Taken::Malformed(ConnectError::Malformed { split, position, reason });
        }
        self.next = offset + 1;
        if self.next == self.until { Taken::Bound { at: self.until } } else { Taken::Record }
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
        self.rows.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.is_full()
    }

    /// How long the oldest record has waited.
    pub(super) fn age(&self) -> Duration {
        self.rows.age()
    }

    /// Takes all out.
    pub(super) fn finish(&mut self) -> Rows {
        self.rows.finish(position_of(self.next))
    }
}
