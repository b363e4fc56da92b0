//! The temporal join: each arriving row meets the rows of the other side that are there at that moment, for good.
//!
//! It keeps the looked-up side alone. Rows of that side that come or go later change nothing that was put out, so this
//! is the one operator whose output depends on the order of arrival. FOR SYSTEM_TIME AS OF PROCTIME() asks for that.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use segue_types::StateBlob;

use super::join::From;
use super::join::pairs::{Pairs, by_itself, joined_schema};
use super::{Operator, OperatorState, StateSize};
use crate::arrangement::{Arrangement, Changes, Keys};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::spec::{JoinKind, JoinSpec, NullKeys};

#[derive(Debug)]
pub(crate) struct Lookup {
    place: String,
    spec: JoinSpec,
    joined: SchemaRef,
    schema: SchemaRef,
    rows: Arrangement,
    owner: BlobOwner,
    errors: u64,
}

impl Lookup {
    pub(crate) fn new(
        place: String,
        owner: BlobOwner,
        inputs: [&SchemaRef; 2],
        spec: &JoinSpec,
        schema: &SchemaRef,
    ) -> Lookup {
        assert!(
            matches!(spec.kind, JoinKind::Inner | JoinKind::Left),
            "a temporal join is an inner or a left one"
        );
        let [left, right] = inputs;
        Lookup {
            place,
            joined: joined_schema(left, right),
            schema: crate::rows::nullable(schema),
            rows: Arrangement::new(right, spec.right_key.clone(), Changes::ComeAndGo),
            spec: spec.clone(),
            owner,
            errors: 0,
        }
    }

    fn update(&mut self, deltas: &[Delta]) -> Result<(), StepError> {
        let Some(delta) = Delta::sum(deltas) else { return Ok(()) };
        let delta = delta.consolidated();
        let located = self.rows.locate(delta.rows());
        self.rows.apply(&delta, &located, &self.place)?;
        self.rows.settle();
        Ok(())
    }

    fn look_up(&mut self, delta: &Delta, out: &mut Vec<Delta>) -> Result<(), StepError> {
        let keys = Keys::of(delta.rows(), &self.spec.left_key);
        let mut found = vec![false; delta.len()];
        let mut pairs = Pairs::new(&keys, &self.rows);
        let meets_null = self.spec.null_keys == NullKeys::MeetNull;
        while pairs.fill(&self.rows) {
            if !meets_null {
                pairs.retain(|row| !keys.has_null(row));
            }
            let mut joined = pairs.joined(From::Left, delta, &self.rows, &self.joined);
            if let Some(residual) = &self.spec.residual {
                joined = pairs
                    .filter(residual.as_ref(), &joined, &mut self.errors)
                    .map_err(|source| StepError::Compute { place: self.place.clone(), source })?;
            }
            pairs.iter().for_each(|(row, _)| found[row as usize] = true);
            out.push(Delta::weighted(joined, pairs.weights(delta, &self.rows).into()));
        }
        if self.spec.kind == JoinKind::Left {
            let alone = (0..delta.len() as u32).filter(|row| !found[*row as usize]);
            let alone = delta.take(&alone.collect::<Vec<_>>().into());
            out.push(by_itself(JoinKind::Left, From::Left, &alone, None, &self.schema));
        }
        Ok(())
    }
}

impl Operator for Lookup {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        self.update(inputs[1])?;
        let mut out = Vec::new();
        for delta in inputs[0] {
            self.look_up(delta, &mut out)?;
        }
        out.retain(|delta| !delta.is_empty());
        let named = out.into_iter().map(|delta| {
            let columns = delta.rows().columns().to_vec();
            let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns);
            delta.with_rows(rows.expect("the output's columns"))
        });
        Ok(named.collect())
    }

    fn expression_errors(&self) -> u64 {
        self.errors
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl OperatorState for Lookup {
    fn seal(&mut self) -> Vec<SealedBlob> {
        self.rows.seal(&self.owner)
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        self.rows.bases(&self.owner)
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.rows.load(&self.owner, blobs)
    }

    fn contents(&mut self) -> Vec<Delta> {
        unreachable!("no relation is derived from a temporal join")
    }

    fn size(&mut self) -> StateSize {
        StateSize { rows: self.rows.row_count(), bytes: self.rows.bytes() }
    }
}
