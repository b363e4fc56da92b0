//! Lag in time, from positions alone: when was the reader's present position first known not to be the end?
//!
//! Word defined here: *sample*, the end of a split as it was said at a moment.
//! Invariant: at most [`SAMPLES_MAX`] are kept, in order of time, the oldest of them longest; what is thinned out
//! makes a lag look shorter by the distance of two samples, never longer.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use segue_types::{Position, PositionOrder};

const SAMPLES_MAX: usize = 64;

/// The ends of one split of late, as far as its reader has not passed them.
#[derive(Debug, Default)]
pub(crate) struct Samples(VecDeque<(Instant, Position)>);

impl Samples {
    /// The split ends at `latest` now.
    pub(crate) fn take(&mut self, now: Instant, latest: &Position) {
        // The same end again: since when it is known is what counts.
        if self.0.back().is_some_and(|(_, known)| known == latest) {
            return;
        }
        self.0.push_back((now, latest.clone()));
        if self.0.len() > SAMPLES_MAX {
            let mut place = 0;
            self.0.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }

    /// For how long a reader that is at `position` has been behind; `None` when nothing is known that it could be
    /// behind of. Forgets what it has passed.
    pub(crate) fn lag(
        &mut self,
        now: Instant,
        position: &Position,
        compare: impl Fn(&Position, &Position) -> PositionOrder,
    ) -> Option<Duration> {
        let is_ahead = |end: &Position| compare(position, end) == PositionOrder::Less;
        let first = self.0.iter().position(|(_, end)| is_ahead(end));
        match first {
            Some(first) => {
                self.0.drain(..first);
                Some(now.saturating_duration_since(self.0[0].0))
            }
            None => {
                // One stays, so that the same end is not taken for a new one.
                let passed = self.0.len().saturating_sub(1);
                self.0.drain(..passed);
                (!self.0.is_empty()).then_some(Duration::ZERO)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use segue_types::{Position, PositionOrder};

    use super::{SAMPLES_MAX, Samples};

    fn at(number: u64) -> Position {
        Position::new(number.to_string())
    }

    fn compare(a: &Position, b: &Position) -> PositionOrder {
        let number = |p: &Position| p.as_str().parse::<u64>().expect("a number");
        number(a).cmp(&number(b)).into()
    }

    /// A clock that only the test moves.
    struct Clock(Instant);

    impl Clock {
        fn at(&self, seconds: u64) -> Instant {
            self.0 + Duration::from_secs(seconds)
        }
    }

    #[test]
    fn the_lag_is_how_long_ago_the_position_was_first_known_to_be_behind() {
        let clock = Clock(Instant::now());
        let mut samples = Samples::default();
        let lag = |samples: &mut Samples, seconds, position| {
            let lag = samples.lag(clock.at(seconds), &at(position), compare);
            lag.map(|lag| lag.as_secs())
        };
        assert_eq!(lag(&mut samples, 0, 0), None, "nobody has said where it ends");
        samples.take(clock.at(0), &at(10));
        assert_eq!(lag(&mut samples, 1, 10), Some(0), "caught up");
        samples.take(clock.at(5), &at(10));
        samples.take(clock.at(10), &at(20));
        samples.take(clock.at(15), &at(20));
        samples.take(clock.at(20), &at(30));
        assert_eq!(lag(&mut samples, 21, 10), Some(11), "behind since 20 was there");
        assert_eq!(lag(&mut samples, 22, 15), Some(12));
        assert_eq!(lag(&mut samples, 23, 20), Some(3), "behind since 30 was there");
        assert_eq!(lag(&mut samples, 24, 30), Some(0));
        samples.take(clock.at(30), &at(30));
        samples.take(clock.at(40), &at(31));
        assert_eq!(lag(&mut samples, 41, 30), Some(1), "and behind again");
    }

    #[test]
    fn what_is_kept_has_a_bound_and_the_oldest_end_that_was_not_reached_stays() {
        let clock = Clock(Instant::now());
        let mut samples = Samples::default();
        for second in 1..10_000 {
            samples.take(clock.at(second), &at(second));
            assert!(samples.0.len() <= SAMPLES_MAX);
        }
        let lag = samples.lag(clock.at(10_000), &at(0), compare).expect("known");
        assert_eq!(lag.as_secs(), 9_999);
        // Thinned out, a lag may look shorter than it is, and never longer.
        let lag = samples.lag(clock.at(10_000), &at(5_000), compare).expect("known");
        assert!(lag.as_secs() <= 5_000, "{lag:?}");
        assert!(lag.as_secs() > 1_000, "{lag:?}");
    }

    #[test]
    fn positions_that_do_not_compare_tell_no_lag_of_theirs() {
        let clock = Clock(Instant::now());
        let mut samples = Samples::default();
        samples.take(clock.at(0), &at(10));
        let incomparable = |_: &Position, _: &Position| PositionOrder::Incomparable;
        assert_eq!(samples.lag(clock.at(9), &at(1), incomparable), Some(Duration::ZERO));
    }
}
