//! System relations as data: columns by name and kind, rows of cells. They are small; what is large is
//! not here.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float32Builder, Int16Builder, Int32Builder, Int64Builder,
    ListBuilder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::View;
use crate::backend::{DeadLetter, Status};
use crate::pg_type::{CHAR_KEY, OID_KEY};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An oid of this alias: `oid`, `regclass`, …
    Oid(&'static str),
    /// One character.
    Char,
    Text,
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Real,
    Timestamptz,
    Texts,
    SmallInts,
    Oids,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Text(String),
    Boolean(bool),
    /// Of every integer kind; microseconds since 1970 for a timestamp.
    Integer(i64),
    Texts(Vec<String>),
    Integers(Vec<i64>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Boolean(value)
    }
}

macro_rules! integers {
    ($($ty:ty)*) => {
        $(impl From<$ty> for Cell {
            fn from(value: $ty) -> Cell {
                Cell::Integer(i64::from(value))
            }
        })*
    };
}

integers! { i16 i32 i64 u16 u32 }

impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Cell {
        Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

/// A row.
pub(super) type Row = Vec<Cell>;

/// A row from values of any kinds.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(crate::catalog::cells::Cell::from($value)),*] };
}
pub(super) use row;

/// Where a relation's rows come from.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Catalog(fn(&View<'_>) -> Vec<Row>),
    Status(fn(&View<'_>, &Status) -> Vec<Row>),
    /// The same, with how far the systems have come that are read.
    Latest(fn(&View<'_>, &Status) -> Vec<Row>),
    DeadLetters(fn(&View<'_>, &[DeadLetter]) -> Vec<Row>),
}

/// A system relation.
pub(super) struct Relation {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    pub(super) source: Source,
}

impl std::fmt::Debug for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Relation {
    /// The relation's columns.
    pub(super) fn schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(|(name, kind)| kind.field(name));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The rows as a batch.
    ///
    /// # Panics
    /// If a row is not as wide as the relation: both are written down next to each other.
    pub(super) fn batch(&self, schema: &SchemaRef, rows: &[Row]) -> RecordBatch {
        let arrays = self.columns.iter().enumerate().map(|(index, (_, kind))| {
            let cells = rows.iter().map(|row| {
                assert_eq!(
                    row.len(),
                    self.columns.len(),
                    "a row of {} has another width",
                    self.name
                );
                &row[index]
            });
            kind.array(cells)
        });
        RecordBatch::try_new(Arc::clone(schema), arrays.collect())
            .expect("columns are built by their kinds")
    }
}

impl Kind {
    fn field(self, name: &str) -> Field {
        let list = |item| DataType::List(Arc::new(Field::new("item", item, true)));
        let (ty, mark) = match self {
            Kind::Oid(alias) => (DataType::Int32, Some((OID_KEY, alias))),
            Kind::Char => (DataType::Utf8, Some((CHAR_KEY, "char"))),
            Kind::Text => (DataType::Utf8, None),
            Kind::Boolean => (DataType::Boolean, None),
            Kind::SmallInt => (DataType::Int16, None),
            Kind::Integer => (DataType::Int32, None),
            Kind::BigInt => (DataType::Int64, None),
            Kind::Real => (DataType::Float32, None),
            Kind::Timestamptz => {
                (DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())), None)
            }
            Kind::Texts => (list(DataType::Utf8), None),
            Kind::SmallInts => (list(DataType::Int16), None),
            Kind::Oids => (list(DataType::Int32), None),
        };
        let field = Field::new(name, ty, true);
        match mark {
            Some((key, value)) => {
                field.with_metadata(HashMap::from([(key.to_owned(), value.to_owned())]))
            }
            None => field,
        }
    }

    fn array<'a>(self, cells: impl Iterator<Item = &'a Cell>) -> ArrayRef {
        match self {
            Kind::Oid(_) | Kind::Integer => {
                let mut builder = Int32Builder::new();
                cells.for_each(|cell| builder.append_option(cell.integer().map(|v| v as i32)));
                Arc::new(builder.finish())
            }
            Kind::Char | Kind::Text => {
                let mut builder = StringBuilder::new();
                cells.for_each(|cell| builder.append_option(cell.text()));
                Arc::new(builder.finish())
            }
            Kind::Boolean => {
                let mut builder = BooleanBuilder::new();
                cells.for_each(|cell| builder.append_option(cell.boolean()));
                Arc::new(builder.finish())
            }
            Kind::SmallInt => {
                let mut builder = Int16Builder::new();
                cells.for_each(|cell| builder.append_option(cell.integer().map(|v| v as i16)));
                Arc::new(builder.finish())
            }
            Kind::BigInt => {
                let mut builder = Int64Builder::new();
                cells.for_each(|cell| builder.append_option(cell.integer()));
                Arc::new(builder.finish())
            }
            Kind::Real => {
                let mut builder = Float32Builder::new();
                cells.for_each(|cell| builder.append_option(cell.integer().map(|v| v as f32)));
                Arc::new(builder.finish())
            }
            Kind::Timestamptz => {
                let mut builder = TimestampMicrosecondBuilder::new().with_timezone("+00:00");
                cells.for_each(|cell| builder.append_option(cell.integer()));
                Arc::new(builder.finish())
            }
            Kind::Texts => {
                let mut builder = ListBuilder::new(StringBuilder::new());
                cells.for_each(|cell| {
                    builder.append_option(cell.texts().map(|texts| texts.iter().map(Some)));
                });
                Arc::new(builder.finish())
            }
            Kind::SmallInts => {
                let mut builder = ListBuilder::new(Int16Builder::new());
                cells.for_each(|cell| {
                    builder
                        .append_option(cell.integers().map(|v| v.iter().map(|v| Some(*v as i16))));
                });
                Arc::new(builder.finish())
            }
            Kind::Oids => {
                let mut builder = ListBuilder::new(Int32Builder::new());
                cells.for_each(|cell| {
                    builder
                        .append_option(cell.integers().map(|v| v.iter().map(|v| Some(*v as i32))));
                });
                Arc::new(builder.finish())
            }
        }
    }
}

impl Cell {
    fn text(&self) -> Option<&str> {
        if let Cell::Text(text) = self { Some(text) } else { None }
    }

    fn boolean(&self) -> Option<bool> {
        if let Cell::Boolean(value) = self { Some(*value) } else { None }
    }

    fn integer(&self) -> Option<i64> {
        if let Cell::Integer(value) = self { Some(*value) } else { None }
    }

    fn texts(&self) -> Option<&[String]> {
        if let Cell::Texts(texts) = self { Some(texts) } else { None }
    }

    fn integers(&self) -> Option<&[i64]> {
        if let Cell::Integers(values) = self { Some(values) } else { None }
    }
}
