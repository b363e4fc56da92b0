//! From an entry of the log to its messages: decompressed, taken out of their batch, as records.

use std::io::Read as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{Buf, Bytes};
use prost::Message as _;
use segue_records::Record;

use crate::connection::Entry;
use crate::place::Place;
use crate::wire::{BatchedMetadata, EntryMetadata, KeyValue};

/// How large an entry may become when it is decompressed.
const BYTES_MAX: usize = 256 << 20;

/// One message of an entry.
pub(crate) struct Message {
    pub(crate) place: Place,
    /// The place of the message behind it.
    pub(crate) next: Place,
    key: Option<Vec<u8>>,
    payload: Bytes,
    time_ms: u64,
    properties: Vec<KeyValue>,
    removes: bool,
    /// Why there is no telling what it says.
    unreadable: Option<String>,
}

/// The messages of an entry, in order. An entry that cannot be read is one unreadable message. With `keyed`, a
/// message without a payload removes its key.
pub(crate) fn messages(entry: Entry, keyed: bool) -> Vec<Message> {
    let Entry { id, metadata, payload } = entry;
    let first = Place::of_entry(id.ledger, id.entry);
    let raw = payload.clone();
    match content(&metadata, payload, first, keyed) {
        Ok(messages) => messages,
        Err(reason) => {
            vec![Message { unreadable: Some(reason), ..whole(&metadata, raw, first, keyed) }]
        }
    }
}

fn content(
    metadata: &EntryMetadata,
    payload: Bytes,
    first: Place,
    keyed: bool,
) -> Result<Vec<Message>, String> {
    if metadata.chunks.is_some_and(|chunks| chunks > 1) {
        return Err("it is a chunk of a larger message, which is not supported".to_owned());
    }
    if metadata.encryption.is_some() {
        return Err("it is encrypted, which is not supported".to_owned());
    }
    let payload = decompressed(metadata, payload)?;
    match metadata.batch_len {
        None => Ok(vec![whole(metadata, payload, first, keyed)]),
        Some(len) => batch(metadata, payload, first, len, keyed),
    }
}

fn whole(metadata: &EntryMetadata, payload: Bytes, place: Place, keyed: bool) -> Message {
    Message {
        place,
        next: Place::of_entry(place.ledger, place.entry + 1),
        key: key(metadata.key.as_deref(), metadata.key_is_base64),
        removes: removes(metadata.null_value, &payload, keyed),
        payload,
        time_ms: time(metadata.event_time_ms, metadata.publish_time_ms),
        properties: metadata.properties.clone(),
        unreadable: None,
    }
}

fn batch(
    metadata: &EntryMetadata,
    mut payload: Bytes,
    first: Place,
    len: i32,
    keyed: bool,
) -> Result<Vec<Message>, String> {
    let broken = || "its batch is broken".to_owned();
    let len = u32::try_from(len).map_err(|_| broken())?;
    let mut messages = Vec::with_capacity(len.min(4096) as usize);
    for index in 0..len {
        let single = BatchedMetadata::decode(prefixed(&mut payload).ok_or_else(broken)?);
        let single = single.map_err(|_| broken())?;
        let size = usize::try_from(single.payload_len).map_err(|_| broken())?;
        if payload.len() < size {
            return Err(broken());
        }
        let payload = payload.split_to(size);
        if single.compacted_out == Some(true) {
            continue;
        }
        let next = if index + 1 == len {
            Place::of_entry(first.ledger, first.entry + 1)
        } else {
            Place { index: index + 1, ..first }
        };
        messages.push(Message {
            place: Place { index, ..first },
            next,
            key: key(single.key.as_deref(), single.key_is_base64),
            removes: removes(single.null_value, &payload, keyed),
            payload,
            time_ms: time(single.event_time_ms, metadata.publish_time_ms),
            properties: single.properties,
            unreadable: None,
        });
    }
    Ok(messages)
}

/// Bytes behind their length.
fn prefixed(payload: &mut Bytes) -> Option<Bytes> {
    if payload.len() < 4 {
        return None;
    }
    let len = payload.get_u32() as usize;
    (payload.len() >= len).then(|| payload.split_to(len))
}

fn key(text: Option<&str>, is_base64: Option<bool>) -> Option<Vec<u8>> {
    let text = text?;
    if is_base64 == Some(true) {
        return BASE64_STANDARD.decode(text).ok();
    }
    Some(text.as_bytes().to_vec())
}

fn removes(null_value: Option<bool>, payload: &Bytes, keyed: bool) -> bool {
    null_value == Some(true) || (keyed && payload.is_empty())
}

/// The time that the producer gave, or else that of publication.
fn time(event_ms: Option<u64>, publish_ms: u64) -> u64 {
    event_ms.filter(|ms| *ms > 0).unwrap_or(publish_ms)
}

fn decompressed(metadata: &EntryMetadata, payload: Bytes) -> Result<Bytes, String> {
    let size = metadata.uncompressed_size.unwrap_or_default() as usize;
    if size > BYTES_MAX {
        return Err(format!("it has {size} bytes, more than {BYTES_MAX}"));
    }
    let failed = |error: &dyn std::fmt::Display| format!("it cannot be decompressed: {error}");
    let plain = match metadata.compression.unwrap_or_default() {
        0 => return Ok(payload),
        1 => lz4_flex::block::decompress(&payload, size).map_err(|error| failed(&error))?,
        2 => {
            let mut plain = Vec::with_capacity(size);
            let mut decoder = flate2::read::ZlibDecoder::new(payload.as_ref()).take(size as u64);
            decoder.read_to_end(&mut plain).map_err(|error| failed(&error))?;
            plain
        }
        3 => zstd::bulk::decompress(&payload, size).map_err(|error| failed(&error))?,
        4 => snap::raw::Decoder::new().decompress_vec(&payload).map_err(|error| failed(&error))?,
        other => return Err(format!("it is compressed in an unknown way ({other})")),
    };
    match plain.len() == size {
        true => Ok(plain.into()),
        false => Err(failed(&format!("{} bytes came of {size}", plain.len()))),
    }
}

impl Message {
    /// Why it cannot be read at all.
    pub(crate) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }
}

impl Record for Message {
    fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    fn payload(&self) -> Option<&[u8]> {
        (!self.removes).then_some(&self.payload)
    }

    /// A place is three numbers.
    fn offset(&self) -> Option<i64> {
        None
    }

    fn write_offset(&self, to: &mut String) {
        to.push_str(&self.place.to_string());
    }

    fn timestamp_ms(&self) -> Option<i64> {
        i64::try_from(self.time_ms).ok()
    }

    fn each_header(&self, mut each: impl FnMut(&str, Option<&[u8]>)) {
        for property in &self.properties {
            each(&property.key, Some(property.value.as_bytes()));
        }
    }
}
