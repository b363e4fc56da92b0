//! *Captures*: durable local copies of the results of bounded queries, published all at once.
//!
//! An *attempt* streams one consistent result into chunk files. When it is complete, and every file and
//! directory is on disk, its [`Manifest`] is committed with an epoch; only then can anybody read it. An
//! attempt that fails goes as a whole, so that rows of two snapshots are never mixed.
//!
//! Invariants: a published manifest names files that are complete and durable; a directory that no manifest
//! names is garbage and goes at the next open.

mod error;
mod manifest;
mod position;
mod reader;
mod syncer;
mod writer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use segue_types::{ObjectId, StageIndex};

pub use error::CaptureError;
pub use manifest::{Chunk, Manifest, schema_fingerprint};
pub use position::CapturePosition;
pub use reader::CaptureReader;
pub use writer::CaptureWriter;

/// The directory of all captures. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Captures {
    root: Arc<Path>,
}

impl Captures {
    pub(crate) fn new(data_dir: &Path) -> Captures {
        Captures { root: data_dir.join("captures").into() }
    }

    /// Begins an attempt to capture a stage. It is dropped with its files unless it is finished.
    pub fn begin(
        &self,
        object: ObjectId,
        stage: StageIndex,
        schema: SchemaRef,
    ) -> Result<CaptureWriter, CaptureError> {
        let stage_dir = self.stage_dir(object, stage);
        fs::create_dir_all(&stage_dir).map_err(|error| CaptureError::io(&stage_dir, error))?;
        let attempts = numbered(&stage_dir).map_err(|(at, error)| CaptureError::io(&at, error))?;
        let last = attempts.into_iter().map(|(number, _)| number).max();
        let attempt = last.map_or(1, |last| last + 1);
        CaptureWriter::create(&self.root, Manifest::empty(object, stage, attempt, &schema), schema)
    }

    /// Opens a published capture at its beginning. `projection` indexes `schema`, in ascending order.
    pub fn open(
        &self,
        manifest: Arc<Manifest>,
        schema: &SchemaRef,
        projection: &[usize],
    ) -> Result<CaptureReader, CaptureError> {
        let dir = manifest.directory(&self.root);
        CaptureReader::open(dir, manifest, schema, projection)
    }

    /// Deletes the files of a dropped object. A failure leaves garbage for the next open.
    pub(crate) fn remove(&self, object: ObjectId) {
        let dir = self.root.join(object.to_string());
        if let Err(error) = fs::remove_dir_all(&dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(dir = %dir.display(), %error, "could not delete the files of a capture");
        }
    }

    /// Deletes every attempt that no manifest names.
    pub(crate) fn sweep(&self, published: &[Manifest]) -> Result<(), (PathBuf, io::Error)> {
        let kept: Vec<PathBuf> =
            published.iter().map(|manifest| manifest.directory(&self.root)).collect();
        let is_kept = |dir: &Path| kept.iter().any(|kept| kept.starts_with(dir));
        let mut garbage = Vec::new();
        for (_, object) in numbered(&self.root)? {
            for (_, stage) in numbered(&object)? {
                let attempts = numbered(&stage)?.into_iter().map(|(_, attempt)| attempt);
                garbage.extend(attempts.filter(|attempt| !is_kept(attempt)));
                garbage.extend((!is_kept(&stage)).then_some(stage));
            }
            garbage.extend((!is_kept(&object)).then_some(object));
        }
        for dir in garbage {
            tracing::info!(dir = %dir.display(), "deleting an unfinished capture");
            fs::remove_dir_all(&dir).map_err(|error| (dir, error))?;
        }
        Ok(())
    }

    fn stage_dir(&self, object: ObjectId, stage: StageIndex) -> PathBuf {
        self.root.join(object.to_string()).join(stage.to_string())
    }
}

/// The subdirectories whose names are numbers: those that this module makes. A missing directory has none.
fn numbered(dir: &Path) -> Result<Vec<(u32, PathBuf)>, (PathBuf, io::Error)> {
    let failed = |error: io::Error| (dir.to_owned(), error);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(number) = number {
            found.push((number, entry.path()));
        }
    }
    Ok(found)
}
