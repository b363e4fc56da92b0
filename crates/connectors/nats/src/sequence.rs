//! Stream sequences as positions, and the one split that a stream is.

use segue_connect::ConnectError;
use segue_types::{Position, SplitId, SqlState, UserError};

/// The name of a stream's only split.
pub(crate) const SPLIT: &str = "0";

pub(crate) fn split() -> SplitId {
    SplitId::new(SPLIT)
}

/// The position of a sequence.
pub(crate) fn position_of(sequence: u64) -> Position {
    Position::new(sequence.to_string())
}

/// The sequence of a position.
pub(crate) fn sequence_of(position: &Position) -> Result<u64, ConnectError> {
    sequence_in(position.as_str())
}

/// The sequence that a text spells.
pub(crate) fn sequence_in(text: &str) -> Result<u64, ConnectError> {
    match text.parse() {
        Ok(sequence) if sequence >= 1 => Ok(sequence),
        _ => Err(value(
            format!("\"{text}\" is not a sequence of a NATS stream"),
            "Give the sequence of the next message to read, a number from 1.",
        )),
    }
}

/// Refuses every split but the one that there is.
pub(crate) fn must_be_known(split: &SplitId) -> Result<(), ConnectError> {
    if split.as_str() == SPLIT {
        return Ok(());
    }
    Err(value(
        format!("\"{split}\" is not a split of a NATS stream"),
        "A stream has one split, \"0\".",
    ))
}

fn value(message: String, hint: &str) -> ConnectError {
    ConnectError::Value(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use segue_types::SplitId;

    use super::{must_be_known, position_of, sequence_in, sequence_of, split};

    #[test]
    fn a_sequence_comes_back_from_its_text_and_nothing_else_is_one() {
        assert_eq!(sequence_of(&position_of(u64::MAX)), Ok(u64::MAX));
        for text in ["0", "-1", "", "a", "1.5"] {
            let error = sequence_in(text).expect_err("not a sequence");
            assert!(error.to_string().contains(&format!("\"{text}\"")), "{error}");
        }
        must_be_known(&split()).expect("the one");
        must_be_known(&SplitId::new("1")).expect_err("no other");
    }
}
