//! How a change of the catalog, or a look-up in it, is refused. Texts and SQLSTATEs are PostgreSQL's.

use segue_types::{ObjectId, SqlState, UserError};

use crate::RelationKind;

/// A refused change or look-up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    #[error("relation \"{name}\" already exists")]
    Duplicate { name: String },
    /// `nearest` is an existing name that was perhaps meant.
    #[error("relation \"{name}\" does not exist")]
    Undefined { name: String, nearest: Option<String> },
    /// The statement named a kind, so the message does too.
    #[error("{kind} \"{name}\" does not exist")]
    UndefinedOfKind { kind: RelationKind, name: String, nearest: Option<String> },
    #[error("\"{name}\" is not a {expected}")]
    WrongKind { name: String, expected: RelationKind, found: RelationKind, verb: Verb },
    #[error("cannot drop {what} because other objects depend on {pronoun}")]
    Dependents { what: String, pronoun: &'static str, lines: Vec<String> },
    #[error("definition of \"{name}\" depends on itself")]
    Circular { name: String },
    /// What the definition was planned on has been dropped since.
    #[error("\"{name}\" depends on object {missing}, which does not exist")]
    Dangling { name: String, missing: ObjectId },
    #[error("cannot have more than {} objects in the life of a database", u32::MAX - crate::OID_FIRST)]
    OutOfIds,
}

/// What a statement that names a kind was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Drop,
    Alter,
    ShowCreate,
    Wait,
    Explain,
}

impl Verb {
    fn hint(self, kind: RelationKind) -> String {
        let keyword = kind.keyword();
        match self {
            Verb::Drop => format!("Use DROP {keyword} to remove a {kind}."),
            Verb::Alter => format!("Use ALTER {keyword} to change a {kind}."),
            Verb::ShowCreate => format!("Use SHOW CREATE {keyword} to show a {kind}."),
            Verb::Explain => "Only a materialized view has a plan of operators.".to_owned(),
            Verb::Wait => format!("Use WAIT {keyword} to wait for a {kind}."),
        }
    }
}

impl CatalogError {
    /// Whether the object is not there, which `IF EXISTS` turns into a notice.
    pub fn is_undefined(&self) -> bool {
        matches!(self, CatalogError::Undefined { .. } | CatalogError::UndefinedOfKind { .. })
    }
}

impl From<CatalogError> for UserError {
    fn from(error: CatalogError) -> UserError {
        let message = error.to_string();
        match error {
            CatalogError::Duplicate { .. } => UserError::new(SqlState::DUPLICATE_TABLE, message),
            CatalogError::Undefined { nearest, .. }
            | CatalogError::UndefinedOfKind { nearest, .. } => {
                let error = UserError::new(SqlState::UNDEFINED_TABLE, message);
                match nearest {
                    Some(nearest) => error.with_hint(format!("Did you mean \"{nearest}\"?")),
                    None => error,
                }
            }
            CatalogError::WrongKind { found, verb, .. } => {
                UserError::new(SqlState::WRONG_OBJECT_TYPE, message).with_hint(verb.hint(found))
            }
            CatalogError::Dependents { lines, .. } => {
                UserError::new(SqlState::DEPENDENT_OBJECTS, message)
                    .with_detail(lines.join("\n"))
                    .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
            }
            CatalogError::Circular { .. } => {
                UserError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
            }
            CatalogError::Dangling { .. } => UserError::new(SqlState::UNDEFINED_OBJECT, message),
            CatalogError::OutOfIds => UserError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message),
        }
    }
}
