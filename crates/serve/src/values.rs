//! Values as clients write them: text of any type, and binary parameters.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use bytes::Buf;
use datafusion::common::ScalarValue;
use segue_formats::Column;
use segue_plan::dialect::value_error;
use segue_types::{SqlState, SqlType, UserError};

/// Days and microseconds between 1970-01-01 and 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_US: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// A column from texts, `None` being NULL.
pub(crate) fn column_of_texts<'a>(
    ty: &SqlType,
    texts: impl Iterator<Item = Option<&'a str>>,
) -> Result<ArrayRef, UserError> {
    let mut column = Column::of_type(ty);
    for text in texts {
        match text {
            None => column.append_null(),
            Some(text) => segue_formats::append_literal(&mut column, text)
                .map_err(|error| value_error(ty, text, &error))?,
        }
    }
    Ok(column.finish(&ty.field("", true)))
}

/// One value from its text.
pub(crate) fn scalar_of_text(ty: &SqlType, text: &str) -> Result<ScalarValue, UserError> {
    let column = column_of_texts(ty, std::iter::once(Some(text)))?;
    ScalarValue::try_from_array(&column, 0)
        .map_err(|error| UserError::internal(format!("value has no scalar: {error}")))
}

/// NULL of a type.
pub(crate) fn null_of(ty: &SqlType) -> ScalarValue {
    ScalarValue::try_from(&ty.arrow_type()).unwrap_or(ScalarValue::Null)
}

/// One value from its binary form.
pub(crate) fn scalar_of_binary(ty: &SqlType, bytes: &[u8]) -> Result<ScalarValue, UserError> {
    let mut reader = Reader { bytes, ty };
    let value = reader.scalar()?;
    if reader.bytes.is_empty() { Ok(value) } else { Err(reader.malformed()) }
}

/// Reads a binary value front to back.
struct Reader<'a> {
    bytes: &'a [u8],
    ty: &'a SqlType,
}

impl Reader<'_> {
    fn malformed(&self) -> UserError {
        UserError::new(
            SqlState::try_from("22P03".to_owned()).expect("five ASCII characters"),
            format!("incorrect binary data format in parameter of type {}", self.ty),
        )
    }

    fn need(&self, count: usize) -> Result<(), UserError> {
        if self.bytes.len() >= count { Ok(()) } else { Err(self.malformed()) }
    }

    fn text(&mut self) -> Result<String, UserError> {
        let bytes = std::mem::take(&mut self.bytes);
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            UserError::new(
                SqlState::try_from("22021".to_owned()).expect("five ASCII characters"),
                "invalid byte sequence for encoding \"UTF8\"",
            )
        })
    }

    fn scalar(&mut self) -> Result<ScalarValue, UserError> {
        let width = match self.ty {
            SqlType::Boolean => 1,
            SqlType::SmallInt => 2,
            SqlType::Integer | SqlType::Real | SqlType::Date => 4,
            SqlType::BigInt | SqlType::Double | SqlType::Time => 8,
            SqlType::Timestamp | SqlType::Timestamptz => 8,
            SqlType::Interval | SqlType::Uuid => 16,
            _ => 0,
        };
        self.need(width)?;
        Ok(match self.ty {
            SqlType::Boolean => ScalarValue::Boolean(Some(self.bytes.get_u8() != 0)),
            SqlType::SmallInt => ScalarValue::Int16(Some(self.bytes.get_i16())),
            SqlType::Integer => ScalarValue::Int32(Some(self.bytes.get_i32())),
            SqlType::BigInt => ScalarValue::Int64(Some(self.bytes.get_i64())),
            SqlType::Real => ScalarValue::Float32(Some(self.bytes.get_f32())),
            SqlType::Double => ScalarValue::Float64(Some(self.bytes.get_f64())),
            SqlType::Date => {
                ScalarValue::Date32(Some(self.bytes.get_i32().saturating_add(EPOCH_DAYS)))
            }
            SqlType::Time => ScalarValue::Time64Microsecond(Some(self.bytes.get_i64())),
            SqlType::Timestamp | SqlType::Timestamptz => {
                let us = self.bytes.get_i64().saturating_add(EPOCH_US);
                let zone = match self.ty.arrow_type() {
                    DataType::Timestamp(TimeUnit::Microsecond, zone) => zone,
                    other => return Err(UserError::internal(format!("timestamp held as {other}"))),
                };
                ScalarValue::TimestampMicrosecond(Some(us), zone)
            }
            SqlType::Interval => {
                let ns = self.bytes.get_i64().saturating_mul(1_000);
                let (days, months) = (self.bytes.get_i32(), self.bytes.get_i32());
                ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, ns)))
            }
            SqlType::Uuid => {
                let value = self.bytes.get_u128();
                let hex = format!("{value:032x}");
                let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
                ScalarValue::Utf8(Some(parts.join("-")))
            }
            SqlType::Numeric { .. } => self.numeric()?,
            SqlType::Text => ScalarValue::Utf8(Some(self.text()?)),
            SqlType::Jsonb => {
                // jsonb begins with its version, json does not.
                if self.bytes.first() == Some(&1) {
                    self.bytes.advance(1);
                }
                let text = self.text()?;
                scalar_of_text(&SqlType::Jsonb, &text)?
            }
            SqlType::Bytea => ScalarValue::Binary(Some(std::mem::take(&mut self.bytes).to_vec())),
            SqlType::Array(element) => self.array(element)?,
            SqlType::Struct(_) => {
                return Err(UserError::unsupported("record parameters are not supported"));
            }
        })
    }

    /// Base-10,000 groups, by way of text, which knows about precision and rounding.
    fn numeric(&mut self) -> Result<ScalarValue, UserError> {
        self.need(8)?;
        let count = self.bytes.get_u16();
        let weight = i32::from(self.bytes.get_i16());
        let sign = self.bytes.get_u16();
        let display_scale = usize::from(self.bytes.get_u16());
        self.need(usize::from(count) * 2)?;
        if sign & 0x8000 != 0 {
            return Err(UserError::new(
                SqlState::NUMERIC_OUT_OF_RANGE,
                "numeric NaN and infinity are not supported",
            ));
        }
        let groups: Vec<u16> = (0..count).map(|_| self.bytes.get_u16()).collect();
        let group = |place: i32| {
            let index = usize::try_from(weight - place).ok();
            index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
        };
        let mut text = String::from(if sign == 0x4000 { "-0" } else { "0" });
        for place in (0..=weight).rev() {
            text.push_str(&format!("{:04}", group(place)));
        }
        let fraction_groups = display_scale.div_ceil(4);
        let fraction: String =
            (1..=fraction_groups as i32).map(|place| format!("{:04}", group(-place))).collect();
        if display_scale > 0 {
            text.push('.');
            text.push_str(&fraction[..display_scale]);
        }
        // As many digits after the point as the client wrote, so that nothing is rounded.
        let scale = i8::try_from(display_scale.min(38)).unwrap_or(38);
        scalar_of_text(&SqlType::Numeric { precision: 38, scale }, &text)
    }

    fn array(&mut self, element: &SqlType) -> Result<ScalarValue, UserError> {
        self.need(12)?;
        let dimensions = self.bytes.get_i32();
        let _has_nulls = self.bytes.get_i32();
        let _element_oid = self.bytes.get_u32();
        let mut items = Vec::new();
        if dimensions > 1 {
            return Err(UserError::unsupported("array parameters of more than one dimension"));
        }
        if dimensions == 1 {
            self.need(8)?;
            let count = self.bytes.get_i32();
            let _lower_bound = self.bytes.get_i32();
            for _ in 0..count {
                items.push(self.element(element)?);
            }
        }
        let ty = element.arrow_type();
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&items, &ty)))
    }

    fn element(&mut self, ty: &SqlType) -> Result<ScalarValue, UserError> {
        self.need(4)?;
        let Ok(length) = usize::try_from(self.bytes.get_i32()) else { return Ok(null_of(ty)) };
        self.need(length)?;
        let (bytes, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        scalar_of_binary(ty, bytes)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use datafusion::common::ScalarValue;
    use segue_types::SqlType;

    use super::{column_of_texts, scalar_of_binary, scalar_of_text};

    #[test]
    fn text_that_is_no_value_says_so_in_the_words_of_postgres() {
        let error = scalar_of_text(&SqlType::Integer, "abc").expect_err("no number");
        assert_eq!(error.state.as_str(), "22P02");
        assert_eq!(error.message, "invalid input syntax for type integer: \"abc\"");
        let error = scalar_of_text(&SqlType::Integer, "3000000000").expect_err("too large");
        assert_eq!(error.state.as_str(), "22003");
        let error = scalar_of_text(&SqlType::Timestamp, "yesterdayish").expect_err("no time");
        assert_eq!(error.state.as_str(), "22007");
    }

    #[test]
    fn a_binary_numeric_keeps_every_digit() {
        // 12345.678: groups 1, 2345, 6780; weight 1; scale 3.
        let bytes = [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 9, 41, 26, 124];
        let value = scalar_of_binary(&SqlType::NUMERIC, &bytes).expect("well formed");
        assert_eq!(value, ScalarValue::Decimal128(Some(12_345_678), 38, 3));
        assert!(scalar_of_binary(&SqlType::NUMERIC, &bytes[..10]).is_err());
    }

    #[test]
    fn nulls_stay_nulls_in_a_column_of_texts() {
        let column = column_of_texts(&SqlType::Text, [Some("a"), None].into_iter()).expect("text");
        assert_eq!(column.as_string::<i32>().value(0), "a");
        assert_eq!(column.null_count(), 1);
    }
}
