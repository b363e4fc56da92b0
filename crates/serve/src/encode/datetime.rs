//! Dates, times, timestamps and intervals as PostgreSQL's ISO style prints them.

use std::fmt::Write;

use bytes::BytesMut;

use super::{Forms, Zone};

const US_PER_SECOND: i64 = 1_000_000;
const US_PER_DAY: i64 = 86_400 * US_PER_SECOND;
/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL's binary dates begin.
pub(super) const POSTGRES_EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(super) const POSTGRES_EPOCH_US: i64 = POSTGRES_EPOCH_DAYS as i64 * US_PER_DAY;

/// The proleptic Gregorian date of a day counted from 1970-01-01 (days are shifted so that a year starts in
/// March and the leap day is its last).
fn civil(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Writes the day and says whether it lies before Christ, which is printed at the very end.
fn write_day(days: i64, out: &mut BytesMut) -> bool {
    let (year, month, day) = civil(days);
    let before_christ = year <= 0;
    let year = if before_christ { 1 - year } else { year };
    write!(out, "{year:04}-{month:02}-{day:02}").expect("a buffer takes all");
    before_christ
}

fn write_clock(us: i64, out: &mut BytesMut) {
    let seconds = us / US_PER_SECOND;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    write!(out, "{hour:02}:{minute:02}:{second:02}").expect("a buffer takes all");
    write_fraction(us % US_PER_SECOND, out);
}

fn write_fraction(us: i64, out: &mut BytesMut) {
    if us > 0 {
        let text = format!(".{us:06}");
        out.extend_from_slice(text.trim_end_matches('0').as_bytes());
    }
}

/// Writes a `date`.
pub(super) fn write_date(days: i32, out: &mut BytesMut) {
    if write_day(i64::from(days), out) {
        out.extend_from_slice(b" BC");
    }
}

/// Writes a `time`.
pub(super) fn write_time(us: i64, out: &mut BytesMut) {
    write_clock(us, out);
}

/// Writes a `timestamp`.
pub(super) fn write_timestamp(unix_us: i64, out: &mut BytesMut) {
    let before_christ = write_day(unix_us.div_euclid(US_PER_DAY), out);
    out.extend_from_slice(b" ");
    write_clock(unix_us.rem_euclid(US_PER_DAY), out);
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// Writes a `timestamptz` in the session's zone; of the offset, minutes and seconds only where it has any, or where the
/// form asks for minutes.
pub(super) fn write_timestamptz(unix_us: i64, zone: Zone, forms: Forms, out: &mut BytesMut) {
    let offset = zone.offset_seconds(unix_us);
    let local = unix_us.saturating_add(i64::from(offset) * US_PER_SECOND);
    let before_christ = write_day(local.div_euclid(US_PER_DAY), out);
    out.extend_from_slice(b" ");
    write_clock(local.rem_euclid(US_PER_DAY), out);
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes, seconds) =
        (offset.abs() / 3600, offset.abs() / 60 % 60, offset.abs() % 60);
    write!(out, "{sign}{hours:02}").expect("a buffer takes all");
    if minutes != 0 || seconds != 0 || forms == Forms::RisingWave {
        write!(out, ":{minutes:02}").expect("a buffer takes all");
    }
    if seconds != 0 {
        write!(out, ":{seconds:02}").expect("a buffer takes all");
    }
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// Writes an `interval`: `1 year 2 mons 3 days 04:05:06.7`.
pub(super) fn write_interval(months: i32, days: i32, ns: i64, out: &mut BytesMut) {
    let start = out.len();
    // A positive part after a negative one carries a plus, or it would read as negative too.
    let mut negative_before = false;
    for (value, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if value == 0 {
            continue;
        }
        let space = if out.len() > start { " " } else { "" };
        let plus = if negative_before && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        write!(out, "{space}{plus}{value} {unit}{plural}").expect("a buffer takes all");
        negative_before = value < 0;
    }
    let us = ns / 1_000;
    if us != 0 || out.len() == start {
        if out.len() > start {
            out.extend_from_slice(b" ");
        }
        if us < 0 {
            out.extend_from_slice(b"-");
        } else if negative_before {
            out.extend_from_slice(b"+");
        }
        write_clock(us.abs(), out);
    }
}
