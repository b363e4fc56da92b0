//! Consolidation: equal rows of a delta become one, with the sum of their weights.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::take_record_batch;

use crate::delta::Delta;
use crate::key::{Column, Index, hash_columns, rows_equal};

/// Each distinct row once, in order of first appearance, without those that cancel out.
pub(crate) fn consolidate_rows(rows: &RecordBatch, weights: &ScalarBuffer<i64>) -> Delta {
    let all = (0..rows.num_columns()).collect::<Vec<_>>();
    let columns = Column::of(rows, &all);
    let hashes = hash_columns(&columns, rows.num_rows());
    let mut index = Index::with_capacity(rows.num_rows());
    let mut sums = weights.to_vec();
    for (row, hash) in hashes.into_iter().enumerate() {
        let same = |first: u32| rows_equal(&columns, first as usize, &columns, row);
        match index.find(hash, same) {
            Some(first) => {
                sums[first as usize] += sums[row];
                sums[row] = 0;
            }
            None => index.insert(hash, row as u32),
        }
    }
    let kept = (0..sums.len() as u32).filter(|row| sums[*row as usize] != 0).collect::<Vec<_>>();
    let weights = kept.iter().map(|row| sums[*row as usize]).collect::<ScalarBuffer<i64>>();
    let rows =
        take_record_batch(rows, &UInt32Array::from(kept)).expect("rows are within the batch");
    Delta::weighted(rows, weights)
}
