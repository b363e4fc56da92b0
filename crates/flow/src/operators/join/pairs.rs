//! Pairs of a changed row and a row that it meets, some thousands at a time, and the rows that they make.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{filter_record_batch, take_record_batch};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;

use super::degrees::Kept;
use super::{From, Join};
use crate::arrangement::{Arrangement, Keys};
use crate::delta::Delta;
use crate::expression::evaluate_predicate;
use crate::rows::CHUNK_ROWS;
use crate::spec::JoinKind;

/// A piece of all pairs.
#[derive(Debug)]
pub(in crate::operators) struct Pairs {
    rows: Vec<u32>,
    slots: Vec<u32>,
    /// For each changed row the first slot that it meets.
    heads: Vec<u32>,
    /// The changed row to go on with.
    next_row: usize,
    /// Slots of the row before it that had no room.
    rest: Vec<u32>,
}

impl Pairs {
    /// Of changed rows with these keys and the rows of the other side, which stays as it is until all are filled in.
    pub(in crate::operators) fn new(keys: &Keys, other: &Arrangement) -> Pairs {
        let room = keys.len().min(CHUNK_ROWS);
        Pairs {
            rows: Vec::with_capacity(room),
            slots: Vec::with_capacity(room),
            heads: other.heads(keys),
            next_row: 0,
            rest: Vec::new(),
        }
    }

    /// The next piece; false when there are no more pairs.
    pub(in crate::operators) fn fill(&mut self, other: &Arrangement) -> bool {
        self.rows.clear();
        self.slots.clear();
        loop {
            while self.rows.len() < CHUNK_ROWS
                && let Some(slot) = self.rest.pop()
            {
                self.rows.push(self.next_row as u32 - 1);
                self.slots.push(slot);
            }
            if self.rows.len() >= CHUNK_ROWS || self.next_row == self.heads.len() {
                return !self.rows.is_empty();
            }
            self.rest.extend(other.chain(self.heads[self.next_row]));
            self.next_row += 1;
        }
    }

    /// Keeps the pairs of the changed rows that are `wanted`.
    pub(in crate::operators) fn retain(&mut self, wanted: impl Fn(usize) -> bool) {
        let keep = self.rows.iter().map(|row| wanted(*row as usize)).collect::<Vec<_>>();
        let mut kept = keep.iter();
        self.rows.retain(|_| *kept.next().expect("one for each pair"));
        let mut kept = keep.iter();
        self.slots.retain(|_| *kept.next().expect("one for each pair"));
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(in crate::operators) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.rows.iter().copied().zip(self.slots.iter().copied())
    }

    pub(in crate::operators) fn weights(&self, delta: &Delta, other: &Arrangement) -> Vec<i64> {
        self.iter().map(|(row, slot)| delta.weight(row as usize) * other.weight(slot)).collect()
    }

    /// The rows of both sides next to each other.
    pub(in crate::operators) fn joined(
        &self,
        from: From,
        delta: &Delta,
        other: &Arrangement,
        schema: &SchemaRef,
    ) -> RecordBatch {
        let rows = UInt32Array::from(self.rows.clone());
        let changed = take_record_batch(delta.rows(), &rows).expect("rows are within the delta");
        let met = other.gather(&self.slots);
        let (left, right) = match from {
            From::Left => (changed, met),
            From::Right => (met, changed),
        };
        let columns = left.columns().iter().chain(right.columns()).cloned().collect();
        RecordBatch::try_new(Arc::clone(schema), columns).expect("the columns of both sides")
    }

    /// Drops the pairs that do not pass; returns the rows that remain.
    pub(in crate::operators) fn filter(
        &mut self,
        residual: &dyn PhysicalExpr,
        joined: &RecordBatch,
        errors: &mut u64,
    ) -> Result<RecordBatch, DataFusionError> {
        let mask = evaluate_predicate(residual, joined, errors)?;
        if mask.true_count() == mask.len() {
            return Ok(joined.clone());
        }
        let mut passed = mask.values().iter();
        self.rows.retain(|_| passed.next().expect("one value per pair"));
        let mut passed = mask.values().iter();
        self.slots.retain(|_| passed.next().expect("one value per pair"));
        Ok(filter_record_batch(joined, &mask)?)
    }
}

/// The deltas of one step.
#[derive(Debug, Default)]
pub(super) struct Output {
    deltas: Vec<Delta>,
}

impl Output {
    pub(super) fn push(&mut self, delta: Delta) {
        if !delta.is_empty() {
            self.deltas.push(delta);
        }
    }

    pub(super) fn pairs(&mut self, joined: RecordBatch, weights: Vec<i64>) {
        self.push(Delta::weighted(joined, weights.into()));
    }

    /// Changes whose key meets nothing.
    pub(super) fn alone(&mut self, join: &Join, from: From, kept: Kept, delta: &Delta) {
        match kept {
            Kept::Matched => {}
            Kept::Unmatched => self.push(join.by_itself(from, delta, None)),
            Kept::Marked => self.push(join.by_itself(from, delta, Some(false))),
        }
    }

    pub(super) fn into_deltas(self) -> Vec<Delta> {
        self.deltas
    }
}

/// Rows of one side in the output's columns.
pub(in crate::operators) fn by_itself(
    kind: JoinKind,
    from: From,
    delta: &Delta,
    mark: Option<bool>,
    schema: &SchemaRef,
) -> Delta {
    let rows = delta.len();
    let own = delta.rows().columns();
    let nulls = |fields: &[arrow::datatypes::FieldRef]| {
        fields.iter().map(|field| new_null_array(field.data_type(), rows)).collect::<Vec<_>>()
    };
    let width = schema.fields().len();
    let columns: Vec<ArrayRef> = match (kind, from) {
        (JoinKind::Semi | JoinKind::Anti, _) => own.to_vec(),
        (JoinKind::Mark, _) => {
            let mark = mark.expect("a mark join marks its rows");
            let mark: ArrayRef = Arc::new(BooleanArray::from(vec![mark; rows]));
            own.iter().cloned().chain([mark]).collect()
        }
        (_, From::Left) => {
            own.iter().cloned().chain(nulls(&schema.fields()[own.len()..])).collect()
        }
        (_, From::Right) => {
            nulls(&schema.fields()[..width - own.len()]).into_iter().chain(own.to_vec()).collect()
        }
    };
    let rows = RecordBatch::try_new(Arc::clone(schema), columns).expect("the output's columns");
    delta.with_rows(rows)
}

/// Left columns, then right columns, all nullable.
pub(in crate::operators) fn joined_schema(left: &SchemaRef, right: &SchemaRef) -> SchemaRef {
    let fields = left.fields().iter().chain(right.fields());
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
