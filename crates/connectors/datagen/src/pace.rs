//! When rows come to be: a log that grows at a fixed rate since it was pinned.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use segue_connect::{ConnectError, ReadDefinition};
use serde::{Deserialize, Serialize};

use crate::options::{DatagenOptions, share};

/// The pace of a pinned read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pace {
    /// Microseconds since 1970 at which the log began.
    began_us: i64,
    /// `None` is without a pause.
    rows_per_s: Option<f64>,
}

impl Pace {
    pub(crate) fn starting_now(options: &DatagenOptions) -> Pace {
        Pace { began_us: now_us(), rows_per_s: options.rows_per_s }
    }

    /// The pace in a definition that this connector pinned.
    pub(crate) fn of(definition: &ReadDefinition) -> Result<Pace, ConnectError> {
        serde_json::from_value(definition.private.clone()).map_err(|error| {
            ConnectError::Unsupported(format!("the pinned pace cannot be read: {error}"))
        })
    }

    pub(crate) fn to_json(self) -> serde_json::Value {
        serde_json::to_value(self).expect("a pace is plain data")
    }

    pub(crate) fn began_us(self) -> i64 {
        self.began_us
    }

    /// How many rows of a split there are now; `None` when there is no end to them.
    pub(crate) fn rows_now(self, split: u64, splits: u64) -> Option<u64> {
        self.rows_at(now_us(), split, splits)
    }

    fn rows_at(self, now_us: i64, split: u64, splits: u64) -> Option<u64> {
        let elapsed_s = now_us.saturating_sub(self.began_us).max(0) as f64 / 1e6;
        self.rows_per_s.map(|rate| share((elapsed_s * rate) as u64, split, splits))
    }

    /// How long until a split has more than `rows` rows.
    pub(crate) fn time_until(self, rows: u64, split: u64, splits: u64) -> Duration {
        let Some(rate) = self.rows_per_s else { return Duration::ZERO };
        let row_number = rows as f64 * splits as f64 + split as f64;
        let due_us = self.began_us as f64 + (row_number + 1.0) / rate * 1e6;
        let wait_s = (due_us - now_us() as f64) / 1e6;
        // A day at most, so that no rate overflows a Duration: whoever waits looks again.
        Duration::from_secs_f64(wait_s.clamp(0.0, 86_400.0))
    }
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn the_splits_share_the_rows_of_the_pace() {
        let pace = Pace { began_us: 1_000_000, rows_per_s: Some(10.0) };
        for (now_us, shares) in
            [(0, [0, 0, 0]), (1_000_000, [0, 0, 0]), (1_100_000, [1, 0, 0]), (2_000_000, [4, 3, 3])]
        {
            let rows = [0, 1, 2].map(|split| pace.rows_at(now_us, split, 3).expect("a paced log"));
            assert_eq!(rows, shares, "at {now_us}");
        }
        let unlimited = Pace { began_us: 0, rows_per_s: None };
        assert_eq!(unlimited.rows_at(5, 0, 1), None);
    }
}
