//! Tables as lists of rows of plain values, made by seeded generators, and the catalog that they are planned over.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Schema, SchemaRef};
use segue_catalog::{Catalog, Object, ObjectKind, ObjectState, OnConflict, Settings, TableObject};
use segue_types::{ObjectId, SqlType};

/// What a column may hold: whole numbers, hundredths, text, days since 1970, microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Int,
    Money,
    Text,
    Date,
    Time,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Number(i64),
    Text(String),
}

pub type Row = Vec<Value>;

/// A table and the rows that it gets.
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Kind)],
    pub rows: Vec<Row>,
}

/// A seeded sequence of numbers.
pub struct Numbers(u64);

impl Numbers {
    pub fn seeded(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// From `low` up to and with `high`.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + ((self.0 >> 33) as i64) % (high - low + 1)
    }

    pub fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.within(0, choices.len() as i64 - 1) as usize]
    }
}

pub fn number(value: i64) -> Value {
    Value::Number(value)
}

pub fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

fn sql_type(kind: Kind) -> SqlType {
    match kind {
        Kind::Int => SqlType::BigInt,
        Kind::Money => SqlType::Numeric { precision: 12, scale: 2 },
        Kind::Text => SqlType::Text,
        Kind::Date => SqlType::Date,
        Kind::Time => SqlType::Timestamp,
    }
}

impl Table {
    pub fn schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(|(name, kind)| sql_type(*kind).field(name, true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    pub fn batch(&self, rows: &[&Row]) -> RecordBatch {
        let column = |(place, (_, kind)): (usize, &(&str, Kind))| -> ArrayRef {
            let numbers = || {
                rows.iter().map(|row| match &row[place] {
                    Value::Number(value) => *value,
                    Value::Text(value) => panic!("{value} is no number"),
                })
            };
            match kind {
                Kind::Int => Arc::new(numbers().collect::<Int64Array>()),
                Kind::Money => {
                    let cents = numbers().map(i128::from).map(Some).collect::<Decimal128Array>();
                    Arc::new(cents.with_precision_and_scale(12, 2).expect("twelve digits"))
                }
                Kind::Date => {
                    Arc::new(numbers().map(|days| Some(days as i32)).collect::<Date32Array>())
                }
                Kind::Time => Arc::new(numbers().map(Some).collect::<TimestampMicrosecondArray>()),
                Kind::Text => {
                    let texts = rows.iter().map(|row| match &row[place] {
                        Value::Text(value) => value.as_str(),
                        Value::Number(value) => panic!("{value} is no text"),
                    });
                    Arc::new(StringArray::from_iter_values(texts))
                }
            }
        };
        let columns = self.columns.iter().enumerate().map(column).collect();
        RecordBatch::try_new(self.schema(), columns).expect("columns of the schema")
    }
}

/// The tables by their place, from id 1.
pub fn catalog(tables: &[Table]) -> Catalog {
    let object = |(place, table): (usize, &Table)| Object {
        id: ObjectId(place as u32 + 1),
        name: table.name.to_owned(),
        schema: table.schema(),
        key: Vec::new(),
        definition: String::new(),
        kind: ObjectKind::Table(TableObject {
            stages: Vec::new(),
            on_conflict: OnConflict::Overwrite,
            versions: Vec::new(),
            mutability: Default::default(),
        }),
        depends_on: BTreeSet::new(),
        state: ObjectState::Ready,
        consumers: Vec::new(),
        settings: Settings::default(),
        created_unix_ms: None,
        failure: None,
        gaps: Vec::new(),
    };
    let objects = tables.iter().enumerate().map(object);
    objects.fold(Catalog::default(), |catalog, object| catalog.with(object).expect("a new name"))
}
