//! Rows that are there from the first step on and never change: VALUES, generate_series, a SELECT without FROM.

use arrow::array::RecordBatch;
use segue_types::StateBlob;

use super::{Operator, OperatorState, StateSize};
use crate::blob::SealedBlob;
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};

#[derive(Debug)]
pub(crate) struct Constant {
    rows: RecordBatch,
    started: bool,
}

impl Constant {
    pub(crate) fn new(rows: RecordBatch) -> Constant {
        Constant { rows, started: false }
    }
}

impl Operator for Constant {
    fn step(&mut self, _inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let first = !std::mem::replace(&mut self.started, true);
        Ok(if first && self.rows.num_rows() > 0 { self.contents() } else { Vec::new() })
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl OperatorState for Constant {
    /// The rows are part of the plan.
    fn seal(&mut self) -> Vec<SealedBlob> {
        Vec::new()
    }

    fn bases(&mut self) -> Vec<SealedBlob> {
        Vec::new()
    }

    fn load(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        self.started = true;
        match blobs {
            [] => Ok(()),
            [blob, ..] => Err(RestoreError::Blob {
                operator: blob.operator.0,
                group: blob.group,
                reason: "constants are not stored".to_owned(),
            }),
        }
    }

    fn contents(&mut self) -> Vec<Delta> {
        vec![Delta::inserts(self.rows.clone())]
    }

    fn size(&mut self) -> StateSize {
        StateSize::default()
    }
}
