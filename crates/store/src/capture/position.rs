//! A position in a capture: `chunk:row`, the next row to read.

use std::fmt;

use segue_types::Position;

use super::{CaptureError, Manifest};

/// The next row to read. The end of a chunk is the beginning of the next, so that each place has one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapturePosition {
    pub chunk: u32,
    pub row: u64,
}

impl CapturePosition {
    /// The first row; for an empty capture also the end.
    pub const START: CapturePosition = CapturePosition { chunk: 0, row: 0 };

    /// Reads the text of a position.
    pub fn parse(position: &Position) -> Result<CapturePosition, CaptureError> {
        let parsed = position.as_str().split_once(':').and_then(|(chunk, row)| {
            Some(CapturePosition { chunk: chunk.parse().ok()?, row: row.parse().ok()? })
        });
        parsed
            .filter(|parsed| parsed.to_string() == position.as_str())
            .ok_or_else(|| CaptureError::Position { position: position.clone() })
    }

    /// As the rest of Segue carries it.
    pub fn to_position(self) -> Position {
        Position::new(self.to_string())
    }
}

impl fmt::Display for CapturePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chunk, self.row)
    }
}

impl Manifest {
    /// The position after the last row.
    pub fn end(&self) -> CapturePosition {
        let chunk = u32::try_from(self.chunks.len()).expect("a chunk is a file, so there are few");
        CapturePosition { chunk, row: 0 }
    }

    /// How many rows lie before a position, for progress.
    pub fn rows_before(&self, position: CapturePosition) -> u64 {
        let whole = self.chunks.iter().take(position.chunk as usize);
        whole.map(|chunk| chunk.rows).sum::<u64>() + position.row
    }

    /// Whether `position` is the start of a row of this capture, or its end.
    pub(crate) fn contains(&self, position: CapturePosition) -> bool {
        match self.chunks.get(position.chunk as usize) {
            Some(chunk) => position.row < chunk.rows,
            None => position == self.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use segue_types::Position;

    use super::CapturePosition;

    #[test]
    fn positions_are_read_back_and_sort_as_rows_do() {
        let position = CapturePosition { chunk: 9, row: 65_536 };
        assert_eq!(CapturePosition::parse(&position.to_position()).expect("own text"), position);
        assert!(position < CapturePosition { chunk: 10, row: 0 });
        for text in ["", "1", "1:", ":1", "1:-1", "01:1", "1:1:1", "+1:0"] {
            assert!(CapturePosition::parse(&Position::new(text)).is_err(), "{text}");
        }
    }
}
