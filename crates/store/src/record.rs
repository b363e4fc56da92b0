//! A *record*: a stored value behind its version and its checksum.
//!
//! ```text
//! byte 0      version
//! bytes 1–8   xxh3-64, big-endian, of table name, key, version and payload
//! bytes 9–    payload
//! ```
//!
//! Table and key are in the checksum, so that a record found under another key is as wrong as a flipped bit.
//! redb has checksums of its pages, but looks at them after a crash only.

use redb::{ReadableTable, StorageError};
use xxhash_rust::xxh3::Xxh3;

use crate::error::Corruption;
use crate::tables::Table;

/// The version that is written.
const VERSION: u8 = 1;
/// What stands before the payload.
pub(crate) const HEADER_BYTES: usize = 9;

/// Fills `record` with header, `prefix` and `body`; it is exactly as long as they are.
fn write_record(table: &Table, key: &[u8], prefix: &[u8], body: &[u8], record: &mut [u8]) {
    assert_eq!(record.len(), HEADER_BYTES + prefix.len() + body.len());
    let checksum = checksum(table, key, VERSION, prefix, body);
    record[0] = VERSION;
    record[1..HEADER_BYTES].copy_from_slice(&checksum.to_be_bytes());
    let (front, back) = record[HEADER_BYTES..].split_at_mut(prefix.len());
    front.copy_from_slice(prefix);
    back.copy_from_slice(body);
}

/// The payload of a record, if it is what was written under this key.
pub(crate) fn payload<'a>(
    table: &Table,
    key: &[u8],
    record: &'a [u8],
) -> Result<&'a [u8], Corruption> {
    let wrong = |reason: String| corruption(table, key, reason);
    if table.key.iter().sum::<usize>() != key.len() && !table.key.is_empty() {
        return Err(wrong(format!("a key of {} bytes", key.len())));
    }
    let Some((header, payload)) = record.split_at_checked(HEADER_BYTES) else {
        return Err(wrong(format!("{} bytes are too short for a record", record.len())));
    };
    let stored = u64::from_be_bytes(header[1..].try_into().expect("the header is split off whole"));
    if checksum(table, key, header[0], payload, &[]) != stored {
        return Err(wrong("the checksum does not match".to_owned()));
    }
    // After the checksum: a version that a bit flip made is a flipped bit, not a newer server.
    if header[0] != VERSION {
        return Err(wrong(format!("record version {} is not known to this server", header[0])));
    }
    Ok(payload)
}

/// The complaint about one record.
pub(crate) fn corruption(table: &Table, key: &[u8], reason: impl Into<String>) -> Corruption {
    Corruption { table: table.name, key: table.show_key(key), reason: reason.into() }
}

fn checksum(table: &Table, key: &[u8], version: u8, prefix: &[u8], body: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(table.name.as_bytes());
    hash.update(key);
    hash.update(&[version]);
    hash.update(prefix);
    hash.update(body);
    hash.digest()
}

/// One table, open in a write transaction.
pub(crate) struct Records<'txn> {
    table: &'static Table,
    inner: redb::Table<'txn, &'static [u8], &'static [u8]>,
}

impl<'txn> Records<'txn> {
    pub(crate) fn open(
        transaction: &'txn redb::WriteTransaction,
        table: &'static Table,
    ) -> Result<Records<'txn>, redb::TableError> {
        Ok(Records { table, inner: transaction.open_table(table.definition())? })
    }

    pub(crate) fn put(&mut self, key: &[u8], payload: &[u8]) -> Result<(), StorageError> {
        self.put_prefixed(key, &[], payload)
    }

    /// Puts a payload that is made of two pieces, straight into redb's page.
    pub(crate) fn put_prefixed(
        &mut self,
        key: &[u8],
        prefix: &[u8],
        body: &[u8],
    ) -> Result<(), StorageError> {
        let length = HEADER_BYTES + prefix.len() + body.len();
        let mut place = self.inner.insert_reserve(key, length)?;
        write_record(self.table, key, prefix, body, place.as_mut());
        Ok(())
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<bool, StorageError> {
        Ok(self.inner.remove(key)?.is_some())
    }

    /// Deletes the keys from `first` to `last`, both included.
    pub(crate) fn delete_range(&mut self, first: &[u8], last: &[u8]) -> Result<(), StorageError> {
        // Most ranges are empty, and looking is cheaper than an editing walk of the tree.
        if self.inner.range(first..=last)?.next().is_some() {
            self.inner.retain_in(first..=last, |_, _| false)?;
        }
        Ok(())
    }

    /// Deletes the `count` smallest keys.
    pub(crate) fn delete_first(&mut self, count: u64) -> Result<(), StorageError> {
        for _ in 0..count {
            self.inner.pop_first()?;
        }
        Ok(())
    }

    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool, StorageError> {
        Ok(self.inner.get(key)?.is_some())
    }

    pub(crate) fn len(&self) -> Result<u64, StorageError> {
        redb::ReadableTableMetadata::len(&self.inner)
    }

    /// The stored record, header included.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.inner.get(key)?.map(|record| record.value().to_vec()))
    }

    /// The keys of the records that `unwanted` picks by their payload.
    pub(crate) fn delete_where(
        &mut self,
        mut unwanted: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), StorageError> {
        self.inner.retain(|_, record| {
            let payload = record.get(HEADER_BYTES..).unwrap_or_default();
            !unwanted(payload)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{CHECKPOINTS, CONSUMERS, META, OBJECTS};

    fn record(table: &Table, key: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut record = vec![0; HEADER_BYTES + payload.len()];
        let (prefix, body) = payload.split_at(payload.len() / 2);
        write_record(table, key, prefix, body, &mut record);
        record
    }

    #[test]
    fn a_record_comes_back_and_no_flipped_bit_does() {
        let key = 7u64.to_be_bytes();
        let good = record(&CONSUMERS, &key, b"payload");
        assert_eq!(payload(&CONSUMERS, &key, &good), Ok(&b"payload"[..]));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let error = payload(&CONSUMERS, &key, &bad).expect_err("one bit differs");
            assert_eq!(
                error.to_string(),
                "corrupted record in table \"consumers\" with key 7: the checksum does not match"
            );
        }
    }

    #[test]
    fn a_record_under_another_key_or_in_another_table_is_refused() {
        let (key, other) = (7u64.to_be_bytes(), 8u64.to_be_bytes());
        let good = record(&CONSUMERS, &key, b"payload");
        assert!(payload(&CONSUMERS, &other, &good).is_err());
        assert!(payload(&CHECKPOINTS, &key, &good).is_err());
        assert!(payload(&OBJECTS, &key, &record(&OBJECTS, &key, b"")).is_err(), "a key of 8 bytes");
        assert!(payload(&META, b"format", &good[..5]).is_err(), "cut short");
    }
}
