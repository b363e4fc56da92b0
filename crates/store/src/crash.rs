//! *Crash points*: named places where a test lets the process die as if by `kill -9`.
//!
//! `FAILPOINTS="before-commit=1*off->1*return"` kills at the second pass through `before-commit`. Without the
//! feature `failpoints` a crash point is an empty function.

/// Dies here, without a word and without running destructors, when `FAILPOINTS` says so.
#[macro_export]
macro_rules! crash_point {
    ($name:expr) => {
        $crate::crash::point($name)
    };
}

#[cfg(feature = "failpoints")]
pub fn point(name: &str) {
    use std::sync::Once;

    static CONFIGURED: Once = Once::new();
    // The scenario's destructor would clear the configuration; it stays for the life of the process.
    CONFIGURED.call_once(|| std::mem::forget(fail::FailScenario::setup()));
    if fail::eval(name, |_| ()).is_some() {
        // SAFETY: both calls take plain integers and touch no memory of this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn point(_name: &str) {}
