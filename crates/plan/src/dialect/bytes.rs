//! Functions of bytea that DataFusion has for text alone, or not at all.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, Int32Array, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, TypeSignature};
use segue_types::{SqlState, SqlType, UserError};

use super::{general, simple};

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let either = TypeSignature::OneOf(vec![
        TypeSignature::Exact(vec![DataType::Binary]),
        TypeSignature::Exact(vec![DataType::Utf8]),
    ]);
    let (bytes, text) = (DataType::Binary, DataType::Utf8);
    vec![
        simple::of_type("octet_length", either.clone(), &SqlType::Integer, octet_length),
        simple::of_type("length", either, &SqlType::Integer, length),
        general::function(
            "convert_from",
            super::bits::bytes_and_format,
            |_| Ok(general::typed(&SqlType::Text)),
            |columns, _| from_utf8(columns),
        ),
        simple::function("convert_to", &[text.clone(), text.clone()], bytes, to_utf8),
        simple::function("quote_literal", std::slice::from_ref(&text), text.clone(), quote_literal),
    ]
}

fn octet_length(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let length = |bytes: &[u8]| i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    let lengths: Int32Array = match columns[0].data_type() {
        DataType::Binary => columns[0].as_binary::<i32>().iter().map(|v| v.map(length)).collect(),
        _ => {
            let texts = columns[0].as_string::<i32>().iter();
            texts.map(|text| text.map(|text| length(text.as_bytes()))).collect()
        }
    };
    Ok(Arc::new(lengths))
}

/// Bytes of bytea, characters of text.
fn length(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let DataType::Utf8 = columns[0].data_type() else { return octet_length(columns) };
    let texts = columns[0].as_string::<i32>().iter();
    let length = |text: &str| i32::try_from(text.chars().count()).unwrap_or(i32::MAX);
    Ok(Arc::new(texts.map(|text| text.map(length)).collect::<Int32Array>()))
}

fn check_encoding(name: Option<&str>) -> Result<()> {
    match name {
        Some(name) if !name.to_ascii_lowercase().replace(['-', '_'], "").eq("utf8") => {
            let message = format!("encoding \"{name}\" is not supported");
            let error = UserError::unsupported(message).with_hint("Only UTF8 is spoken.");
            Err(DataFusionError::External(Box::new(error)))
        }
        _ => Ok(()),
    }
}

fn from_utf8(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut texts = StringBuilder::new();
    let encodings = columns[1].as_string::<i32>();
    for (bytes, encoding) in columns[0].as_binary::<i32>().iter().zip(encodings) {
        check_encoding(encoding)?;
        match bytes.map(std::str::from_utf8) {
            None => texts.append_null(),
            Some(Ok(text)) => texts.append_value(text),
            Some(Err(_)) => {
                let state = SqlState::INVALID_TEXT_REPRESENTATION;
                let error = UserError::new(state, "invalid byte sequence for encoding \"UTF8\"");
                return Err(DataFusionError::External(Box::new(error)));
            }
        }
    }
    Ok(Arc::new(texts.finish()))
}

fn to_utf8(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut bytes = BinaryBuilder::new();
    for (text, encoding) in columns[0].as_string::<i32>().iter().zip(columns[1].as_string::<i32>())
    {
        check_encoding(encoding)?;
        bytes.append_option(text);
    }
    Ok(Arc::new(bytes.finish()))
}

fn quote_literal(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut quoted = StringBuilder::with_capacity(columns[0].len(), 0);
    for text in columns[0].as_string::<i32>() {
        quoted.append_option(text.map(|text| {
            let escape = if text.contains('\\') { "E" } else { "" };
            format!("{escape}'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
        }));
    }
    Ok(Arc::new(quoted.finish()))
}
