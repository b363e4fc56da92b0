//! How long a statement waits for a system that is away, and what it says meanwhile and at the end.
//!
//! Word defined here: *patience*, the session's `connector_timeout` as a statement carries it.
//! Invariant: only what may pass by itself is waited for; every other error ends the statement at once.

use std::fmt;
use std::time::{Duration, Instant};

use segue_connect::ConnectError;
use segue_types::UserError;
use tokio::sync::mpsc;

use crate::api::StatementContext;
use crate::backoff::Backoff;
use crate::source::StageRuntime;

/// A call that takes longer is given up and made again, if there is time for it.
const CALL_MAX: Duration = Duration::from_secs(30);

/// How long a statement waits for an external system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    Limited(Duration),
    /// As long as it takes: nobody sits in front of the statement, or somebody who wants it so.
    Endless,
}

impl Patience {
    /// Whether a system that has been away for so long is waited for no more.
    pub(crate) fn is_over(self, away: Duration) -> bool {
        self.left(away).is_zero()
    }

    fn left(self, away: Duration) -> Duration {
        match self {
            Patience::Limited(limit) => limit.saturating_sub(away),
            Patience::Endless => Duration::MAX,
        }
    }

    /// The error of a system that is away, with how to wait for it longer.
    pub(crate) fn exhausted(self, error: UserError) -> UserError {
        error.with_hint(format!(
            "The statement waits {self} for a system that is away: SET connector_timeout changes that."
        ))
    }
}

impl fmt::Display for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Patience::Limited(limit) => write!(f, "{limit:?}"),
            Patience::Endless => f.write_str("for ever"),
        }
    }
}

/// How many remarks on one stage are told one by one.
const REMARKS_MAX: usize = 8;

/// Who asks a system something: how long it waits, and whom it tells what it hears.
#[derive(Clone)]
pub struct Asker {
    patience: Patience,
    notices: Option<mpsc::Sender<String>>,
}

impl Asker {
    /// A statement's.
    pub(crate) fn of(context: &StatementContext) -> Asker {
        Asker { patience: context.patience, notices: Some(context.notices.clone()) }
    }

    /// A job's: in the background nobody sits in front of it.
    pub(crate) fn of_job(context: &StatementContext) -> Asker {
        let asker = Asker::of(context);
        if context.background_ddl {
            return Asker { patience: Patience::Endless, ..asker };
        }
        asker
    }

    /// One that nobody listens to: what it hears goes to the log.
    pub(crate) fn silent(patience: Patience) -> Asker {
        Asker { patience, notices: None }
    }

    /// A query's, which tells its client through `notices`.
    pub fn new(patience: Patience, notices: Option<mpsc::Sender<String>>) -> Asker {
        Asker { patience, notices }
    }

    /// Tells whoever listens. A full channel drops it: a statement never waits for a slow reader.
    pub fn tell(&self, text: String) {
        match &self.notices {
            Some(notices) => drop(notices.try_send(text)),
            None => tracing::warn!("{text}"),
        }
    }

    /// Tells what a connector remarked on its answer.
    pub(crate) fn remark<'a>(&self, stage: &str, remarks: impl Iterator<Item = &'a str>) {
        let mut untold = 0_usize;
        for (place, remark) in remarks.enumerate() {
            match place < REMARKS_MAX {
                true => self.tell(format!("stage \"{stage}\": {remark}")),
                false => untold += 1,
            }
        }
        if untold > 0 {
            self.tell(format!("stage \"{stage}\": and {untold} more like it; see segue.splits"));
        }
    }

    /// Asks about a stage that is only being created: a system that is not there now may be a typing error.
    pub(crate) async fn once<T>(
        &self,
        (stage, connector): (&str, &str),
        question: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, UserError> {
        let within = self.patience.left(Duration::ZERO);
        match tokio::time::timeout(within, question).await {
            Ok(answer) => answer.map_err(|error| error.to_user_error(stage)),
            Err(_) => {
                let error = silence(connector, within).to_user_error(stage);
                Err(self.patience.exhausted(error))
            }
        }
    }

    /// Asks until there is an answer, as long as patience lasts.
    pub(crate) async fn persistently<T, F: Future<Output = Result<T, ConnectError>>>(
        &self,
        stage: &StageRuntime,
        mut question: impl FnMut() -> F,
    ) -> Result<T, UserError> {
        let mut waiting = Waiting::new(self);
        loop {
            match waiting.call(stage.connector.name(), question()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => waiting.after(error, &stage.name).await?,
            }
        }
    }
}

/// One wait for a system, over any number of calls.
pub(crate) struct Waiting<'a> {
    asker: &'a Asker,
    backoff: Backoff,
    since: Instant,
    told: bool,
}

impl Waiting<'_> {
    pub(crate) fn new(asker: &Asker) -> Waiting<'_> {
        Waiting { asker, backoff: Backoff::new(), since: Instant::now(), told: false }
    }

    /// The system has answered.
    pub(crate) fn reset(&mut self) {
        self.since = Instant::now();
        if std::mem::take(&mut self.told) {
            self.backoff.reset();
        }
    }

    /// Makes a call that may never be answered.
    async fn call<T>(
        &self,
        connector: &str,
        question: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        let within = self.asker.patience.left(self.since.elapsed()).min(CALL_MAX);
        let answered = tokio::time::timeout(within, question).await;
        answered.unwrap_or_else(|_| Err(silence(connector, self.since.elapsed())))
    }

    /// Waits before another attempt; an error when there should be none.
    pub(crate) async fn after(
        &mut self,
        error: ConnectError,
        stage: &str,
    ) -> Result<(), UserError> {
        let shown = error.to_user_error(stage);
        if !error.is_transient() {
            return Err(shown);
        }
        let patience = self.asker.patience;
        let left = patience.left(self.since.elapsed());
        if left.is_zero() {
            return Err(patience.exhausted(shown));
        }
        if !std::mem::replace(&mut self.told, true) {
            self.asker.tell(format!("{}; trying again", shown.message));
        }
        // The last attempt is made when patience ends.
        drop(tokio::time::timeout(left, self.backoff.wait()).await);
        Ok(())
    }
}

fn silence(connector: &str, waited: Duration) -> ConnectError {
    ConnectError::Unreachable {
        system: connector.to_owned(),
        reason: format!("no answer for {:.1} s", waited.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use segue_connect::ConnectError;
    use segue_types::SqlState;

    use super::{Asker, Patience, Waiting};

    fn away() -> ConnectError {
        ConnectError::Unreachable { system: "it".to_owned(), reason: "refused".to_owned() }
    }

    #[tokio::test]
    async fn what_may_pass_is_waited_for_until_patience_ends_and_nothing_else_is() {
        let asker = Asker::silent(Patience::Limited(Duration::from_secs(2)));
        let mut waiting = Waiting::new(&asker);
        waiting.after(away(), "s").await.expect("there is time");
        let missing = ConnectError::Missing { what: "it".to_owned() };
        let error = waiting.after(missing, "s").await.expect_err("definite");
        assert_eq!(error.state, SqlState::UNDEFINED_OBJECT);
        assert_eq!(error.hint, None);
    }

    #[tokio::test]
    async fn a_call_that_is_never_answered_ends_with_a_hint_that_names_the_setting() {
        let asker = Asker::silent(Patience::Limited(Duration::from_millis(20)));
        let silent = std::future::pending::<Result<(), ConnectError>>();
        let error = asker.once(("s", "kafka"), silent).await.expect_err("nobody answers");
        assert_eq!(error.state, SqlState::CONNECTION_FAILURE);
        assert!(error.message.starts_with("stage \"s\": could not reach kafka: no answer for"));
        assert!(error.hint.expect("a hint").contains("waits 20ms"), "names the time");
    }

    #[tokio::test]
    async fn a_system_that_stays_away_is_asked_a_last_time_when_patience_ends() {
        let asker = Asker::silent(Patience::Limited(Duration::from_millis(30)));
        let mut waiting = Waiting::new(&asker);
        let mut attempts = 0;
        let error = loop {
            attempts += 1;
            match waiting.after(away(), "s").await {
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(attempts, 2, "the first pause would be longer than the patience");
        assert!(error.hint.expect("a hint").contains("connector_timeout"));
    }
}
