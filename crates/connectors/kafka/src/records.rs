//! From messages to rows of the projected schema.
//!
//! `FORMAT PLAIN`: each value is a row that is added. `FORMAT UPSERT`: a value is the row of its key, a
//! message without a value removes the row of its key. Key columns come out of the value, and out of the
//! message's key where the value lacks them.
//!
//! Invariant: a message appends exactly one row to every column, or nothing at all.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, RecordBatch, RecordBatchOptions, UInt8Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use segue_connect::{Changes, ConnectError, Ops, ReadConfig, RowFormat};
use segue_formats::{JsonDecoder, JsonOptions};
use segue_types::{Op, SqlState, UserError};
use serde::de::IgnoredAny;

use crate::includes::IncludeColumn;
use crate::native::Message;

/// Collects rows.
pub(crate) struct Records {
    schema: SchemaRef,
    values: Values,
    /// The INCLUDE columns of the projection.
    includes: Vec<IncludeColumn>,
    /// Where each column of the projection comes from.
    places: Vec<Place>,
    keying: Keying,
    bytes: usize,
}

enum Values {
    Json(Box<JsonDecoder>),
    Bytes { column: BinaryBuilder },
}

#[derive(Clone, Copy)]
enum Place {
    Value(usize),
    Include(usize),
}

/// What a message does to the relation.
enum Keying {
    /// Every message adds a row.
    Plain,
    Upsert(Upsert),
}

struct Upsert {
    /// Names of the key columns that records hold, and their places among the decoded columns.
    names: Vec<String>,
    places: Vec<usize>,
    /// Whether the bytes of the message's key are themselves a key column.
    key_is_included: bool,
    /// Whether the last value lacked its key columns, so that the next one probably does too.
    splice_first: bool,
    /// A value with its key's members in front.
    scratch: Vec<u8>,
    ops: Vec<u8>,
    removes: usize,
}

impl Records {
    /// Checks that the configuration can be decoded, and makes an empty collection for a partition.
    pub(crate) fn new(
        config: &ReadConfig,
        projection: &[usize],
        partition: i32,
    ) -> Result<Records, ConnectError> {
        let declared = config.declared_columns;
        let value_columns: Vec<usize> =
            projection.iter().copied().filter(|column| *column < declared).collect();
        let mut includes = Vec::new();
        let mut places = Vec::with_capacity(projection.len());
        let mut seen_values = 0;
        for column in projection {
            if *column < declared {
                places.push(Place::Value(seen_values));
                seen_values += 1;
            } else {
                let include = &config.includes[column - declared];
                let field = config.schema.field(*column);
                places.push(Place::Include(includes.len()));
                includes.push(IncludeColumn::new(include, field, &config.stage, partition)?);
            }
        }
        let values = Values::new(config, &value_columns)?;
        let keying = Keying::new(config, &value_columns)?;
        let schema = config.schema.project(projection).expect("the projection lies in the schema");
        Ok(Records { schema: Arc::new(schema), values, includes, places, keying, bytes: 0 })
    }

    /// Rows so far.
    pub(crate) fn len(&self) -> usize {
        match &self.values {
            Values::Json(decoder) => decoder.len(),
            Values::Bytes { column } => arrow::array::ArrayBuilder::len(column),
        }
    }

    /// Bytes of the messages behind the rows.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the row of a message, or says why it has none.
    #[inline]
    pub(crate) fn push(&mut self, message: &Message<'_>) -> Result<(), String> {
        let (key, payload) = (message.key(), message.payload());
        match &mut self.keying {
            Keying::Plain => {
                let payload = payload.ok_or("the record has no value")?;
                self.values.decode(payload)?;
            }
            Keying::Upsert(upsert) => upsert.push(&mut self.values, key, payload)?,
        }
        for include in &mut self.includes {
            include.push(message);
        }
        self.bytes += key.map_or(0, <[u8]>::len) + payload.map_or(0, <[u8]>::len);
        Ok(())
    }

    /// Takes all rows out.
    pub(crate) fn finish(&mut self) -> Changes {
        let rows = self.len();
        let values = self.values.finish();
        let includes: Vec<ArrayRef> = self.includes.iter_mut().map(IncludeColumn::finish).collect();
        let columns = self.places.iter().map(|place| match place {
            Place::Value(at) => Arc::clone(&values[*at]),
            Place::Include(at) => Arc::clone(&includes[*at]),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns.collect(), &options)
            .expect("each column was made for its field");
        self.bytes = 0;
        Changes { rows: batch, ops: self.keying.take_ops(rows) }
    }
}

impl Values {
    fn new(config: &ReadConfig, columns: &[usize]) -> Result<Values, ConnectError> {
        match config.format.encode.as_str() {
            "json" => {
                let options = JsonOptions::parse(&config.format.options.0);
                let options = options.map_err(ConnectError::Config)?;
                let schema = decoded_schema(config);
                Ok(Values::Json(Box::new(JsonDecoder::new(schema, columns, options))))
            }
            "bytes" => {
                let fields = &config.schema.fields()[..config.declared_columns];
                let one = fields.len() == 1 && *fields[0].data_type() == DataType::Binary;
                match (one, config.format.rows) {
                    (true, RowFormat::Plain) => Ok(Values::Bytes { column: BinaryBuilder::new() }),
                    (true, RowFormat::Upsert) => Err(ConnectError::Unsupported(
                        "FORMAT UPSERT cannot be combined with ENCODE BYTES".to_owned(),
                    )),
                    (false, _) => Err(ConnectError::Config(
                        UserError::new(
                            SqlState::INVALID_OBJECT_DEFINITION,
                            "ENCODE BYTES needs exactly one column, of type bytea",
                        )
                        .with_hint("Declare one column of type bytea, or use ENCODE JSON."),
                    )),
                }
            }
            "native" => Err(ConnectError::Config(
                UserError::new(SqlState::INVALID_PARAMETER_VALUE, "FORMAT and ENCODE are required")
                    .with_hint("Give FORMAT PLAIN ENCODE JSON or FORMAT UPSERT ENCODE JSON."),
            )),
            encode => Err(ConnectError::Config(
                UserError::unsupported(format!(
                    "connector \"kafka\" does not know ENCODE {}",
                    encode.to_ascii_uppercase()
                ))
                .with_hint("Use ENCODE JSON or ENCODE BYTES."),
            )),
        }
    }

    #[inline]
    fn decode(&mut self, payload: &[u8]) -> Result<(), String> {
        match self {
            Values::Json(decoder) => decoder.decode(payload).map_err(|error| error.to_string()),
            Values::Bytes { column } => {
                column.append_value(payload);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Vec<ArrayRef> {
        match self {
            Values::Json(decoder) => decoder.finish().columns().to_vec(),
            Values::Bytes { column } => vec![Arc::new(column.finish())],
        }
    }
}

/// The declared columns, the key among them NOT NULL, so that a record without its key is refused.
fn decoded_schema(config: &ReadConfig) -> SchemaRef {
    let field = |(at, field): (usize, &Arc<Field>)| match config.key.contains(&at) {
        true => Arc::new(field.as_ref().clone().with_nullable(false)),
        false => Arc::clone(field),
    };
    let declared = &config.schema.fields()[..config.declared_columns];
    Arc::new(Schema::new(declared.iter().enumerate().map(field).collect::<Vec<_>>()))
}

impl Keying {
    fn new(config: &ReadConfig, value_columns: &[usize]) -> Result<Keying, ConnectError> {
        if config.format.rows == RowFormat::Plain {
            return Ok(Keying::Plain);
        }
        if config.key.is_empty() {
            return Err(ConnectError::Config(
                UserError::new(
                    SqlState::INVALID_OBJECT_DEFINITION,
                    "FORMAT UPSERT needs a PRIMARY KEY",
                )
                .with_hint("Declare which columns the record's key holds: PRIMARY KEY (…)."),
            ));
        }
        let decoded: Vec<usize> =
            config.key.iter().copied().filter(|column| *column < config.declared_columns).collect();
        let place = |column: &usize| {
            value_columns.iter().position(|value| value == column).ok_or_else(|| {
                ConnectError::Unsupported("the projection of a keyed read holds its key".to_owned())
            })
        };
        Ok(Keying::Upsert(Upsert {
            names: decoded.iter().map(|at| config.schema.field(*at).name().clone()).collect(),
            places: decoded.iter().map(place).collect::<Result<_, _>>()?,
            key_is_included: decoded.len() < config.key.len(),
            splice_first: false,
            scratch: Vec::new(),
            ops: Vec::new(),
            removes: 0,
        }))
    }

    fn take_ops(&mut self, rows: usize) -> Ops {
        let Keying::Upsert(upsert) = self else { return Ops::Insert };
        let ops = std::mem::take(&mut upsert.ops);
        assert_eq!(ops.len(), rows, "each row was given its op");
        match std::mem::take(&mut upsert.removes) {
            0 => Ops::Put,
            _ => Ops::Each(UInt8Array::from(ops)),
        }
    }
}

impl Upsert {
    fn push(
        &mut self,
        values: &mut Values,
        key: Option<&[u8]>,
        payload: Option<&[u8]>,
    ) -> Result<(), String> {
        if self.key_is_included && key.is_none() {
            return Err("the record has no key".to_owned());
        }
        match payload {
            Some(payload) => self.put(values, key, payload),
            None => self.remove(values, key),
        }
    }

    fn put(
        &mut self,
        values: &mut Values,
        key: Option<&[u8]>,
        payload: &[u8],
    ) -> Result<(), String> {
        let spliced_first = self.splice_first && self.splice(key, payload);
        let first = if spliced_first { self.scratch.as_slice() } else { payload };
        if let Err(error) = values.decode(first) {
            if spliced_first || !self.splice(key, payload) {
                return Err(error);
            }
            // The value may have been refused for its key alone.
            if values.decode(&self.scratch).is_err() {
                return Err(error);
            }
            self.splice_first = true;
        }
        self.ops.push(Op::Put as u8);
        Ok(())
    }

    fn remove(&mut self, values: &mut Values, key: Option<&[u8]>) -> Result<(), String> {
        let key = key.ok_or("the record has neither key nor value")?;
        let Values::Json(decoder) = values else {
            return Err("the record has no value".to_owned());
        };
        if self.places.is_empty() {
            decoder.append_null_row();
        } else {
            decoder.append_key_only(key, &self.places).map_err(|error| format!("key: {error}"))?;
        }
        self.ops.push(Op::Remove as u8);
        self.removes += 1;
        Ok(())
    }

    /// Writes the value with the key's members before its own, which win, into `scratch`. Whether there was
    /// anything to put in front.
    fn splice(&mut self, key: Option<&[u8]>, payload: &[u8]) -> bool {
        let (Some(key), Some(rest)) = (key, payload.trim_ascii().strip_prefix(b"{")) else {
            return false;
        };
        self.scratch.clear();
        if !write_key_members(&mut self.scratch, key.trim_ascii(), &self.names) {
            return false;
        }
        if rest.trim_ascii_start().first() != Some(&b'}') {
            self.scratch.push(b',');
        }
        self.scratch.extend_from_slice(rest);
        true
    }
}

/// Writes `{` and the key's members, without the closing brace. Whether the key has any.
fn write_key_members(scratch: &mut Vec<u8>, key: &[u8], names: &[String]) -> bool {
    let is_json = serde_json::from_slice::<IgnoredAny>(key).is_ok();
    if let (true, Some(members)) = (is_json, key.strip_prefix(b"{")) {
        let members = members.strip_suffix(b"}").expect("a JSON object ends with a brace");
        scratch.push(b'{');
        scratch.extend_from_slice(members);
        return !members.trim_ascii().is_empty();
    }
    let ([name], Ok(text)) = (names, std::str::from_utf8(key)) else { return false };
    let quoted = |text: &str| serde_json::to_string(text).expect("a string has a JSON form");
    let value = if is_json { text.to_owned() } else { quoted(text) };
    scratch.extend_from_slice(format!("{{{}:{value}", quoted(name)).as_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::write_key_members;

    fn members(key: &str, names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut scratch = Vec::new();
        write_key_members(&mut scratch, key.as_bytes(), &names)
            .then(|| String::from_utf8(scratch).expect("the parts are UTF-8"))
    }

    #[test]
    fn a_key_becomes_members_whether_object_scalar_or_bare_text() {
        assert_eq!(members(r#"{"a":1,"b":2}"#, &["a", "b"]).as_deref(), Some(r#"{"a":1,"b":2"#));
        assert_eq!(members("5", &["a"]).as_deref(), Some(r#"{"a":5"#));
        assert_eq!(members(r#""x""#, &["a"]).as_deref(), Some(r#"{"a":"x""#));
        assert_eq!(members("x-1", &["a\"b"]).as_deref(), Some(r#"{"a\"b":"x-1""#));
    }

    #[test]
    fn a_key_without_members_is_none() {
        assert_eq!(members("{}", &["a"]), None);
        assert_eq!(members("5", &["a", "b"]), None, "a scalar cannot fill two columns");
    }
}
