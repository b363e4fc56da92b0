//! How many rows were late, by operator: the one count that outlives a restart, for it tells of rows that are gone.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use segue_types::{ObjectId, StateBlob};

use super::operator_id;
use crate::arrangement::{Arrangement, Changes};
use crate::blob::{BlobOwner, SealedBlob, fingerprint};
use crate::delta::Delta;
use crate::error::RestoreError;

/// The place of the counts among the operators of their object: behind all parts of all operators.
pub(super) const LATE: u64 = 0xfffe;

pub(super) struct LateCounts {
    /// Place and count; no row where it is 0.
    rows: Arrangement,
    owner: BlobOwner,
    schema: SchemaRef,
    /// By place.
    counts: Vec<u64>,
}

impl LateCounts {
    pub(super) fn new(object: ObjectId, operators: usize) -> LateCounts {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![field("place"), field("late")]));
        let operator = operator_id(object, LATE);
        LateCounts {
            rows: Arrangement::new(&schema, vec![0], Changes::ComeAndGo),
            owner: BlobOwner { operator, fingerprint: fingerprint("late", &schema, "by place") },
            schema,
            counts: vec![0; operators],
        }
    }

    /// What changed since the last time.
    pub(super) fn seal(&mut self, counts: impl Iterator<Item = u64>) -> Vec<SealedBlob> {
        let now = counts.collect::<Vec<_>>();
        let changed = (0..now.len()).filter(|place| now[*place] != self.counts[*place]);
        let changed = changed.collect::<Vec<_>>();
        if !changed.is_empty() {
            let gone = changed.iter().filter(|place| self.counts[**place] > 0);
            let gone = gone.map(|place| (*place, self.counts[*place], -1)).collect::<Vec<_>>();
            let came = changed.iter().map(|place| (*place, now[*place], 1));
            let delta = self.delta(&gone.into_iter().chain(came).collect::<Vec<_>>());
            let located = self.rows.locate(delta.rows());
            let applied = self.rows.apply(&delta, &located, "the counts of late rows");
            applied.expect("a count that goes was there");
            self.rows.settle();
            self.counts = now;
        }
        self.rows.seal(&self.owner)
    }

    fn delta(&self, changes: &[(usize, u64, i64)]) -> Delta {
        let places = changes.iter().map(|(place, ..)| *place as i64).collect::<Int64Array>();
        let counts =
            changes.iter().map(|(_, count, _)| count.cast_signed()).collect::<Int64Array>();
        let columns: Vec<ArrayRef> = vec![Arc::new(places), Arc::new(counts)];
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("two numbers");
        Delta::weighted(rows, changes.iter().map(|(.., weight)| *weight).collect())
    }

    pub(super) fn bases(&self) -> Vec<SealedBlob> {
        self.rows.bases(&self.owner)
    }

    /// Takes over stored counts; returns them by place.
    pub(super) fn load(&mut self, blobs: &[StateBlob]) -> Result<&[u64], RestoreError> {
        self.rows.load(&self.owner, blobs)?;
        for delta in self.rows.contents() {
            let [places, counts] = [0, 1]
                .map(|column| delta.rows().column(column).as_primitive::<Int64Type>().clone());
            for (place, count) in places.values().iter().zip(counts.values()) {
                if let Some(held) = self.counts.get_mut(*place as usize) {
                    *held = count.cast_unsigned();
                }
            }
        }
        Ok(&self.counts)
    }
}
