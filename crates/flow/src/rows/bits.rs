//! A growable bitmap over rows or slots.

use arrow::buffer::{BooleanBuffer, Buffer};

/// Bits, numbered from 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub(crate) fn get(&self, bit: usize) -> bool {
        assert!(bit < self.len, "bit {bit} of {}", self.len);
        self.words[bit / 64] >> (bit % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, bit: usize, value: bool) {
        assert!(bit < self.len, "bit {bit} of {}", self.len);
        let mask = 1 << (bit % 64);
        match value {
            true => self.words[bit / 64] |= mask,
            false => self.words[bit / 64] &= !mask,
        }
    }

    pub(crate) fn extend(&mut self, count: usize, value: bool) {
        let from = self.len;
        self.len += count;
        self.words.resize(self.len.div_ceil(64), 0);
        if value {
            (from..self.len).for_each(|bit| self.set(bit, true));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The numbers of the bits that are set.
    pub(crate) fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit as usize)
            })
        })
    }

    /// Sets the bits that are set in `other`, which is no longer.
    pub(crate) fn union(&mut self, other: &Bits) {
        assert!(other.len <= self.len, "{} bits into {}", other.len, self.len);
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }

    pub(crate) fn snapshot(&self) -> BooleanBuffer {
        let words = self.words.iter().map(|word| word.to_le()).collect::<Vec<u64>>();
        BooleanBuffer::new(Buffer::from_vec(words), 0, self.len)
    }
}
