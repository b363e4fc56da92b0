//! The files below a root, through `object_store`, with every failure told apart.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;
use object_store::{
    GetOptions, GetRange, GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt,
};
use segue_connect::ConnectError;
use segue_types::Boundedness;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::glob::Glob;
use crate::manifest::{Entry, HEAD_BYTES_MAX, Head};
use crate::options::{Encoding, FilesOptions};
use crate::unpack::{Packing, Unpacked};

/// How many files of a stage are open at a time: a watched directory may have thousands.
const OPEN_MAX: usize = 16;

/// Access to the stage's files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    store: Arc<dyn ObjectStore>,
    wanted: Wanted,
    location: String,
    packed: Packed,
    /// One for each file that may be open at a time, over all readers of the stage.
    slots: Arc<Semaphore>,
    /// The one file that is read, when it was compressed.
    unpacked: Option<Unpacked>,
}

/// Whether compressed files can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    Unpacked,
    /// Why not.
    Refused(&'static str),
}

impl Packed {
    fn of(options: &FilesOptions) -> Packed {
        match (options.refresh, &options.encoding) {
            (Some(_), _) => Packed::Refused("in a watched directory"),
            (None, Encoding::Parquet) => {
                Packed::Refused("around Parquet, which compresses by itself")
            }
            (None, Encoding::Json(_) | Encoding::Csv(_)) => Packed::Unpacked,
        }
    }
}

/// Which files below the root belong to the stage.
#[derive(Clone, Debug)]
enum Wanted {
    /// The one file that `path` names.
    File(String),
    Matching(Option<Glob>),
}

impl Wanted {
    /// The root directory, and what is wanted of it: a path that is no directory is a file, also while
    /// there is none.
    fn of(options: &FilesOptions) -> (&Path, Wanted) {
        let path = options.path.as_path();
        let name = path.file_name().and_then(|name| name.to_str());
        match name {
            Some(name) if options.pattern.is_none() && !path.is_dir() => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                (parent.unwrap_or(Path::new(".")), Wanted::File(name.to_owned()))
            }
            _ => (path, Wanted::Matching(options.pattern.clone())),
        }
    }

    /// Whether the file at `path` below the root is wanted. Names that begin with a dot or an underscore
    /// are other programs' markers and unfinished files.
    fn is_match(&self, path: &str) -> bool {
        match self {
            Wanted::File(name) => path == name,
            Wanted::Matching(glob) => {
                let hidden = path.split('/').any(|part| part.starts_with(['.', '_']));
                !hidden && glob.as_ref().is_none_or(|glob| glob.is_match(path))
            }
        }
    }
}

impl Files {
    pub(crate) fn open(options: &FilesOptions) -> Result<Files, ConnectError> {
        let (root, wanted) = Wanted::of(options);
        let store = LocalFileSystem::new_with_prefix(root).map_err(|_| ConnectError::Missing {
            what: format!("directory \"{}\"", root.display()),
        })?;
        let (location, packed) = (options.location(), Packed::of(options));
        let slots = Arc::new(Semaphore::new(OPEN_MAX));
        Ok(Files { store: Arc::new(store), wanted, location, packed, slots, unpacked: None })
    }

    /// All files of the stage, sorted by path: listings have no order of their own.
    pub(crate) async fn list(&self) -> Result<Vec<Entry>, ConnectError> {
        if let Wanted::File(name) = &self.wanted {
            return Ok(vec![self.look(name).await?]);
        }
        let listed: Vec<ObjectMeta> = self
            .store
            .list(None)
            .try_collect()
            .await
            .map_err(|error| self.failure(&self.location, &error))?;
        let mut entries: Vec<Entry> = listed
            .into_iter()
            .filter(|meta| self.wanted.is_match(meta.location.as_ref()))
            .map(entry)
            .collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        for entry in &entries {
            self.refuse_packed(&entry.path)?;
        }
        Ok(entries)
    }

    /// What the file is now.
    pub(crate) async fn look(&self, path: &str) -> Result<Entry, ConnectError> {
        self.refuse_packed(path)?;
        // The store opens a file to look at it.
        let _slot = self.slot().await;
        let meta = self.store.head(&location(path)?).await;
        meta.map(entry).map_err(|error| self.failure(path, &error))
    }

    async fn slot(&self) -> SemaphorePermit<'_> {
        self.slots.acquire().await.expect("the semaphore is never closed")
    }

    /// Bytes of a file; with an e-tag, of that very version.
    pub(crate) async fn bytes(
        &self,
        path: &str,
        range: Range<u64>,
        e_tag: Option<&str>,
    ) -> Result<Bytes, ConnectError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        if let Some(unpacked) = &self.unpacked {
            return unpacked.bytes(range).await;
        }
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: e_tag.map(str::to_owned),
            ..GetOptions::default()
        };
        let _slot = self.slot().await;
        let result = self.store.get_opts(&location(path)?, options).await;
        let result = result.map_err(|error| self.failure(path, &error))?;
        result.bytes().await.map_err(|error| self.failure(path, &error))
    }

    /// How many bytes are inside of a pinned file, if it is compressed.
    pub(crate) async fn unpacked_len(&self, entry: &Entry) -> Result<Option<u64>, ConnectError> {
        if Packing::of(&entry.path) == Packing::None {
            return Ok(None);
        }
        let packed = self.file(entry).await?;
        Unpacked::len_of(entry.path.clone(), packed).await.map(Some)
    }

    /// Access to what is inside of a pinned file, if it is compressed.
    pub(crate) async fn inside(self, entry: &Entry) -> Result<Files, ConnectError> {
        if entry.unpacked_bytes.is_none() || self.unpacked.is_some() {
            return Ok(self);
        }
        let packed = self.file(entry).await?;
        let unpacked = Unpacked::new(entry.path.clone(), packed).await?;
        Ok(Files { unpacked: Some(unpacked), ..self })
    }

    /// A pinned file, opened.
    async fn file(&self, entry: &Entry) -> Result<std::fs::File, ConnectError> {
        let options = GetOptions { if_match: entry.e_tag.clone(), ..GetOptions::default() };
        let result = self.store.get_opts(&location(&entry.path)?, options).await;
        match result.map_err(|error| self.failure(&entry.path, &error))?.payload {
            GetResultPayload::File(file, _) => Ok(file),
            GetResultPayload::Stream(_) => Err(ConnectError::Unsupported(format!(
                "file \"{}\" is compressed and does not lie on this server",
                entry.path
            ))),
        }
    }

    fn refuse_packed(&self, path: &str) -> Result<(), ConnectError> {
        let why = match (Packing::of(path), self.packed) {
            (Packing::None, _) | (Packing::Gzip | Packing::Zstd, Packed::Unpacked) => return Ok(()),
            (Packing::Unknown, Packed::Unpacked) => "by another method than gzip or zstd",
            (_, Packed::Refused(why)) => why,
        };
        Err(ConnectError::Unsupported(format!(
            "file \"{path}\" is compressed, which is not supported {why}; unpack it, or leave it out by \
             match_pattern"
        )))
    }

    /// The beginning of a file of `size_bytes`.
    pub(crate) async fn head(&self, path: &str, size_bytes: u64) -> Result<Head, ConnectError> {
        let len = size_bytes.min(HEAD_BYTES_MAX);
        Ok(Head::of(&self.bytes(path, 0..len, None).await?))
    }

    /// That the file is still the pinned one: unchanged in a bounded read, at most grown in a
    /// watched one. What it is now.
    pub(crate) async fn verify(
        &self,
        pinned: &Entry,
        boundedness: Boundedness,
    ) -> Result<Entry, ConnectError> {
        let found = self.look(&pinned.path).await?;
        let same_version = found.e_tag == pinned.e_tag && found.size_bytes == pinned.size_bytes;
        if same_version {
            return Ok(found);
        }
        let may_grow = boundedness == Boundedness::Continuous && pinned.rows.is_none();
        if !may_grow || found.size_bytes < pinned.size_bytes {
            return Err(replaced(&pinned.path, describe(pinned), describe(&found)));
        }
        if let Some(pinned_head) = pinned.head {
            let bytes = self.bytes(&pinned.path, 0..pinned_head.len_bytes, None).await?;
            if Head::of(&bytes) != pinned_head {
                return Err(replaced(
                    &pinned.path,
                    "its first bytes".to_owned(),
                    "other first bytes".to_owned(),
                ));
            }
        }
        Ok(found)
    }

    fn failure(&self, path: &str, error: &object_store::Error) -> ConnectError {
        let what = format!("file \"{path}\"");
        match error {
            object_store::Error::NotFound { .. } => ConnectError::Missing { what },
            object_store::Error::Precondition { .. } => replaced(
                path,
                "the version of CREATE SOURCE".to_owned(),
                "another version".to_owned(),
            ),
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => ConnectError::Denied {
                system: "the file system".to_owned(),
                reason: format!("no permission to read {what}"),
            },
            other => ConnectError::Unreachable { system: what, reason: other.to_string() },
        }
    }
}

pub(crate) fn replaced(path: &str, pinned: String, found: String) -> ConnectError {
    ConnectError::Replaced { what: format!("file \"{path}\""), pinned, found }
}

fn describe(entry: &Entry) -> String {
    let e_tag = entry.e_tag.as_deref().unwrap_or("none");
    format!("{} bytes, version {e_tag}", entry.size_bytes)
}

fn entry(meta: ObjectMeta) -> Entry {
    Entry {
        path: meta.location.to_string(),
        size_bytes: meta.size,
        e_tag: meta.e_tag,
        modified_ms: meta.last_modified.timestamp_millis(),
        rows: None,
        unpacked_bytes: None,
        head: None,
    }
}

fn location(path: &str) -> Result<Location, ConnectError> {
    Location::parse(path).map_err(|_| ConnectError::Missing { what: format!("file \"{path}\"") })
}
