//! Watches that the topic under its name is still the one that was pinned.
//!
//! librdkafka goes on at the old offset when a topic is deleted and made again under its name. Between the
//! last record of the old topic and the first of the new one there is a pause of at least a reconnection
//! or of the back-off after a failed fetch. So rows are let through only if a check that *began* less than
//! that pause ago has found the pinned id: had the rows come from a new topic, that check would have found
//! the old one gone.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use segue_connect::ConnectError;

use crate::link::Link;

/// Less than 0.75 × `reconnect.backoff.ms` (librdkafka's jitter) and than `fetch.error.backoff.ms`.
pub(crate) const RECENT: Duration = Duration::from_millis(150);
/// How long one check may take.
const CHECK_DEADLINE: Duration = Duration::from_secs(2);
/// How long a broker may deny that the topic exists before it is believed: after its start it may not have
/// heard of it yet.
const MISSING_DOUBT: Duration = Duration::from_secs(3);
/// How long the cluster may be silent before a reader gives up for the time being.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What the checks have found.
pub(crate) struct Sentinel {
    topic_id: String,
    /// What the positions point into, for messages.
    identity: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the last check that found the pinned id began.
    confirmed: Option<Instant>,
    silent: Option<(Instant, ConnectError)>,
    missing_since: Option<Instant>,
    /// What cannot be taken back.
    verdict: Option<ConnectError>,
}

impl Sentinel {
    pub(crate) fn new(topic_id: String, identity: String) -> Sentinel {
        Sentinel { topic_id, identity, state: Mutex::default() }
    }

    /// Fails unless a check that began at most `age` ago, or one made now, finds the pinned topic.
    pub(crate) fn confirm(&self, link: &Link, age: Duration) -> Result<(), ConnectError> {
        let mut state = self.state.lock();
        if let Some(verdict) = &state.verdict {
            return Err(verdict.clone());
        }
        if state.confirmed.is_some_and(|at| at.elapsed() <= age) {
            return Ok(());
        }
        let began = Instant::now();
        let found = link.describe(CHECK_DEADLINE).and_then(|found| {
            if found.id == self.topic_id {
                return Ok(());
            }
            Err(link.replaced(&self.identity, &format!("id {}", found.id)))
        });
        state.learn(began, found)
    }

    /// The error of a reader that hears nothing: for good, or because the cluster has been silent for too
    /// long.
    pub(crate) fn trouble(&self) -> Option<ConnectError> {
        let state = self.state.lock();
        let silent = state.silent.as_ref();
        let silent = silent.filter(|(since, _)| since.elapsed() >= SILENCE_MAX);
        state.verdict.clone().or_else(|| silent.map(|(_, error)| error.clone()))
    }
}

impl State {
    fn learn(
        &mut self,
        began: Instant,
        found: Result<(), ConnectError>,
    ) -> Result<(), ConnectError> {
        match found {
            Ok(()) => {
                *self = State { confirmed: Some(began), ..State::default() };
                Ok(())
            }
            Err(error @ ConnectError::Missing { .. }) => {
                let since = *self.missing_since.get_or_insert(began);
                if since.elapsed() >= MISSING_DOUBT {
                    self.verdict = Some(error.clone());
                    return Err(error);
                }
                let system = "the topic".to_owned();
                Err(ConnectError::Unreachable { system, reason: error.to_string() })
            }
            Err(error) if error.is_transient() => {
                self.silent.get_or_insert_with(|| (began, error.clone()));
                Err(error)
            }
            Err(error) => {
                if matches!(error, ConnectError::Replaced { .. }) {
                    self.verdict = Some(error.clone());
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use segue_connect::ConnectError;

    use super::{MISSING_DOUBT, SILENCE_MAX, Sentinel, State};

    fn unreachable() -> ConnectError {
        ConnectError::Unreachable { system: "k".to_owned(), reason: "r".to_owned() }
    }

    fn ago(duration: Duration) -> Instant {
        Instant::now().checked_sub(duration).expect("the machine has been up for longer")
    }

    fn sentinel(state: State) -> Sentinel {
        let sentinel = Sentinel::new("id".to_owned(), "identity".to_owned());
        *sentinel.state.lock() = state;
        sentinel
    }

    #[test]
    fn silence_is_reported_only_when_it_lasts_and_one_answer_ends_it() {
        let mut state = State::default();
        state.learn(Instant::now(), Err(unreachable())).expect_err("no answer");
        assert_eq!(sentinel(state).trouble(), None);
        let mut state = State::default();
        state.learn(ago(SILENCE_MAX), Err(unreachable())).expect_err("no answer");
        state.learn(Instant::now(), Err(unreachable())).expect_err("still none");
        let lasting = sentinel(state);
        assert_eq!(lasting.trouble(), Some(unreachable()));
        lasting.state.lock().learn(Instant::now(), Ok(())).expect("an answer");
        assert_eq!(lasting.trouble(), None);
    }

    #[test]
    fn a_missing_topic_is_believed_only_when_it_stays_away() {
        let missing = || Err(ConnectError::Missing { what: "t".to_owned() });
        let mut state = State::default();
        let first = state.learn(Instant::now(), missing()).expect_err("not there");
        assert!(first.is_transient());
        state.missing_since = Some(ago(MISSING_DOUBT));
        let second = state.learn(Instant::now(), missing()).expect_err("not there");
        assert_eq!(Err(second), missing());
    }

    #[test]
    fn a_replaced_topic_stays_replaced() {
        let replaced = ConnectError::Replaced {
            what: "t".to_owned(),
            pinned: "a".to_owned(),
            found: "b".to_owned(),
        };
        let mut state = State::default();
        state.learn(Instant::now(), Err(replaced.clone())).expect_err("another topic");
        assert_eq!(sentinel(state).trouble(), Some(replaced));
    }
}
