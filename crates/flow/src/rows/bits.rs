//! A growable bitmap over the rows of a chunk.

use arrow::buffer::{BooleanBuffer, Buffer};

/// Bits, numbered from 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub(super) fn get(&self, bit: usize) -> bool {
        assert!(bit < self.len, "bit {bit} of {}", self.len);
        self.words[bit / 64] >> (bit % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, bit: usize, value: bool) {
        assert!(bit < self.len, "bit {bit} of {}", self.len);
        let mask = 1 << (bit % 64);
        match value {
            true => self.words[bit / 64] |= mask,
            false => self.words[bit / 64] &= !mask,
        }
    }

    pub(super) fn extend(&mut self, count: usize, value: bool) {
        let from = self.len;
        self.len += count;
        self.words.resize(self.len.div_ceil(64), 0);
        if value {
            (from..self.len).for_each(|bit| self.set(bit, true));
        }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The numbers of the bits that are set.
    pub(super) fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit as usize)
            })
        })
    }

    pub(super) fn snapshot(&self) -> BooleanBuffer {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        BooleanBuffer::new(Buffer::from_vec(bytes), 0, self.len)
    }
}
