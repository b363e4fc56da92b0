//! Which rows are NULL. Costs a counter until the first NULL appears.

use arrow::buffer::NullBuffer;

/// The validity of a column.
#[derive(Debug, Default)]
pub(crate) struct Validity {
    len: usize,
    /// One flag per row, or empty while no row is NULL.
    valid: Vec<bool>,
}

impl Validity {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push_valid(&mut self) {
        self.len += 1;
        if !self.valid.is_empty() {
            self.valid.push(true);
        }
    }

    pub(crate) fn push_null(&mut self) {
        if self.valid.is_empty() {
            self.valid.resize(self.len, true);
        }
        self.len += 1;
        self.valid.push(false);
    }

    /// Whether the newest row is NULL.
    pub(crate) fn last_is_null(&self) -> bool {
        self.valid.last() == Some(&false)
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.valid.truncate(len);
    }

    /// Takes the rows out; `None` when none of them is NULL.
    pub(crate) fn finish(&mut self) -> Option<NullBuffer> {
        self.len = 0;
        let valid = std::mem::take(&mut self.valid);
        Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0)
    }
}
