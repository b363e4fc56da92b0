//! Which groups changed since they were last stored, and since the relation was last published.
//!
//! A step sets one bit a row; who takes the changes for one purpose passes them on for the other.

use crate::rows::Bits;

#[derive(Debug, Default)]
pub(super) struct Tracker {
    slots: usize,
    fresh: Bits,
    unsealed: Bits,
    unpublished: Bits,
}

impl Tracker {
    pub(super) fn resize(&mut self, slots: usize) {
        for bits in [&mut self.fresh, &mut self.unsealed, &mut self.unpublished] {
            bits.extend(slots - self.slots, false);
        }
        self.slots = slots;
    }

    pub(super) fn changed(&mut self, slots: &[u32]) {
        slots.iter().for_each(|slot| self.fresh.set(*slot as usize, true));
    }

    /// The slots came from the store: they are not published.
    pub(super) fn loaded(&mut self, slots: &[u32]) {
        slots.iter().for_each(|slot| self.unpublished.set(*slot as usize, true));
    }

    /// Slots that changed since they were last taken for being stored, in order.
    pub(super) fn take_unsealed(&mut self) -> Vec<u32> {
        self.pass_on();
        let changed = self.unsealed.ones().map(|slot| slot as u32).collect();
        self.unsealed.clear();
        changed
    }

    /// Slots that changed since they were last taken for being published.
    pub(super) fn take_unpublished(&mut self) -> Bits {
        self.pass_on();
        let mut empty = Bits::default();
        empty.extend(self.slots, false);
        std::mem::replace(&mut self.unpublished, empty)
    }

    fn pass_on(&mut self) {
        self.unsealed.union(&self.fresh);
        self.unpublished.union(&self.fresh);
        self.fresh.clear();
    }

    pub(super) fn bytes(&self) -> usize {
        self.fresh.bytes() + self.unsealed.bytes() + self.unpublished.bytes()
    }
}
