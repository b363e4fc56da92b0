//! PostgreSQL's binary formats to its text formats, written anew and not with Segue's own encoder, so that a
//! mistake there is not made twice.

use tokio_postgres::types::{Kind, Type};

type Failure = Box<dyn std::error::Error + Sync + Send>;

/// The text form of one non-NULL value.
pub(super) fn text(ty: &Type, raw: &[u8]) -> Result<String, Failure> {
    if let Kind::Array(element) = ty.kind() {
        return array(element, raw);
    }
    Ok(match *ty {
        Type::BOOL => (if raw == [1] { "t" } else { "f" }).to_owned(),
        Type::INT2 => i16::from_be_bytes(raw.try_into()?).to_string(),
        Type::INT4 => i32::from_be_bytes(raw.try_into()?).to_string(),
        Type::INT8 => i64::from_be_bytes(raw.try_into()?).to_string(),
        Type::OID => u32::from_be_bytes(raw.try_into()?).to_string(),
        Type::FLOAT4 => {
            let value = f32::from_be_bytes(raw.try_into()?);
            float(value.into(), &value.to_string(), &format!("{value:e}"), 6)
        }
        Type::FLOAT8 => {
            let value = f64::from_be_bytes(raw.try_into()?);
            float(value, &value.to_string(), &format!("{value:e}"), 15)
        }
        Type::NUMERIC => numeric(raw)?,
        Type::BYTEA => raw.iter().fold("\\x".to_owned(), |hex, byte| hex + &format!("{byte:02x}")),
        Type::UUID => uuid(raw)?,
        Type::JSONB => String::from_utf8(raw.get(1..).ok_or("an empty jsonb")?.to_vec())?,
        Type::DATE => date(i32::from_be_bytes(raw.try_into()?).into()),
        Type::TIME => time_of_day(i64::from_be_bytes(raw.try_into()?)),
        Type::TIMESTAMP => timestamp(i64::from_be_bytes(raw.try_into()?)),
        Type::TIMESTAMPTZ => timestamp(i64::from_be_bytes(raw.try_into()?)) + "+00",
        Type::INTERVAL => interval(raw)?,
        Type::RECORD => record(raw)?,
        _ => String::from_utf8(raw.to_vec())?,
    })
}

/// Plain up to 15 (6) digits before the point and 4 zeros behind it, else with an exponent of two digits.
fn float(value: f64, plain: &str, scientific: &str, digits_max: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    } else if value.is_infinite() {
        return (if value > 0.0 { "Infinity" } else { "-Infinity" }).to_owned();
    }
    let (digits, exponent) = scientific.split_once('e').expect("Rust writes an exponent");
    let exponent: i32 = exponent.parse().expect("Rust writes a number");
    if (-4..digits_max).contains(&exponent) {
        return plain.to_owned();
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn numeric(raw: &[u8]) -> Result<String, Failure> {
    let word = |i: usize| -> Result<i16, Failure> {
        Ok(i16::from_be_bytes(raw.get(2 * i..2 * i + 2).ok_or("a short numeric")?.try_into()?))
    };
    let (digits, weight, sign, scale) = (word(0)?, word(1)?, word(2)?, word(3)?);
    if sign as u16 == 0xC000 {
        return Ok("NaN".to_owned());
    }
    let group = |at: i16| -> Result<i16, Failure> {
        let index = weight - at;
        if (0..digits).contains(&index) { word(4 + usize::try_from(index)?) } else { Ok(0) }
    };
    let mut whole = String::new();
    for at in (0..=weight.max(0)).rev() {
        whole += &format!("{:04}", group(at)?);
    }
    let mut fraction = String::new();
    for at in 1..=(scale + 3) / 4 {
        fraction += &format!("{:04}", group(-at)?);
    }
    fraction.truncate(usize::try_from(scale)?);
    let whole = whole.trim_start_matches('0');
    let minus = if sign == 0x4000 { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { whole };
    let dot = if scale > 0 { "." } else { "" };
    Ok(format!("{minus}{whole}{dot}{fraction}"))
}

fn uuid(raw: &[u8]) -> Result<String, Failure> {
    let hex = raw.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    if hex.len() != 32 {
        return Err("a uuid has 16 bytes".into());
    }
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// Days since 2000-01-01 as a calendar date (Howard Hinnant's `civil_from_days`).
fn date(days_2000: i64) -> String {
    let z = days_2000 + 10_957 + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn time_of_day(micros: i64) -> String {
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if micros == 0 {
        return whole;
    }
    format!("{whole}.{micros:06}").trim_end_matches('0').to_owned()
}

fn timestamp(micros_2000: i64) -> String {
    const DAY: i64 = 86_400_000_000;
    format!("{} {}", date(micros_2000.div_euclid(DAY)), time_of_day(micros_2000.rem_euclid(DAY)))
}

fn interval(raw: &[u8]) -> Result<String, Failure> {
    let micros = i64::from_be_bytes(raw.get(..8).ok_or("a short interval")?.try_into()?);
    let days = i32::from_be_bytes(raw.get(8..12).ok_or("a short interval")?.try_into()?);
    let months = i32::from_be_bytes(raw.get(12..16).ok_or("a short interval")?.try_into()?);
    let mut parts = Vec::new();
    // What follows a negative part says that it is positive.
    let mut negative = false;
    let mut part = |n: i32, unit: &str| {
        if n != 0 {
            let plus = if negative && n > 0 { "+" } else { "" };
            negative = n < 0;
            parts.push(format!("{plus}{n} {unit}{}", if n == 1 { "" } else { "s" }));
        }
    };
    part(months / 12, "year");
    part(months % 12, "mon");
    part(days, "day");
    if micros != 0 || parts.is_empty() {
        let sign = match micros {
            ..0 => "-",
            _ if negative => "+",
            _ => "",
        };
        parts.push(format!("{sign}{}", time_of_day(micros.abs())));
    }
    Ok(parts.join(" "))
}

/// `ndim, flags, element oid, (length, lower bound)…, (byte length, value)…`.
fn array(element: &Type, raw: &[u8]) -> Result<String, Failure> {
    let int = |at: usize| -> Result<i32, Failure> {
        Ok(i32::from_be_bytes(raw.get(at..at + 4).ok_or("a short array")?.try_into()?))
    };
    let dimensions = usize::try_from(int(0)?)?;
    let lengths: Vec<i32> = (0..dimensions).map(|i| int(12 + 8 * i)).collect::<Result<_, _>>()?;
    let mut at = 12 + 8 * dimensions;
    let mut items = Vec::new();
    let count = if dimensions == 0 { 0 } else { lengths.iter().product() };
    for _ in 0..count {
        let length = int(at)?;
        at += 4;
        if length < 0 {
            items.push("NULL".to_owned());
            continue;
        }
        let end = at + usize::try_from(length)?;
        items.push(quote_item(&text(element, raw.get(at..end).ok_or("a short array")?)?));
        at = end;
    }
    for length in lengths.iter().skip(1).rev() {
        let rows = items.chunks(usize::try_from(*length)?.max(1));
        items = rows.map(|row| format!("{{{}}}", row.join(","))).collect();
    }
    Ok(format!("{{{}}}", items.join(",")))
}

/// `count, (oid, byte length, value)…`.
fn record(raw: &[u8]) -> Result<String, Failure> {
    let int = |at: usize| -> Result<i32, Failure> {
        Ok(i32::from_be_bytes(raw.get(at..at + 4).ok_or("a short record")?.try_into()?))
    };
    let mut at = 4;
    let mut members = Vec::new();
    for _ in 0..int(0)? {
        let ty = Type::from_oid(u32::try_from(int(at)?)?).ok_or("an unknown member type")?;
        let length = int(at + 4)?;
        at += 8;
        if length < 0 {
            members.push(String::new());
            continue;
        }
        let end = at + usize::try_from(length)?;
        members.push(quote_member(&text(&ty, raw.get(at..end).ok_or("a short record")?)?));
        at = end;
    }
    Ok(format!("({})", members.join(",")))
}

fn quote_member(text: &str) -> String {
    if !text.is_empty() && !text.contains(['(', ')', ',', '"', '\\', ' ']) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""))
}

fn quote_item(text: &str) -> String {
    let plain = !text.is_empty()
        && !text.eq_ignore_ascii_case("null")
        && !text.contains(['{', '}', ',', '"', '\\', ' ']);
    if plain {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
