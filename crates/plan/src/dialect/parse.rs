//! `to_timestamp(text, pattern)` with PostgreSQL's patterns, the inverse of `to_char`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, TimestampMicrosecondBuilder};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use segue_types::{SqlState, UserError};

use super::simple;

/// The name under which rewritten queries call it.
pub(super) const TO_TIMESTAMP: &str = "to_timestamp_by";

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The function.
pub(super) fn function() -> ScalarUDF {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    simple::function(TO_TIMESTAMP, &[DataType::Utf8, DataType::Utf8], instant, |columns| {
        let [texts, patterns] = columns else { unreachable!("the signature has two arguments") };
        let mut moments = TimestampMicrosecondBuilder::new().with_timezone("+00:00");
        for (text, pattern) in texts.as_string::<i32>().iter().zip(patterns.as_string::<i32>()) {
            match (text, pattern) {
                (Some(text), Some(pattern)) => moments.append_value(moment(text, pattern)?),
                _ => moments.append_null(),
            }
        }
        let array: ArrayRef = Arc::new(moments.finish());
        Ok(array)
    })
}

fn moment(text: &str, pattern: &str) -> Result<i64> {
    let fields = read(text, pattern).and_then(Fields::moment);
    let fields = fields.ok_or_else(|| {
        let message = format!("invalid value \"{text}\" for the pattern \"{pattern}\"");
        let error = UserError::new(SqlState::INVALID_DATETIME_FORMAT, message);
        DataFusionError::External(Box::new(error))
    })?;
    Ok(fields.and_utc().timestamp_micros())
}

/// What a text says.
struct Fields {
    year: i32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    /// `Some(true)` for PM.
    afternoon: Option<bool>,
    /// East of UTC.
    offset_minutes: i32,
}

impl Fields {
    fn moment(self) -> Option<NaiveDateTime> {
        let hour = match self.afternoon {
            None => self.hour,
            Some(_) if !(1..=12).contains(&self.hour) => return None,
            Some(afternoon) => self.hour % 12 + if afternoon { 12 } else { 0 },
        };
        // The year before 1 is -1.
        let year = if self.year < 0 { self.year + 1 } else { self.year };
        let day = NaiveDate::from_ymd_opt(year, self.month, self.day)?;
        let time = NaiveTime::from_hms_micro_opt(hour, self.minute, self.second, self.micros)?;
        day.and_time(time).checked_sub_signed(TimeDelta::minutes(self.offset_minutes.into()))
    }
}

/// Pieces of patterns, longer ones before those that they begin with.
const PIECES: &[(&str, Piece)] = &[
    ("HH24", Piece::Number(4)),
    ("HH12", Piece::Number(4)),
    ("YYYY", Piece::Number(0)),
    ("MONTH", Piece::Month),
    ("MON", Piece::Month),
    ("HH", Piece::Number(4)),
    ("TZH", Piece::ZoneHours),
    ("TZM", Piece::ZoneMinutes),
    ("MM", Piece::Number(1)),
    ("DD", Piece::Number(2)),
    ("MI", Piece::Number(5)),
    ("SS", Piece::Number(6)),
    ("MS", Piece::Fraction(3)),
    ("US", Piece::Fraction(6)),
    ("AM", Piece::HalfDay),
    ("PM", Piece::HalfDay),
];

#[derive(Clone, Copy)]
enum Piece {
    /// The field of this place.
    Number(u8),
    Month,
    /// Digits of a second's fraction.
    Fraction(u32),
    HalfDay,
    /// With its sign.
    ZoneHours,
    ZoneMinutes,
}

fn read(text: &str, pattern: &str) -> Option<Fields> {
    let mut fields = Fields {
        year: 1,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        micros: 0,
        afternoon: None,
        offset_minutes: 0,
    };
    let (mut text, mut pattern) = (text.trim_start(), pattern);
    while let Some(first) = pattern.chars().next() {
        let starts = |(name, _): &&(&str, Piece)| {
            pattern.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        if let Some((name, piece)) = PIECES.iter().find(starts) {
            text = piece.take(text.trim_start(), &mut fields)?;
            pattern = &pattern[name.len()..];
            continue;
        }
        // Any separator matches any other, as in PostgreSQL; a letter matches itself.
        pattern = &pattern[first.len_utf8()..];
        text = match text.chars().next() {
            Some(found)
                if found == first || !first.is_alphanumeric() && !found.is_alphanumeric() =>
            {
                &text[found.len_utf8()..]
            }
            Some(_) if !first.is_alphanumeric() => text,
            _ => return None,
        };
    }
    text.trim().is_empty().then_some(fields)
}

impl Piece {
    /// Takes the piece off the text.
    fn take<'a>(self, text: &'a str, fields: &mut Fields) -> Option<&'a str> {
        match self {
            Piece::Number(0) if text.starts_with('-') => {
                let rest = Piece::Number(0).take(&text[1..], fields)?;
                fields.year = -fields.year;
                Some(rest)
            }
            Piece::Number(place) => {
                let (number, rest) = digits(text, if place == 0 { 4 } else { 2 })?;
                match place {
                    0 => fields.year = i32::try_from(number).ok()?,
                    1 => fields.month = number,
                    2 => fields.day = number,
                    4 => fields.hour = number,
                    5 => fields.minute = number,
                    _ => fields.second = number,
                }
                Some(rest)
            }
            Piece::Fraction(width) => {
                let (number, rest) = digits(text, width as usize)?;
                let given = u32::try_from(text.len() - rest.len()).ok()?;
                fields.micros = number * 10_u32.pow(6 - given);
                Some(rest)
            }
            Piece::Month => {
                let lower = text.to_ascii_lowercase();
                let whole = |name: &&str| lower.starts_with(*name);
                let short = |name: &&str| lower.starts_with(&name[..3]);
                let (length, place) = match MONTHS.iter().position(whole) {
                    Some(place) => (MONTHS[place].len(), place),
                    None => (3, MONTHS.iter().position(short)?),
                };
                fields.month = u32::try_from(place).ok()? + 1;
                text.get(length..)
            }
            Piece::ZoneHours => {
                let (number, rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
                let minutes = i32::try_from(number).ok()? * 60;
                fields.offset_minutes = if text.starts_with('-') { -minutes } else { minutes };
                Some(rest)
            }
            Piece::ZoneMinutes => {
                let (number, rest) = digits(text, 2)?;
                let minutes = i32::try_from(number).ok()?;
                fields.offset_minutes += minutes * if fields.offset_minutes < 0 { -1 } else { 1 };
                Some(rest)
            }
            Piece::HalfDay => {
                let word = text.get(..2)?.to_ascii_uppercase();
                fields.afternoon = Some(match word.as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                text.get(2..)
            }
        }
    }
}

/// Up to `width` digits, at least one.
fn digits(text: &str, width: usize) -> Option<(u32, &str)> {
    let length = text.bytes().take(width).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(length);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn texts_are_read_by_postgresqls_patterns() {
        let shown = |text: &str, pattern: &str| {
            read(text, pattern).and_then(super::Fields::moment).map(|moment| moment.to_string())
        };
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(shown("2022-01-02 03:04", "YYYY-MM-DD HH24:MI"), of("2022-01-02 03:04:00"));
        assert_eq!(shown("2/Jan/2022", "DD/Mon/YYYY"), of("2022-01-02 00:00:00"));
        assert_eq!(shown("20220102 1504", "YYYYMMDD HH24MI"), of("2022-01-02 15:04:00"));
        assert_eq!(shown("03:04:05.25 PM", "HH12:MI:SS.US AM"), of("0001-01-01 15:04:05.250"));
        assert_eq!(shown("12:00 +0330", "HH24:MI TZHTZM"), of("0001-01-01 08:30:00"));
        assert_eq!(shown("12:00 -01:30", "HH24:MI TZH:TZM"), of("0001-01-01 13:30:00"));
        assert_eq!(shown("-5-02-29", "YYYY-MM-DD"), of("-0004-02-29 00:00:00"));
        assert_eq!(shown("2022-13-02", "YYYY-MM-DD"), None);
        assert_eq!(shown("2022-01-02 x", "YYYY-MM-DD"), None);
        assert_eq!(shown("year 2022", "YYYY"), None);
    }
}
