//! Clocks and lines: wall time, CPU time of the process, quantiles, and how they are printed.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// A running measurement.
pub(crate) struct Meter {
    began: Instant,
    cpu: Duration,
}

/// What something took.
#[derive(Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) wall: Duration,
    /// Of all threads of this process.
    pub(crate) cpu: Duration,
}

impl Meter {
    pub(crate) fn start() -> Meter {
        Meter { began: Instant::now(), cpu: process_cpu() }
    }

    pub(crate) fn stop(&self) -> Spent {
        Spent { wall: self.began.elapsed(), cpu: process_cpu() - self.cpu }
    }
}

/// Runs `work` and says what it took.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let meter = Meter::start();
    let result = work();
    (result, meter.stop())
}

/// Prints rows per second and per core-second.
pub(crate) fn rate(what: &str, rows: usize, spent: Spent) {
    let per = |time: Duration| rows as f64 / time.as_secs_f64() / 1e6;
    let micros = spent.cpu.as_secs_f64() * 1e6 / rows as f64;
    println!(
        "{what:<58} {:>7.3} M rows/s {:>7.3} M rows/core-s {micros:>6.3} us CPU a row",
        per(spent.wall),
        per(spent.cpu),
    );
}

/// Prints how often, and the median, the 99th percentile and the greatest of times.
pub(crate) fn times(what: &str, samples: &[Duration]) {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    println!(
        "{what:<58} p50 {:>8.3} ms  p99 {:>8.3} ms  max {:>8.3} ms  of {}",
        millis(quantile(&sorted, 0.50)),
        millis(quantile(&sorted, 0.99)),
        millis(quantile(&sorted, 1.0)),
        sorted.len(),
    );
}

fn quantile(sorted: &[Duration], q: f64) -> Duration {
    assert!(!sorted.is_empty(), "something was measured");
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// User and system time of this process.
fn process_cpu() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for one rusage, which getrusage fills.
    let answer = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    assert_eq!(answer, 0, "a process may ask for its own usage");
    // SAFETY: all fields are plain numbers, zeroed first and filled by the call.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        let micros = time.tv_sec * 1_000_000 + time.tv_usec;
        Duration::from_micros(u64::try_from(micros).expect("used time is not negative"))
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// User and system time of another process, in the kernel's ticks of 10 ms.
pub(crate) fn cpu_of(pid: u32) -> std::io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold spaces; the 14th and 15th field follow it.
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let field = |at: usize| after.split(' ').nth(at).and_then(|ticks| ticks.parse::<u64>().ok());
    let ticks = field(11).unwrap_or(0) + field(12).unwrap_or(0);
    Ok(Duration::from_millis(ticks * 10))
}

/// Resident memory of this process.
pub(crate) fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    pages * 4096
}

/// Cores, model, and what else runs.
pub(crate) fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, v)| v);
        value.to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cores} cores, {}, {} MHz, cache {}, load {}",
        line("model name"),
        line("cpu MHz"),
        line("cache size"),
        load()
    )
}

/// The load averages of the last 1, 5 and 15 minutes.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::quantile;

    #[test]
    fn a_quantile_is_a_sample_that_was_taken() {
        let samples: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&samples, 0.5), Duration::from_millis(50));
        assert_eq!(quantile(&samples, 0.99), Duration::from_millis(99));
        assert_eq!(quantile(&samples, 1.0), Duration::from_millis(100));
        assert_eq!(quantile(&samples[..1], 0.99), Duration::from_millis(1));
    }
}
