//! Changelog: what a relation changed becomes rows, which stay, each with what it did.
//!
//! Of the rows of a step that go and come under one key, one is the other's update; without a key they are paired in
//! their order, which is right for what one statement writes. What is filled in at first was added.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int16Array, UInt32Array};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;

use super::Operator;
use crate::delta::Delta;
use crate::error::StepError;
use crate::key::{Column, Index, hash_rows, rows_equal};

const INSERTED: i16 = 1;
const DELETED: i16 = 2;
const UPDATED_TO: i16 = 3;
const UPDATED_FROM: i16 = 4;

#[derive(Debug)]
pub(crate) struct Changelog {
    place: String,
    key: Vec<usize>,
    schema: SchemaRef,
}

impl Changelog {
    pub(crate) fn new(place: String, key: Vec<usize>, schema: SchemaRef) -> Changelog {
        Changelog { place, key, schema }
    }

    /// The rows of a delta as they are put out, and what each did.
    fn log(&self, delta: &Delta) -> (Vec<u32>, Vec<i16>) {
        let mut removed = Vec::new();
        let mut added = Vec::with_capacity(delta.len());
        for row in 0..delta.len() {
            let weight = delta.weight(row);
            let to = if weight < 0 { &mut removed } else { &mut added };
            to.extend(std::iter::repeat_n(row as u32, weight.unsigned_abs() as usize));
        }
        let pairs = self.pairs(delta.rows(), &removed, &added);
        let mut rows = Vec::with_capacity(removed.len() + added.len());
        let mut ops = Vec::with_capacity(rows.capacity());
        let mut put = |row: u32, op: i16| {
            rows.push(row);
            ops.push(op);
        };
        let mut is_updated = vec![false; removed.len()];
        let mut fresh = Vec::new();
        for (row, pair) in added.iter().zip(pairs) {
            match pair {
                Some(old) => {
                    is_updated[old] = true;
                    put(removed[old], UPDATED_FROM);
                    put(*row, UPDATED_TO);
                }
                None => fresh.push(*row),
            }
        }
        let gone = removed.iter().zip(is_updated).filter(|(_, updated)| !updated);
        gone.for_each(|(row, _)| put(*row, DELETED));
        fresh.into_iter().for_each(|row| put(row, INSERTED));
        (rows, ops)
    }

    /// For each added row the place among those removed of the one that it replaces.
    fn pairs(&self, rows: &RecordBatch, removed: &[u32], added: &[u32]) -> Vec<Option<usize>> {
        if self.key.is_empty() || removed.is_empty() {
            let pair = |place: usize| (place < removed.len()).then_some(place);
            return (0..added.len()).map(pair).collect();
        }
        let columns = Column::of(rows, &self.key);
        let hashes = hash_rows(rows, &self.key);
        let mut index = Index::with_capacity(removed.len());
        for (place, row) in removed.iter().enumerate() {
            let same = |other: u32| {
                rows_equal(&columns, removed[other as usize] as usize, &columns, *row as usize)
            };
            index.find_or_insert(hashes[*row as usize], place as u32, same);
        }
        let pair = |row: &u32| {
            let same = |place: u32| {
                rows_equal(&columns, removed[place as usize] as usize, &columns, *row as usize)
            };
            index.find(hashes[*row as usize], same).map(|place| place as usize)
        };
        added.iter().map(pair).collect()
    }

    fn rows(&self, delta: &Delta) -> Result<Delta, DataFusionError> {
        let (rows, ops) = self.log(delta);
        let taken = Delta::inserts(delta.rows().clone()).take(&UInt32Array::from(rows));
        let mut columns: Vec<ArrayRef> = taken.rows().columns().to_vec();
        columns.push(Arc::new(Int16Array::from(ops)));
        Ok(Delta::inserts(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

impl Operator for Changelog {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let Some(delta) = Delta::sum(inputs[0]) else { return Ok(Vec::new()) };
        let delta = if delta.weights().is_some() { delta.consolidated() } else { delta };
        if delta.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |source| StepError::Compute { place: self.place.clone(), source };
        Ok(vec![self.rows(&delta).map_err(failed)?])
    }
}
