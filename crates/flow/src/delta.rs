//! The Z-set algebra: a *delta* is rows with signed weights; a relation is the sum of its deltas.
//!
//! Invariants: one weight per row, and no weight is zero.

use std::ops::Range;

use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{concat_batches, take_record_batch};

use crate::consolidate::consolidate_rows;

/// Changes to a relation: row `i` of `rows` is added `weights[i]` times, removed when negative.
/// Without weights every row is added once, which keeps append-only plans free of the column.
#[derive(Clone, Debug)]
pub struct Delta {
    rows: RecordBatch,
    weights: Option<ScalarBuffer<i64>>,
}

impl Delta {
    /// Every row is added once.
    pub fn inserts(rows: RecordBatch) -> Delta {
        Delta { rows, weights: None }
    }

    /// Rows with their weights.
    ///
    /// # Panics
    /// If the lengths differ or a weight is zero.
    pub fn weighted(rows: RecordBatch, weights: ScalarBuffer<i64>) -> Delta {
        assert_eq!(rows.num_rows(), weights.len(), "one weight per row");
        assert!(weights.iter().all(|weight| *weight != 0), "a row of weight 0 is no change");
        if weights.iter().all(|weight| *weight == 1) {
            return Delta::inserts(rows);
        }
        Delta { rows, weights: Some(weights) }
    }

    /// `removed` goes once each, `added` comes once each.
    ///
    /// # Panics
    /// If the schemas differ.
    pub fn replacing(removed: &RecordBatch, added: &RecordBatch) -> Delta {
        if removed.num_rows() == 0 {
            return Delta::inserts(added.clone());
        }
        let weights = std::iter::repeat_n(-1, removed.num_rows())
            .chain(std::iter::repeat_n(1, added.num_rows()))
            .collect();
        let rows =
            concat_batches(&added.schema(), [removed, added]).expect("one relation, one schema");
        Delta { rows, weights: Some(weights) }
    }

    /// The rows.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// The weights; `None` when all are +1.
    pub fn weights(&self) -> Option<&ScalarBuffer<i64>> {
        self.weights.as_ref()
    }

    /// The weight of one row.
    pub fn weight(&self, row: usize) -> i64 {
        self.weights.as_ref().map_or(1, |weights| weights[row])
    }

    /// How many rows it carries, whatever their weights.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same weights over other columns, row by row.
    ///
    /// # Panics
    /// If the number of rows differs.
    #[must_use]
    pub fn with_rows(&self, rows: RecordBatch) -> Delta {
        assert_eq!(rows.num_rows(), self.len(), "one row for each weight");
        Delta { rows, weights: self.weights.clone() }
    }

    /// The rows at `indices`, with their weights.
    #[must_use]
    pub fn take(&self, indices: &UInt32Array) -> Delta {
        assert_eq!(indices.null_count(), 0, "a row is taken or not");
        let rows = take_record_batch(&self.rows, indices).expect("indices are within the batch");
        let weights = self
            .weights
            .as_ref()
            .map(|weights| indices.values().iter().map(|index| weights[*index as usize]).collect());
        Delta { rows, weights }
    }

    /// A run of its rows, without copying them.
    #[must_use]
    pub(crate) fn slice(&self, run: &Range<usize>) -> Delta {
        let rows = self.rows.slice(run.start, run.len());
        match self.weights.as_ref().map(|weights| weights.slice(run.start, run.len())) {
            Some(weights) => Delta::weighted(rows, weights),
            None => Delta::inserts(rows),
        }
    }

    /// Equal rows summed into one, rows of weight 0 left out.
    #[must_use]
    pub fn consolidated(self) -> Delta {
        let ones = || ScalarBuffer::from(vec![1; self.rows.num_rows()]);
        consolidate_rows(&self.rows, &self.weights.clone().unwrap_or_else(ones))
    }

    /// The sum of deltas of one relation; `None` when there are none.
    pub fn sum(deltas: &[Delta]) -> Option<Delta> {
        match deltas {
            [] => None,
            [one] => Some(one.clone()),
            [first, ..] => {
                let batches = deltas.iter().map(|delta| &delta.rows);
                let rows = concat_batches(&first.rows.schema(), batches)
                    .expect("deltas of one relation have one schema");
                let weights = deltas.iter().any(|delta| delta.weights.is_some()).then(|| {
                    let each = |delta: &Delta| {
                        (0..delta.len()).map(|i| delta.weight(i)).collect::<Vec<_>>()
                    };
                    deltas.iter().flat_map(each).collect()
                });
                Some(Delta { rows, weights })
            }
        }
    }
}
