//! The values of records, decoded into the declared columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayBuilder, ArrayRef, BinaryBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use segue_connect::{ConnectError, ReadConfig, RowFormat};
use segue_formats::{JsonDecoder, JsonOptions};
use segue_types::{SqlState, UserError};

pub(crate) enum Values {
    Json(Box<JsonDecoder>),
    Bytes { column: BinaryBuilder },
}

impl Values {
    pub(crate) fn new(
        config: &ReadConfig,
        connector: &str,
        columns: &[usize],
    ) -> Result<Values, ConnectError> {
        match config.format.encode.as_str() {
            "json" => {
                let options = JsonOptions::parse(&config.format.options.0);
                let options = options.map_err(ConnectError::Config)?;
                let schema = decoded_schema(config);
                Ok(Values::Json(Box::new(JsonDecoder::new(schema, columns, options))))
            }
            "bytes" => Values::bytes(config),
            "native" => Err(ConnectError::Config(
                UserError::new(SqlState::INVALID_PARAMETER_VALUE, "FORMAT and ENCODE are required")
                    .with_hint("Give FORMAT PLAIN ENCODE JSON or FORMAT UPSERT ENCODE JSON."),
            )),
            encode => Err(ConnectError::Config(
                UserError::unsupported(format!(
                    "connector \"{connector}\" does not know ENCODE {}",
                    encode.to_ascii_uppercase()
                ))
                .with_hint("Use ENCODE JSON or ENCODE BYTES."),
            )),
        }
    }

    fn bytes(config: &ReadConfig) -> Result<Values, ConnectError> {
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

    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Json(decoder) => decoder.len(),
            Values::Bytes { column } => column.len(),
        }
    }

    #[inline]
    pub(crate) fn decode(&mut self, payload: &[u8]) -> Result<(), String> {
        match self {
            Values::Json(decoder) => decoder.decode(payload).map_err(|error| error.to_string()),
            Values::Bytes { column } => {
                column.append_value(payload);
                Ok(())
            }
        }
    }

    /// Appends a row of which only the columns at `places` are filled, out of `key`.
    pub(crate) fn decode_key(&mut self, key: &[u8], places: &[usize]) -> Result<(), String> {
        let Values::Json(decoder) = self else {
            return Err("the record has no value".to_owned());
        };
        if places.is_empty() {
            decoder.append_null_row();
            return Ok(());
        }
        decoder.append_key_only(key, places).map_err(|error| format!("key: {error}"))
    }

    pub(crate) fn finish(&mut self) -> Vec<ArrayRef> {
        match self {
            Values::Json(decoder) => decoder.finish().columns().to_vec(),
            Values::Bytes { column } => vec![Arc::new(column.finish()) as Arc<dyn Array>],
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
