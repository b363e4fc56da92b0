//! SQL column types and how each is held in Arrow: the one place that says so.
//!
//! | SQL | Arrow |
//! |---|---|
//! | boolean, smallint, integer, bigint, real, double precision | the native type |
//! | numeric(p,s) | Decimal128(p,s); numeric without precision is numeric(38,10) |
//! | text, varchar, uuid, jsonb | Utf8; uuid and jsonb are told apart by field metadata |
//! | bytea, date, time | Binary, Date32, Time64(µs) |
//! | timestamp, timestamptz | Timestamp(µs), Timestamp(µs, "+00:00") |
//! | interval | Interval(MonthDayNano) |
//! | T[], struct | List, Struct |

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use serde::{Deserialize, Serialize};

/// Field metadata key under which the SQL type is kept where Arrow alone cannot tell it.
const TYPE_KEY: &str = "segue.type";

/// A column type of Segue's SQL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqlType {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Real,
    Double,
    /// Precision 1 to 38, scale 0 to precision.
    Numeric {
        precision: u8,
        scale: i8,
    },
    Text,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Jsonb,
    Array(Box<SqlType>),
    Struct(Vec<(String, SqlType)>),
}

impl SqlType {
    /// `numeric` without precision.
    pub const NUMERIC: SqlType = SqlType::Numeric { precision: 38, scale: 10 };

    /// How values of this type are held.
    pub fn arrow_type(&self) -> DataType {
        match self {
            SqlType::Boolean => DataType::Boolean,
            SqlType::SmallInt => DataType::Int16,
            SqlType::Integer => DataType::Int32,
            SqlType::BigInt => DataType::Int64,
            SqlType::Real => DataType::Float32,
            SqlType::Double => DataType::Float64,
            SqlType::Numeric { precision, scale } => DataType::Decimal128(*precision, *scale),
            SqlType::Text | SqlType::Uuid | SqlType::Jsonb => DataType::Utf8,
            SqlType::Bytea => DataType::Binary,
            SqlType::Date => DataType::Date32,
            SqlType::Time => DataType::Time64(TimeUnit::Microsecond),
            SqlType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            SqlType::Timestamptz => {
                DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
            }
            SqlType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            SqlType::Array(element) => DataType::List(Arc::new(element.field("item", true))),
            SqlType::Struct(members) => DataType::Struct(
                members.iter().map(|(name, member)| member.field(name, true)).collect::<Fields>(),
            ),
        }
    }

    /// A column of this type.
    pub fn field(&self, name: &str, nullable: bool) -> Field {
        let field = Field::new(name, self.arrow_type(), nullable);
        match self {
            SqlType::Uuid | SqlType::Jsonb => {
                field.with_metadata([(TYPE_KEY.to_owned(), self.to_string())].into())
            }
            _ => field,
        }
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SqlType::Boolean => f.write_str("boolean"),
            SqlType::SmallInt => f.write_str("smallint"),
            SqlType::Integer => f.write_str("integer"),
            SqlType::BigInt => f.write_str("bigint"),
            SqlType::Real => f.write_str("real"),
            SqlType::Double => f.write_str("double precision"),
            SqlType::Numeric { precision, scale } => write!(f, "numeric({precision},{scale})"),
            SqlType::Text => f.write_str("text"),
            SqlType::Bytea => f.write_str("bytea"),
            SqlType::Date => f.write_str("date"),
            SqlType::Time => f.write_str("time"),
            SqlType::Timestamp => f.write_str("timestamp"),
            SqlType::Timestamptz => f.write_str("timestamptz"),
            SqlType::Interval => f.write_str("interval"),
            SqlType::Uuid => f.write_str("uuid"),
            SqlType::Jsonb => f.write_str("jsonb"),
            SqlType::Array(element) => write!(f, "{element}[]"),
            SqlType::Struct(members) => {
                f.write_str("struct<")?;
                for (i, (name, member)) in members.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{name} {member}")?;
                }
                f.write_str(">")
            }
        }
    }
}

/// The SQL type of an Arrow field, also of one that a query computed (so wider than what
/// [`SqlType::field`] makes). `None` for what Segue cannot show.
pub fn sql_type_of(field: &Field) -> Option<SqlType> {
    let is_text = matches!(
        field.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
    );
    // A cast to another type leaves the metadata of what it casts.
    match field.metadata().get(TYPE_KEY).map(String::as_str).filter(|_| is_text) {
        Some("uuid") => return Some(SqlType::Uuid),
        Some("jsonb") => return Some(SqlType::Jsonb),
        _ => {}
    }
    Some(match field.data_type() {
        DataType::Boolean => SqlType::Boolean,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => SqlType::SmallInt,
        DataType::UInt16 | DataType::Int32 => SqlType::Integer,
        DataType::UInt32 | DataType::Int64 => SqlType::BigInt,
        DataType::UInt64 => SqlType::Numeric { precision: 20, scale: 0 },
        DataType::Float16 | DataType::Float32 => SqlType::Real,
        DataType::Float64 => SqlType::Double,
        DataType::Decimal128(precision, scale) => {
            SqlType::Numeric { precision: *precision, scale: *scale }
        }
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => SqlType::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => SqlType::Bytea,
        DataType::Date32 | DataType::Date64 => SqlType::Date,
        DataType::Time32(_) | DataType::Time64(_) => SqlType::Time,
        DataType::Timestamp(_, None) => SqlType::Timestamp,
        DataType::Timestamp(_, Some(_)) => SqlType::Timestamptz,
        DataType::Interval(_) | DataType::Duration(_) => SqlType::Interval,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            SqlType::Array(Box::new(sql_type_of(item)?))
        }
        DataType::Struct(members) => SqlType::Struct(
            members
                .iter()
                .map(|member| Some((member.name().clone(), sql_type_of(member)?)))
                .collect::<Option<_>>()?,
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{SqlType, sql_type_of};

    #[test]
    fn every_type_comes_back_from_its_field() {
        let scalars = [
            SqlType::Boolean,
            SqlType::SmallInt,
            SqlType::Integer,
            SqlType::BigInt,
            SqlType::Real,
            SqlType::Double,
            SqlType::NUMERIC,
            SqlType::Text,
            SqlType::Bytea,
            SqlType::Date,
            SqlType::Time,
            SqlType::Timestamp,
            SqlType::Timestamptz,
            SqlType::Interval,
            SqlType::Uuid,
            SqlType::Jsonb,
        ];
        for scalar in scalars {
            let nested = SqlType::Struct(vec![
                ("a".to_owned(), SqlType::Array(Box::new(scalar.clone()))),
                ("b".to_owned(), scalar.clone()),
            ]);
            for ty in [scalar, nested] {
                assert_eq!(sql_type_of(&ty.field("c", true)), Some(ty));
            }
        }
    }
}
