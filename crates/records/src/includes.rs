//! INCLUDE columns: what a log keeps beside a record's value, as columns of the declared types.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, Int32Array, Int64Array, Int64Builder, ListBuilder, StringArray,
    StringBuilder, StructBuilder, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, TimeUnit};
use segue_connect::{ConnectError, Include, IncludeKind};
use segue_formats::normalise_jsonb;
use segue_types::{SqlState, SqlType, UserError, sql_type_of};

use crate::record::Record;
use crate::rows::Origin;

/// One INCLUDE column that grows by a value per row.
pub(crate) enum IncludeColumn {
    /// The same text for all rows.
    Constant {
        text: String,
        rows: usize,
    },
    /// The same number for all rows.
    Number {
        number: i64,
        rows: usize,
        to: DataType,
    },
    Offset {
        offsets: Int64Builder,
    },
    OffsetText {
        scratch: String,
        texts: StringBuilder,
    },
    Timestamp {
        times_ms: Vec<Option<i64>>,
        to: DataType,
    },
    Text {
        from: Bytes,
        jsonb: bool,
        texts: StringBuilder,
    },
    Binary {
        from: Bytes,
        values: BinaryBuilder,
    },
    HeaderList {
        field: Arc<Field>,
        headers: ListBuilder<StructBuilder>,
    },
    HeaderText {
        texts: StringBuilder,
    },
}

/// Which bytes of a record a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    Key,
    Payload,
    /// The last header of this name.
    Header(String),
}

impl Bytes {
    fn with<R: Record>(&self, record: &R, put: impl FnOnce(Option<&[u8]>)) {
        match self {
            Bytes::Key => put(record.key()),
            Bytes::Payload => put(record.payload()),
            Bytes::Header(name) => {
                let mut last = None;
                record.each_header(|found, value| {
                    if found == name {
                        last = value.map(<[u8]>::to_vec);
                    }
                });
                put(last.as_deref());
            }
        }
    }
}

impl IncludeColumn {
    /// An empty column for `include`, of `field`'s type.
    pub(crate) fn new(
        include: &Include,
        field: &Field,
        stage: &str,
        origin: Origin<'_>,
    ) -> Result<IncludeColumn, ConnectError> {
        let to = field.data_type().clone();
        let number = origin.partition.parse::<i64>();
        Ok(match (&include.kind, &to) {
            (IncludeKind::Partition, DataType::Utf8) => {
                IncludeColumn::Constant { text: origin.partition.to_owned(), rows: 0 }
            }
            (IncludeKind::Partition, DataType::Int32 | DataType::Int64) if number.is_ok() => {
                let number = number.expect("looked at above");
                IncludeColumn::Number { number, rows: 0, to }
            }
            (IncludeKind::Offset, DataType::Int64) => {
                IncludeColumn::Offset { offsets: Int64Builder::new() }
            }
            (IncludeKind::Offset, DataType::Utf8) => {
                IncludeColumn::OffsetText { scratch: String::new(), texts: StringBuilder::new() }
            }
            (
                IncludeKind::Timestamp,
                DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond, _),
            ) => IncludeColumn::Timestamp { times_ms: Vec::new(), to },
            (IncludeKind::Stage, DataType::Utf8) => {
                IncludeColumn::Constant { text: stage.to_owned(), rows: 0 }
            }
            (IncludeKind::Header(None), DataType::Utf8) => {
                IncludeColumn::HeaderText { texts: StringBuilder::new() }
            }
            (IncludeKind::Header(None), DataType::List(item)) if header_members(item).is_some() => {
                IncludeColumn::header_list(item)
            }
            (kind, to) => IncludeColumn::of_bytes(kind, to, field)
                .ok_or_else(|| refuse(include, field, origin.connector))?,
        })
    }

    fn header_list(item: &Arc<Field>) -> IncludeColumn {
        let fields = header_members(item).expect("looked at before").clone();
        let members =
            vec![Box::new(StringBuilder::new()) as _, Box::new(BinaryBuilder::new()) as _];
        let headers =
            ListBuilder::new(StructBuilder::new(fields, members)).with_field(Arc::clone(item));
        IncludeColumn::HeaderList { field: Arc::clone(item), headers }
    }

    fn of_bytes(kind: &IncludeKind, to: &DataType, field: &Field) -> Option<IncludeColumn> {
        let from = match kind {
            IncludeKind::Key => Bytes::Key,
            IncludeKind::Payload => Bytes::Payload,
            IncludeKind::Header(Some(name)) => Bytes::Header(name.clone()),
            _ => return None,
        };
        match to {
            DataType::Utf8 => {
                let jsonb = sql_type_of(field) == Some(SqlType::Jsonb);
                Some(IncludeColumn::Text { from, jsonb, texts: StringBuilder::new() })
            }
            DataType::Binary => Some(IncludeColumn::Binary { from, values: BinaryBuilder::new() }),
            _ => None,
        }
    }

    /// Appends what `record` has.
    pub(crate) fn push(&mut self, record: &impl Record) {
        match self {
            IncludeColumn::Constant { rows, .. } | IncludeColumn::Number { rows, .. } => *rows += 1,
            IncludeColumn::Offset { offsets } => offsets.append_option(record.offset()),
            IncludeColumn::OffsetText { scratch, texts } => {
                scratch.clear();
                record.write_offset(scratch);
                texts.append_value(&scratch);
            }
            IncludeColumn::Timestamp { times_ms, .. } => times_ms.push(record.timestamp_ms()),
            IncludeColumn::Binary { from, values } => {
                from.with(record, |bytes| values.append_option(bytes));
            }
            IncludeColumn::Text { from, jsonb, texts } => {
                from.with(record, |bytes| push_text(texts, bytes, *jsonb));
            }
            IncludeColumn::HeaderList { headers, .. } => push_headers(headers, record),
            IncludeColumn::HeaderText { texts } => texts.append_value(header_text(record)),
        }
    }

    /// Takes the column out; it is empty afterwards.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            IncludeColumn::Constant { text, rows } => {
                let rows = std::mem::take(rows);
                let texts = std::iter::repeat_n(text.as_str(), rows);
                Arc::new(StringArray::from_iter_values(texts))
            }
            IncludeColumn::Number { number, rows, to } => {
                let rows = std::mem::take(rows);
                match (to, i32::try_from(*number)) {
                    (DataType::Int32, Ok(number)) => Arc::new(Int32Array::from_value(number, rows)),
                    (DataType::Int32, Err(_)) => Arc::new(Int32Array::new_null(rows)),
                    _ => Arc::new(Int64Array::from_value(*number, rows)),
                }
            }
            IncludeColumn::Offset { offsets } => Arc::new(offsets.finish()),
            IncludeColumn::Timestamp { times_ms, to } => timestamps(std::mem::take(times_ms), to),
            IncludeColumn::OffsetText { texts, .. }
            | IncludeColumn::Text { texts, .. }
            | IncludeColumn::HeaderText { texts } => Arc::new(texts.finish()),
            IncludeColumn::Binary { values, .. } => Arc::new(values.finish()),
            IncludeColumn::HeaderList { headers, field } => {
                let list = headers.finish();
                let made = list.value_type();
                assert_eq!(&made, field.data_type(), "the builder was made for the field");
                Arc::new(list)
            }
        }
    }
}

fn push_text(texts: &mut StringBuilder, bytes: Option<&[u8]>, jsonb: bool) {
    let Some(bytes) = bytes else { return texts.append_null() };
    let text = String::from_utf8_lossy(bytes);
    match jsonb.then(|| normalise_jsonb(&text)) {
        None => texts.append_value(&text),
        Some(Ok(json)) => texts.append_value(json),
        // What is not JSON becomes a JSON string.
        Some(Err(_)) => texts.append_value(quoted(&text)),
    }
}

fn timestamps(times_ms: Vec<Option<i64>>, to: &DataType) -> ArrayRef {
    match to {
        DataType::Timestamp(_, zone) => {
            let micros = times_ms.into_iter().map(|time| time.and_then(|ms| ms.checked_mul(1000)));
            let micros: TimestampMicrosecondArray = micros.collect();
            Arc::new(micros.with_timezone_opt(zone.clone()))
        }
        _ => Arc::new(Int64Array::from(times_ms)),
    }
}

/// The members of a list of headers: a name and its bytes.
fn header_members(item: &Field) -> Option<&arrow::datatypes::Fields> {
    let DataType::Struct(members) = item.data_type() else { return None };
    let types: Vec<&DataType> = members.iter().map(|member| member.data_type()).collect();
    (types == [&DataType::Utf8, &DataType::Binary]).then_some(members)
}

fn push_headers(list: &mut ListBuilder<StructBuilder>, record: &impl Record) {
    record.each_header(|name, value| {
        let header = list.values();
        let names = header.field_builder::<StringBuilder>(0);
        names.expect("the first member is text").append_value(name);
        let values = header.field_builder::<BinaryBuilder>(1);
        values.expect("the second member is bytea").append_option(value);
        header.append(true);
    });
    list.append(true);
}

/// `[{"key": …, "value": …}]` as jsonb prints it: names may repeat, so it is a list.
fn header_text(record: &impl Record) -> String {
    let mut headers = Vec::new();
    record.each_header(|name, value| {
        let value = value.map(|value| quoted(&String::from_utf8_lossy(value)));
        let value = value.as_deref().unwrap_or("null");
        headers.push(format!("{{\"key\": {}, \"value\": {value}}}", quoted(name)));
    });
    format!("[{}]", headers.join(", "))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string has a JSON form")
}

fn refuse(include: &Include, field: &Field, connector: &str) -> ConnectError {
    let name = match &include.kind {
        IncludeKind::Key => "KEY",
        IncludeKind::Partition => "PARTITION",
        IncludeKind::Offset => "OFFSET",
        IncludeKind::Timestamp => "TIMESTAMP",
        IncludeKind::Header(_) => "HEADER",
        IncludeKind::Payload => "PAYLOAD",
        IncludeKind::Stage => "STAGE",
        IncludeKind::File => {
            return ConnectError::Unsupported(format!(
                "connector \"{connector}\" has no INCLUDE FILE"
            ));
        }
    };
    let ty = sql_type_of(field).map_or_else(|| field.data_type().to_string(), |ty| ty.to_string());
    ConnectError::Config(UserError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("INCLUDE {name} column \"{}\" cannot be of type {ty}", include.column),
    ))
}
