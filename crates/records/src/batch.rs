//! Rows and rejected records, until they are delivered together with the position behind them.

use std::time::{Duration, Instant};

use segue_connect::{OnError, Rejected, Rows};
use segue_types::Position;

use crate::record::Record;
use crate::rows::Records;

/// Rows of one delivery.
const ROWS_MAX: usize = 8192;
/// Bytes of input of one delivery; a larger record travels alone.
const BYTES_MAX: usize = 4 << 20;
/// Rejected records of one delivery; each may hold 16 KiB.
const REJECTED_MAX: usize = 256;

/// What waits for its delivery.
pub struct Batch {
    records: Records,
    rejected: Vec<Rejected>,
    rejected_bytes: usize,
    /// When the first of the waiting records came.
    since: Option<Instant>,
    on_error: OnError,
}

impl Batch {
    /// An empty batch of `records`.
    pub fn new(records: Records, on_error: OnError) -> Batch {
        Batch { records, rejected: Vec::new(), rejected_bytes: 0, since: None, on_error }
    }

    /// Adds a record, which lies at `position`. An error is the reason why the read cannot go past it.
    #[inline]
    pub fn push(
        &mut self,
        record: &impl Record,
        position: impl FnOnce() -> Position,
    ) -> Result<(), String> {
        if let Err(reason) = self.records.push(record) {
            return self.reject(record, position(), reason);
        }
        self.since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Sets a record aside that has no row; an error where that ends the read.
    #[cold]
    pub fn reject(
        &mut self,
        record: &impl Record,
        position: Position,
        reason: String,
    ) -> Result<(), String> {
        if self.on_error == OnError::Fail {
            return Err(reason);
        }
        self.since.get_or_insert_with(Instant::now);
        let payload = record.payload().or_else(|| record.key()).unwrap_or_default();
        let kept = &payload[..payload.len().min(Rejected::PAYLOAD_BYTES_MAX)];
        self.rejected_bytes += payload.len();
        self.rejected.push(Rejected { position, payload: kept.to_vec(), reason });
        Ok(())
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.rejected.is_empty()
    }

    /// Whether it has to be delivered.
    pub fn is_full(&self) -> bool {
        self.records.len() >= ROWS_MAX
            || self.records.bytes() + self.rejected_bytes >= BYTES_MAX
            || self.rejected.len() >= REJECTED_MAX
    }

    /// How long the oldest record has waited.
    pub fn age(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Takes all out; `next` is the position behind it.
    pub fn finish(&mut self, next: Position) -> Rows {
        self.since = None;
        let bytes = self.records.bytes() + std::mem::take(&mut self.rejected_bytes);
        Rows {
            changes: self.records.finish(),
            next,
            rejected: std::mem::take(&mut self.rejected),
            bytes,
        }
    }
}
