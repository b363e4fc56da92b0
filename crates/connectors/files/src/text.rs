//! Reading JSON lines and CSV: chunks of a file, cut at record boundaries, decoded record by
//! record.
//!
//! A last record without a line end is a record of a bounded read. In a watched file it may still
//! be growing: JSON counts once it is a whole object, CSV once the file has not changed for one
//! refresh interval.

mod decoder;
mod tail;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use segue_connect::{ConnectError, OnError, ReadEvent, Rejected, Rows, SplitReader};
use segue_types::{Boundedness, SplitId};
use tokio::time::Instant;

use crate::batch::{Includes, Projection};
use crate::files::{Files, replaced};
use crate::manifest::Entry;
use crate::options::FilesOptions;
use crate::position;

pub(crate) use decoder::TextDecoder;
pub(crate) use tail::visible_end;

/// Rows of one delivery.
const BATCH_ROWS: usize = 8192;
/// How much is fetched at once, unless a record is larger.
const CHUNK_BYTES: u64 = 4 * 1024 * 1024;
const RECORD_BYTES_MAX: u64 = 64 * 1024 * 1024;
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// Where reading ends.
#[derive(Debug)]
pub(crate) enum End {
    At(u64),
    /// Nowhere: looks again at `next_look`.
    Watched {
        refresh: Duration,
        next_look: Instant,
    },
}

/// What a reader of a file starts from.
#[derive(Debug)]
pub(crate) struct TextRead {
    pub(crate) files: Files,
    pub(crate) options: FilesOptions,
    /// The pinned file; `None` for one that was found later.
    pub(crate) pinned: Option<Entry>,
    pub(crate) split: SplitId,
    pub(crate) from: u64,
    pub(crate) end: End,
    pub(crate) projection: Projection,
    pub(crate) on_error: OnError,
    pub(crate) decoder: TextDecoder,
}

/// Reads one file.
#[derive(Debug)]
pub(crate) struct TextReader {
    read: TextRead,
    includes: Includes,
    /// The file as it was last seen; `None` before the first call.
    entry: Option<Entry>,
    /// Where the next record begins.
    offset: u64,
    /// What the last event said.
    reported: u64,
    /// Bytes up to here exist and may be read.
    limit: u64,
    chunk: Bytes,
    chunk_start: u64,
}

impl TextReader {
    pub(crate) fn new(read: TextRead) -> TextReader {
        TextReader {
            includes: read.projection.includes(read.split.as_str()),
            entry: None,
            offset: read.from,
            reported: read.from,
            limit: 0,
            chunk: Bytes::new(),
            chunk_start: read.from,
            read,
        }
    }

    fn boundedness(&self) -> Boundedness {
        self.read.options.boundedness()
    }

    /// The first look at the file: that it is the pinned one, that `from` lies in it and begins a
    /// record, and its header.
    async fn begin(&mut self) -> Result<Entry, ConnectError> {
        let files = &self.read.files;
        let path = self.read.split.as_str();
        let mut entry = match &self.read.pinned {
            Some(pinned) => {
                let (head, unpacked_bytes) = (pinned.head, pinned.unpacked_bytes);
                let found = files.verify(pinned, self.boundedness()).await?;
                Entry { head, unpacked_bytes, ..found }
            }
            None => files.look(path).await?,
        };
        if self.boundedness() == Boundedness::Continuous && entry.head.is_none() {
            entry.head = Some(files.head(path, entry.size_bytes).await?);
        }
        self.read.files = self.read.files.clone().inside(&entry).await?;
        self.limit = match self.read.end {
            End::At(end) => end,
            End::Watched { .. } => entry.size_bytes,
        };
        if self.offset.max(self.limit) > entry.content_bytes() {
            return Err(ConnectError::Truncated {
                what: format!("file \"{path}\""),
                split: self.read.split.clone(),
                position: position(self.offset.max(self.limit)),
                end: position(entry.content_bytes()),
            });
        }
        self.check_boundary(&entry).await?;
        Ok(entry)
    }

    /// A position that an earlier run delivered begins a record, or ends a last one that had no
    /// line end.
    async fn check_boundary(&self, entry: &Entry) -> Result<(), ConnectError> {
        let offset = self.offset;
        if offset == 0 || offset == entry.content_bytes() {
            return Ok(());
        }
        let around = self.bytes(entry, offset - 1..offset + 1).await?;
        if around[0] == b'\n' || matches!(around[1], b'\n' | b'\r') {
            return Ok(());
        }
        if self.boundedness() == Boundedness::Continuous {
            return Err(replaced(
                &entry.path,
                format!("a record that ends at byte {offset}"),
                "a longer one".to_owned(),
            ));
        }
        Err(ConnectError::Malformed {
            split: self.read.split.clone(),
            position: position(offset),
            reason: "no record begins there".to_owned(),
        })
    }

    /// Bytes of the file: of the pinned version where the read is bounded.
    async fn bytes(
        &self,
        entry: &Entry,
        range: std::ops::Range<u64>,
    ) -> Result<Bytes, ConnectError> {
        let e_tag = match self.boundedness() {
            Boundedness::Bounded => entry.e_tag.as_deref(),
            Boundedness::Continuous => None,
        };
        self.read.files.bytes(&entry.path, range, e_tag).await
    }

    /// Reads the header, when the file has one and it is complete. Whether records can follow.
    async fn read_header(&mut self, entry: &Entry) -> Result<bool, ConnectError> {
        if !self.read.decoder.is_header_due() {
            return Ok(true);
        }
        let mut len = entry.content_bytes().min(CHUNK_BYTES);
        let (header, next) = loop {
            let bytes = self.bytes(entry, 0..len).await?;
            if let Some(record) = self.read.decoder.record_end(&bytes) {
                break (bytes.slice(..record.end), record.next as u64);
            }
            if len == entry.content_bytes() {
                if len == 0 || self.boundedness() == Boundedness::Continuous {
                    return Ok(false);
                }
                break (bytes, len);
            }
            len = (len * 2).min(entry.content_bytes());
            self.check_record_len(len)?;
        };
        let named = self.read.decoder.set_header(&header);
        named.map_err(|error| ConnectError::Malformed {
            split: self.read.split.clone(),
            position: position(0),
            reason: error.to_string(),
        })?;
        self.offset = self.offset.max(next);
        Ok(true)
    }

    fn check_record_len(&self, len: u64) -> Result<(), ConnectError> {
        if len <= RECORD_BYTES_MAX {
            return Ok(());
        }
        Err(ConnectError::Malformed {
            split: self.read.split.clone(),
            position: position(self.offset),
            reason: format!("the record is longer than {RECORD_BYTES_MAX} bytes"),
        })
    }

    fn chunk_end(&self) -> u64 {
        self.chunk_start + self.chunk.len() as u64
    }

    /// Fetches from the next record on: more than before when that was not enough for one.
    async fn fetch(&mut self, entry: &Entry) -> Result<(), ConnectError> {
        let had = if self.chunk_start == self.offset { self.chunk.len() as u64 } else { 0 };
        self.check_record_len(had)?;
        let len = CHUNK_BYTES.max(had * 2);
        let end = (self.offset + len).min(self.limit);
        let chunk = self.bytes(entry, self.offset..end).await?;
        if chunk.len() as u64 != end - self.offset {
            return Err(ConnectError::Truncated {
                what: format!("file \"{}\"", entry.path),
                split: self.read.split.clone(),
                position: position(end),
                end: position(self.offset + chunk.len() as u64),
            });
        }
        self.chunk_start = self.offset;
        if self.offset == 0 && chunk.starts_with(UTF8_BOM) {
            self.offset = UTF8_BOM.len() as u64;
        }
        self.chunk = chunk;
        Ok(())
    }

    /// Decodes what the chunk holds in whole records; with `take_rest` also the bytes after the
    /// last line end.
    fn decode(&mut self, take_rest: bool) -> Result<Option<ReadEvent>, ConnectError> {
        let start = self.offset;
        let mut rejected = Vec::new();
        while self.read.decoder.len() + rejected.len() < BATCH_ROWS {
            let at = (self.offset - self.chunk_start) as usize;
            let rest = &self.chunk[at.min(self.chunk.len())..];
            let Some(record) = self.read.decoder.next_record(rest, take_rest) else { break };
            let bytes = &rest[..record.end];
            if !bytes.trim_ascii().is_empty() {
                match self.read.decoder.decode(bytes) {
                    Ok(()) => self.includes.append(self.offset, bytes),
                    Err(error) if self.read.on_error == OnError::DeadLetter => {
                        rejected.push(reject(self.offset, bytes, error.to_string()));
                    }
                    // What came before is delivered first; the next call meets the record again.
                    Err(_) if self.offset > start => break,
                    Err(error) => {
                        return Err(ConnectError::Malformed {
                            split: self.read.split.clone(),
                            position: position(self.offset),
                            reason: error.to_string(),
                        });
                    }
                }
            }
            self.offset += record.next as u64;
        }
        let has_rows = self.read.decoder.len() > 0 || !rejected.is_empty();
        Ok(has_rows.then(|| self.rows(start, rejected)))
    }

    fn rows(&mut self, start: u64, rejected: Vec<Rejected>) -> ReadEvent {
        let declared = self.read.decoder.finish();
        let changes = self.read.projection.changes(&declared, &mut self.includes);
        let bytes = (self.offset - start) as usize;
        self.reported = self.offset;
        ReadEvent::Rows(Rows { changes, next: position(self.offset), rejected, bytes })
    }

    /// Whether the bytes after the last line end are a record.
    fn is_rest_complete(&self, entry: &Entry) -> bool {
        let at = (self.offset - self.chunk_start) as usize;
        match self.read.end {
            End::At(_) => true,
            End::Watched { .. } => {
                tail::is_complete(&self.read.options, &self.chunk[at..], entry.modified_ms)
            }
        }
    }

    /// The end of a bounded read, after one more look at the file.
    async fn finish(&self, entry: &Entry, at: u64) -> Result<ReadEvent, ConnectError> {
        self.read.files.verify(entry, self.boundedness()).await?;
        Ok(ReadEvent::Done { at: position(at) })
    }

    /// Waits until it is time to look at a watched file again, and looks.
    async fn look_again(&mut self, mut entry: Entry) -> Result<Entry, ConnectError> {
        let End::Watched { refresh, next_look } = &mut self.read.end else {
            unreachable!("only watched files are looked at again")
        };
        tokio::time::sleep_until(*next_look).await;
        *next_look = Instant::now() + *refresh;
        let found = match self.read.files.verify(&entry, Boundedness::Continuous).await {
            // A file that was read to its end may be removed; the next listing says so.
            Err(ConnectError::Missing { .. }) if self.offset == entry.size_bytes => {
                return Ok(entry);
            }
            found => found?,
        };
        if found.size_bytes > entry.size_bytes {
            self.check_boundary(&found).await?;
            entry.head = Some(self.read.files.head(&entry.path, found.size_bytes).await?);
        }
        self.limit = found.size_bytes;
        Ok(Entry { head: entry.head, ..found })
    }

    /// The next event, or `None` when there is none in what is known of the file.
    async fn advance(&mut self, entry: &Entry) -> Result<Option<ReadEvent>, ConnectError> {
        if !self.read_header(entry).await? {
            return match self.read.end {
                End::At(at) => self.finish(entry, at).await.map(Some),
                End::Watched { .. } => Ok(None),
            };
        }
        loop {
            if let Some(event) = self.decode(false)? {
                return Ok(Some(event));
            }
            if self.chunk_end().max(self.offset) < self.limit {
                self.fetch(entry).await?;
                continue;
            }
            if self.offset < self.chunk_end()
                && self.is_rest_complete(entry)
                && let Some(event) = self.decode(true)?
            {
                return Ok(Some(event));
            }
            if let End::At(at) = self.read.end {
                return self.finish(entry, at).await.map(Some);
            }
            if self.offset > self.reported {
                self.reported = self.offset;
                return Ok(Some(ReadEvent::Progress { next: position(self.offset) }));
            }
            return Ok(None);
        }
    }
}

#[async_trait]
impl SplitReader for TextReader {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        loop {
            let entry = match self.entry.clone() {
                Some(entry) => entry,
                None => self.begin().await?,
            };
            self.entry = Some(entry.clone());
            if let Some(event) = self.advance(&entry).await? {
                return Ok(event);
            }
            if self.offset >= self.chunk_end() {
                // Nothing of it is needed: thousands of quiet files would hold as many chunks.
                self.chunk = Bytes::new();
                self.chunk_start = self.offset;
            }
            self.entry = Some(self.look_again(entry).await?);
        }
    }
}

fn reject(offset: u64, record: &[u8], reason: String) -> Rejected {
    let kept = record.len().min(Rejected::PAYLOAD_BYTES_MAX);
    Rejected { position: position(offset), payload: record[..kept].to_vec(), reason }
}
