//! What a reading has taken of each stage since the process started, how fast, and when each split moved last.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use segue_connect::{ConnectError, Rows};
use segue_types::SplitId;

/// Rates are those of the last two windows.
const WINDOW: Duration = Duration::from_secs(5);

/// What was read of one stage, and why nothing moves while that is so.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageMeter {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) rejected: u64,
    pub(crate) away: Option<Away>,
    rate: Rate,
    moved: BTreeMap<SplitId, Instant>,
}

/// A system that could not be reached and is tried again.
#[derive(Clone, Debug)]
pub(crate) struct Away {
    pub(crate) since: Instant,
    pub(crate) error: ConnectError,
}

impl Away {
    /// The same outage with its newest error, or a new one.
    pub(crate) fn again(former: Option<Away>, error: ConnectError) -> Away {
        Away { since: former.map_or_else(Instant::now, |away| away.since), error }
    }
}

impl StageMeter {
    /// The system could not be reached.
    pub(crate) fn missed(&mut self, error: ConnectError) {
        self.away = Some(Away::again(self.away.take(), error));
    }

    /// Rows of a split were taken.
    pub(crate) fn took(&mut self, rows: &Rows) {
        let count = rows.changes.rows.num_rows() as u64;
        self.rows += count;
        self.bytes += rows.bytes as u64;
        self.rejected += rows.rejected.len() as u64;
        self.rate.count(count, Instant::now());
    }

    /// A split's position moved.
    pub(crate) fn moved(&mut self, split: &SplitId) {
        self.away = None;
        let now = Instant::now();
        match self.moved.get_mut(split) {
            Some(at) => *at = now,
            None => _ = self.moved.insert(split.clone(), now),
        }
    }

    /// How long a split has stood still; `None` when it has not moved since the process started.
    pub(crate) fn idle(&self, split: &SplitId) -> Option<Duration> {
        self.moved.get(split).map(Instant::elapsed)
    }

    /// Rows per second of late.
    pub(crate) fn rows_per_second(&self) -> f64 {
        self.rate.at(Instant::now())
    }
}

/// Counts over two windows, the running one and the one before.
#[derive(Clone, Debug, Default)]
struct Rate {
    began: Option<Instant>,
    running: u64,
    before: u64,
}

impl Rate {
    fn count(&mut self, rows: u64, now: Instant) {
        let elapsed = self.began.map_or(WINDOW * 2, |began| now.duration_since(began));
        if elapsed >= WINDOW {
            self.before = if elapsed < WINDOW * 2 { self.running } else { 0 };
            self.running = 0;
            self.began = Some(now);
        }
        self.running += rows;
    }

    fn at(&self, now: Instant) -> f64 {
        let Some(began) = self.began else { return 0.0 };
        let elapsed = now.duration_since(began);
        if elapsed >= WINDOW * 2 {
            return 0.0;
        }
        let rows = self.before + self.running;
        // Of a reading that has only begun, the window has not passed yet.
        let seconds = if self.before > 0 { WINDOW + elapsed } else { elapsed.max(WINDOW / 5) };
        rows as f64 / seconds.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Rate;

    #[test]
    fn a_rate_is_that_of_the_last_seconds_and_falls_to_nothing() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut rate = Rate::default();
        assert!(rate.at(start).abs() < f64::EPSILON);
        for second in 0..20 {
            rate.count(100, after(second));
        }
        let steady = rate.at(after(20));
        assert!((80.0..130.0).contains(&steady), "{steady}");
        assert!(rate.at(after(40)).abs() < f64::EPSILON);
        rate.count(10, after(60));
        let again = rate.at(after(61));
        assert!((5.0..=10.0).contains(&again), "{again}");
    }
}
