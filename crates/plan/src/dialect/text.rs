//! Values as text, as a SELECT shows them.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use datafusion::common::Result;

/// The texts of values of any type.
pub(super) fn shown(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().iter();
            Arc::new(
                values
                    .map(|value| value.map(|v| float(v, &format!("{v:e}"), 15)))
                    .collect::<StringArray>(),
            )
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().iter();
            let text = |v: f32| float(f64::from(v), &format!("{v:e}"), 6);
            Arc::new(values.map(|value| value.map(text)).collect::<StringArray>())
        }
        DataType::Timestamp(_, zone) => {
            let is_instant = zone.is_some();
            let held =
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone().map(|_| "+00:00".into()));
            moments(&cast(array, &held)?, is_instant)?
        }
        DataType::Time64(_) => moments(array, false)?,
        DataType::Interval(_) | DataType::Duration(_) => {
            let held = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let values = held.as_primitive::<IntervalMonthDayNanoType>().iter();
            Arc::new(values.map(|value| value.map(interval)).collect::<StringArray>())
        }
        // `numeric` without precision shows as many digits as the value has.
        DataType::Decimal128(38, 10) => {
            let texts = cast(array, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>().iter();
            let trimmed = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
            Arc::new(texts.map(|text| text.map(trimmed)).collect::<StringArray>())
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let held = cast(array, &DataType::Binary)?;
            let values = held.as_binary::<i32>().iter();
            Arc::new(values.map(|value| value.map(hex)).collect::<StringArray>())
        }
        DataType::List(_) => Arc::new(lists(array)?),
        DataType::Struct(_) => Arc::new(records(array)?),
        _ => cast(array, &DataType::Utf8)?,
    })
}

fn hex(bytes: &[u8]) -> String {
    let mut text = "\\x".to_owned();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all");
    }
    text
}

/// `1 year 2 mons 3 days 04:05:06.7`
pub(super) fn interval(value: IntervalMonthDayNano) -> String {
    let mut parts = Vec::new();
    let mut negative = false;
    let (years, months) = (value.months / 12, value.months % 12);
    for (count, word) in [(years, "year"), (months, "mon"), (value.days, "day")] {
        if count != 0 {
            // A sign is written where the part before it had another one.
            let plus = if negative && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            parts.push(format!("{plus}{count} {word}{plural}"));
            negative = count < 0;
        }
    }
    let us = value.nanoseconds / 1_000;
    if us != 0 || parts.is_empty() {
        let sign = if us < 0 {
            "-"
        } else if negative {
            "+"
        } else {
            ""
        };
        let us = us.unsigned_abs();
        let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let mut clock = format!("{sign}{hour:02}:{minute:02}:{second:02}");
        if fraction > 0 {
            clock.push_str(format!(".{fraction:06}").trim_end_matches('0'));
        }
        parts.push(clock);
    }
    parts.join(" ")
}

/// `{1,NULL,"a b"}`
fn lists(array: &ArrayRef) -> Result<StringArray> {
    let list = array.as_list::<i32>();
    let nested = matches!(list.value_type(), DataType::List(_));
    let items = members(list.values())?;
    let text = |row: usize| {
        let offsets = list.value_offsets();
        let range = offsets[row] as usize..offsets[row + 1] as usize;
        let texts = range.map(|item| match items.is_null(item) {
            true => "NULL".to_owned(),
            false if nested || !in_list(items.value(item)) => items.value(item).to_owned(),
            false => quoted(items.value(item), "\\\""),
        });
        format!("{{{}}}", texts.collect::<Vec<_>>().join(","))
    };
    Ok((0..list.len()).map(|row| list.is_valid(row).then(|| text(row))).collect())
}

/// `(1,,"a b")`
fn records(array: &ArrayRef) -> Result<StringArray> {
    let record = array.as_struct();
    let columns = record.columns().iter().map(members).collect::<Result<Vec<_>>>()?;
    let text = |row: usize| {
        let texts = columns.iter().map(|column| match column.is_null(row) {
            true => String::new(),
            false if !in_record(column.value(row)) => column.value(row).to_owned(),
            false => quoted(column.value(row), "\"\""),
        });
        format!("({})", texts.collect::<Vec<_>>().join(","))
    };
    Ok((0..record.len()).map(|row| record.is_valid(row).then(|| text(row))).collect())
}

/// The texts of what a list or record holds, where a boolean is one letter.
pub(super) fn members(array: &ArrayRef) -> Result<StringArray> {
    if array.data_type() == &DataType::Boolean {
        let values = array.as_boolean().iter();
        return Ok(values.map(|value| value.map(|is| if is { "t" } else { "f" })).collect());
    }
    Ok(shown(array)?.as_string::<i32>().clone())
}

const BLANKS: [char; 6] = [' ', '\t', '\n', '\r', '\u{b}', '\u{c}'];

fn in_list(text: &str) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.contains(BLANKS)
        || text.contains(['{', '}', '"', ',', '\\'])
}

fn in_record(text: &str) -> bool {
    text.is_empty() || text.contains(BLANKS) || text.contains(['(', ')', '"', ',', '\\'])
}

fn quoted(text: &str, quote: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', quote))
}

/// Arrow's `2024-02-29T12:34:56.500Z` as `2024-02-29 12:34:56.5+00`.
fn moments(array: &ArrayRef, is_instant: bool) -> Result<ArrayRef> {
    let texts = cast(array, &DataType::Utf8)?;
    let texts =
        texts.as_string::<i32>().iter().map(|text| text.map(|text| moment(text, is_instant)));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

fn moment(text: &str, is_instant: bool) -> String {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let mut text = text.replace('T', " ");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if is_instant {
        text.push_str("+00");
    }
    text
}

/// The shortest digits, with an exponent from `digits_max` digits on. `scientific` is Rust's `{:e}`.
fn float(value: f64, scientific: &str, digits_max: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_owned();
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits_max).contains(&exponent) {
        return plain(mantissa, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn plain(mantissa: &str, exponent: i32) -> String {
    let (minus, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let Ok(whole) = usize::try_from(exponent + 1) else {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{minus}0.{zeros}{digits}");
    };
    if whole == 0 {
        return format!("{minus}0.{digits}");
    }
    match digits.get(whole..) {
        Some(fraction) if !fraction.is_empty() => format!("{minus}{}.{fraction}", &digits[..whole]),
        _ => format!("{minus}{digits}{}", "0".repeat(whole - digits.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::{float, moment};

    #[test]
    fn floats_have_postgresqls_digits() {
        let cases = [
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (0.0001, "0.0001"),
            (1.25e-5, "1.25e-05"),
            (0.0, "0"),
            (123.456, "123.456"),
            (1e300, "1e+300"),
        ];
        for (value, expected) in cases {
            assert_eq!(float(value, &format!("{value:e}"), 15), expected);
        }
    }

    #[test]
    fn moments_have_a_blank_and_no_idle_zeros() {
        assert_eq!(moment("2024-02-29T12:34:56.500", false), "2024-02-29 12:34:56.5");
        assert_eq!(moment("2024-02-29T12:30:00Z", true), "2024-02-29 12:30:00+00");
        assert_eq!(moment("12:30:00", false), "12:30:00");
    }
}
