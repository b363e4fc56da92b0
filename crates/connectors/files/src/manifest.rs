//! The manifest of a read: which files it pinned, kept in the read definition.

use segue_connect::{ConnectError, ReadDefinition};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// How much of a watched file's beginning is remembered to tell it from another of the same name.
pub(crate) const HEAD_BYTES_MAX: u64 = 4096;

/// One pinned file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Below the root; the split's id.
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    pub(crate) e_tag: Option<String>,
    pub(crate) modified_ms: i64,
    /// How many rows a Parquet file has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<u64>,
    /// How many bytes are inside of a compressed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unpacked_bytes: Option<u64>,
    /// The beginning of a watched file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<Head>,
}

impl Entry {
    /// How many bytes a reader finds.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.unpacked_bytes.unwrap_or(self.size_bytes)
    }
}

/// The first bytes of a file that may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) len_bytes: u64,
    pub(crate) xxh3: u64,
}

impl Head {
    pub(crate) fn of(bytes: &[u8]) -> Head {
        Head { len_bytes: bytes.len() as u64, xxh3: xxhash_rust::xxh3::xxh3_64(bytes) }
    }
}

/// All pinned files, by path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) files: Vec<Entry>,
}

impl Manifest {
    /// The manifest in a definition that this connector pinned.
    pub(crate) fn of(definition: &ReadDefinition) -> Result<Manifest, ConnectError> {
        serde_json::from_value(definition.private.clone()).map_err(|error| {
            ConnectError::Unsupported(format!("the pinned manifest cannot be read: {error}"))
        })
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a manifest is plain data")
    }

    pub(crate) fn entry(&self, path: &str) -> Option<&Entry> {
        let found = self.files.binary_search_by(|entry| entry.path.as_str().cmp(path));
        found.ok().map(|index| &self.files[index])
    }

    /// Equal for equal files.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Xxh3::new();
        for entry in &self.files {
            hash.update(entry.path.as_bytes());
            hash.update(&[0]);
            hash.update(&entry.size_bytes.to_le_bytes());
            hash.update(entry.e_tag.as_deref().unwrap_or("").as_bytes());
            hash.update(&[0]);
        }
        format!("{:032x}", hash.digest128())
    }
}
