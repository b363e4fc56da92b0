//! `to_char` of intervals: each part with a sign of its own.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::Result;
use segue_types::SqlState;

use super::general::failed;

/// The texts of intervals.
pub(super) fn format_all(intervals: &ArrayRef, patterns: &ArrayRef) -> Result<ArrayRef> {
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let texts = intervals.iter().zip(patterns.as_string::<i32>()).map(|(interval, pattern)| {
        interval.zip(pattern).map(|(interval, pattern)| formatted(interval, pattern)).transpose()
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

/// A part of an interval, and how many digits it has at least.
type Part = fn(&Clock) -> i64;

const PARTS: &[(&str, usize, Part)] = &[
    ("IYYY", 4, |clock| clock.years),
    ("YYYY", 4, |clock| clock.years),
    ("IY", 2, |clock| clock.years % 100),
    ("YY", 2, |clock| clock.years % 100),
    ("MM", 2, |clock| clock.months),
    ("DD", 2, |clock| clock.days),
    ("HH24", 2, |clock| clock.hours),
    ("HH12", 2, |clock| clock.hours_of_half()),
    ("HH", 2, |clock| clock.hours_of_half()),
    ("MI", 2, |clock| clock.minutes),
    ("SS", 2, |clock| clock.seconds),
    ("MS", 3, |clock| clock.micros / 1_000),
    ("US", 6, |clock| clock.micros),
];

/// Patterns that only a day of a calendar has.
const OF_DAYS: &[&str] = &["MONTH", "MON", "DAY", "DY", "TZH", "TZM", "TZ", "IW", "WW", "ID"];

struct Clock {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

impl Clock {
    fn of(interval: IntervalMonthDayNano) -> Clock {
        let us = interval.nanoseconds / 1_000;
        let months = i64::from(interval.months);
        Clock {
            years: months / 12,
            months: months % 12,
            days: interval.days.into(),
            hours: us / 3_600_000_000,
            minutes: us / 60_000_000 % 60,
            seconds: us / 1_000_000 % 60,
            micros: us % 1_000_000,
        }
    }

    fn hours_of_half(&self) -> i64 {
        if self.hours % 12 == 0 { 12 } else { self.hours % 12 }
    }

    fn half(&self) -> &'static str {
        if self.hours % 24 >= 12 { "pm" } else { "am" }
    }
}

fn formatted(interval: IntervalMonthDayNano, pattern: &str) -> Result<String> {
    let clock = Clock::of(interval);
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let begins =
            |name: &str| rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
        if OF_DAYS.iter().any(|name| begins(name)) {
            let message = "invalid format specification for an interval value";
            return Err(failed(SqlState::INVALID_DATETIME_FORMAT, message));
        }
        let length = if let Some((name, width, part)) = PARTS.iter().find(|(name, ..)| begins(name))
        {
            let number = part(&clock);
            let sign = if number < 0 { "-" } else { "" };
            let _infallible = write!(text, "{sign}{:0width$}", number.unsigned_abs());
            name.len()
        } else if begins("AM") || begins("PM") {
            let upper = first.is_ascii_uppercase();
            text.push_str(&if upper {
                clock.half().to_uppercase()
            } else {
                clock.half().to_owned()
            });
            2
        } else {
            text.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;

    use super::formatted;

    #[test]
    fn every_part_has_its_own_sign() {
        let interval = IntervalMonthDayNano::new(-14, 3, -84_177_124_562_000);
        let shown = |pattern| formatted(interval, pattern).ok();
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(shown("YYYY MM DD"), of("-0001 -02 03"));
        assert_eq!(shown("HH12 hh24 MI SS MS US"), of("-11 -23 -22 -57 -124 -124562"));
        assert_eq!(shown("Mon"), None);
        let noon = IntervalMonthDayNano::new(0, 0, 43_200_000_000_000);
        assert_eq!(formatted(noon, "HH12:MI pm").ok(), of("12:00 pm"));
    }
}
