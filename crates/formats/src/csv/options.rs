//! The options of `ENCODE CSV (…)` and of COPY's csv format.

use std::collections::BTreeMap;

use segue_types::{SqlState, UserError, nearest};

const KNOWN: [&str; 6] = ["delimiter", "header", "without_header", "quote", "escape", "null"];

/// How CSV text is split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    pub delimiter: u8,
    pub quote: u8,
    /// What makes a quote inside a quoted field a plain character; the quote itself by default.
    pub escape: u8,
    /// What an unquoted NULL looks like.
    pub null: String,
    /// Whether the first record names the fields.
    pub header: Header,
}

/// Whether the first record of a text holds names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    #[default]
    Absent,
    Present,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions {
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: String::new(),
            header: Header::Absent,
        }
    }
}

impl CsvOptions {
    /// From options by name; `without_header` is RisingWave's spelling of `header`. An unknown
    /// name is an error.
    pub fn parse(options: &BTreeMap<String, String>) -> Result<CsvOptions, UserError> {
        let mut parsed = CsvOptions::default();
        if let Some(quote) = options.get("quote") {
            parsed.quote = single_byte("quote", quote)?;
            parsed.escape = parsed.quote;
        }
        for (name, value) in options {
            match name.as_str() {
                "quote" => {}
                "delimiter" => parsed.delimiter = single_byte(name, value)?,
                "escape" => parsed.escape = single_byte(name, value)?,
                "null" => parsed.null.clone_from(value),
                "header" => parsed.header = header(boolean(name, value)?),
                "without_header" => parsed.header = header(!boolean(name, value)?),
                _ => return Err(unknown(name)),
            }
        }
        if parsed.delimiter == parsed.quote {
            return Err(UserError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "CSV delimiter and quote must differ",
            ));
        }
        Ok(parsed)
    }

    /// Whether the escape makes `byte` a plain character.
    pub(super) fn is_escapable(&self, byte: u8) -> bool {
        byte == self.quote || byte == self.escape
    }
}

fn header(present: bool) -> Header {
    if present { Header::Present } else { Header::Absent }
}

fn single_byte(name: &str, value: &str) -> Result<u8, UserError> {
    match value.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ if value == "\\t" => Ok(b'\t'),
        _ => Err(invalid(name, value).with_hint("Give one ASCII character, for example ','.")),
    }
}

fn boolean(name: &str, value: &str) -> Result<bool, UserError> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(invalid(name, value).with_hint("Give true or false.")),
    }
}

fn invalid(name: &str, value: &str) -> UserError {
    let message = format!("invalid value for option \"{name}\": \"{value}\"");
    UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn unknown(name: &str) -> UserError {
    let message = format!("unknown option \"{name}\" of ENCODE CSV");
    let error = UserError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    match nearest(name, KNOWN) {
        Some(known) => error.with_hint(format!("Did you mean \"{known}\"?")),
        None => error,
    }
}
