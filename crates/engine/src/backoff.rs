//! Waiting between attempts to reach a system that is away: doubling, with an upper bound.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// How long to wait before the next attempt. The number of attempts has no bound, because a broker may be
/// away for a night; the pace has one, and each wait ends at once when the task is aborted.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { next: FIRST }
    }

    /// Waits before another attempt.
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST);
    }

    /// The system answered: the next failure is a new one.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}
