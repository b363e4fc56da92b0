//! INCLUDE columns: what Kafka keeps beside a record's value, as columns of the declared types.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, Int32Array, Int64Array, ListBuilder, StringArray, StringBuilder,
    StructBuilder, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, TimeUnit};
use segue_connect::{ConnectError, Include, IncludeKind};
use segue_formats::normalise_jsonb;
use segue_types::{SqlState, SqlType, UserError, sql_type_of};

use crate::native::Message;

/// One INCLUDE column that grows by a value per row.
pub(crate) enum IncludeColumn {
    /// The same for all rows.
    Partition {
        partition: i32,
        rows: usize,
        to: DataType,
    },
    Stage {
        stage: String,
        rows: usize,
    },
    Offset {
        offsets: Vec<i64>,
        to: DataType,
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
    fn of<'a>(&self, message: &'a Message<'_>) -> Option<&'a [u8]> {
        match self {
            Bytes::Key => message.key(),
            Bytes::Payload => message.payload(),
            Bytes::Header(name) => {
                let named = |(found, value): (&std::ffi::CStr, _)| {
                    (found.to_bytes() == name.as_bytes()).then_some(value)
                };
                message.headers().filter_map(named).last().flatten()
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
        partition: i32,
    ) -> Result<IncludeColumn, ConnectError> {
        let to = field.data_type().clone();
        let column = match (&include.kind, &to) {
            (IncludeKind::Partition, DataType::Int32 | DataType::Int64 | DataType::Utf8) => {
                IncludeColumn::Partition { partition, rows: 0, to }
            }
            (IncludeKind::Offset, DataType::Int64 | DataType::Utf8) => {
                IncludeColumn::Offset { offsets: Vec::new(), to }
            }
            (
                IncludeKind::Timestamp,
                DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond, _),
            ) => IncludeColumn::Timestamp { times_ms: Vec::new(), to },
            (IncludeKind::Stage, DataType::Utf8) => {
                IncludeColumn::Stage { stage: stage.to_owned(), rows: 0 }
            }
            (IncludeKind::Header(None), DataType::Utf8) => {
                IncludeColumn::HeaderText { texts: StringBuilder::new() }
            }
            (IncludeKind::Header(None), DataType::List(item)) if is_header(item) => {
                let members =
                    vec![Box::new(StringBuilder::new()) as _, Box::new(BinaryBuilder::new()) as _];
                let DataType::Struct(fields) = item.data_type() else {
                    return Err(refuse(include, field));
                };
                let headers = StructBuilder::new(fields.clone(), members);
                let headers = ListBuilder::new(headers).with_field(Arc::clone(item));
                IncludeColumn::HeaderList { field: Arc::clone(item), headers }
            }
            (kind, to) => {
                return IncludeColumn::of_bytes(kind, to, field)
                    .ok_or_else(|| refuse(include, field));
            }
        };
        Ok(column)
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

    /// Appends what `message` has.
    pub(crate) fn push(&mut self, message: &Message<'_>) {
        match self {
            IncludeColumn::Partition { rows, .. } | IncludeColumn::Stage { rows, .. } => *rows += 1,
            IncludeColumn::Offset { offsets, .. } => offsets.push(message.offset()),
            IncludeColumn::Timestamp { times_ms, .. } => times_ms.push(message.timestamp_ms()),
            IncludeColumn::Binary { from, values } => values.append_option(from.of(message)),
            IncludeColumn::Text { from, jsonb, texts } => match from.of(message) {
                None => texts.append_null(),
                Some(bytes) => {
                    let text = String::from_utf8_lossy(bytes);
                    match jsonb.then(|| normalise_jsonb(&text)) {
                        None => texts.append_value(&text),
                        Some(Ok(normal)) => texts.append_value(normal),
                        Some(Err(_)) => texts.append_value(quoted(&text)),
                    }
                }
            },
            IncludeColumn::HeaderList { headers, .. } => push_headers(headers, message),
            IncludeColumn::HeaderText { texts } => texts.append_value(header_text(message)),
        }
    }

    /// Takes the column out; it is empty afterwards.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            IncludeColumn::Partition { partition, rows, to } => {
                let rows = std::mem::take(rows);
                match to {
                    DataType::Int32 => Arc::new(Int32Array::from_value(*partition, rows)),
                    DataType::Int64 => Arc::new(Int64Array::from_value((*partition).into(), rows)),
                    _ => repeated(&partition.to_string(), rows),
                }
            }
            IncludeColumn::Stage { stage, rows } => repeated(stage, std::mem::take(rows)),
            IncludeColumn::Offset { offsets, to } => {
                let offsets = std::mem::take(offsets);
                match to {
                    DataType::Int64 => Arc::new(Int64Array::from(offsets)),
                    _ => Arc::new(StringArray::from_iter_values(
                        offsets.iter().map(ToString::to_string),
                    )),
                }
            }
            IncludeColumn::Timestamp { times_ms, to } => timestamps(std::mem::take(times_ms), to),
            IncludeColumn::Text { texts, .. } | IncludeColumn::HeaderText { texts } => {
                Arc::new(texts.finish())
            }
            IncludeColumn::Binary { values, .. } => Arc::new(values.finish()),
            IncludeColumn::HeaderList { headers, field } => {
                let list = headers.finish();
                assert_eq!(
                    &list.value_type(),
                    field.data_type(),
                    "the builder was made for the field"
                );
                Arc::new(list)
            }
        }
    }
}

fn repeated(text: &str, rows: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows)))
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

fn is_header(item: &Field) -> bool {
    match item.data_type() {
        DataType::Struct(members) => {
            let types: Vec<&DataType> = members.iter().map(|member| member.data_type()).collect();
            types == [&DataType::Utf8, &DataType::Binary]
        }
        _ => false,
    }
}

fn push_headers(list: &mut ListBuilder<StructBuilder>, message: &Message<'_>) {
    for (name, value) in message.headers() {
        let header = list.values();
        header
            .field_builder::<StringBuilder>(0)
            .expect("the first member is text")
            .append_value(name.to_string_lossy());
        header
            .field_builder::<BinaryBuilder>(1)
            .expect("the second member is bytea")
            .append_option(value);
        header.append(true);
    }
    list.append(true);
}

/// `[{"key": …, "value": …}]` as jsonb prints it: names may repeat, so it is a list.
fn header_text(message: &Message<'_>) -> String {
    let header = |(name, value): (&std::ffi::CStr, Option<&[u8]>)| {
        let name = quoted(&name.to_string_lossy());
        let value = value.map(|value| quoted(&String::from_utf8_lossy(value)));
        format!("{{\"key\": {name}, \"value\": {}}}", value.as_deref().unwrap_or("null"))
    };
    format!("[{}]", message.headers().map(header).collect::<Vec<_>>().join(", "))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string has a JSON form")
}

fn refuse(include: &Include, field: &Field) -> ConnectError {
    let name = match &include.kind {
        IncludeKind::Key => "KEY",
        IncludeKind::Partition => "PARTITION",
        IncludeKind::Offset => "OFFSET",
        IncludeKind::Timestamp => "TIMESTAMP",
        IncludeKind::Header(_) => "HEADER",
        IncludeKind::Payload => "PAYLOAD",
        IncludeKind::Stage => "STAGE",
        IncludeKind::File => {
            return ConnectError::Unsupported("Kafka has no INCLUDE FILE".to_owned());
        }
    };
    let ty = sql_type_of(field).map_or_else(|| field.data_type().to_string(), |ty| ty.to_string());
    ConnectError::Config(UserError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("INCLUDE {name} column \"{}\" cannot be of type {ty}", include.column),
    ))
}
