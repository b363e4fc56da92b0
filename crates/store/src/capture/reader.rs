//! Reading a published capture from any row on.
//!
//! Invariant: no row is delivered from a chunk file whose length or checksum is not the manifest's.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use segue_types::Position;
use xxhash_rust::xxh3::xxh3_64;

use super::{CaptureError, CapturePosition, Manifest};

/// A reader of one capture. Holds one chunk file in memory.
pub struct CaptureReader {
    dir: PathBuf,
    manifest: Arc<Manifest>,
    projection: Vec<usize>,
    next: CapturePosition,
    open: Option<OpenChunk>,
}

struct OpenChunk {
    path: PathBuf,
    batches: FileReader<Cursor<Vec<u8>>>,
    /// The row of the chunk that the next batch begins with.
    row: u64,
}

impl CaptureReader {
    pub(crate) fn open(
        dir: PathBuf,
        manifest: Arc<Manifest>,
        schema: &SchemaRef,
        projection: &[usize],
    ) -> Result<CaptureReader, CaptureError> {
        assert!(projection.is_sorted(), "arrow delivers projected columns in the file's order");
        if super::schema_fingerprint(schema) != manifest.schema_fingerprint {
            let (object, stage) = (manifest.object, manifest.stage);
            return Err(CaptureError::Schema { object, stage });
        }
        let projection = projection.to_vec();
        Ok(CaptureReader { dir, manifest, projection, next: CapturePosition::START, open: None })
    }

    /// The next row to be delivered.
    pub fn position(&self) -> CapturePosition {
        self.next
    }

    /// Goes on at `position`.
    pub fn seek(&mut self, position: &Position) -> Result<(), CaptureError> {
        let parsed = CapturePosition::parse(position)?;
        if !self.manifest.contains(parsed) {
            return Err(CaptureError::Position { position: position.clone() });
        }
        self.next = parsed;
        self.open = None;
        Ok(())
    }

    /// The next rows and the position after them, or `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<(RecordBatch, CapturePosition)>, CaptureError> {
        let manifest = Arc::clone(&self.manifest);
        while let Some(chunk) = manifest.chunks.get(self.next.chunk as usize) {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.open_chunk()?,
            };
            let Some(batch) = open.batches.next() else {
                let reason = format!("{} rows instead of {}", open.row, chunk.rows);
                return Err(CaptureError::corrupt(&open.path, reason));
            };
            let batch = batch.map_err(|error: ArrowError| {
                CaptureError::corrupt(&open.path, error.to_string())
            })?;
            let start = open.row;
            open.row += batch.num_rows() as u64;
            let skipped = self.next.row.saturating_sub(start).min(batch.num_rows() as u64);
            let rows = batch.num_rows() - usize::try_from(skipped).expect("at most a batch");
            self.next.row = self.next.row.max(open.row);
            if open.row == chunk.rows {
                self.next = CapturePosition { chunk: self.next.chunk + 1, row: 0 };
            } else {
                self.open = Some(open);
            }
            if rows > 0 {
                return Ok(Some((batch.slice(batch.num_rows() - rows, rows), self.next)));
            }
        }
        Ok(None)
    }

    fn open_chunk(&self) -> Result<OpenChunk, CaptureError> {
        let chunk = &self.manifest.chunks[self.next.chunk as usize];
        let path = self.dir.join(&chunk.file);
        let bytes = fs::read(&path).map_err(|error| CaptureError::io(&path, error))?;
        if bytes.len() as u64 != chunk.bytes {
            let reason = format!("{} bytes instead of {}", bytes.len(), chunk.bytes);
            return Err(CaptureError::corrupt(&path, reason));
        }
        if xxh3_64(&bytes) != chunk.checksum {
            return Err(CaptureError::corrupt(&path, "the checksum does not match"));
        }
        let batches = FileReader::try_new(Cursor::new(bytes), Some(self.projection.clone()))
            .map_err(|error| CaptureError::corrupt(&path, error.to_string()))?;
        Ok(OpenChunk { path, batches, row: 0 })
    }
}
