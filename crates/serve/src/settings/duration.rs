//! Times as settings: a number of milliseconds, or a number with one of PostgreSQL's units.

use std::time::Duration;

/// Units and how many microseconds each has, the largest first.
const UNITS: &[(&str, u64)] = &[
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];
/// As in PostgreSQL: milliseconds in 31 bits.
const LONGEST_MS: u64 = i32::MAX as u64;

/// The time that `text` says, in whole milliseconds; else what would be valid.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let number_len = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = (&text[..number_len], text[number_len..].trim());
    let unit_us = match unit {
        "" => 1_000,
        unit => {
            let found = UNITS.iter().find(|(name, _)| *name == unit);
            found.map(|(_, us)| *us).ok_or_else(valid)?
        }
    };
    let number: f64 = number.parse().map_err(|_| valid())?;
    let time_ms = (number * unit_us as f64 / 1_000.0).round();
    if time_ms > LONGEST_MS as f64 {
        return Err(format!("The longest time is {LONGEST_MS} ms."));
    }
    Ok(Duration::from_secs_f64(time_ms / 1_000.0))
}

fn valid() -> String {
    "Give milliseconds, or a number with one of the units us, ms, s, min, h and d.".to_owned()
}

/// As SHOW prints it: in the largest unit that leaves a whole number.
pub(super) fn show(time: Duration) -> String {
    let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    if time_us == 0 {
        return "0".to_owned();
    }
    let fits = |(_, us): &&(&str, u64)| time_us.is_multiple_of(*us);
    let (unit, us) = UNITS.iter().find(fits).expect("one microsecond divides every time");
    format!("{}{unit}", time_us / us)
}

#[cfg(test)]
mod tests {
    use super::{parse, show};

    #[test]
    fn times_are_read_and_shown_as_postgresql_does() {
        let shown = |text: &str| parse(text).map(show);
        for (text, expected) in [
            ("5000", "5s"),
            ("5s", "5s"),
            (" 90 s ", "90s"),
            ("120 s", "2min"),
            ("1.5s", "1500ms"),
            ("250", "250ms"),
            ("0", "0"),
            ("36h", "36h"),
            ("2d", "2d"),
            ("600us", "1ms"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", "soon", "-1", "5 sec", "5S", "s", "1.2.3", "9999999999", "25d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
