//! Pinning: the listing becomes a manifest, every file a split with a start and, in a bounded
//! read, a bound.

use std::collections::BTreeMap;

use segue_connect::{ConnectError, ReadConfig, ReadDefinition, SplitDefinition, SplitStart, Start};
use segue_types::{Boundedness, Position, SplitId};

use crate::files::Files;
use crate::manifest::{Entry, Manifest};
use crate::options::{Encoding, FilesOptions};
use crate::parquet::Footer;
use crate::{number_of, position, text};

pub(crate) async fn pin(
    config: &ReadConfig,
    options: &FilesOptions,
) -> Result<ReadDefinition, ConnectError> {
    let files = Files::open(options)?;
    let mut entries = files.list().await?;
    for entry in &mut entries {
        match options.encoding {
            Encoding::Parquet => entry.rows = Some(Footer::read(&files, entry).await?.rows()),
            Encoding::Json(_) | Encoding::Csv(_) if options.refresh.is_some() => {
                entry.head = Some(files.head(&entry.path, entry.size_bytes).await?);
            }
            Encoding::Json(_) | Encoding::Csv(_) => {
                entry.unpacked_bytes = files.unpacked_len(entry).await?;
            }
        }
    }
    let manifest = Manifest { files: entries };
    let mut splits = Vec::with_capacity(manifest.files.len());
    for entry in &manifest.files {
        let start = start_of(config, options, &files, entry).await?;
        splits.push(SplitDefinition {
            id: SplitId::new(entry.path.as_str()),
            start: SplitStart::At(start),
            bound: options.refresh.is_none().then(|| position(end_of(entry))),
            after: Vec::new(),
        });
    }
    if let Start::Offsets(offsets) = &config.start {
        check_named(offsets, &manifest)?;
    }
    let boundedness = options.boundedness();
    let identity = match boundedness {
        Boundedness::Bounded => format!("files:{}#{}", options.location(), manifest.digest()),
        Boundedness::Continuous => format!("files:{}", options.location()),
    };
    Ok(ReadDefinition {
        identity,
        boundedness,
        splits,
        sealed: boundedness == Boundedness::Bounded,
        remarks: Vec::new(),
        private: manifest.to_json(),
    })
}

/// The exclusive end of a pinned file.
pub(crate) fn end_of(entry: &Entry) -> u64 {
    entry.rows.unwrap_or(entry.content_bytes())
}

async fn start_of(
    config: &ReadConfig,
    options: &FilesOptions,
    files: &Files,
    entry: &Entry,
) -> Result<Position, ConnectError> {
    let number = match &config.start {
        Start::Latest => match entry.rows {
            Some(rows) => rows,
            None => text::visible_end(files, options, entry, 0).await?,
        },
        Start::Offsets(offsets) => {
            let split = SplitId::new(entry.path.as_str());
            match offsets.get(&split) {
                Some(given) => {
                    let given = Position::new(given.as_str());
                    let number = number_of(&split, &given)?;
                    check_within(entry, split, given, number)?;
                    number
                }
                None => 0,
            }
        }
        _ => 0,
    };
    Ok(position(number))
}

fn check_within(
    entry: &Entry,
    split: SplitId,
    given: Position,
    number: u64,
) -> Result<(), ConnectError> {
    if number <= end_of(entry) {
        return Ok(());
    }
    Err(ConnectError::Truncated {
        what: format!("file \"{}\"", entry.path),
        split,
        position: given,
        end: position(end_of(entry)),
    })
}

fn check_named(
    offsets: &BTreeMap<SplitId, String>,
    manifest: &Manifest,
) -> Result<(), ConnectError> {
    match offsets.keys().find(|split| manifest.entry(split.as_str()).is_none()) {
        Some(split) => Err(ConnectError::Missing { what: format!("file \"{split}\"") }),
        None => Ok(()),
    }
}
