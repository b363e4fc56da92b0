//! What a record does to the relation. `FORMAT PLAIN`: its value is a row that is added. `FORMAT UPSERT`: its
//! value is the row of its key, and without a value it removes the row of its key. Key columns come out of
//! the value, and out of the record's key where the value lacks them.

use arrow::array::UInt8Array;
use segue_connect::{ConnectError, Ops, ReadConfig, RowFormat};
use segue_types::{Op, SqlState, UserError};
use serde::de::IgnoredAny;

use crate::values::Values;

pub(crate) enum Keying {
    /// Every record adds a row.
    Plain,
    Upsert(Upsert),
}

pub(crate) struct Upsert {
    /// Names of the key columns that records hold, and their places among the decoded columns.
    names: Vec<String>,
    places: Vec<usize>,
    /// Whether the bytes of the record's key are themselves a key column.
    key_is_included: bool,
    /// Whether the last value lacked its key columns, so that the next one probably does too.
    splice_first: bool,
    /// A value with its key's members in front.
    scratch: Vec<u8>,
    ops: Vec<u8>,
    removes: usize,
}

impl Keying {
    pub(crate) fn new(
        config: &ReadConfig,
        value_columns: &[usize],
    ) -> Result<Keying, ConnectError> {
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

    pub(crate) fn take_ops(&mut self, rows: usize) -> Ops {
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
    pub(crate) fn push(
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
        values.decode_key(key, &self.places)?;
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
