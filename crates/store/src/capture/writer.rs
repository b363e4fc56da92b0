//! Writing one attempt of a capture: batches in, chunk files out, a manifest at the end.
//!
//! Invariant: a manifest leaves this module only when all it names has been synced, directories included.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::FileWriter;
use xxhash_rust::xxh3::Xxh3;

use super::syncer::Syncer;
use super::{CaptureError, Chunk, Manifest};
use crate::crash_point;

/// A chunk is closed at this many rows,
const CHUNK_ROWS_MAX: usize = 64 * 1024;
/// or when it has grown to this size.
const CHUNK_BYTES: u64 = 16 * 1024 * 1024;
/// What is written, and later decoded, at a time.
const PIECE_ROWS_MAX: usize = 8192;
const PIECE_BYTES: usize = 1024 * 1024;

/// One attempt. Dropping it without [`CaptureWriter::finish`] deletes its files.
pub struct CaptureWriter {
    schema: SchemaRef,
    dir: PathBuf,
    root: Arc<Path>,
    manifest: Manifest,
    open: Option<OpenChunk>,
    /// Gone once a file could not be synced: the attempt has failed.
    syncer: Option<Syncer>,
    finished: bool,
}

struct OpenChunk {
    path: PathBuf,
    file: String,
    rows: usize,
    writer: FileWriter<Hashing<BufWriter<File>>>,
}

impl CaptureWriter {
    pub(crate) fn create(
        root: &Arc<Path>,
        manifest: Manifest,
        schema: SchemaRef,
    ) -> Result<CaptureWriter, CaptureError> {
        let dir = manifest.directory(root);
        fs::create_dir(&dir).map_err(|error| CaptureError::io(&dir, error))?;
        let root = Arc::clone(root);
        let syncer = Some(Syncer::start(&dir)?);
        Ok(CaptureWriter { schema, dir, root, manifest, open: None, syncer, finished: false })
    }

    /// The number of this attempt.
    pub fn attempt(&self) -> u32 {
        self.manifest.attempt
    }

    /// Rows taken so far.
    pub fn rows(&self) -> u64 {
        self.manifest.rows + self.open.as_ref().map_or(0, |chunk| chunk.rows as u64)
    }

    /// Takes the next rows of the result.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), CaptureError> {
        self.check_columns(batch)?;
        let piece_rows = piece_rows(batch);
        let mut start = 0;
        while start < batch.num_rows() {
            let mut chunk = match self.open.take() {
                Some(chunk) => chunk,
                None => self.begin_chunk()?,
            };
            let room = CHUNK_ROWS_MAX - chunk.rows;
            let rows = piece_rows.min(room).min(batch.num_rows() - start);
            chunk
                .writer
                .write(&batch.slice(start, rows))
                .map_err(|error| CaptureError::writing(&chunk.path, error))?;
            chunk.rows += rows;
            start += rows;
            let full = chunk.rows == CHUNK_ROWS_MAX || chunk.writer.get_ref().bytes >= CHUNK_BYTES;
            match full {
                true => self.end_chunk(chunk)?,
                false => self.open = Some(chunk),
            }
        }
        Ok(())
    }

    /// Ends the attempt. The manifest is valid once it has been committed.
    pub fn finish(mut self, handoff: Option<serde_json::Value>) -> Result<Manifest, CaptureError> {
        if let Some(chunk) = self.open.take() {
            self.end_chunk(chunk)?;
        }
        self.take_syncer()?.finish()?;
        // Each directory's entry is in its parent, up to the data directory.
        let data_dir = self.root.parent().expect("captures lie in the data directory");
        for dir in self.dir.ancestors().take_while(|dir| dir.starts_with(data_dir)) {
            File::open(dir)
                .and_then(|dir| dir.sync_all())
                .map_err(|error| CaptureError::io(dir, error))?;
        }
        crash_point!("capture-before-publish");
        self.finished = true;
        let mut manifest = self.manifest.clone();
        manifest.handoff = handoff;
        Ok(manifest)
    }

    fn begin_chunk(&self) -> Result<OpenChunk, CaptureError> {
        let file = format!("{}.arrow", self.manifest.chunks.len());
        let path = self.dir.join(&file);
        let created = File::create_new(&path).map_err(|error| CaptureError::io(&path, error))?;
        let hashing = Hashing::new(BufWriter::with_capacity(256 * 1024, created));
        let writer = FileWriter::try_new(hashing, &self.schema)
            .map_err(|error| CaptureError::writing(&path, error))?;
        Ok(OpenChunk { path, file, rows: 0, writer })
    }

    fn end_chunk(&mut self, chunk: OpenChunk) -> Result<(), CaptureError> {
        let OpenChunk { path, file, rows, mut writer } = chunk;
        writer.finish().map_err(|error| CaptureError::writing(&path, error))?;
        let hashing = writer.into_inner().map_err(|error| CaptureError::writing(&path, error))?;
        let (bytes, checksum) = (hashing.bytes, hashing.hash.digest());
        let file_on_disk = hashing
            .inner
            .into_inner()
            .map_err(|error| CaptureError::io(&path, error.into_error()))?;
        self.syncer = Some(self.take_syncer()?.push(path, file_on_disk)?);
        self.manifest.rows += rows as u64;
        self.manifest.chunks.push(Chunk { file, rows: rows as u64, bytes, checksum });
        crash_point!("capture-chunk");
        Ok(())
    }

    fn take_syncer(&mut self) -> Result<Syncer, CaptureError> {
        let failed = || io::Error::other("an earlier file of the attempt could not be synced");
        self.syncer.take().ok_or_else(|| CaptureError::io(&self.dir, failed()))
    }

    fn check_columns(&self, batch: &RecordBatch) -> Result<(), CaptureError> {
        let schema = batch.schema_ref();
        let types = |schema: &SchemaRef| -> Vec<String> {
            schema.fields().iter().map(|field| field.data_type().to_string()).collect()
        };
        let same = schema.fields().len() == self.schema.fields().len()
            && std::iter::zip(schema.fields(), self.schema.fields())
                .all(|(given, own)| given.data_type() == own.data_type());
        match same {
            true => Ok(()),
            false => Err(CaptureError::Columns {
                reason: format!(
                    "({}) instead of ({})",
                    types(schema).join(", "),
                    types(&self.schema).join(", ")
                ),
            }),
        }
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::warn!(dir = %self.dir.display(), %error, "could not delete an unfinished capture");
        }
    }
}

/// How many rows of `batch` make up a piece: wide rows give few, so that no chunk overshoots by much.
fn piece_rows(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter().map(|column| {
        // A type that cannot tell is a nested one of small parts.
        column.to_data().get_slice_memory_size().unwrap_or(0)
    });
    let row_bytes = sizes.sum::<usize>() / batch.num_rows().max(1) + 1;
    (PIECE_BYTES / row_bytes).clamp(1, PIECE_ROWS_MAX)
}

/// Counts and hashes what passes through.
struct Hashing<W> {
    inner: W,
    hash: Box<Xxh3>,
    bytes: u64,
}

impl<W> Hashing<W> {
    fn new(inner: W) -> Hashing<W> {
        Hashing { inner, hash: Box::new(Xxh3::new()), bytes: 0 }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
