//! Which statement a CancelRequest means: process id and secret key → the token of the running statement.
//!
//! Invariant: a request that arrives between two statements cancels neither, as in PostgreSQL.

#![expect(
    clippy::disallowed_types,
    reason = "a cancel key must differ from run to run, and is never stored"
)]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The statement that a session runs now, if any.
#[derive(Debug, Default)]
pub(crate) struct CurrentStatement(Mutex<Option<CancellationToken>>);

impl CurrentStatement {
    /// A statement begins; its token is cancelled by [`CurrentStatement::cancel`].
    pub(crate) fn begin(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.0.lock() = Some(token.clone());
        token
    }

    /// The statement is over.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    /// Asks the running statement to stop.
    pub(crate) fn cancel(&self) {
        if let Some(token) = self.0.lock().as_ref() {
            token.cancel();
        }
    }
}

/// All connections that can be cancelled.
#[derive(Debug, Default)]
pub(crate) struct CancelRegistry {
    next_pid: AtomicI32,
    random: RandomState,
    sessions: Mutex<HashMap<i32, (i32, Arc<CurrentStatement>)>>,
}

impl CancelRegistry {
    /// Registers a connection until the registration is dropped.
    pub(crate) fn register(self: &Arc<Self>) -> Registration {
        let current = Arc::new(CurrentStatement::default());
        // Drivers take process id 0 for "cannot be cancelled".
        let pid = self.next_pid.fetch_add(1, Ordering::Relaxed).rem_euclid(i32::MAX) + 1;
        let secret = self.random.hash_one(pid) as i32;
        self.sessions.lock().insert(pid, (secret, Arc::clone(&current)));
        Registration { registry: Arc::clone(self), pid, secret, current }
    }

    /// Cancels what the connection runs; a wrong key does nothing and tells nothing.
    pub(crate) fn cancel(&self, pid: i32, secret: i32) {
        if let Some((expected, current)) = self.sessions.lock().get(&pid)
            && *expected == secret
        {
            current.cancel();
        }
    }
}

/// A connection's place in the registry.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<CancelRegistry>,
    pub(crate) pid: i32,
    pub(crate) secret: i32,
    pub(crate) current: Arc<CurrentStatement>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.sessions.lock().remove(&self.pid);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::CancelRegistry;

    #[test]
    fn only_the_right_key_cancels_and_only_while_a_statement_runs() {
        let registry = Arc::new(CancelRegistry::default());
        let session = registry.register();
        assert!(session.pid > 0);

        registry.cancel(session.pid, session.secret);
        let token = session.current.begin();
        assert!(!token.is_cancelled(), "a request between statements meets nobody");
        registry.cancel(session.pid, session.secret.wrapping_add(1));
        assert!(!token.is_cancelled());
        registry.cancel(session.pid, session.secret);
        assert!(token.is_cancelled());

        let (pid, secret) = (session.pid, session.secret);
        drop(session);
        registry.cancel(pid, secret);
        assert!(registry.sessions.lock().is_empty());
    }
}
