//! Waiting for a condition, with a deadline: the only place of the test code that sleeps.

use std::time::{Duration, Instant};

/// Asks `condition` until it answers, and returns the answer.
///
/// # Panics
/// After `deadline`, naming `what` it waited for.
pub fn wait_for<T>(what: &str, deadline: Duration, condition: impl FnMut() -> Option<T>) -> T {
    poll(deadline, condition).unwrap_or_else(|| panic!("waited {deadline:?} for {what}"))
}

/// The same for whoever has more to say about a wait in vain: `None` after `deadline`.
pub fn poll<T>(deadline: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(answer) = condition() {
            return Some(answer);
        }
        if start.elapsed() >= deadline {
            return None;
        }
        pause();
    }
}

/// The same for a condition that has to be awaited.
///
/// # Panics
/// After `deadline`, naming `what` it waited for.
pub async fn wait_for_async<T>(
    what: &str,
    deadline: Duration,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = condition().await {
            return answer;
        }
        assert!(start.elapsed() < deadline, "waited {deadline:?} for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

const PAUSE: Duration = Duration::from_millis(10);

#[expect(clippy::disallowed_methods, reason = "the pause between two looks at a condition")]
fn pause() {
    std::thread::sleep(PAUSE);
}
