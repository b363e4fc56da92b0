//! The end of a watched file: what of it a reader can see now.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::datatypes::Schema;
use segue_connect::ConnectError;
use segue_formats::{JsonDecoder, JsonOptions};

use super::CHUNK_BYTES;
use crate::files::Files;
use crate::manifest::Entry;
use crate::options::{Encoding, FilesOptions};

/// Whether the bytes after a file's last line end are a whole record, or nothing.
pub(super) fn is_complete(options: &FilesOptions, tail: &[u8], modified_ms: i64) -> bool {
    if tail.trim_ascii().is_empty() {
        return true;
    }
    let Encoding::Json(_) = options.encoding else { return is_settled(options, modified_ms) };
    // A whole object cannot be the beginning of a longer one.
    let mut probe = JsonDecoder::new(Arc::new(Schema::empty()), &[], JsonOptions::default());
    probe.decode(tail).is_ok()
}

/// Whether the file has not changed for a refresh interval.
fn is_settled(options: &FilesOptions, modified_ms: i64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified = Duration::from_millis(modified_ms.max(0) as u64);
    options.refresh.is_none_or(|refresh| now.saturating_sub(modified) >= refresh)
}

/// The exclusive end of what a reader can see of a watched file, not below `from`.
pub(crate) async fn visible_end(
    files: &Files,
    options: &FilesOptions,
    entry: &Entry,
    from: u64,
) -> Result<u64, ConnectError> {
    let size = entry.size_bytes;
    let mut window = CHUNK_BYTES / 64;
    loop {
        let start = size.saturating_sub(window).max(from.min(size));
        let bytes = files.bytes(&entry.path, start..size, None).await?;
        let line_end = memchr::memrchr(b'\n', &bytes);
        if line_end.is_none() && start > from.min(size) {
            window *= 4;
            continue;
        }
        let tail_start = line_end.map_or(0, |end| end + 1);
        if is_complete(options, &bytes[tail_start..], entry.modified_ms) {
            return Ok(size);
        }
        return Ok(start + tail_start as u64);
    }
}
