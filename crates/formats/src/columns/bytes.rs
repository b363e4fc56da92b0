//! Values of varying length: all bytes in one vector, and where each row ends.

use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};

use crate::ValueError;

/// Byte strings. `ends[i]` is where row `i` ends in `bytes`; bytes after the last end belong to a
/// row that is being written.
#[derive(Debug, Default)]
pub(crate) struct ByteValues {
    pub(crate) bytes: Vec<u8>,
    ends: Vec<i32>,
}

impl ByteValues {
    /// Appends one row.
    #[inline]
    pub(crate) fn push(&mut self, value: &[u8]) -> Result<(), ValueError> {
        self.bytes.extend_from_slice(value);
        if self.bytes.len() > i32::MAX as usize {
            return Err(ValueError::new("the batch holds more than 2 GiB of text"));
        }
        self.end_row();
        Ok(())
    }

    /// Ends the row whose bytes were written to `bytes`.
    #[inline]
    pub(crate) fn end_row(&mut self) {
        debug_assert!(self.bytes.len() <= i32::MAX as usize, "push checks");
        self.ends.push(self.bytes.len() as i32);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }

    /// Takes the rows out, and keeps room for as many.
    pub(crate) fn finish(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        (offsets(&take(&mut self.ends)), Buffer::from_vec(take(&mut self.bytes)))
    }
}

/// Takes the values out and keeps room for as many.
pub(crate) fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    std::mem::replace(values, room)
}

/// Arrow's offsets, which begin with 0.
pub(crate) fn offsets(ends: &[i32]) -> OffsetBuffer<i32> {
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(0);
    offsets.extend_from_slice(ends);
    OffsetBuffer::new(ScalarBuffer::from(offsets))
}
