//! Intervals: `1 year 2 mons 3 days 04:05:06.7`, `3 hours ago`, `@ 1 day`, ISO `P1Y2M3DT4H5M6S`.
//!
//! A fraction runs over into the smaller units, as in PostgreSQL: half a day is 12 hours, half a
//! month 15 days.

use arrow::array::types::IntervalMonthDayNano;

use crate::ValueError;

const SECOND_NS: i64 = 1_000_000_000;

/// What one unit is worth.
#[derive(Clone, Copy)]
enum Unit {
    Months(i64),
    Days(i64),
    Nanos(i64),
}

pub(super) fn parse_interval(text: &str) -> Result<IntervalMonthDayNano, ValueError> {
    let trimmed = text.trim_ascii();
    let sum = match trimmed.strip_prefix(['P', 'p']) {
        Some(iso) => parse_iso(iso),
        None => parse_words(trimmed),
    };
    sum.and_then(|sum| sum.finish()).ok_or_else(|| ValueError::invalid(text, "interval"))
}

#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    nanos: i64,
    parts: usize,
}

impl Sum {
    fn add(&mut self, number: &str, unit: Unit) -> Option<()> {
        let (whole, fraction) = split_number(number)?;
        self.parts += 1;
        let part = |size: i64| (fraction * size as f64).round() as i64;
        match unit {
            Unit::Months(size) => {
                let months = fraction * size as f64;
                self.add_months(whole.checked_mul(size)?.checked_add(months.trunc() as i64)?)?;
                self.days = self.days.checked_add((months.fract() * 30.0).round() as i64)?;
            }
            Unit::Days(size) => {
                let days = fraction * size as f64;
                let whole_days = whole.checked_mul(size)?.checked_add(days.trunc() as i64)?;
                self.days = self.days.checked_add(whole_days)?;
                self.add_nanos((days.fract() * 86_400e9).round() as i64)?;
            }
            Unit::Nanos(size) => {
                self.add_nanos(whole.checked_mul(size)?.checked_add(part(size))?)?
            }
        }
        Some(())
    }

    fn add_months(&mut self, months: i64) -> Option<()> {
        self.months = self.months.checked_add(months)?;
        Some(())
    }

    fn add_nanos(&mut self, nanos: i64) -> Option<()> {
        self.nanos = self.nanos.checked_add(nanos)?;
        Some(())
    }

    /// `[-]H:MM[:SS[.fraction]]`.
    fn add_clock(&mut self, clock: &str) -> Option<()> {
        let (sign, digits) = match clock.as_bytes().first()? {
            b'-' => (-1, &clock[1..]),
            b'+' => (1, &clock[1..]),
            _ => (1, clock),
        };
        let mut parts = digits.split(':');
        let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if parts.next().is_some() || ![hour, minute, second].iter().all(|text| plain(text)) {
            return None;
        }
        let (second_whole, second_fraction) = split_number(second)?;
        let seconds = hour.parse::<i64>().ok()?.checked_mul(3600)?;
        let minute = minute.parse::<i64>().ok().filter(|minute| *minute < 60)?;
        let seconds = seconds.checked_add(minute * 60)?.checked_add(second_whole)?;
        let nanos = seconds.checked_mul(SECOND_NS)?;
        self.parts += 1;
        self.add_nanos(sign * (nanos + (second_fraction * 1e9).round() as i64))
    }

    fn negate(&mut self) {
        self.months = -self.months;
        self.days = -self.days;
        self.nanos = -self.nanos;
    }

    fn finish(self) -> Option<IntervalMonthDayNano> {
        let months = i32::try_from(self.months).ok()?;
        let days = i32::try_from(self.days).ok()?;
        (self.parts > 0).then(|| IntervalMonthDayNano::new(months, days, self.nanos))
    }
}

/// A decimal number as its whole part and its signed fraction.
fn split_number(text: &str) -> Option<(i64, f64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let value = match digits {
        "" if !fraction.is_empty() => 0,
        _ if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse::<i64>().ok()?,
        _ => return None,
    };
    let fraction: f64 =
        if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
    Some(if whole.starts_with('-') { (-value, -fraction) } else { (value, fraction) })
}

fn parse_words(text: &str) -> Option<Sum> {
    let mut sum = Sum::default();
    let mut words = text.strip_prefix('@').unwrap_or(text).split_ascii_whitespace().peekable();
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("ago") {
            sum.negate();
            return words.next().is_none().then_some(sum);
        }
        if word.contains(':') {
            sum.add_clock(word)?;
            continue;
        }
        let unit_at = word.bytes().position(|byte| byte.is_ascii_alphabetic());
        let (number, unit) = match unit_at {
            Some(at) => word.split_at(at),
            // A bare number at the end counts seconds.
            None => (word, words.next().unwrap_or("second")),
        };
        sum.add(number, unit_of(unit)?)?;
    }
    Some(sum)
}

fn unit_of(word: &str) -> Option<Unit> {
    let word = word.to_ascii_lowercase();
    Some(match word.as_str() {
        "millennium" | "millennia" | "millenniums" => Unit::Months(12_000),
        "century" | "centuries" => Unit::Months(1_200),
        "decade" | "decades" => Unit::Months(120),
        "year" | "years" | "yr" | "yrs" | "y" => Unit::Months(12),
        "month" | "months" | "mon" | "mons" => Unit::Months(1),
        "week" | "weeks" | "w" => Unit::Days(7),
        "day" | "days" | "d" => Unit::Days(1),
        "hour" | "hours" | "hr" | "hrs" | "h" => Unit::Nanos(3600 * SECOND_NS),
        "minute" | "minutes" | "min" | "mins" | "m" => Unit::Nanos(60 * SECOND_NS),
        "second" | "seconds" | "sec" | "secs" | "s" => Unit::Nanos(SECOND_NS),
        "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => Unit::Nanos(1_000_000),
        "microsecond" | "microseconds" | "usec" | "usecs" | "us" => Unit::Nanos(1_000),
        _ => return None,
    })
}

fn parse_iso(text: &str) -> Option<Sum> {
    let mut sum = Sum::default();
    let mut in_time = false;
    let mut number_start = 0;
    for (at, byte) in text.bytes().enumerate() {
        let unit = match (byte.to_ascii_uppercase(), in_time) {
            (b'0'..=b'9' | b'.' | b'-' | b'+', _) => continue,
            (b'T', false) if number_start == at => {
                in_time = true;
                number_start = at + 1;
                continue;
            }
            (b'Y', false) => Unit::Months(12),
            (b'M', false) => Unit::Months(1),
            (b'W', false) => Unit::Days(7),
            (b'D', false) => Unit::Days(1),
            (b'H', true) => Unit::Nanos(3600 * SECOND_NS),
            (b'M', true) => Unit::Nanos(60 * SECOND_NS),
            (b'S', true) => Unit::Nanos(SECOND_NS),
            _ => return None,
        };
        sum.add(&text[number_start..at], unit)?;
        number_start = at + 1;
    }
    (number_start == text.len()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use arrow::array::types::IntervalMonthDayNano;

    use super::parse_interval;

    #[test]
    fn every_spelling_is_read() {
        let second = 1_000_000_000;
        let cases = [
            ("1 year 2 mons 3 days 04:05:06.5", (14, 3, 14_706 * second + second / 2)),
            ("P1Y2M3DT4H5M6.5S", (14, 3, 14_706 * second + second / 2)),
            ("1 hour", (0, 0, 3600 * second)),
            ("5m", (0, 0, 300 * second)),
            ("-1 day +00:00:01", (0, -1, second)),
            ("1 day ago", (0, -1, 0)),
            ("@ 2 weeks", (0, 14, 0)),
            ("1.5 days", (0, 1, 43_200 * second)),
            ("0.5 month", (0, 15, 0)),
            ("1.5 years", (18, 0, 0)),
            ("-0.5 hours", (0, 0, -1800 * second)),
            ("10", (0, 0, 10 * second)),
            ("-00:00:00.25", (0, 0, -second / 4)),
        ];
        for (text, (months, days, nanos)) in cases {
            let expected = IntervalMonthDayNano::new(months, days, nanos);
            assert_eq!(parse_interval(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for text in [
            "",
            "P",
            "PT",
            "hour",
            "1 fortnight",
            "1:2:3:4",
            "1 day ago 2",
            "P1H",
            "9999999999 years",
            "é",
            "1.2.3 days",
        ] {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }
}
