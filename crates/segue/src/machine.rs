//! The machine's cores and memory, and sizes as people write them.

use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::Deserialize;

/// A number of bytes: `8GiB`, `500 MB`, `4096`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            _ => 0,
        };
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        match bytes {
            Some(bytes) if bytes > 0 => Ok(Size(bytes)),
            _ => Err(format!("a size is a number of bytes, or of KiB, MiB or GiB; not \"{text}\"")),
        }
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Size, String> {
        text.parse()
    }
}

/// How many cores this process may use; one where the system does not tell.
pub(crate) fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// What this process may use: the machine's memory, or that of its container if it is less. `None` where the system
/// does not tell.
pub(crate) fn memory_bytes() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    [machine, container].into_iter().flatten().min()
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_is_read_from_the_kernels_table() {
        assert_eq!(total("MemTotal:       24619160 kB\nMemFree: 1 kB\n"), Some(24_619_160 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
    }
}
