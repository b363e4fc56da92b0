//! State blobs in parts: redb gives a value that is larger than a page a run of pages of a power of
//! two, so a part stays just below one, and a blob of any size costs neither a huge free run nor twice
//! its length.
//!
//! The payload of a part is `[parts u32][blob bytes u64][slice]`. Every part carries both numbers, so that
//! a missing one is noticed whichever it is.

use crate::error::Corruption;
use crate::record::{HEADER_BYTES, corruption};
use crate::tables::Table;

/// What stands before the slice of a part.
const PART_HEADER_BYTES: usize = 12;
/// The slice of a full part. The rest of the mebibyte is for the headers, the key and redb's own.
pub(crate) const PART_BYTES: usize = 1024 * 1024 - HEADER_BYTES - PART_HEADER_BYTES - 128;

/// The parts of a blob: number, header, slice. An empty blob has one empty part.
pub(crate) fn parts(bytes: &[u8]) -> impl Iterator<Item = (u32, [u8; PART_HEADER_BYTES], &[u8])> {
    let count = bytes.len().div_ceil(PART_BYTES).max(1);
    let count = u32::try_from(count).expect("a blob is held in memory, so it has few parts");
    let mut header = [0; PART_HEADER_BYTES];
    header[..4].copy_from_slice(&count.to_be_bytes());
    header[4..].copy_from_slice(&(bytes.len() as u64).to_be_bytes());
    (0..count).map(move |part| {
        let start = part as usize * PART_BYTES;
        let end = bytes.len().min(start + PART_BYTES);
        (part, header, &bytes[start..end])
    })
}

/// Puts a blob together from its parts, which arrive in order.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    parts_seen: u32,
    parts: u32,
    length: u64,
}

impl Assembly {
    /// Takes the next part. The blob, when this was its last.
    pub(crate) fn push(
        &mut self,
        table: &Table,
        key: &[u8],
        part: u32,
        payload: &[u8],
    ) -> Result<Option<Vec<u8>>, Corruption> {
        let Some((header, slice)) = payload.split_at_checked(PART_HEADER_BYTES) else {
            return Err(corruption(table, key, "too short for a part of a blob"));
        };
        let parts = u32::from_be_bytes(header[..4].try_into().expect("split off whole"));
        let length = u64::from_be_bytes(header[4..].try_into().expect("split off whole"));
        if part != self.parts_seen {
            let reason = format!("part {} is missing", self.parts_seen);
            return Err(corruption(table, key, reason));
        }
        if part == 0 {
            (self.parts, self.length) = (parts, length);
        }
        if (parts, length) != (self.parts, self.length) || part >= parts {
            return Err(corruption(table, key, "part of another blob"));
        }
        self.bytes.extend_from_slice(slice);
        self.parts_seen += 1;
        if self.parts_seen < self.parts {
            return Ok(None);
        }
        let blob = std::mem::take(self);
        match blob.bytes.len() as u64 == blob.length {
            true => Ok(Some(blob.bytes)),
            false => Err(corruption(table, key, format!("{} bytes of {length}", blob.bytes.len()))),
        }
    }

    /// Whether parts have been taken that are no whole blob yet.
    pub(crate) fn is_partial(&self) -> bool {
        self.parts_seen > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::STATE_BASE;

    fn assemble(parts: &[(u32, Vec<u8>)]) -> Result<Option<Vec<u8>>, Corruption> {
        let mut assembly = Assembly::default();
        let mut blob = None;
        for (part, payload) in parts {
            assert!(blob.is_none(), "a blob ends with its last part");
            blob = assembly.push(&STATE_BASE, &[0; 13], *part, payload)?;
        }
        assert_eq!(assembly.is_partial(), blob.is_none());
        Ok(blob)
    }

    fn payloads(bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        parts(bytes).map(|(part, header, slice)| (part, [&header, slice].concat())).collect()
    }

    #[test]
    fn blobs_of_every_awkward_length_come_back() {
        for length in [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES] {
            let bytes: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let parts = payloads(&bytes);
            assert_eq!(parts.len(), length.div_ceil(PART_BYTES).max(1));
            assert_eq!(assemble(&parts), Ok(Some(bytes)));
        }
    }

    #[test]
    fn a_missing_or_foreign_part_is_noticed() {
        let whole = payloads(&vec![7; 2 * PART_BYTES + 5]);
        assert!(assemble(&whole[1..]).is_err());
        assert!(assemble(&[whole[0].clone(), whole[2].clone()]).is_err());
        assert_eq!(assemble(&whole[..2]), Ok(None));
        let other = payloads(&vec![7; 2 * PART_BYTES + 6]);
        assert!(assemble(&[whole[0].clone(), other[1].clone()]).is_err());
        assert!(assemble(&[(0, vec![0; 3])]).is_err());
    }
}
