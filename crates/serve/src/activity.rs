//! What clients do, counted for whoever watches the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct Activity {
    sessions: AtomicU64,
    statements: AtomicU64,
    errors: AtomicU64,
    busy_us: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// That are open.
    pub sessions: u64,
    pub statements: u64,
    pub errors: u64,
    /// How long statements took together, their results included.
    pub busy: Duration,
}

impl Activity {
    /// What has been counted.
    pub fn read(&self) -> Counts {
        Counts {
            sessions: self.sessions.load(Ordering::Relaxed),
            statements: self.statements.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            busy: Duration::from_micros(self.busy_us.load(Ordering::Relaxed)),
        }
    }

    /// A session is open until the guard is dropped.
    pub(crate) fn session(self: &Arc<Self>) -> OpenSession {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        OpenSession(Arc::clone(self))
    }

    pub(crate) fn ran(&self, took: Duration) {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.busy_us.fetch_add(took_us, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts as one session.
pub(crate) struct OpenSession(Arc<Activity>);

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}
