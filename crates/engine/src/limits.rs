//! What slows readers down: rates that somebody set, and memory that is short.
//!
//! Words defined here: *rate limit* (rows per second of one consumer; zero lets nothing pass), *gate* (closed for
//! every reader while memory is above the soft limit).
//! Invariant: whoever waits here owns no row that a cancellation could lose: the reader goes on from where it was.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a consumer may do, as its objects' settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Of a reading that never ends.
    pub(crate) live_rows_per_second: Option<u64>,
    /// Of readings that have an end: history, and what a view catches up with.
    pub(crate) backfill_rows_per_second: Option<u64>,
    /// How many readers share the splits of a stage; `None`: one, and several bounded splits at once.
    pub(crate) parallelism: Option<NonZeroU32>,
}

/// Which of the two rates a reader obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Live,
    Backfill,
}

/// The rates of one consumer, shared by its readers.
#[derive(Clone)]
pub(crate) struct Throttle(Arc<Shared>);

struct Shared {
    pace: watch::Sender<Pace>,
    /// When the next row of each kind may pass.
    free_at: Mutex<[Instant; 2]>,
}

impl Throttle {
    pub(crate) fn new(pace: Pace) -> Throttle {
        let free_at = Mutex::new([Instant::now(); 2]);
        Throttle(Arc::new(Shared { pace: watch::Sender::new(pace), free_at }))
    }

    /// Obeyed from the next batch on; those that wait now look again.
    pub(crate) fn set(&self, pace: Pace) {
        self.0.pace.send_replace(pace);
        *self.0.free_at.lock() = [Instant::now(); 2];
    }

    /// Waits until `rows` may pass. A batch passes as a whole, and the next one waits for its time.
    pub(crate) async fn pass(&self, reading: Reading, rows: usize) {
        let mut changes = self.0.pace.subscribe();
        loop {
            let pace = *changes.borrow_and_update();
            let rate = match reading {
                Reading::Live => pace.live_rows_per_second,
                Reading::Backfill => pace.backfill_rows_per_second,
            };
            let changed =
                async { changes.changed().await.expect("the throttle outlives its readers") };
            match rate {
                None => return,
                Some(0) => changed.await,
                Some(rate) => {
                    let free_at = self.0.free_at.lock()[reading as usize];
                    tokio::select! {
                        () = tokio::time::sleep_until(free_at) => {
                            return self.take(reading, rows, rate);
                        }
                        () = changed => {}
                    }
                }
            }
        }
    }

    fn take(&self, reading: Reading, rows: usize, rate: u64) {
        let cost = Duration::from_secs_f64(rows as f64 / rate as f64);
        let mut free_at = self.0.free_at.lock();
        let free_at = &mut free_at[reading as usize];
        *free_at = (*free_at).max(Instant::now()) + cost;
    }
}

/// Open while there is memory.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<watch::Sender<Passage>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Open,
    Closed,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate(Arc::new(watch::Sender::new(Passage::Open)))
    }

    /// Whether it was the other way before.
    pub(crate) fn set(&self, passage: Passage) -> bool {
        self.0.send_replace(passage) != passage
    }

    pub(crate) fn passage(&self) -> Passage {
        *self.0.borrow()
    }

    /// Waits until nothing may pass any more.
    pub(crate) async fn closed(&self) {
        let mut changes = self.0.subscribe();
        let closed = changes.wait_for(|passage| *passage == Passage::Closed).await;
        closed.expect("the gate outlives those that wait at it");
    }

    pub(crate) async fn pass(&self) {
        let mut changes = self.0.subscribe();
        let open = changes.wait_for(|passage| *passage == Passage::Open).await;
        open.expect("the gate outlives those that wait at it");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Gate, Pace, Passage, Reading, Throttle};

    /// Long enough for whatever may pass at once, and nothing beside what must wait here: hours, or for ever.
    const MOMENT: Duration = Duration::from_millis(20);

    fn live(rate: u64) -> Pace {
        Pace { live_rows_per_second: Some(rate), ..Pace::default() }
    }

    async fn stands(passing: impl Future<Output = ()>) -> bool {
        tokio::time::timeout(MOMENT, passing).await.is_err()
    }

    #[tokio::test]
    async fn a_batch_passes_and_the_next_one_waits_for_its_time() {
        let throttle = Throttle::new(live(1));
        throttle.pass(Reading::Live, 10_000).await;
        throttle.pass(Reading::Backfill, 1_000_000).await;
        assert!(
            stands(throttle.pass(Reading::Live, 1)).await,
            "10,000 rows take hours at one a second"
        );
        assert!(!stands(throttle.pass(Reading::Backfill, 1)).await, "the other kind has no limit");
    }

    #[tokio::test]
    async fn zero_lets_nothing_pass_until_it_is_changed() {
        let throttle = Throttle::new(live(0));
        let passing = throttle.pass(Reading::Live, 1);
        tokio::pin!(passing);
        assert!(stands(&mut passing).await, "nothing passes at a rate of zero");
        throttle.set(Pace::default());
        passing.await;
    }

    #[tokio::test]
    async fn a_closed_gate_opens_for_whoever_waits() {
        let gate = Gate::new();
        gate.pass().await;
        assert!(gate.set(Passage::Closed));
        assert!(!gate.set(Passage::Closed), "it was closed already");
        gate.closed().await;
        let passing = gate.pass();
        tokio::pin!(passing);
        assert!(stands(&mut passing).await);
        gate.set(Passage::Open);
        passing.await;
        assert!(stands(gate.closed()).await, "it is open");
    }
}
