//! Why a text is not a statement. Always the user's to mend; carries the place where psql draws its caret.

use segue_types::{SqlState, UserError};

/// A text that could not be parsed. Offsets count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A token that the grammar does not allow here.
    #[error("syntax error at or near \"{near}\"")]
    Unexpected { near: String, expected: String, offset: usize },
    /// The text ended too early.
    #[error("syntax error at end of input")]
    UnexpectedEnd { expected: String, offset: usize },
    /// A quote or a comment that nobody closed.
    #[error("{what} at or near \"{near}\"")]
    Unterminated { what: &'static str, near: String, offset: usize },
    /// Deeper nesting than the parser's stack is allowed to grow.
    #[error("statement is nested too deeply")]
    TooDeep { offset: usize },
    /// Grammatical, but it names what does not exist or says a thing twice.
    #[error("{0}")]
    Invalid(UserError),
}

impl ParseError {
    /// A complaint about what the grammar allows.
    pub(crate) fn invalid(
        state: SqlState,
        message: impl Into<String>,
        offset: usize,
    ) -> ParseError {
        ParseError::Invalid(UserError::new(state, message).at(offset))
    }
}

impl From<ParseError> for UserError {
    fn from(error: ParseError) -> UserError {
        let message = error.to_string();
        let syntax =
            |offset: usize| UserError::new(SqlState::SYNTAX_ERROR, message.clone()).at(offset);
        match error {
            ParseError::Unexpected { expected, offset, .. }
            | ParseError::UnexpectedEnd { expected, offset } => {
                let error = syntax(offset);
                if expected.is_empty() { error } else { error.with_detail(expected) }
            }
            ParseError::Unterminated { offset, .. } => syntax(offset),
            ParseError::TooDeep { offset } => {
                UserError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).at(offset)
            }
            ParseError::Invalid(error) => error,
        }
    }
}
