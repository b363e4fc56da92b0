//! Compressed files: unpacked as a whole into a scratch file, so that positions are byte offsets of what is inside and
//! reading can go on at any of them.
//!
//! A file is compressed if its name says so: `.gz` or `.zst`. Invariant: a scratch file has no name, so it is gone with
//! its last reader, however that ends.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use segue_connect::ConnectError;
use segue_types::SplitId;

use crate::position;

/// What a file's name says of how it was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    None,
    Gzip,
    Zstd,
    /// By a method that is not known here.
    Unknown,
}

impl Packing {
    pub(crate) fn of(path: &str) -> Packing {
        match path.rsplit_once('.').map(|(_, suffix)| suffix) {
            Some("gz") => Packing::Gzip,
            Some("zst") => Packing::Zstd,
            Some("bz2" | "xz" | "lz4" | "zip") => Packing::Unknown,
            _ => Packing::None,
        }
    }
}

/// What was inside of a compressed file.
#[derive(Clone, Debug)]
pub(crate) struct Unpacked(Arc<File>);

impl Unpacked {
    /// Unpacks a file.
    pub(crate) async fn new(path: String, packed: File) -> Result<Unpacked, ConnectError> {
        let unpack = move || {
            let mut scratch = tempfile::tempfile().map_err(|error| no_room(&error))?;
            copy(&path, packed, &mut scratch)?;
            Ok(Unpacked(Arc::new(scratch)))
        };
        blocking(unpack).await
    }

    /// How many bytes are inside of a file.
    pub(crate) async fn len_of(path: String, packed: File) -> Result<u64, ConnectError> {
        blocking(move || copy(&path, packed, &mut io::sink())).await
    }

    pub(crate) async fn bytes(&self, range: Range<u64>) -> Result<Bytes, ConnectError> {
        let file = Arc::clone(&self.0);
        let read = move || {
            let len = usize::try_from(range.end - range.start).expect("chunks fit into memory");
            let mut bytes = vec![0; len];
            let mut filled = 0;
            while filled < len {
                match file.read_at(&mut bytes[filled..], range.start + filled as u64) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) => return Err(no_room(&error)),
                }
            }
            bytes.truncate(filled);
            Ok(bytes.into())
        };
        blocking(read).await
    }
}

fn copy(path: &str, packed: File, to: &mut impl io::Write) -> Result<u64, ConnectError> {
    let packed = BufReader::with_capacity(256 << 10, packed);
    let mut unpacked: Box<dyn Read> = match Packing::of(path) {
        // Several archives one after the other are one file, as gzip itself has it.
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Packing::Zstd => {
            Box::new(zstd::stream::read::Decoder::with_buffer(packed).map_err(|e| no_room(&e))?)
        }
        Packing::None | Packing::Unknown => Box::new(packed),
    };
    io::copy(&mut unpacked, to).map_err(|error| ConnectError::Malformed {
        split: SplitId::new(path),
        position: position(0),
        reason: format!("the file cannot be unpacked: {error}"),
    })
}

fn no_room(error: &io::Error) -> ConnectError {
    let system = "the folder of temporary files".to_owned();
    ConnectError::Unreachable { system, reason: error.to_string() }
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
) -> Result<T, ConnectError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ConnectError::Unreachable {
                system: "the file system".to_owned(),
                reason: "the server is shutting down".to_owned(),
            }),
        },
    }
}
