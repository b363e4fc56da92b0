//! Column builders on plain vectors: appending is a push, taking back is a truncation.
//!
//! Word defined here: *column* (the builder of one Arrow array). Invariant: `truncate(n)`
//! restores the state after the n-th row whatever a failed append left behind, because every part
//! of a column can be cut by row count alone: offsets by count, bytes by the last offset,
//! children by the last offset or the count.

mod bytes;
mod finish;
mod set;
mod validity;

use arrow::array::types::IntervalMonthDayNano;
use arrow_schema::Field;
use segue_types::{SqlType, sql_type_of};

pub(crate) use bytes::ByteValues;
pub use set::ColumnSet;
pub(crate) use validity::Validity;

/// The builder of one column.
#[derive(Debug)]
pub struct Column {
    pub(crate) validity: Validity,
    pub(crate) values: Values,
}

/// The values of a column, one variant per SQL type.
#[derive(Debug)]
pub(crate) enum Values {
    Boolean(Vec<bool>),
    SmallInt(Vec<i16>),
    Integer(Vec<i32>),
    BigInt(Vec<i64>),
    Real(Vec<f32>),
    Double(Vec<f64>),
    Numeric { values: Vec<i128>, precision: u8, scale: i8 },
    Text(ByteValues),
    Uuid(ByteValues),
    Jsonb(ByteValues),
    Bytea(ByteValues),
    Date(Vec<i32>),
    Time(Vec<i64>),
    Timestamp(Vec<i64>),
    Timestamptz(Vec<i64>),
    Interval(Vec<IntervalMonthDayNano>),
    Array { ends: Vec<i32>, items: Box<Column> },
    Struct { len: usize, members: Vec<Column> },
}

/// The same expression for every variant that is a plain vector.
macro_rules! for_each_vec {
    ($values:expr, $v:ident => $plain:expr, $b:ident => $bytes:expr, $($rest:tt)*) => {
        match $values {
            Values::Boolean($v) => $plain,
            Values::SmallInt($v) => $plain,
            Values::Integer($v) | Values::Date($v) => $plain,
            Values::BigInt($v)
            | Values::Time($v)
            | Values::Timestamp($v)
            | Values::Timestamptz($v) => $plain,
            Values::Real($v) => $plain,
            Values::Double($v) => $plain,
            Values::Numeric { values: $v, .. } => $plain,
            Values::Interval($v) => $plain,
            Values::Text($b) | Values::Uuid($b) | Values::Jsonb($b) | Values::Bytea($b) => $bytes,
            $($rest)*
        }
    };
}

impl Column {
    /// The builder for a field that [`SqlType::field`] made. `None` for a type that Segue does
    /// not store.
    pub fn new(field: &Field) -> Option<Column> {
        Some(Column::of_type(&sql_type_of(field)?))
    }

    /// The builder for a type.
    pub fn of_type(ty: &SqlType) -> Column {
        let values = match ty {
            SqlType::Boolean => Values::Boolean(Vec::new()),
            SqlType::SmallInt => Values::SmallInt(Vec::new()),
            SqlType::Integer => Values::Integer(Vec::new()),
            SqlType::BigInt => Values::BigInt(Vec::new()),
            SqlType::Real => Values::Real(Vec::new()),
            SqlType::Double => Values::Double(Vec::new()),
            SqlType::Numeric { precision, scale } => {
                Values::Numeric { values: Vec::new(), precision: *precision, scale: *scale }
            }
            SqlType::Text => Values::Text(ByteValues::default()),
            SqlType::Uuid => Values::Uuid(ByteValues::default()),
            SqlType::Jsonb => Values::Jsonb(ByteValues::default()),
            SqlType::Bytea => Values::Bytea(ByteValues::default()),
            SqlType::Date => Values::Date(Vec::new()),
            SqlType::Time => Values::Time(Vec::new()),
            SqlType::Timestamp => Values::Timestamp(Vec::new()),
            SqlType::Timestamptz => Values::Timestamptz(Vec::new()),
            SqlType::Interval => Values::Interval(Vec::new()),
            SqlType::Array(item) => {
                Values::Array { ends: Vec::new(), items: Box::new(Column::of_type(item)) }
            }
            SqlType::Struct(members) => Values::Struct {
                len: 0,
                members: members.iter().map(|(_, member)| Column::of_type(member)).collect(),
            },
        };
        Column { validity: Validity::default(), values }
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.validity.len()
    }

    /// Whether nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends NULL.
    pub fn append_null(&mut self) {
        self.append_filler();
        self.validity.push_null();
    }

    /// Appends the zero of the type as a value: what fills a NOT NULL column of a row that only
    /// names a key.
    pub fn append_zero(&mut self) {
        self.append_filler();
        self.validity.push_valid();
    }

    /// Appends a value below the validity, which the caller pushes.
    fn append_filler(&mut self) {
        for_each_vec!(&mut self.values,
            v => v.push(Default::default()),
            b => b.end_row(),
            Values::Array { ends, .. } => ends.push(ends.last().copied().unwrap_or(0)),
            Values::Struct { len, members } => {
                *len += 1;
                members.iter_mut().for_each(Column::append_null);
            }
        );
    }

    /// Takes back everything after the first `len` rows, and the rest of a failed append.
    pub fn truncate(&mut self, len: usize) {
        self.validity.truncate(len);
        for_each_vec!(&mut self.values,
            v => v.truncate(len),
            b => b.truncate(len),
            Values::Array { ends, items } => {
                ends.truncate(len);
                items.truncate(ends.last().map_or(0, |end| *end as usize));
            },
            Values::Struct { len: rows, members } => {
                *rows = len;
                members.iter_mut().for_each(|member| member.truncate(len));
            }
        );
    }
}
