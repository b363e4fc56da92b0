//! The fetched byte ranges of a file, as the Parquet reader wants to see a file.

use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::buf::Reader;
use bytes::{Buf, Bytes};

/// Parts of a file of known length.
#[derive(Debug)]
pub(super) struct Ranges {
    len: u64,
    parts: Vec<(u64, Bytes)>,
}

impl Ranges {
    pub(super) fn new(len: u64) -> Ranges {
        Ranges { len, parts: Vec::new() }
    }

    pub(super) fn add(&mut self, start: u64, bytes: Bytes) {
        self.parts.push((start, bytes));
    }

    /// From `start` to the end of its part.
    fn from(&self, start: u64) -> Result<Bytes> {
        let part = self
            .parts
            .iter()
            .find(|(first, bytes)| (*first..*first + bytes.len() as u64).contains(&start));
        part.map(|(first, bytes)| bytes.slice((start - first) as usize..))
            .ok_or_else(|| ParquetError::EOF(format!("byte {start} was not fetched")))
    }
}

impl Length for Ranges {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Ranges {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Reader<Bytes>> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} were not fetched")));
        }
        Ok(bytes.slice(..length))
    }
}
