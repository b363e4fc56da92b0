//! A *commit*: everything that becomes durable with one epoch, collected before the transaction begins.

use segue_types::{ConsumerId, Epoch, ObjectId, Position, SplitId, StageIndex, StateBlob};
use serde::{Deserialize, Serialize};

use crate::capture::Manifest;

/// What an epoch writes, in order: a later write of the same key wins.
#[derive(Debug)]
pub struct Commit {
    epoch: Epoch,
    pub(crate) writes: Vec<Write>,
    bytes: u64,
}

/// One write of a commit.
#[derive(Debug)]
pub(crate) enum Write {
    PutObject(ObjectId, Vec<u8>),
    DropObject(ObjectId),
    PutConsumer(ConsumerId, Vec<u8>),
    DeleteConsumer(ConsumerId),
    PublishCapture(Manifest),
    PutState(StateBlob),
    DropState(ObjectId),
    PutRelease(ObjectId, Vec<u8>),
    DeleteRelease(ObjectId),
    DeadLetter(DeadLetter),
    Checkpoint(Checkpoint),
}

/// A record that could not be decoded, set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The source or table whose stage delivered it.
    pub object: ObjectId,
    pub stage: StageIndex,
    pub split: SplitId,
    /// Where the record is.
    pub position: Position,
    pub reason: String,
    /// Milliseconds since 1970 UTC.
    pub unix_ms: i64,
    #[serde(skip)]
    pub payload: Vec<u8>,
}

/// A row of `segue.checkpoints`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub epoch: Epoch,
    /// Milliseconds since 1970 UTC.
    pub unix_ms: i64,
    /// What the epoch wrote, without redb's own pages.
    pub bytes: u64,
    /// Input rows that the epoch made durable.
    pub rows: u64,
}

impl Commit {
    /// An empty commit. `epoch` must be the one after the last.
    pub fn new(epoch: Epoch) -> Commit {
        Commit { epoch, writes: Vec::new(), bytes: 0 }
    }

    /// The epoch that this commit makes durable.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The bytes of all records so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Stores a catalog object. Its id counts as used from now on, also after it is dropped.
    pub fn put_object(&mut self, id: ObjectId, record: Vec<u8>) {
        self.push(record.len(), Write::PutObject(id, record));
    }

    /// Deletes an object with its state, captures and dead letters. Its consumers are deleted one by one.
    pub fn drop_object(&mut self, id: ObjectId) {
        self.push(0, Write::DropObject(id));
    }

    /// Stores the state of a consumer.
    pub fn put_consumer(&mut self, id: ConsumerId, record: Vec<u8>) {
        self.push(record.len(), Write::PutConsumer(id, record));
    }

    /// Deletes a consumer.
    pub fn delete_consumer(&mut self, id: ConsumerId) {
        self.push(0, Write::DeleteConsumer(id));
    }

    /// Makes a complete capture the result of its stage: from this epoch on its chunks can be read.
    pub fn publish_capture(&mut self, manifest: Manifest) {
        self.push(0, Write::PublishCapture(manifest));
    }

    /// Stores a piece of operator state.
    pub fn put_state(&mut self, blob: StateBlob) {
        self.push(blob.bytes.len(), Write::PutState(blob));
    }

    /// Deletes the state of all operators of an object.
    pub fn drop_operator_state(&mut self, object: ObjectId) {
        self.push(0, Write::DropState(object));
    }

    /// Keeps the record of an object that is dropped until what it has left outside is removed.
    pub fn put_release(&mut self, id: ObjectId, record: Vec<u8>) {
        self.push(record.len(), Write::PutRelease(id, record));
    }

    /// Nothing of the dropped object is left outside.
    pub fn delete_release(&mut self, id: ObjectId) {
        self.push(0, Write::DeleteRelease(id));
    }

    /// Sets a record aside. Beyond [`crate::DEAD_LETTERS_MAX`] the oldest one goes and is counted.
    pub fn put_dead_letter(&mut self, letter: DeadLetter) {
        self.push(letter.payload.len(), Write::DeadLetter(letter));
    }

    /// Adds this epoch's row of `segue.checkpoints`, with the bytes collected so far: call it last.
    pub fn put_checkpoint(&mut self, unix_ms: i64, rows: u64) {
        let row = Checkpoint { epoch: self.epoch, unix_ms, bytes: self.bytes, rows };
        self.push(0, Write::Checkpoint(row));
    }

    fn push(&mut self, bytes: usize, write: Write) {
        self.bytes += bytes as u64;
        self.writes.push(write);
    }
}

impl DeadLetter {
    /// `[length of JSON u32][JSON][payload]`: the payload is often not text.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("a dead letter is plain data");
        let length = u32::try_from(json.len()).expect("a reason is short");
        [&length.to_be_bytes(), &json[..], &self.payload].concat()
    }

    /// `None` for bytes that `encode` did not make.
    pub(crate) fn decode(bytes: &[u8]) -> Option<DeadLetter> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (json, payload) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let letter: DeadLetter = serde_json::from_slice(json).ok()?;
        Some(DeadLetter { payload: payload.to_vec(), ..letter })
    }
}
