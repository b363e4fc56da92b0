//! A store of state blobs as the engine keeps it: per (operator, group) a base and the deltas since.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use segue_flow::{BlobKind, RestRound, SealedBlob, StateBlob, StateSource};
use segue_types::OperatorId;

#[derive(Clone, Debug, Default)]
pub struct Stored {
    blobs: BTreeMap<(u64, u8), Vec<StateBlob>>,
}

impl Stored {
    pub fn keep(&mut self, sealed: &[SealedBlob]) {
        for blob in sealed.iter().map(SealedBlob::encode) {
            let stored = self.blobs.entry((blob.operator.0, blob.group)).or_default();
            match blob.kind {
                BlobKind::Base => *stored = vec![blob],
                BlobKind::Delta => stored.push(blob),
            }
        }
    }

    pub fn blobs(&self) -> Vec<StateBlob> {
        self.blobs.values().flatten().cloned().collect()
    }

    /// A round that lets all go that is clean, however little.
    pub fn round(&self) -> RestRound {
        RestRound { source: Arc::new(self.clone()), patience_rounds: 1, bytes_min: 0 }
    }
}

impl StateSource for Stored {
    fn blobs(&self, operator: OperatorId, groups: Range<u8>) -> Result<Vec<StateBlob>, String> {
        let range = (operator.0, groups.start)..(operator.0, groups.end);
        Ok(self.blobs.range(range).flat_map(|(_, blobs)| blobs).cloned().collect())
    }
}
