//! Rows of a relation that are state: those of a normaliser, and those of a dataflow that ends in no operator's rows.

use segue_types::StateBlob;

use super::{OperatorState, StateSize};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;
use crate::error::RestoreError;
use crate::rows::{RelationVersion, Rows};

#[derive(Debug)]
pub(crate) struct StoredRows {
    pub(crate) rows: Rows,
    pub(crate) owner: BlobOwner,
}

impl OperatorState for StoredRows {
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

    fn relation(&mut self) -> Option<RelationVersion> {
        Some(self.rows.version())
    }
}
