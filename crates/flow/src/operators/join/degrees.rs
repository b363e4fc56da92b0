//! How many rows of the other side each row meets, and which rows that concerns in a step.

use crate::arrangement::Arrangement;

/// When a row appears by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// While it meets something.
    Matched,
    /// While it meets nothing.
    Unmatched,
    /// Always, with whether it meets something.
    Marked,
}

/// The degrees of one side's rows, by slot.
#[derive(Debug)]
pub(super) struct Degrees {
    kept: Kept,
    counts: Vec<i64>,
    /// Slots that the step touched, with their weight and degree before it.
    touched: Vec<(u32, i64, i64)>,
    is_touched: Vec<bool>,
}

/// Rows that appear by themselves more or less often than before.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) slots: Vec<u32>,
    pub(super) weights: Vec<i64>,
    pub(super) mark: Option<bool>,
}

impl Degrees {
    pub(super) fn new(kept: Kept) -> Degrees {
        Degrees { kept, counts: Vec::new(), touched: Vec::new(), is_touched: Vec::new() }
    }

    pub(super) fn kept(&self) -> Kept {
        self.kept
    }

    pub(super) fn bytes(&self) -> usize {
        self.counts.capacity() * 9
    }

    pub(super) fn resize(&mut self, slots: usize) {
        self.counts.resize(slots, 0);
        self.is_touched.resize(slots, false);
    }

    /// Notes what a slot was before the step, at its first touch.
    pub(super) fn touch(&mut self, slot: u32, weight: i64) {
        if !std::mem::replace(&mut self.is_touched[slot as usize], true) {
            self.touched.push((slot, weight, self.counts[slot as usize]));
        }
    }

    /// A slot that the step gave to a row.
    pub(super) fn start(&mut self, slot: u32, degree: i64) {
        self.counts[slot as usize] = 0;
        self.touch(slot, 0);
        self.counts[slot as usize] = degree;
    }

    pub(super) fn add(&mut self, slot: u32, weight: i64) {
        self.counts[slot as usize] += weight;
    }

    pub(super) fn set(&mut self, slot: u32, degree: i64) {
        self.counts[slot as usize] = degree;
    }

    /// Ends a step.
    pub(super) fn settle(&mut self, rows: &Arrangement) -> Vec<Change> {
        let touched = std::mem::take(&mut self.touched);
        let mut matched = Change { mark: Some(true), ..Change::default() };
        let mut unmatched = Change { mark: Some(false), ..Change::default() };
        for (slot, weight, degree) in touched {
            self.is_touched[slot as usize] = false;
            let (now, degree_now) = (rows.weight(slot), self.counts[slot as usize]);
            // A row that went met something or nothing as others say, who came or went with it.
            assert!(now == 0 || degree_now >= 0, "a row meets no less than nothing");
            let difference = |met: bool| {
                let share = |weight, degree: i64| if (degree > 0) == met { weight } else { 0 };
                share(now, degree_now) - share(weight, degree)
            };
            for (change, met) in [(&mut matched, true), (&mut unmatched, false)] {
                let weight = difference(met);
                if weight != 0 {
                    change.slots.push(slot);
                    change.weights.push(weight);
                }
            }
        }
        let mut changes = match self.kept {
            Kept::Matched => vec![Change { mark: None, ..matched }],
            Kept::Unmatched => vec![Change { mark: None, ..unmatched }],
            Kept::Marked => vec![matched, unmatched],
        };
        changes.retain(|change| !change.slots.is_empty());
        changes
    }
}
