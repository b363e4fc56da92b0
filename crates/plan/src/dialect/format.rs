//! `to_char` of dates and times with PostgreSQL's patterns; DataFusion's takes those of another language and copies
//! PostgreSQL's into the result.

use arrow::array::{ArrayRef, AsArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use segue_types::{SqlType, UserError};
use std::fmt::Write;
use std::sync::Arc;

/// The function.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(ToChar { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar {
    signature: Signature,
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &str {
        "to_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let moment = DataType::Timestamp(TimeUnit::Microsecond, None);
        match arguments {
            [DataType::Timestamp(..) | DataType::Date32 | DataType::Null, _] => {
                Ok(vec![moment, DataType::Utf8])
            }
            [DataType::Interval(_) | DataType::Duration(_) | DataType::Time64(_), _] => {
                Ok(vec![SqlType::Interval.arrow_type(), DataType::Utf8])
            }
            _ => Err(DataFusionError::External(Box::new(
                UserError::unsupported("to_char() of this type is not supported").with_hint(
                    "It takes dates, timestamps and intervals; numbers are shown by a cast to text.",
                ),
            ))),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [moments, patterns] = arrays.as_slice() else {
            return Err(DataFusionError::Internal("to_char has two arguments".to_owned()));
        };
        let texts = format_all(moments, patterns)?;
        let scalar =
            arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?));
        }
        Ok(ColumnarValue::Array(texts))
    }
}

fn format_all(moments: &ArrayRef, patterns: &ArrayRef) -> Result<ArrayRef> {
    if matches!(moments.data_type(), DataType::Interval(_)) {
        return super::interval_format::format_all(moments, patterns);
    }
    let moments = cast(moments, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    let moments = moments.as_primitive::<TimestampMicrosecondType>();
    let mut texts = StringBuilder::new();
    for (moment, pattern) in moments.iter().zip(patterns.as_string::<i32>()) {
        let moment = moment.and_then(DateTime::from_timestamp_micros).map(|time| time.naive_utc());
        match (moment, pattern) {
            (Some(moment), Some(pattern)) => {
                texts.append_value(formatted(&moment, pattern));
            }
            _ => texts.append_null(),
        }
    }
    Ok(Arc::new(texts.finish()))
}

/// How a pattern shows a time.
type Print = fn(&NaiveDateTime) -> String;

/// Longer patterns come before those that they begin with.
const PATTERNS: &[(&str, Print)] = &[
    ("YYYY", |t| format!("{:04}", t.year())),
    ("YY", |t| format!("{:02}", t.year().rem_euclid(100))),
    ("MONTH", |t| format!("{:<9}", t.format("%B").to_string().to_uppercase())),
    ("Month", |t| format!("{:<9}", t.format("%B").to_string())),
    ("month", |t| format!("{:<9}", t.format("%B").to_string().to_lowercase())),
    ("MON", |t| t.format("%b").to_string().to_uppercase()),
    ("Mon", |t| t.format("%b").to_string()),
    ("mon", |t| t.format("%b").to_string().to_lowercase()),
    ("MM", |t| format!("{:02}", t.month())),
    ("MI", |t| format!("{:02}", t.minute())),
    ("MS", |t| format!("{:03}", t.nanosecond() / 1_000_000)),
    ("DDD", |t| format!("{:03}", t.ordinal())),
    ("DD", |t| format!("{:02}", t.day())),
    ("DAY", |t| format!("{:<9}", t.format("%A").to_string().to_uppercase())),
    ("Day", |t| format!("{:<9}", t.format("%A").to_string())),
    ("day", |t| format!("{:<9}", t.format("%A").to_string().to_lowercase())),
    ("DY", |t| t.format("%a").to_string().to_uppercase()),
    ("Dy", |t| t.format("%a").to_string()),
    ("dy", |t| t.format("%a").to_string().to_lowercase()),
    ("D", |t| (t.weekday().num_days_from_sunday() + 1).to_string()),
    ("HH24", |t| format!("{:02}", t.hour())),
    ("HH12", hour12),
    ("HH", hour12),
    ("SS", |t| format!("{:02}", t.second())),
    ("US", |t| format!("{:06}", t.nanosecond() / 1_000)),
    ("AM", |t| noon(t).to_uppercase()),
    ("PM", |t| noon(t).to_uppercase()),
    ("am", |t| noon(t).to_owned()),
    ("pm", |t| noon(t).to_owned()),
    ("IYYY", |t| format!("{:04}", t.iso_week().year())),
    ("IW", |t| format!("{:02}", t.iso_week().week())),
    // What is shown is in UTC.
    ("TZH", |_| "+00".to_owned()),
    ("TZM", |_| "00".to_owned()),
    ("Q", |t| ((t.month() - 1) / 3 + 1).to_string()),
];

fn hour12(time: &NaiveDateTime) -> String {
    format!("{:02}", time.hour12().1)
}

fn noon(time: &NaiveDateTime) -> &'static str {
    if time.hour12().0 { "pm" } else { "am" }
}

fn formatted(time: &NaiveDateTime, pattern: &str) -> String {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (literal, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            text.push_str(literal);
            rest = after;
            continue;
        }
        let (bare, unpadded) = match rest.strip_prefix("FM") {
            Some(bare) => (bare, true),
            None => (rest, false),
        };
        let found = PATTERNS.iter().find(|(name, _)| starts_with(bare, name));
        match found {
            Some((name, show)) => {
                let shown = show(time);
                let shown = if unpadded { bare_of(&shown) } else { &shown };
                let _infallible = write!(text, "{shown}");
                rest = &bare[name.len()..];
            }
            None => {
                text.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    text
}

/// Numbers are known in lower case too; in names the case says how they are written.
fn starts_with(text: &str, name: &str) -> bool {
    if text.starts_with(name) {
        return true;
    }
    let is_number = !matches!(name, "MONTH" | "MON" | "DAY" | "DY" | "AM" | "PM");
    is_number && text.get(..name.len()).is_some_and(|head| head == name.to_lowercase())
}

fn bare_of(shown: &str) -> &str {
    let shown = shown.trim_end();
    let bare = shown.trim_start_matches('0');
    if bare.is_empty() { "0" } else { bare }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::formatted;

    #[test]
    fn patterns_are_those_of_postgresql() {
        let time = NaiveDate::from_ymd_opt(2024, 2, 9)
            .and_then(|date| date.and_hms_micro_opt(15, 4, 5, 678_900))
            .expect("a time");
        let cases = [
            ("YYYY-MM-DD HH24:MI:SS", "2024-02-09 15:04:05"),
            ("yyyy/mm/dd hh12:mi PM", "2024/02/09 03:04 PM"),
            ("Mon DD, Dy", "Feb 09, Fri"),
            ("FMMonth FMDD", "February 9"),
            ("Day|", "Friday   |"),
            ("HH24\"h\"MI", "15h04"),
            ("SS.MS US", "05.678 678900"),
            ("Q IW IYYY DDD", "1 06 2024 040"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(formatted(&time, pattern), expected, "{pattern}");
        }
    }
}
