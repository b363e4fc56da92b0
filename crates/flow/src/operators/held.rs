//! Rows by a key that are an operator's state, or a part of it, and who stores them.

use segue_types::StateBlob;

use super::{OperatorState, StateSize};
use crate::arrangement::Arrangement;
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::RestoreError;

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) rows: Arrangement,
    pub(crate) owner: BlobOwner,
}

impl OperatorState for Held {
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
        self.rows.contents()
    }

    fn size(&mut self) -> StateSize {
        StateSize { rows: self.rows.row_count(), bytes: self.rows.bytes() }
    }
}
