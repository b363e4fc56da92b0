//! The writes of a commit, put into one open redb transaction.
//!
//! Invariant: when `apply` has succeeded, every state blob and every capture belongs to a stored object.

use std::collections::BTreeSet;

use redb::{StorageError, TableError, WriteTransaction};
use segue_types::{BlobKind, ConsumerId, Epoch, ObjectId, StateBlob};
use serde::{Deserialize, Serialize};

use crate::capture::Manifest;
use crate::commit::{Checkpoint, Commit, DeadLetter, Write};
use crate::record::Records;
use crate::tables::{self, Owner};
use crate::{CHECKPOINTS_MAX, DEAD_LETTERS_MAX, blob};

/// The record `current` of `meta`: what grows with the database as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) epoch: Epoch,
    pub(crate) next_object: ObjectId,
    pub(crate) next_consumer: ConsumerId,
    pub(crate) next_dead_letter: u64,
    pub(crate) dead_letters_dropped: u64,
}

impl Meta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("counters are plain data")
    }
}

/// Why a transaction is not committed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A defect of the caller.
    #[error("{0}")]
    Invariant(String),
}

/// Every table, open in one transaction, and the counters that the commit moves.
pub(crate) struct Apply<'txn> {
    epoch: Epoch,
    meta: Meta,
    meta_table: Records<'txn>,
    objects: Records<'txn>,
    consumers: Records<'txn>,
    captures: Records<'txn>,
    state_base: Records<'txn>,
    state_delta: Records<'txn>,
    dead_letters: Records<'txn>,
    checkpoints: Records<'txn>,
    releases: Records<'txn>,
    delta_sequence: u32,
    /// Objects that state or captures were written for.
    owners: BTreeSet<ObjectId>,
}

/// What a commit changed besides the file.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) meta: Meta,
    /// Their capture files go once the commit is durable.
    pub(crate) dropped: BTreeSet<ObjectId>,
}

impl<'txn> Apply<'txn> {
    /// Opens, and on the first commit creates, every table.
    pub(crate) fn begin(
        transaction: &'txn WriteTransaction,
        meta: Meta,
        epoch: Epoch,
    ) -> Result<Apply<'txn>, ApplyError> {
        Ok(Apply {
            epoch,
            meta,
            meta_table: Records::open(transaction, &tables::META)?,
            objects: Records::open(transaction, &tables::OBJECTS)?,
            consumers: Records::open(transaction, &tables::CONSUMERS)?,
            captures: Records::open(transaction, &tables::CAPTURES)?,
            state_base: Records::open(transaction, &tables::STATE_BASE)?,
            state_delta: Records::open(transaction, &tables::STATE_DELTA)?,
            dead_letters: Records::open(transaction, &tables::DEAD_LETTERS)?,
            checkpoints: Records::open(transaction, &tables::CHECKPOINTS)?,
            releases: Records::open(transaction, &tables::RELEASES)?,
            delta_sequence: 0,
            owners: BTreeSet::new(),
        })
    }

    /// Writes the two records of an empty database.
    pub(crate) fn initialize(mut self, format: u16) -> Result<(), ApplyError> {
        self.meta_table.put(tables::META_FORMAT, &format.to_be_bytes())?;
        self.meta_table.put(tables::META_CURRENT, &self.meta.encode())?;
        Ok(())
    }

    /// Whether the file is at the counters that memory holds: nobody else has written to it.
    pub(crate) fn is_at(&self, meta: &Meta) -> Result<bool, ApplyError> {
        let stored = self.meta_table.get(tables::META_CURRENT)?;
        Ok(stored.is_some_and(|record| {
            crate::record::payload(&tables::META, tables::META_CURRENT, &record)
                .is_ok_and(|payload| payload == meta.encode())
        }))
    }

    pub(crate) fn run(mut self, commit: &Commit) -> Result<Applied, ApplyError> {
        let mut dropped = BTreeSet::new();
        for write in &commit.writes {
            if let Write::DropObject(id) = write {
                dropped.insert(*id);
            }
            self.write(write)?;
        }
        for object in &self.owners {
            if !self.objects.contains(&tables::object_key(*object))? {
                let reason = format!("object {object} is written to but not stored");
                return Err(ApplyError::Invariant(reason));
            }
        }
        self.meta.epoch = self.epoch;
        self.meta_table.put(tables::META_CURRENT, &self.meta.encode())?;
        Ok(Applied { meta: self.meta, dropped })
    }

    fn write(&mut self, write: &Write) -> Result<(), ApplyError> {
        match write {
            Write::PutObject(id, record) => {
                self.meta.next_object = self.meta.next_object.max(ObjectId(id.0 + 1));
                self.objects.put(&tables::object_key(*id), record)?;
            }
            Write::DropObject(id) => self.drop_object(*id)?,
            Write::PutConsumer(id, record) => {
                self.meta.next_consumer = self.meta.next_consumer.max(ConsumerId(id.0 + 1));
                self.consumers.put(&tables::consumer_key(*id), record)?;
            }
            Write::DeleteConsumer(id) => {
                self.consumers.delete(&tables::consumer_key(*id))?;
            }
            Write::PublishCapture(manifest) => self.publish_capture(manifest)?,
            Write::PutState(blob) => self.put_state(blob)?,
            Write::DropState(object) => self.drop_state(*object)?,
            Write::PutRelease(id, record) => {
                // Of a source that never came, it is the only trace of the number.
                self.meta.next_object = self.meta.next_object.max(ObjectId(id.0 + 1));
                self.releases.put(&tables::object_key(*id), record)?;
            }
            Write::DeleteRelease(id) => {
                self.releases.delete(&tables::object_key(*id))?;
            }
            Write::DeadLetter(letter) => self.put_dead_letter(letter)?,
            Write::Checkpoint(row) => self.put_checkpoint(row)?,
        }
        Ok(())
    }

    fn drop_object(&mut self, id: ObjectId) -> Result<(), ApplyError> {
        self.objects.delete(&tables::object_key(id))?;
        let mut last = [u8::MAX; 6];
        last[..4].copy_from_slice(&tables::object_key(id));
        let first = tables::capture_key(id, segue_types::StageIndex(0));
        self.captures.delete_range(&first, &last)?;
        if self.dead_letters.len()? > 0 {
            self.dead_letters.delete_where(|payload| {
                DeadLetter::decode(payload).is_some_and(|letter| letter.object == id)
            })?;
        }
        self.drop_state(id)
    }

    fn drop_state(&mut self, object: ObjectId) -> Result<(), ApplyError> {
        let (first, last) = tables::operators_of(object);
        let first = Owner { operator: first, group: 0 };
        let last = Owner { operator: last, group: u8::MAX };
        self.delete_state(first, last)
    }

    fn delete_state(&mut self, first: Owner, last: Owner) -> Result<(), ApplyError> {
        self.state_base
            .delete_range(&tables::base_key(first, 0), &tables::base_key(last, u32::MAX))?;
        self.state_delta.delete_range(
            &tables::delta_key(first, Epoch(0), 0, 0),
            &tables::delta_key(last, Epoch(u64::MAX), u32::MAX, u32::MAX),
        )?;
        Ok(())
    }

    fn put_state(&mut self, blob: &StateBlob) -> Result<(), ApplyError> {
        let owner = Owner { operator: blob.operator, group: blob.group };
        self.owners.insert(tables::object_of(blob.operator));
        match blob.kind {
            BlobKind::Base => {
                self.delete_state(owner, owner)?;
                for (part, header, slice) in blob::parts(&blob.bytes) {
                    self.state_base.put_prefixed(&tables::base_key(owner, part), &header, slice)?;
                }
            }
            BlobKind::Delta => {
                let sequence = self.delta_sequence;
                self.delta_sequence += 1;
                for (part, header, slice) in blob::parts(&blob.bytes) {
                    let key = tables::delta_key(owner, self.epoch, sequence, part);
                    self.state_delta.put_prefixed(&key, &header, slice)?;
                }
            }
        }
        Ok(())
    }

    fn publish_capture(&mut self, manifest: &Manifest) -> Result<(), ApplyError> {
        let key = tables::capture_key(manifest.object, manifest.stage);
        if self.captures.contains(&key)? {
            return Err(ApplyError::Invariant(format!(
                "stage {} of object {} has a published capture already",
                manifest.stage, manifest.object
            )));
        }
        self.owners.insert(manifest.object);
        self.captures.put(&key, &manifest.encode())?;
        Ok(())
    }

    fn put_dead_letter(&mut self, letter: &DeadLetter) -> Result<(), ApplyError> {
        let key = self.meta.next_dead_letter.to_be_bytes();
        self.meta.next_dead_letter += 1;
        self.dead_letters.put(&key, &letter.encode())?;
        let excess = self.dead_letters.len()?.saturating_sub(DEAD_LETTERS_MAX);
        self.dead_letters.delete_first(excess)?;
        self.meta.dead_letters_dropped += excess;
        Ok(())
    }

    fn put_checkpoint(&mut self, row: &Checkpoint) -> Result<(), ApplyError> {
        let json = serde_json::to_vec(row).expect("a checkpoint is plain data");
        self.checkpoints.put(&tables::epoch_key(row.epoch), &json)?;
        let excess = self.checkpoints.len()?.saturating_sub(CHECKPOINTS_MAX);
        self.checkpoints.delete_first(excess)?;
        Ok(())
    }
}
