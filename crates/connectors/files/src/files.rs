//! The files below a root, through `object_store`, with every failure told apart.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use segue_connect::ConnectError;
use segue_types::Boundedness;

use crate::glob::Glob;
use crate::manifest::{Entry, HEAD_BYTES_MAX, Head};
use crate::options::FilesOptions;

/// Access to the stage's files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    store: Arc<dyn ObjectStore>,
    wanted: Wanted,
    location: String,
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
        Ok(Files { store: Arc::new(store), wanted, location: options.location() })
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
            refuse_compressed(&entry.path)?;
        }
        Ok(entries)
    }

    /// What the file is now.
    pub(crate) async fn look(&self, path: &str) -> Result<Entry, ConnectError> {
        refuse_compressed(path)?;
        let meta = self.store.head(&location(path)?).await;
        meta.map(entry).map_err(|error| self.failure(path, &error))
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
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: e_tag.map(str::to_owned),
            ..GetOptions::default()
        };
        let result = self.store.get_opts(&location(path)?, options).await;
        let result = result.map_err(|error| self.failure(path, &error))?;
        result.bytes().await.map_err(|error| self.failure(path, &error))
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
        head: None,
    }
}

fn location(path: &str) -> Result<Location, ConnectError> {
    Location::parse(path).map_err(|_| ConnectError::Missing { what: format!("file \"{path}\"") })
}

/// A compressed file has no byte offset at which reading could go on.
fn refuse_compressed(path: &str) -> Result<(), ConnectError> {
    let compressed = [".gz", ".zst", ".bz2", ".xz", ".lz4", ".zip"];
    if compressed.iter().any(|suffix| path.ends_with(suffix)) {
        return Err(ConnectError::Unsupported(format!(
            "file \"{path}\" is compressed, and reading could not be resumed inside it; unpack it, or \
             leave it out by match_pattern"
        )));
    }
    Ok(())
}
