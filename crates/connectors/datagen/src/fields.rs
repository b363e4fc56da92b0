//! `fields.<column>.<setting>` → one generator per column.

use std::collections::BTreeMap;

use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow::datatypes::{Decimal128Type, Field, Schema};
use chrono::DateTime;
use segue_connect::Options;
use segue_types::{SqlState, SqlType, UserError, nearest, sql_type_of};

use crate::generator::{Generator, TimeUnit};
use crate::options::invalid;

const SETTINGS: [&str; 10] = [
    "kind",
    "start",
    "end",
    "min",
    "max",
    "length",
    "max_past",
    "max_past_mode",
    "basetime",
    "seed",
];
const LENGTH_DEFAULT: usize = 10;
const LENGTH_MAX: usize = 1024 * 1024;
const DAY_US: i64 = 86_400_000_000;

/// A column's generator and seed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) generator: Generator,
    pub(crate) seed: u64,
}

/// The generators of all declared columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fields {
    pub(crate) columns: Vec<Column>,
}

impl Fields {
    pub(crate) fn parse(schema: &Schema, options: &Options) -> Result<Fields, UserError> {
        let mut settings: BTreeMap<&str, Settings<'_>> = BTreeMap::new();
        for (option, value) in &options.0 {
            let Some(rest) = option.strip_prefix("fields.") else { continue };
            let Some((column, setting)) = rest.rsplit_once('.') else {
                return Err(unknown(option, None));
            };
            if !SETTINGS.contains(&setting) {
                return Err(unknown(option, nearest(setting, SETTINGS)));
            }
            if schema.field_with_name(column).is_err() {
                let names = schema.fields().iter().map(|field| field.name().as_str());
                return Err(unknown(option, nearest(column, names)));
            }
            settings.entry(column).or_default().0.insert(setting, (option, value));
        }
        let column = |(index, field): (usize, &Field)| {
            let settings = settings.remove(field.name().as_str()).unwrap_or_default();
            settings.column(field, index)
        };
        let fields = schema.fields().iter().map(AsRef::as_ref);
        Ok(Fields { columns: fields.enumerate().map(column).collect::<Result<_, _>>()? })
    }

    /// The number of rows after which a sequence ends.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.columns.iter().filter_map(|column| column.generator.rows()).min()
    }
}

fn unknown(option: &str, nearest: Option<&str>) -> UserError {
    let error = UserError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unknown option \"{option}\" of connector \"datagen\""),
    );
    match nearest {
        Some(known) => error.with_hint(format!("Did you mean \"{known}\"?")),
        None => error,
    }
}

/// The settings of one column, each with its option's full name.
#[derive(Default)]
struct Settings<'a>(BTreeMap<&'a str, (&'a str, &'a str)>);

impl Settings<'_> {
    fn column(&self, field: &Field, index: usize) -> Result<Column, UserError> {
        let ty = sql_type_of(field).ok_or_else(|| unsupported(field))?;
        let kind = self.0.get("kind").map_or("random", |(_, kind)| kind);
        let generator = match kind {
            "sequence" => self.sequence(field, &ty)?,
            "random" => self.random(field, &ty)?,
            other => {
                return Err(invalid(self.0["kind"].0, other).with_hint("Give sequence or random."));
            }
        };
        // Without a seed of its own, no column repeats another.
        Ok(Column { generator, seed: self.parse("seed")?.unwrap_or(index as u64) })
    }

    fn parse<T: std::str::FromStr>(&self, setting: &str) -> Result<Option<T>, UserError> {
        let Some((option, value)) = self.0.get(setting) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| invalid(option, value))
    }

    /// A number in units of `10^-scale`.
    fn scaled(&self, setting: &str, scale: i8) -> Result<Option<i128>, UserError> {
        let Some((option, value)) = self.0.get(setting) else { return Ok(None) };
        let parsed = parse_decimal::<Decimal128Type>(value, 38, scale);
        parsed.map(Some).map_err(|_| invalid(option, value))
    }

    fn sequence(&self, field: &Field, ty: &SqlType) -> Result<Generator, UserError> {
        let scale = match ty {
            SqlType::SmallInt | SqlType::Integer | SqlType::BigInt => 0,
            SqlType::Real | SqlType::Double => 0,
            SqlType::Numeric { scale, .. } => *scale,
            _ => {
                return Err(UserError::unsupported(format!(
                    "column \"{}\" of type {ty} cannot be a sequence",
                    field.name()
                )));
            }
        };
        let unit = 10_i128.pow(u32::from(scale.unsigned_abs()));
        let start = self.scaled("start", scale)?.unwrap_or(0);
        let end = self.scaled("end", scale)?;
        if end.is_some_and(|end| end < start) {
            let (option, value) = self.0["end"];
            return Err(
                invalid(option, value).with_hint("Give an end that is not before the start.")
            );
        }
        let rows = end.map(|end| u64::try_from((end - start) / unit + 1).unwrap_or(u64::MAX));
        let last = end.unwrap_or(start);
        let (least, greatest) = range_of(ty);
        if start < least || last > greatest {
            return Err(out_of_range(field, ty));
        }
        Ok(Generator::Sequence { start, unit, rows })
    }

    fn random(&self, field: &Field, ty: &SqlType) -> Result<Generator, UserError> {
        Ok(match ty {
            SqlType::Boolean => Generator::Boolean,
            SqlType::SmallInt | SqlType::Integer | SqlType::BigInt => self.uniform(field, ty, 0)?,
            SqlType::Numeric { scale, .. } => self.uniform(field, ty, *scale)?,
            SqlType::Real | SqlType::Double => {
                let min = self.parse("min")?.unwrap_or(0.0);
                let max = self.parse("max")?.unwrap_or(1000.0);
                if !(min <= max && f64::is_finite(max - min)) {
                    return Err(self.empty_range());
                }
                Generator::Float { min, width: max - min }
            }
            SqlType::Text => Generator::Text { length: self.length()? },
            SqlType::Bytea => Generator::Bytes { length: self.length()? },
            SqlType::Uuid => Generator::Uuid,
            SqlType::Jsonb => Generator::Json,
            SqlType::Date => self.past(TimeUnit::Day)?,
            SqlType::Timestamp | SqlType::Timestamptz => self.past(TimeUnit::Microsecond)?,
            SqlType::Time => Generator::TimeOfDay,
            SqlType::Interval => Generator::Interval,
            SqlType::Array(_) | SqlType::Struct(_) => return Err(unsupported(field)),
        })
    }

    fn uniform(&self, field: &Field, ty: &SqlType, scale: i8) -> Result<Generator, UserError> {
        let unit = 10_i128.pow(u32::from(scale.unsigned_abs()));
        let (least, greatest) = range_of(ty);
        let min = self.scaled("min", scale)?.unwrap_or(0);
        let max = self.scaled("max", scale)?.unwrap_or((1000 * unit).min(greatest));
        if min < least || max > greatest {
            return Err(out_of_range(field, ty));
        }
        match max.checked_sub(min).and_then(|width| u64::try_from(width).ok()) {
            Some(width) => Ok(Generator::Uniform { min, width }),
            None => Err(self.empty_range()),
        }
    }

    fn empty_range(&self) -> UserError {
        let (option, value) = self.0.get("max").or(self.0.get("min")).unwrap_or(&("max", ""));
        invalid(option, value)
            .with_hint("Give a max that is not below the min, at most 2^64 values above it.")
    }

    fn length(&self) -> Result<usize, UserError> {
        let length = self.parse("length")?.unwrap_or(LENGTH_DEFAULT);
        if length > LENGTH_MAX {
            return Err(invalid(self.0["length"].0, self.0["length"].1)
                .with_hint(format!("Give at most {LENGTH_MAX}.")));
        }
        Ok(length)
    }

    fn past(&self, unit: TimeUnit) -> Result<Generator, UserError> {
        let past_us = match self.0.get("max_past") {
            Some((option, text)) => parse_duration_us(text).ok_or_else(|| {
                invalid(option, text)
                    .with_hint("Give a length of time, for example '1h 30m' or '7d'.")
            })?,
            None => DAY_US,
        };
        let base_us = match self.0.get("basetime") {
            Some((option, text)) => {
                let time = DateTime::parse_from_rfc3339(text);
                let time = time.map_err(|_| {
                    invalid(option, text)
                        .with_hint("Give an RFC 3339 time, for example '2024-01-01T00:00:00Z'.")
                })?;
                Some(time.timestamp_micros())
            }
            None => None,
        };
        Ok(Generator::Past { base_us, past_us, unit })
    }
}

fn unsupported(field: &Field) -> UserError {
    UserError::unsupported(format!(
        "connector \"datagen\" does not generate column \"{}\" of this type",
        field.name()
    ))
}

fn out_of_range(field: &Field, ty: &SqlType) -> UserError {
    UserError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        format!("generated values of column \"{}\" are out of range for type {ty}", field.name()),
    )
}

/// The least and the greatest value of a type, in units of its scale.
fn range_of(ty: &SqlType) -> (i128, i128) {
    match ty {
        SqlType::SmallInt => (i16::MIN.into(), i16::MAX.into()),
        SqlType::Integer => (i32::MIN.into(), i32::MAX.into()),
        SqlType::Numeric { precision, .. } => {
            let limit = 10_i128.pow(u32::from(*precision)) - 1;
            (-limit, limit)
        }
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

/// `1h 30m`, `10d`, `500ms`.
fn parse_duration_us(text: &str) -> Option<i64> {
    let mut total = 0_i64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "us" => 1,
            "ms" => 1_000,
            "s" | "sec" | "second" | "seconds" => 1_000_000,
            "m" | "min" | "minute" | "minutes" => 60_000_000,
            "h" | "hour" | "hours" => 3_600_000_000,
            "d" | "day" | "days" => DAY_US,
            "w" | "week" | "weeks" => 7 * DAY_US,
            "y" | "year" | "years" => 365 * DAY_US,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = rest[end..].trim_start();
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::{DAY_US, parse_duration_us};

    #[test]
    fn lengths_of_time_are_sums_of_units() {
        assert_eq!(parse_duration_us("1h 30m"), Some(5_400_000_000));
        assert_eq!(parse_duration_us("2d"), Some(2 * DAY_US));
        assert_eq!(parse_duration_us("1 day 5ms"), Some(DAY_US + 5_000));
        for wrong in ["", "5", "h", "1 fortnight", "-1h"] {
            assert_eq!(parse_duration_us(wrong), None, "{wrong}");
        }
    }
}
