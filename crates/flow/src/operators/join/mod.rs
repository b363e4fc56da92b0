//! Joins by the bilinear rule: ΔA ⋈ B, then (A + ΔA) ⋈ ΔB, each side a multiset found by its key.
//!
//! Words: a row's *degree* is how many rows of the other side it meets, copies counted and the residual condition
//! passed. What an outer, semi or anti join says of a row by itself depends on whether its degree is 0; a step notes
//! weight and degree of each row that it touches, and says the difference at its end.
//! Invariant: between steps a kept degree is what a fresh join of both sides would count. Degrees are not stored: they
//! are counted again when the sides are loaded.

mod degrees;
pub(super) mod pairs;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use segue_types::StateBlob;

use super::{Forget, Operator, OperatorState, StateSize};
use crate::arrangement::{Arrangement, Changes, Keys, Located};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::mark::Times;
use crate::spec::{JoinKind, JoinSpec, NullKeys};
use degrees::{Degrees, Kept};
use pairs::{Output, Pairs};

/// The join operator.
#[derive(Debug)]
pub(crate) struct Join {
    place: String,
    kind: JoinKind,
    null_keys: NullKeys,
    residual: Option<Arc<dyn PhysicalExpr>>,
    /// Left columns, then right columns.
    joined: SchemaRef,
    schema: SchemaRef,
    left: Side,
    right: Side,
    errors: u64,
}

/// One side.
#[derive(Debug)]
struct Side {
    rows: Arrangement,
    arrives: Arrives,
    owner: BlobOwner,
    /// Where this side's rows appear by themselves.
    degrees: Option<Degrees>,
}

/// What is known of the deltas of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrives {
    /// Rows are only added.
    Growing,
    /// A step's delta has no row twice.
    Distinct,
    Anyhow,
}

/// Which side a delta belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Left,
    Right,
}

/// A side's changes in one step: consolidated, those that can meet nothing apart.
struct Arrived {
    delta: Delta,
    keys: Keys,
    located: Located,
}

impl Join {
    pub(crate) fn new(
        place: String,
        owners: [BlobOwner; 2],
        inputs: [(&SchemaRef, Arrives); 2],
        spec: &JoinSpec,
        schema: &SchemaRef,
    ) -> Join {
        let [(left, left_arrives), (right, right_arrives)] = inputs;
        let (keeps_left, keeps_right) = match spec.kind {
            JoinKind::Inner => (None, None),
            JoinKind::Left => (Some(Kept::Unmatched), None),
            JoinKind::Full => (Some(Kept::Unmatched), Some(Kept::Unmatched)),
            JoinKind::Semi => (Some(Kept::Matched), None),
            JoinKind::Anti => (Some(Kept::Unmatched), None),
            JoinKind::Mark => (Some(Kept::Marked), None),
        };
        let [left_owner, right_owner] = owners;
        let side = |schema: &SchemaRef, key: &[usize], arrives, owner, kept: Option<Kept>| Side {
            rows: Arrangement::new(
                schema,
                key.to_vec(),
                match arrives {
                    Arrives::Growing => Changes::Come,
                    Arrives::Distinct | Arrives::Anyhow => Changes::ComeAndGo,
                },
            ),
            arrives,
            owner,
            degrees: kept.map(Degrees::new),
        };
        Join {
            place,
            kind: spec.kind,
            null_keys: spec.null_keys,
            residual: spec.residual.clone(),
            joined: pairs::joined_schema(left, right),
            schema: crate::rows::nullable(schema),
            left: side(left, &spec.left_key, left_arrives, left_owner, keeps_left),
            right: side(right, &spec.right_key, right_arrives, right_owner, keeps_right),
            errors: 0,
        }
    }

    /// The changes of one side; those whose key meets nothing are put out at once.
    fn arrive(&self, from: From, deltas: &[Delta], out: &mut Output) -> Option<Arrived> {
        let mut delta = Delta::sum(deltas).filter(|delta| !delta.is_empty())?;
        let side = self.side(from);
        delta = match side.arrives {
            Arrives::Growing => delta,
            Arrives::Distinct if deltas.len() == 1 => delta,
            Arrives::Distinct | Arrives::Anyhow => delta.consolidated(),
        };
        let mut keys = Keys::of(delta.rows(), side.rows.key());
        if self.null_keys == NullKeys::MeetNothing {
            let (met, alone): (Vec<u32>, Vec<u32>) =
                (0..delta.len() as u32).partition(|row| !keys.has_null(*row as usize));
            if !alone.is_empty() {
                if let Some(degrees) = &side.degrees {
                    out.alone(self, from, degrees.kept(), &delta.take(&alone.into()));
                }
                delta = delta.take(&met.into());
                keys = Keys::of(delta.rows(), side.rows.key());
            }
        }
        if delta.is_empty() {
            return None;
        }
        let located = side.rows.locate(delta.rows());
        Some(Arrived { delta, keys, located })
    }

    fn side(&self, from: From) -> &Side {
        match from {
            From::Left => &self.left,
            From::Right => &self.right,
        }
    }

    /// Joins the changes of one side with all of the other, then adds them to their side.
    fn meet(&mut self, from: From, arrived: &Arrived, out: &mut Output) -> Result<(), StepError> {
        let mut found = vec![0_i64; arrived.delta.len()];
        let mut pairs = Pairs::new(&arrived.keys, &self.side(other(from)).rows);
        while pairs.fill(&self.side(other(from)).rows) {
            let joined = self.joined_rows(from, &arrived.delta, &mut pairs)?;
            let counted = if self.has_degrees() { pairs.len() } else { 0 };
            for (row, slot) in pairs.iter().take(counted) {
                let weight = arrived.delta.weight(row as usize);
                found[row as usize] += self.side(other(from)).rows.weight(slot);
                let met = self.side_mut(other(from));
                if let Some(degrees) = &mut met.degrees {
                    degrees.touch(slot, met.rows.weight(slot));
                    degrees.add(slot, weight);
                }
            }
            if let Some(joined) = joined {
                let other = &self.side(other(from)).rows;
                out.pairs(joined, pairs.weights(&arrived.delta, other));
            }
        }
        let place = self.place.clone();
        let side = self.side_mut(from);
        if let Some(degrees) = &mut side.degrees {
            for slot in arrived.located.slots.iter().flatten() {
                degrees.touch(*slot, side.rows.weight(*slot));
            }
        }
        let slots = side.rows.apply(&arrived.delta, &arrived.located, &place)?;
        if let Some(degrees) = &mut side.degrees {
            degrees.resize(side.rows.slots());
            for (row, slot) in slots.iter().enumerate() {
                if arrived.located.slots[row].is_none() {
                    degrees.start(*slot, found[row]);
                }
            }
        }
        Ok(())
    }

    fn has_degrees(&self) -> bool {
        self.left.degrees.is_some() || self.right.degrees.is_some()
    }

    fn side_mut(&mut self, from: From) -> &mut Side {
        match from {
            From::Left => &mut self.left,
            From::Right => &mut self.right,
        }
    }

    /// The joined rows of `pairs`, of which only those remain that pass the residual condition; `None` when the output
    /// has no joined rows.
    fn joined_rows(
        &mut self,
        from: From,
        delta: &Delta,
        pairs: &mut Pairs,
    ) -> Result<Option<RecordBatch>, StepError> {
        let puts_out = matches!(self.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Full);
        if self.residual.is_none() && !puts_out {
            return Ok(None);
        }
        let mut joined = pairs.joined(from, delta, &self.side(other(from)).rows, &self.joined);
        if let Some(residual) = self.residual.clone() {
            joined = pairs
                .filter(residual.as_ref(), &joined, &mut self.errors)
                .map_err(|source| StepError::Compute { place: self.place.clone(), source })?;
        }
        Ok(puts_out.then_some(joined))
    }

    /// What the rows that were touched say by themselves, now and before.
    fn settle(&mut self, out: &mut Output) {
        for from in [From::Left, From::Right] {
            let side = self.side_mut(from);
            let changes = side.degrees.as_mut().map(|degrees| degrees.settle(&side.rows));
            if let Some(changes) = changes {
                for change in changes {
                    let rows = self.side(from).rows.gather(&change.slots);
                    let delta = Delta::weighted(rows, change.weights.into());
                    out.push(self.by_itself(from, &delta, change.mark));
                }
            }
            self.side_mut(from).rows.settle();
        }
    }

    /// Rows of one side in the output's columns: the other side's are NULL, a mark is appended.
    fn by_itself(&self, from: From, delta: &Delta, mark: Option<bool>) -> Delta {
        pairs::by_itself(self.kind, from, delta, mark, &self.schema)
    }

    /// Counts all degrees anew.
    fn count_degrees(&mut self) -> Result<(), StepError> {
        for from in [From::Left, From::Right] {
            if self.side(from).degrees.is_none() {
                continue;
            }
            let slots = self.side(from).rows.live().collect::<Vec<_>>();
            for slots in slots.chunks(crate::rows::CHUNK_ROWS) {
                let delta = Delta::inserts(self.side(from).rows.gather(slots));
                let keys = Keys::of(delta.rows(), self.side(from).rows.key());
                let mut found = vec![0; slots.len()];
                let mut pairs = Pairs::new(&keys, &self.side(other(from)).rows);
                while pairs.fill(&self.side(other(from)).rows) {
                    self.joined_rows(from, &delta, &mut pairs)?;
                    for (row, slot) in pairs.iter() {
                        found[row as usize] += self.side(other(from)).rows.weight(slot);
                    }
                }
                let side = self.side_mut(from);
                let degrees = side.degrees.as_mut().expect("checked above");
                degrees.resize(side.rows.slots());
                slots.iter().zip(found).for_each(|(slot, count)| degrees.set(*slot, count));
            }
        }
        Ok(())
    }
}

impl Join {
    /// The same, of which rows may go when they meet nothing any more.
    pub(crate) fn forgetful(mut self) -> Join {
        for side in [&mut self.left, &mut self.right] {
            let empty = Arrangement::new(&self.schema, Vec::new(), Changes::ComeAndGo);
            side.rows = std::mem::replace(&mut side.rows, empty).forgetful();
            // Equal rows are one, which can be taken out.
            if side.arrives == Arrives::Growing {
                side.arrives = Arrives::Anyhow;
            }
        }
        self
    }
}

impl Forget for Join {
    fn forget(
        &mut self,
        input: usize,
        column: usize,
        is_over: &dyn Fn(i64) -> bool,
    ) -> Result<Times, StepError> {
        let side = if input == 0 { &mut self.left } else { &mut self.right };
        let (_, left) = side.rows.forget(column, is_over);
        side.rows.settle();
        Ok(left)
    }
}

fn other(from: From) -> From {
    match from {
        From::Left => From::Right,
        From::Right => From::Left,
    }
}

impl Operator for Join {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let mut out = Output::default();
        // A side's changes are located only when the other's were added: a self join reads one delta twice.
        for (from, deltas) in [(From::Left, inputs[0]), (From::Right, inputs[1])] {
            if let Some(arrived) = self.arrive(from, deltas, &mut out) {
                self.meet(from, &arrived, &mut out)?;
            }
        }
        self.settle(&mut out);
        Ok(out.into_deltas())
    }

    fn expression_errors(&self) -> u64 {
        self.errors
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl OperatorState for Join {
    fn seal(&mut self) -> Vec<SealedBlob> {
        let mut blobs = self.left.rows.seal(&self.left.owner);
        blobs.extend(self.right.rows.seal(&self.right.owner));
        blobs
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        let mut blobs = self.left.rows.bases(&self.left.owner);
        blobs.extend(self.right.rows.bases(&self.right.owner));
        blobs
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        for side in [&mut self.left, &mut self.right] {
            let own = blobs.iter().filter(|blob| blob.operator == side.owner.operator);
            side.rows.load(&side.owner, &own.cloned().collect::<Vec<_>>())?;
        }
        self.count_degrees().map_err(|error| RestoreError::Rebuild { reason: error.to_string() })
    }

    fn contents(&mut self) -> Vec<Delta> {
        unreachable!("no relation is derived from a join")
    }

    fn size(&mut self) -> StateSize {
        let sides = [&self.left, &self.right];
        let degrees = |side: &Side| side.degrees.as_ref().map_or(0, Degrees::bytes);
        StateSize {
            rows: sides.iter().map(|side| side.rows.row_count()).sum(),
            bytes: sides.iter().map(|side| side.rows.bytes() + degrees(side)).sum(),
        }
    }
}
