//! Times and floats as text, as a SELECT shows them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, TimeUnit};
use datafusion::common::Result;

/// The texts of timestamps, times of day or floats; other values as Arrow writes them.
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
        _ => cast(array, &DataType::Utf8)?,
    })
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
