//! Dates, times and timestamps: ISO 8601 as PostgreSQL reads it (`T` or a blank, zone or none, up
//! to 6 fraction digits and the rest rounded).
//!
//! A zone in the text of a `timestamp` is ignored, as in PostgreSQL; a `timestamptz` without one
//! is UTC.

use super::civil;
use crate::ValueError;

const DAY_US: i64 = 86_400_000_000;

/// What a bare number in a timestamp column counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EpochUnit {
    Second,
    /// What most producers write, and the default.
    #[default]
    Milli,
    Micro,
    /// By magnitude, as RisingWave's `guess_number_unit`: right for 1973-03-03 to 5138-11-16.
    Guess,
}

impl EpochUnit {
    /// Microseconds since 1970. `None` when they do not fit.
    pub(crate) fn micros(self, number: i64) -> Option<i64> {
        let factor = match self {
            EpochUnit::Second => 1_000_000,
            EpochUnit::Milli => 1_000,
            EpochUnit::Micro => 1,
            EpochUnit::Guess => match number.unsigned_abs() {
                0..100_000_000_000 => 1_000_000,
                100_000_000_000..100_000_000_000_000 => 1_000,
                100_000_000_000_000..100_000_000_000_000_000 => 1,
                _ => return Some(number / 1_000),
            },
        };
        number.checked_mul(factor)
    }
}

pub(super) fn parse_date(text: &str) -> Result<i32, ValueError> {
    let mut reader = Reader::new(text.trim_ascii());
    let days = reader.date();
    // A time of day after the date is dropped, as `'2024-01-01 10:00'::date` does.
    days.filter(|_| reader.is_done() || reader.rest_of_timestamp().is_some())
        .ok_or_else(|| ValueError::invalid(text, "date"))
}

pub(super) fn parse_time(text: &str) -> Result<i64, ValueError> {
    let mut reader = Reader::new(text.trim_ascii());
    let time = reader.time_of_day();
    time.filter(|time| *time < DAY_US && (reader.is_done() || reader.zone_us().is_some()))
        .filter(|_| reader.is_done())
        .ok_or_else(|| ValueError::invalid(text, "time"))
}

#[inline]
pub(super) fn parse_timestamp(text: &str) -> Result<i64, ValueError> {
    parse(text).map(|(local_us, _)| local_us).ok_or_else(|| ValueError::invalid(text, "timestamp"))
}

#[inline]
pub(super) fn parse_timestamptz(text: &str) -> Result<i64, ValueError> {
    parse(text)
        .and_then(|(local_us, zone_us)| local_us.checked_sub(zone_us))
        .ok_or_else(|| ValueError::invalid(text, "timestamptz"))
}

/// The time that the text's clock shows, and how far that clock is ahead of UTC.
fn parse(text: &str) -> Option<(i64, i64)> {
    let mut reader = Reader::new(text.trim_ascii());
    let days = reader.date()?;
    let (time, zone) = if reader.is_done() { (0, 0) } else { reader.rest_of_timestamp()? };
    let midnight = i64::from(days).checked_mul(DAY_US)?;
    Some((midnight.checked_add(time)?, zone))
}

/// Reads a text from the left.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader { rest: text.as_bytes() }
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// A number of at least `min` and at most `max` digits.
    #[inline]
    fn number(&mut self, min: usize, max: usize) -> Option<u32> {
        let mut value = 0;
        let mut len = 0;
        while len < max
            && let Some(byte @ b'0'..=b'9') = self.rest.get(len)
        {
            value = value * 10 + u32::from(byte - b'0');
            len += 1;
        }
        self.rest = &self.rest[len..];
        (len >= min).then_some(value)
    }

    /// `[+-]Y…-M-D`, years of four to six digits.
    #[inline]
    fn date(&mut self) -> Option<i32> {
        let negative = self.eat(b'-');
        let year = i64::from(self.number(4, 6)?);
        let month = self.eat(b'-').then(|| self.number(1, 2))??;
        let day = self.eat(b'-').then(|| self.number(1, 2))??;
        civil::days(if negative { -year } else { year }, month, day)
    }

    /// `H:MM[:SS[.fraction]]` in microseconds. Second 60 runs into the next minute.
    #[inline]
    fn time_of_day(&mut self) -> Option<i64> {
        let hour = self.number(1, 2)?;
        let minute = self.eat(b':').then(|| self.number(2, 2))??;
        let second = if self.eat(b':') { self.number(2, 2)? } else { 0 };
        if hour > 24 || minute > 59 || second > 60 {
            return None;
        }
        let fraction = if self.eat(b'.') || self.eat(b',') { self.fraction_us()? } else { 0 };
        let total = i64::from(hour * 3600 + minute * 60 + second) * 1_000_000 + fraction;
        (total <= DAY_US).then_some(total)
    }

    /// Digits after the point as microseconds, rounded.
    #[inline]
    fn fraction_us(&mut self) -> Option<i64> {
        let len =
            self.rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        let mut value = 0;
        for index in 0..6 {
            value = value * 10 + digits.get(index).map_or(0, |byte| i64::from(byte - b'0'));
        }
        let rounded = value + i64::from(digits.get(6).is_some_and(|byte| *byte >= b'5'));
        (len > 0).then_some(rounded)
    }

    /// What follows the date: `T` or a blank, the time, a zone or none. Time of day and zone.
    #[inline]
    fn rest_of_timestamp(&mut self) -> Option<(i64, i64)> {
        if !(self.eat(b'T') || self.eat(b't') || self.eat(b' ')) {
            return None;
        }
        let time = self.time_of_day()?;
        let zone = if self.is_done() { 0 } else { self.zone_us()? };
        self.is_done().then_some((time, zone))
    }

    /// `Z`, `UTC`, `GMT`, `±HH[[:]MM[:SS]]`.
    #[inline]
    fn zone_us(&mut self) -> Option<i64> {
        if self.rest == b"Z" {
            self.rest = &[];
            return Some(0);
        }
        while self.eat(b' ') {}
        let sign = match self.rest {
            [b'+', ..] => 1,
            [b'-', ..] => -1,
            _ => return self.named_zone(),
        };
        self.rest = &self.rest[1..];
        let hour = self.number(1, 2)?;
        let minute = if self.eat(b':') || !self.is_done() { self.number(2, 2)? } else { 0 };
        let second = if self.eat(b':') { self.number(2, 2)? } else { 0 };
        let in_range = hour <= 15 && minute <= 59 && second <= 59;
        in_range.then(|| sign * i64::from(hour * 3600 + minute * 60 + second) * 1_000_000)
    }

    fn named_zone(&mut self) -> Option<i64> {
        let known = ["Z", "UTC", "GMT"];
        let name = std::mem::take(&mut self.rest);
        known.iter().any(|zone| name.eq_ignore_ascii_case(zone.as_bytes())).then_some(0)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::{EpochUnit, parse_date, parse_time, parse_timestamp, parse_timestamptz};

    fn micros(rfc3339: &str) -> i64 {
        DateTime::parse_from_rfc3339(rfc3339).expect("a time").timestamp_micros()
    }

    #[test]
    fn a_timestamptz_is_the_same_instant_in_every_spelling() {
        let instant = micros("2024-02-29T10:20:30.123456Z");
        for text in [
            "2024-02-29T10:20:30.123456Z",
            "2024-02-29 10:20:30.123456",
            "2024-02-29 10:20:30.123456+00",
            " 2024-02-29 12:20:30.1234562 +02:00 ",
            "2024-02-29T05:50:30.1234555-0430",
            "2024-02-29 10:20:30.123456 utc",
        ] {
            assert_eq!(parse_timestamptz(text), Ok(instant), "{text}");
        }
    }

    #[test]
    fn a_timestamp_keeps_what_the_clock_shows() {
        let shown = micros("2024-02-29T10:20:00Z");
        for text in ["2024-02-29 10:20", "2024-02-29T10:20:00+09:00", "2024-2-29 10:20:00.0000001"]
        {
            assert_eq!(parse_timestamp(text), Ok(shown), "{text}");
        }
        assert_eq!(parse_timestamp("2024-02-29"), Ok(micros("2024-02-29T00:00:00Z")));
        assert_eq!(parse_timestamp("1969-12-31 23:59:59.999999"), Ok(-1));
    }

    #[test]
    fn dates_and_times_stand_alone() {
        assert_eq!(parse_date("1970-01-02"), Ok(1));
        assert_eq!(parse_date("1970-01-02T23:00:00Z"), Ok(1));
        assert_eq!(parse_time("01:02:03.5"), Ok(3_723_500_000));
        assert_eq!(parse_time("23:59"), Ok(86_340_000_000));
        assert!(parse_time("24:00:00").is_err());
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2024",
            "2024-02-30",
            "2024-02-01T",
            "2024-02-01 25:00",
            "2024-02-01 10:60",
            "2024-02-01 10:00:00.",
            "2024-02-01 10:00:00+99",
            "2024-02-01 10:00:00 Mars",
            "2024-02-01 10:00:00Zx",
            "20240201",
            "2024-02-01x",
            "999999999-01-01",
        ] {
            assert!(parse_timestamptz(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_counted_in_the_unit_asked_for() {
        let instant = micros("2024-02-29T10:20:30Z");
        let second = instant / 1_000_000;
        assert_eq!(EpochUnit::Second.micros(second), Some(instant));
        assert_eq!(EpochUnit::default().micros(second * 1_000), Some(instant));
        assert_eq!(EpochUnit::Micro.micros(instant), Some(instant));
        for number in [second, second * 1_000, instant, instant * 1_000] {
            assert_eq!(EpochUnit::Guess.micros(number), Some(instant), "{number}");
        }
        assert_eq!(EpochUnit::Second.micros(i64::MAX), None);
    }
}
