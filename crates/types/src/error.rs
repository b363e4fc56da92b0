//! What a user sees when something fails: SQLSTATE, lower-case primary message, DETAIL, HINT, place.
//!
//! Crates keep small error enums of their own and convert into [`UserError`] where the error is handled.
//! Invariant: the text of a `UserError` never holds a password; whoever builds one redacts first.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A five-character SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SqlState([u8; 5]);

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: SqlState = SqlState(*$code);)*
        }
    };
}

states! {
    FEATURE_NOT_SUPPORTED = b"0A000";
    CARDINALITY_VIOLATION = b"21000";
    NUMERIC_OUT_OF_RANGE = b"22003";
    INVALID_DATETIME_FORMAT = b"22007";
    DATETIME_OVERFLOW = b"22008";
    DIVISION_BY_ZERO = b"22012";
    INVALID_PARAMETER_VALUE = b"22023";
    INVALID_TEXT_REPRESENTATION = b"22P02";
    BAD_COPY_FILE_FORMAT = b"22P04";
    INVALID_LIMIT = b"2201W";
    INVALID_OFFSET = b"2201X";
    ARRAY_SUBSCRIPT = b"2202E";
    NOT_NULL_VIOLATION = b"23502";
    UNIQUE_VIOLATION = b"23505";
    ACTIVE_TRANSACTION = b"25001";
    READ_ONLY_TRANSACTION = b"25006";
    NO_ACTIVE_TRANSACTION = b"25P01";
    FAILED_TRANSACTION = b"25P02";
    UNDEFINED_PREPARED_STATEMENT = b"26000";
    DEPENDENT_OBJECTS = b"2BP01";
    UNDEFINED_CURSOR = b"34000";
    UNDEFINED_DATABASE = b"3D000";
    UNDEFINED_SCHEMA = b"3F000";
    SYNTAX_ERROR = b"42601";
    DUPLICATE_COLUMN = b"42701";
    AMBIGUOUS_COLUMN = b"42702";
    UNDEFINED_COLUMN = b"42703";
    UNDEFINED_OBJECT = b"42704";
    DUPLICATE_OBJECT = b"42710";
    GENERATED_ALWAYS = b"428C9";
    GROUPING_ERROR = b"42803";
    DATATYPE_MISMATCH = b"42804";
    WRONG_OBJECT_TYPE = b"42809";
    CANNOT_COERCE = b"42846";
    UNDEFINED_FUNCTION = b"42883";
    UNDEFINED_TABLE = b"42P01";
    UNDEFINED_PARAMETER = b"42P02";
    DUPLICATE_SCHEMA = b"42P06";
    DUPLICATE_PREPARED_STATEMENT = b"42P05";
    DUPLICATE_TABLE = b"42P07";
    INVALID_TABLE_DEFINITION = b"42P16";
    INVALID_OBJECT_DEFINITION = b"42P17";
    OUT_OF_MEMORY = b"53200";
    TOO_MANY_CONNECTIONS = b"53300";
    PROGRAM_LIMIT_EXCEEDED = b"54000";
    OBJECT_NOT_IN_PREREQUISITE_STATE = b"55000";
    OBJECT_IN_USE = b"55006";
    QUERY_CANCELED = b"57014";
    ADMIN_SHUTDOWN = b"57P01";
    CANNOT_CONNECT_NOW = b"57P03";
    IO_ERROR = b"58030";
    UNDEFINED_FILE = b"58P01";
    /// The upstream system cannot be reached.
    CONNECTION_FAILURE = b"08006";
    PROTOCOL_VIOLATION = b"08P01";
    INTERNAL_ERROR = b"XX000";
    DATA_CORRUPTED = b"XX001";
}

impl SqlState {
    /// The five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("every constructor checks for ASCII")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<SqlState> for String {
    fn from(state: SqlState) -> String {
        state.as_str().to_owned()
    }
}

impl TryFrom<String> for SqlState {
    type Error = String;

    fn try_from(text: String) -> Result<SqlState, String> {
        match <[u8; 5]>::try_from(text.as_bytes()) {
            Ok(code) if code.is_ascii() => Ok(SqlState(code)),
            _ => Err(format!("not a SQLSTATE: {text:?}")),
        }
    }
}

/// An error as the user sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct UserError {
    pub state: SqlState,
    /// Lower case, no full stop, names the kind of object.
    pub message: String,
    /// The values involved.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// 1-based character offset into the statement's text, where psql draws its caret.
    pub offset: Option<usize>,
}

impl UserError {
    /// An error with a primary message alone.
    pub fn new(state: SqlState, message: impl Into<String>) -> UserError {
        UserError { state, message: message.into(), detail: None, hint: None, offset: None }
    }

    /// What is not there yet, refused by its name.
    pub fn unsupported(message: impl Into<String>) -> UserError {
        UserError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    }

    /// A defect of Segue itself.
    pub fn internal(message: impl Into<String>) -> UserError {
        UserError::new(SqlState::INTERNAL_ERROR, message)
    }

    /// The values involved, as full sentences.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> UserError {
        self.detail = Some(detail.into());
        self
    }

    /// The remedy, as full sentences.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> UserError {
        self.hint = Some(hint.into());
        self
    }

    /// The place in the statement.
    #[must_use]
    pub fn at(mut self, offset: usize) -> UserError {
        self.offset = Some(offset);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{SqlState, UserError};

    #[test]
    fn an_error_survives_being_stored_with_a_job() {
        let error = UserError::new(SqlState::UNDEFINED_TABLE, "relation \"t\" does not exist")
            .with_hint("Create it.")
            .at(7);
        let text = serde_json::to_string(&error).expect("an error is plain data");
        assert_eq!(serde_json::from_str::<UserError>(&text).expect("just written"), error);
        assert!(serde_json::from_str::<SqlState>("\"4é01\"").is_err());
    }
}
