//! Partitions and offsets as splits and positions: a split's id is its partition's number, a position is
//! the offset of the next record.

use segue_connect::ConnectError;
use segue_types::{Position, SplitId, SqlState, UserError};

/// The split of a partition.
pub(crate) fn split_of(partition: i32) -> SplitId {
    SplitId::new(partition.to_string())
}

/// The position of an offset.
pub(crate) fn position_of(offset: i64) -> Position {
    Position::new(offset.to_string())
}

/// The partition of a split.
pub(crate) fn partition_of(split: &SplitId) -> Result<i32, ConnectError> {
    match split.as_str().parse() {
        Ok(partition) if partition >= 0 => Ok(partition),
        _ => Err(value(format!("\"{split}\" is not a Kafka partition"), "Give its number.")),
    }
}

/// The offset of a position.
pub(crate) fn offset_of(position: &Position) -> Result<i64, ConnectError> {
    offset_in(position.as_str())
}

/// The offset that a text spells.
pub(crate) fn offset_in(text: &str) -> Result<i64, ConnectError> {
    match text.parse() {
        Ok(offset) if offset >= 0 => Ok(offset),
        _ => Err(value(
            format!("\"{text}\" is not a Kafka offset"),
            "Give the offset of the next record to read, a number from 0.",
        )),
    }
}

fn value(message: String, hint: &str) -> ConnectError {
    ConnectError::Value(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use segue_types::{Position, SplitId};

    use super::{offset_of, partition_of, position_of, split_of};

    #[test]
    fn a_partition_and_an_offset_come_back_from_their_texts() {
        assert_eq!(partition_of(&split_of(7)), Ok(7));
        assert_eq!(offset_of(&position_of(i64::MAX)), Ok(i64::MAX));
    }

    #[test]
    fn what_is_no_partition_and_no_offset_is_refused_by_its_text() {
        for text in ["-1", "", "a", "1.5", "99999999999999999999"] {
            let error = offset_of(&Position::new(text)).expect_err("not an offset");
            assert!(error.to_string().contains(&format!("\"{text}\"")), "{error}");
            partition_of(&SplitId::new(text)).expect_err("not a partition");
        }
    }
}
