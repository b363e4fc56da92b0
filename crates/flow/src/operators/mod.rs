//! The operator interface, and the operators without state.
//!
//! An operator gets the deltas of one step and answers with its own. Stateless ones work row by row, so
//! they may be asked at any time; stateful ones also seal and load what they hold.

mod changelog;
mod constant;
mod filter;
mod given;
mod held;
mod join;
mod lookup;
mod normalise;
mod project;
mod recompute;
mod stored_rows;
mod time;
mod top_n;
mod union_all;
mod unnest;

use segue_types::StateBlob;

use crate::blob::SealedBlob;
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::rows::RelationVersion;
use crate::workers::{RestRound, Rested};

pub(crate) use changelog::Changelog;
pub(crate) use constant::Constant;
pub(crate) use filter::Filter;
pub(crate) use given::Given;
pub(crate) use held::Held;
pub(crate) use join::{Arrives, Join};
pub(crate) use lookup::Lookup;
pub(crate) use normalise::Normalise;
pub(crate) use project::Project;
pub(crate) use recompute::Recompute;
pub(crate) use stored_rows::StoredRows;
pub(crate) use time::{
    DropLate, Forget, Forgetting, Least, Settled, Temporal, Ticks, Untimed, Watermark, Withhold,
    split_late,
};
pub(crate) use top_n::TopN;
pub(crate) use union_all::UnionAll;
pub(crate) use unnest::Unnest;

/// How much an operator holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StateSize {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl std::iter::Sum for StateSize {
    fn sum<I: Iterator<Item = StateSize>>(sizes: I) -> StateSize {
        sizes.fold(StateSize::default(), |sum, size| StateSize {
            rows: sum.rows + size.rows,
            bytes: sum.bytes + size.bytes,
        })
    }
}

/// One operator of a running dataflow.
pub(crate) trait Operator: Send {
    /// The output's delta for one step; `inputs` has one list per input node, in the spec's order.
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError>;

    /// A step whose output nobody reads, so that it need not be made.
    fn absorb(&mut self, inputs: &[&[Delta]]) -> Result<(), StepError> {
        self.step(inputs).map(drop)
    }

    /// Rows for which an expression failed.
    fn expression_errors(&self) -> u64 {
        0
    }

    /// Rows that are there and for which a subquery that stands for one value has several rows.
    fn several_rows(&self) -> i64 {
        0
    }

    /// Rows that came when their time had been passed, and were dropped.
    fn late_rows(&self) -> u64 {
        0
    }

    /// The time at which the clock will change something, if nothing else does.
    fn due(&self) -> Option<i64> {
        None
    }

    /// Lets state that is not in use leave memory.
    fn rest(&mut self, _round: &RestRound) -> Rested {
        Rested::default()
    }

    /// Reads back all that has left memory.
    fn wake(&mut self) -> Result<(), RestoreError> {
        Ok(())
    }

    /// How much has left memory.
    fn resting(&self) -> StateSize {
        StateSize::default()
    }

    /// The state, where there is any.
    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        None
    }
}

/// What a stateful operator can do besides stepping.
pub(crate) trait OperatorState: Send {
    /// What changed since the last seal.
    fn seal(&mut self) -> Vec<SealedBlob>;

    /// All that it holds, as stored blobs that need no others.
    fn bases(&mut self) -> Vec<SealedBlob>;

    /// Takes over stored blobs into an operator that has not stepped.
    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError>;

    /// The sum of all deltas put out so far.
    fn contents(&mut self) -> Vec<Delta>;

    fn size(&mut self) -> StateSize;

    /// What the dataflow's relation holds now, where it is this operator's own rows.
    fn relation(&mut self) -> Option<RelationVersion> {
        None
    }

    /// How many rows the relation got that no step put out.
    fn rows_published(&mut self) -> u64 {
        0
    }

    /// How much the relation holds beside the state.
    fn relation_size(&mut self) -> Option<StateSize> {
        None
    }
}
