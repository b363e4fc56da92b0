//! Reading everything back. Each record is checked, and what a commit asserted is asserted again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableHandle as _};
use segue_types::{BlobKind, ConsumerId, Epoch, ObjectId, OperatorId, StateBlob};

use crate::apply::Meta;
use crate::blob::Assembly;
use crate::capture::Manifest;
use crate::commit::{Checkpoint, DeadLetter};
use crate::error::{Corruption, LoadError, OpenError};
use crate::record::{corruption, payload};
use crate::store::Store;
use crate::tables::{self, Owner, Table};

/// All that was durable, except operator state, which is read object by object, and dead letters.
#[derive(Debug, Default, PartialEq)]
pub struct Stored {
    /// The last durable epoch.
    pub epoch: Epoch,
    /// Greater than every id that was ever stored.
    pub next_object: ObjectId,
    pub next_consumer: ConsumerId,
    /// By id, as are the others.
    pub objects: Vec<(ObjectId, Vec<u8>)>,
    pub consumers: Vec<(ConsumerId, Vec<u8>)>,
    pub captures: Vec<Manifest>,
    /// Records of dropped objects whose readings have left something outside.
    pub releases: Vec<(ObjectId, Vec<u8>)>,
    /// Oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// How many dead letters have gone to make room for newer ones.
    pub dead_letters_dropped: u64,
}

impl Store {
    /// Reads back what the last epoch left.
    pub fn load(&self) -> Result<Stored, LoadError> {
        guarded(|| {
            let meta = meta(self.database())?;
            let stored = Stored {
                epoch: meta.epoch,
                next_object: meta.next_object,
                next_consumer: meta.next_consumer,
                objects: records(self.database(), &tables::OBJECTS, |key, bytes| {
                    Ok((ObjectId(u32::try_from(key[0]).expect("four bytes")), bytes.to_vec()))
                })?,
                consumers: records(self.database(), &tables::CONSUMERS, |key, bytes| {
                    Ok((ConsumerId(key[0]), bytes.to_vec()))
                })?,
                captures: manifests(self.database())?,
                releases: releases(self.database())?,
                checkpoints: records(self.database(), &tables::CHECKPOINTS, |_, bytes| {
                    serde_json::from_slice(bytes).map_err(|error| error.to_string())
                })?,
                dead_letters_dropped: meta.dead_letters_dropped,
            };
            check_counters(&meta, &stored)?;
            check_owners(self.database(), &stored)?;
            Ok(stored)
        })
    }

    /// The records that were set aside, oldest first.
    pub fn dead_letters(&self) -> Result<Vec<DeadLetter>, LoadError> {
        guarded(|| {
            records(self.database(), &tables::DEAD_LETTERS, |_, bytes| {
                DeadLetter::decode(bytes).ok_or_else(|| "not a dead letter".to_owned())
            })
        })
    }

    /// The state of all operators of an object: by operator and group, the base first and then its
    /// deltas, oldest first.
    pub fn state_blobs(&self, object: ObjectId) -> Result<Vec<StateBlob>, LoadError> {
        let (first, last) = tables::operators_of(object);
        let first = Owner { operator: first, group: 0 };
        self.blobs_between(first, Owner { operator: last, group: u8::MAX })
    }

    /// The same of some vnode groups of one operator.
    pub fn group_blobs(
        &self,
        operator: OperatorId,
        groups: Range<u8>,
    ) -> Result<Vec<StateBlob>, LoadError> {
        let Some(last) = groups.end.checked_sub(1) else { return Ok(Vec::new()) };
        self.blobs_between(Owner { operator, group: groups.start }, Owner { operator, group: last })
    }

    fn blobs_between(&self, first: Owner, last: Owner) -> Result<Vec<StateBlob>, LoadError> {
        guarded(|| {
            let mut blobs: BTreeMap<Owner, Vec<StateBlob>> = BTreeMap::new();
            let mut take = |blob: StateBlob| {
                let owner = Owner { operator: blob.operator, group: blob.group };
                blobs.entry(owner).or_default().push(blob);
            };
            read_blobs(
                self.database(),
                &tables::STATE_BASE,
                (&tables::base_key(first, 0), &tables::base_key(last, u32::MAX)),
                &mut take,
            )?;
            read_blobs(
                self.database(),
                &tables::STATE_DELTA,
                (
                    &tables::delta_key(first, Epoch(0), 0, 0),
                    &tables::delta_key(last, Epoch(u64::MAX), u32::MAX, u32::MAX),
                ),
                &mut take,
            )?;
            Ok(blobs.into_values().flatten().collect())
        })
    }
}

/// The format record alone, which every version can read.
pub(crate) fn format(database: &Database, path: &Path) -> Result<u16, OpenError> {
    let foreign = |reason: String| OpenError::Foreign { path: path.to_owned(), reason };
    let record = guarded(|| {
        let transaction = database.begin_read()?;
        let table = transaction.open_table(tables::META.definition())?;
        Ok(table.get(tables::META_FORMAT)?.map(|record| record.value().to_vec()))
    });
    let record = record
        .map_err(|error| foreign(error.to_string()))?
        .ok_or_else(|| foreign("it has no format record".to_owned()))?;
    let bytes = payload(&tables::META, tables::META_FORMAT, &record)?;
    let bytes = bytes.try_into().map_err(|_| {
        corruption(&tables::META, tables::META_FORMAT, format!("{} bytes", bytes.len()))
    })?;
    Ok(u16::from_be_bytes(bytes))
}

pub(crate) fn meta(database: &Database) -> Result<Meta, LoadError> {
    guarded(|| {
        let transaction = database.begin_read()?;
        let table = transaction.open_table(tables::META.definition())?;
        let wrong = |reason: &str| corruption(&tables::META, tables::META_CURRENT, reason);
        let record = table.get(tables::META_CURRENT)?.ok_or_else(|| wrong("it is missing"))?;
        let bytes = payload(&tables::META, tables::META_CURRENT, record.value())?;
        serde_json::from_slice(bytes).map_err(|error| wrong(&error.to_string()).into())
    })
}

pub(crate) fn manifests(database: &Database) -> Result<Vec<Manifest>, LoadError> {
    guarded(|| records(database, &tables::CAPTURES, |_, bytes| Manifest::decode(bytes)))
}

/// A file that was made before there was this table has none of its records.
fn releases(database: &Database) -> Result<Vec<(ObjectId, Vec<u8>)>, LoadError> {
    let transaction = database.begin_read()?;
    let mut tables = transaction.list_tables()?;
    if !tables.any(|table| table.name() == tables::RELEASES.name) {
        return Ok(Vec::new());
    }
    records(database, &tables::RELEASES, |key, bytes| {
        Ok((ObjectId(u32::try_from(key[0]).expect("four bytes")), bytes.to_vec()))
    })
}

/// Runs `read`, and reports a panic inside of redb as the damaged file that caused it: a page whose
/// bytes were altered is used unchecked when the last stop was clean.
fn guarded<T>(read: impl FnOnce() -> Result<T, LoadError>) -> Result<T, LoadError> {
    std::panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(LoadError::Corrupt(Corruption {
            table: "*",
            key: "*".to_owned(),
            reason: "the structure of the file is damaged".to_owned(),
        }))
    })
}

/// All records of a table, each through `decode` of its key's integers and its payload.
fn records<T>(
    database: &Database,
    table: &'static Table,
    decode: impl Fn(&[u64], &[u8]) -> Result<T, String>,
) -> Result<Vec<T>, LoadError> {
    let transaction = database.begin_read()?;
    let opened = transaction.open_table(table.definition())?;
    let mut all = Vec::new();
    for entry in opened.iter()? {
        let (key, record) = entry?;
        let bytes = payload(table, key.value(), record.value())?;
        let parts = table.split_key(key.value()).expect("the key's length was checked");
        all.push(decode(&parts, bytes).map_err(|reason| corruption(table, key.value(), reason))?);
    }
    Ok(all)
}

/// All blobs between two keys, each put together from its parts.
fn read_blobs(
    database: &Database,
    table: &'static Table,
    (first, last): (&[u8], &[u8]),
    take: &mut impl FnMut(StateBlob),
) -> Result<(), LoadError> {
    let kind = match table.name == tables::STATE_BASE.name {
        true => BlobKind::Base,
        false => BlobKind::Delta,
    };
    let transaction = database.begin_read()?;
    let opened = transaction.open_table(table.definition())?;
    let mut assembly = Assembly::default();
    let mut last_key = Vec::new();
    for entry in opened.range(first..=last)? {
        let (key, record) = entry?;
        let key = key.value();
        let bytes = payload(table, key, record.value())?;
        let parts = table.split_key(key).expect("the key's length was checked");
        let part = *parts.last().expect("every state key ends with its part");
        let part = u32::try_from(part).expect("four bytes");
        if let Some(bytes) = assembly.push(table, key, part, bytes)? {
            let group = u8::try_from(parts[1]).expect("one byte");
            take(StateBlob { operator: OperatorId(parts[0]), group, kind, bytes });
        }
        last_key = key.to_vec();
    }
    match assembly.is_partial() {
        true => Err(corruption(table, &last_key, "the next part is missing").into()),
        false => Ok(()),
    }
}

/// Ids and epochs lie below the counters that give them out.
fn check_counters(meta: &Meta, stored: &Stored) -> Result<(), Corruption> {
    let beyond = |what: &str| {
        corruption(&tables::META, tables::META_CURRENT, format!("there is a later {what}"))
    };
    if stored.objects.last().is_some_and(|(id, _)| *id >= meta.next_object) {
        return Err(beyond("object"));
    }
    if stored.consumers.last().is_some_and(|(id, _)| *id >= meta.next_consumer) {
        return Err(beyond("consumer"));
    }
    match stored.checkpoints.last().is_some_and(|row| row.epoch > meta.epoch) {
        true => Err(beyond("checkpoint")),
        false => Ok(()),
    }
}

/// State and captures belong to objects that are there. Looks at one key per object, not at every blob.
fn check_owners(database: &Database, stored: &Stored) -> Result<(), LoadError> {
    let objects: BTreeSet<ObjectId> = stored.objects.iter().map(|(id, _)| *id).collect();
    for manifest in &stored.captures {
        if !objects.contains(&manifest.object) {
            let key = tables::capture_key(manifest.object, manifest.stage);
            return Err(corruption(&tables::CAPTURES, &key, "its object is missing").into());
        }
    }
    let transaction = database.begin_read()?;
    for table in [&tables::STATE_BASE, &tables::STATE_DELTA] {
        let opened = transaction.open_table(table.definition())?;
        let mut from = Vec::new();
        while let Some(entry) = opened.range(from.as_slice()..)?.next() {
            let (key, _) = entry?;
            let wrong = |reason: &str| corruption(table, key.value(), reason);
            let parts =
                table.split_key(key.value()).ok_or_else(|| wrong("a key of wrong length"))?;
            let object = u32::try_from(parts[0] >> 16).map_err(|_| wrong("no operator's id"))?;
            if !objects.contains(&ObjectId(object)) {
                return Err(wrong("its object is missing").into());
            }
            let (_, last) = tables::operators_of(ObjectId(object));
            from = (last.0 + 1).to_be_bytes().to_vec();
        }
    }
    Ok(())
}
