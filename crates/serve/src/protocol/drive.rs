//! Running a statement while the connection stays alive: notices go out, a vanished client or a
//! shutdown raises the statement's token, and the statement is awaited until it has cleaned up.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use segue_types::{SqlState, UserError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::connection::{Client, Ending};
use crate::session::Running;
use crate::wire::{Wire, WireError, notice_response};

/// Notices that wait for the socket; more are dropped.
const NOTICES_MAX: usize = 64;

/// The connection's side of a running statement.
pub(super) struct Driver {
    pub(super) running: Running,
    notices: mpsc::Receiver<String>,
    timed_out: Arc<AtomicBool>,
    began: Instant,
}

impl Driver {
    /// The error as the client is told it: who asked for the end is known here alone.
    pub(super) fn told(&self, error: UserError) -> UserError {
        let timed_out = self.timed_out.load(Ordering::Relaxed);
        if timed_out && error.state == SqlState::QUERY_CANCELED {
            return UserError::new(error.state, "canceling statement due to statement timeout");
        }
        error
    }
}

impl Client {
    /// Begins a statement of `text`.
    pub(super) fn begin(&self, text: &Arc<str>) -> Driver {
        let (sender, notices) = mpsc::channel(NOTICES_MAX);
        let cancel = self.registration.current.begin();
        let timed_out = Arc::new(AtomicBool::new(false));
        if let Some(timeout) = self.session.settings.statement_timeout() {
            let (cancel, timed_out) = (cancel.clone(), Arc::clone(&timed_out));
            tokio::spawn(async move {
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = tokio::time::sleep(timeout) => {
                        timed_out.store(true, Ordering::Relaxed);
                        cancel.cancel();
                    }
                }
            });
        }
        let running = Running { cancel, notices: sender, text: Arc::clone(text) };
        Driver { running, notices, timed_out, began: Instant::now() }
    }

    /// The statement has been run, and is counted.
    pub(super) fn ran(&self, driver: &Driver) {
        self.end(driver);
        self.activity.ran(driver.began.elapsed());
    }

    /// The statement is over.
    pub(super) fn end(&self, driver: &Driver) {
        self.registration.current.end();
        self.session.planner.rest();
        // Ends the timeout's task, if there is one.
        driver.running.cancel.cancel();
    }
}

/// Runs `statement` to its end, whatever happens to the client meanwhile.
pub(super) async fn drive<T>(
    wire: &mut Wire,
    shutdown: &CancellationToken,
    driver: &mut Driver,
    statement: impl Future<Output = Result<T, UserError>>,
) -> Result<Result<T, UserError>, Ending> {
    let mut statement = std::pin::pin!(statement);
    let mut lost = None;
    let cancel = driver.running.cancel.clone();
    let result = loop {
        tokio::select! {
            biased;
            result = &mut statement => break result,
            Some(text) = driver.notices.recv() => {
                if lost.is_none()
                    && let Err(error) = send_notice(wire, text).await
                {
                    lost = Some(error);
                    cancel.cancel();
                }
            }
            () = shutdown.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
            () = wire.closed(), if lost.is_none() && !cancel.is_cancelled() => cancel.cancel(),
        }
    };
    while let Ok(text) = driver.notices.try_recv() {
        wire.push(&notice_response(text))?;
    }
    match lost {
        Some(error) => Err(error.into()),
        None => Ok(result),
    }
}

async fn send_notice(wire: &mut Wire, text: String) -> Result<(), WireError> {
    wire.push(&notice_response(text))?;
    wire.flush().await
}
