//! A store of state blobs as the engine keeps it: per (operator, group) a base and the deltas since.

use std::collections::BTreeMap;

use segue_flow::{BlobKind, SealedBlob, StateBlob};

#[derive(Debug, Default)]
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
}
