//! The durable record of an [`Object`]: JSON under a format version.
//!
//! Invariant: what `decode` accepts was written by this version or an older one; a newer one is refused.

use serde::{Deserialize, Serialize};

use crate::Object;

/// The format that this version writes.
pub const OBJECT_FORMAT: u16 = 1;

/// Why a stored object cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A newer server wrote it.
    #[error("catalog object has format {found}, this server knows formats up to {OBJECT_FORMAT}")]
    Newer { found: u16 },
    /// It is not what any version writes.
    #[error("malformed catalog object: {0}")]
    Malformed(String),
}

#[derive(Serialize)]
struct Writing<'a> {
    format: u16,
    object: &'a Object,
}

#[derive(Deserialize)]
struct Format {
    format: u16,
}

#[derive(Deserialize)]
struct Reading {
    object: Object,
}

impl Object {
    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(&Writing { format: OBJECT_FORMAT, object: self })
            .expect("an object is plain data with text keys")
    }

    /// The object of stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Object, RecordError> {
        let malformed = |error: serde_json::Error| RecordError::Malformed(error.to_string());
        // The version is read by itself first: a newer format need not parse as today's object.
        let Format { format } = serde_json::from_slice(bytes).map_err(malformed)?;
        if format > OBJECT_FORMAT {
            return Err(RecordError::Newer { found: format });
        }
        let Reading { object } = serde_json::from_slice(bytes).map_err(malformed)?;
        match object.key.iter().find(|column| **column >= object.schema.fields().len()) {
            Some(column) => Err(RecordError::Malformed(format!(
                "key column {column} of \"{}\" is outside of its schema",
                object.name
            ))),
            None => Ok(object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OBJECT_FORMAT, RecordError};
    use crate::Object;
    use crate::snapshot::tests::{source, view};

    #[test]
    fn an_object_comes_back_with_its_schema_stages_and_consumers() {
        for object in [source(3, "s"), view(4, "v", &[3])] {
            assert_eq!(Object::decode(&object.encode()), Ok(object));
        }
    }

    #[test]
    fn a_newer_format_is_refused_even_when_its_body_is_unknown() {
        let found = OBJECT_FORMAT + 1;
        let bytes = format!(r#"{{"format":{found},"thing":[]}}"#);
        assert_eq!(Object::decode(bytes.as_bytes()), Err(RecordError::Newer { found }));
    }

    #[test]
    fn bytes_that_are_no_object_are_malformed() {
        for bytes in ["", "{}", r#"{"format":1}"#, r#"{"format":1,"object":{"id":1}}"#] {
            assert!(matches!(Object::decode(bytes.as_bytes()), Err(RecordError::Malformed(_))));
        }
        let mut object = source(3, "s");
        object.key = vec![9];
        assert!(matches!(Object::decode(&object.encode()), Err(RecordError::Malformed(_))));
    }
}
