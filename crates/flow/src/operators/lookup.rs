//! The temporal join: each arriving row meets the rows of the other side that are there at that moment, for good.
//!
//! Rows of the looked-up side that come or go later change nothing that was put out, so this is the one operator whose
//! output depends on the order of arrival. FOR SYSTEM_TIME AS OF PROCTIME() asks for that. It keeps that side, and of a
//! side whose rows may be taken back what they were given.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use segue_types::StateBlob;

use super::join::From;
use super::join::pairs::{Pairs, by_itself, joined_schema};
use super::{Given, Held, Operator, OperatorState, StateSize};
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
    right: Held,
    /// `None` where the arriving rows stay.
    given: Option<Given>,
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
            right: Held {
                rows: Arrangement::new(right, spec.right_key.clone(), Changes::ComeAndGo),
                owner,
            },
            spec: spec.clone(),
            given: None,
            errors: 0,
        }
    }

    /// The same for a side whose rows may be taken back.
    #[must_use]
    pub(crate) fn remembering(mut self, left: &SchemaRef, owners: [BlobOwner; 2]) -> Lookup {
        self.given = Some(Given::new((left, &self.spec.left_key), &self.schema, owners));
        self
    }

    /// What goes takes back what it was given; what comes looks up.
    fn replace(&mut self, deltas: &[Delta]) -> Result<Vec<Delta>, StepError> {
        let Some(delta) = Delta::sum(deltas).map(Delta::consolidated) else {
            return Ok(Vec::new());
        };
        let mut given = self.given.take().expect("the caller has looked");
        let (back, come) = given.take_back(&delta, &self.schema);
        let mut out = Vec::new();
        self.look_up(&come, &mut out)?;
        let out = back.into_iter().chain(self.named(out)).collect::<Vec<_>>();
        given.note(&delta, &out, &self.place)?;
        self.given = Some(given);
        Ok(out)
    }

    fn named(&self, mut out: Vec<Delta>) -> Vec<Delta> {
        out.retain(|delta| !delta.is_empty());
        let named = out.into_iter().map(|delta| {
            let columns = delta.rows().columns().to_vec();
            let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns);
            delta.with_rows(rows.expect("the output's columns"))
        });
        named.collect()
    }

    fn update(&mut self, deltas: &[Delta]) -> Result<(), StepError> {
        let Some(delta) = Delta::sum(deltas) else { return Ok(()) };
        let delta = delta.consolidated();
        let located = self.right.rows.locate(delta.rows());
        self.right.rows.apply(&delta, &located, &self.place)?;
        self.right.rows.settle();
        Ok(())
    }

    fn look_up(&mut self, delta: &Delta, out: &mut Vec<Delta>) -> Result<(), StepError> {
        let keys = Keys::of(delta.rows(), &self.spec.left_key);
        let mut found = vec![false; delta.len()];
        let mut pairs = Pairs::new(&keys, &self.right.rows);
        let meets_null = self.spec.null_keys == NullKeys::MeetNull;
        while pairs.fill(&self.right.rows) {
            if !meets_null {
                pairs.retain(|row| !keys.has_null(row));
            }
            let mut joined = pairs.joined(From::Left, delta, &self.right.rows, &self.joined);
            if let Some(residual) = &self.spec.residual {
                joined = pairs
                    .filter(residual.as_ref(), &joined, &mut self.errors)
                    .map_err(|source| StepError::Compute { place: self.place.clone(), source })?;
            }
            pairs.iter().for_each(|(row, _)| found[row as usize] = true);
            out.push(Delta::weighted(joined, pairs.weights(delta, &self.right.rows).into()));
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
        if self.given.is_some() {
            return self.replace(inputs[0]);
        }
        let mut out = Vec::new();
        for delta in inputs[0] {
            self.look_up(delta, &mut out)?;
        }
        Ok(self.named(out))
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
        let mut blobs = self.right.seal();
        blobs.extend(self.given.iter_mut().flat_map(Given::seal));
        blobs
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        let given = self.given.iter().flat_map(Given::bases);
        self.right.bases().into_iter().chain(given).collect()
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        let Some(given) = &mut self.given else { return self.right.load(blobs) };
        given.load(blobs)?;
        let own = blobs.iter().filter(|blob| blob.operator == self.right.owner.operator);
        self.right.load(&own.cloned().collect::<Vec<_>>())
    }

    fn contents(&mut self) -> Vec<Delta> {
        unreachable!("no relation is derived from a temporal join")
    }

    fn size(&mut self) -> StateSize {
        let own = self.right.size();
        self.given.iter().map(Given::size).chain([own]).sum()
    }
}
