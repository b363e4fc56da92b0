//! Reading Parquet: only the row groups that are still to come and the columns that are wanted.

mod convert;
mod ranges;

use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use segue_connect::{ConnectError, OnError, ReadEvent, Rejected, Rows, SplitReader};
use segue_types::{Boundedness, SplitId};
use tokio::time::Instant;

use self::convert::Converted;
use self::ranges::Ranges;
use crate::batch::{Includes, Projection};
use crate::files::Files;
use crate::manifest::Entry;
use crate::position;
use crate::text::End;

const BATCH_ROWS: usize = 8192;
/// How much of a file's end is fetched at first in search of its footer.
const FOOTER_BYTES: u64 = 64 * 1024;

/// A file's footer: schema, row groups, where their columns lie.
#[derive(Clone, Debug)]
pub(crate) struct Footer {
    metadata: Arc<ParquetMetaData>,
}

impl Footer {
    pub(crate) async fn read(files: &Files, entry: &Entry) -> Result<Footer, ConnectError> {
        let mut len = FOOTER_BYTES.min(entry.size_bytes);
        loop {
            let range = entry.size_bytes - len..entry.size_bytes;
            let bytes = files.bytes(&entry.path, range, entry.e_tag.as_deref()).await?;
            let mut reader = ParquetMetaDataReader::new();
            match reader.try_parse_sized(&bytes, entry.size_bytes) {
                Ok(()) => {
                    let metadata = reader.finish().map_err(|error| unreadable(entry, &error))?;
                    return Ok(Footer { metadata: Arc::new(metadata) });
                }
                Err(ParquetError::NeedMoreData(needed))
                    if needed as u64 > len && needed as u64 <= entry.size_bytes =>
                {
                    len = needed as u64;
                }
                Err(error) => return Err(unreadable(entry, &error)),
            }
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.metadata.file_metadata().num_rows().max(0) as u64
    }

    /// The row group that holds row `row`, the row's number in it, and how many rows it has.
    fn locate(&self, row: u64) -> Option<(usize, u64, u64)> {
        let mut first = 0;
        for (index, group) in self.metadata.row_groups().iter().enumerate() {
            let rows = group.num_rows().max(0) as u64;
            if row < first + rows {
                return Some((index, row - first, rows));
            }
            first += rows;
        }
        None
    }
}

fn unreadable(entry: &Entry, error: &ParquetError) -> ConnectError {
    ConnectError::Unsupported(format!("file \"{}\" cannot be read as Parquet: {error}", entry.path))
}

/// What a reader of a file starts from.
#[derive(Debug)]
pub(crate) struct ParquetRead {
    pub(crate) files: Files,
    /// The pinned file; `None` for one that was found later.
    pub(crate) pinned: Option<Entry>,
    pub(crate) split: SplitId,
    pub(crate) from: u64,
    pub(crate) end: End,
    pub(crate) projection: Projection,
    pub(crate) declared: SchemaRef,
    pub(crate) on_error: OnError,
}

/// Reads one file.
pub(crate) struct ParquetReader {
    read: ParquetRead,
    includes: Includes,
    /// The declared columns that are wanted.
    wanted: SchemaRef,
    file: Option<(Entry, Footer)>,
    /// The row group that is being read.
    group: Option<ParquetRecordBatchReader>,
    failure: Option<ConnectError>,
    row: u64,
}

impl ParquetReader {
    pub(crate) fn new(read: ParquetRead) -> ParquetReader {
        let wanted = read.declared.project(&read.projection.declared);
        ParquetReader {
            includes: read.projection.includes(read.split.as_str()),
            wanted: Arc::new(wanted.expect("projections lie in the schema")),
            file: None,
            group: None,
            failure: None,
            row: read.from,
            read,
        }
    }

    async fn begin(&mut self) -> Result<(Entry, Footer), ConnectError> {
        let files = &self.read.files;
        let entry = match &self.read.pinned {
            Some(pinned) => {
                files.verify(pinned, Boundedness::Bounded).await?;
                pinned.clone()
            }
            None => files.look(self.read.split.as_str()).await?,
        };
        let footer = Footer::read(files, &entry).await?;
        let entry = Entry { rows: Some(footer.rows()), ..entry };
        if self.row > footer.rows() {
            return Err(ConnectError::Truncated {
                what: format!("file \"{}\"", entry.path),
                split: self.read.split.clone(),
                position: position(self.row),
                end: position(footer.rows()),
            });
        }
        Ok((entry, footer))
    }

    /// Fetches the wanted columns of the row group at the current row, and opens it there.
    async fn open_group(
        &mut self,
        entry: &Entry,
        footer: &Footer,
        end: u64,
    ) -> Result<ParquetRecordBatchReader, ConnectError> {
        let (index, row_in_group, rows) =
            footer.locate(self.row).expect("rows before the end lie in a group");
        let left = (rows - row_in_group).min(end - self.row) as usize;
        let schema = footer.metadata.file_metadata().schema_descr();
        let roots = schema.root_schema().get_fields().iter().enumerate().filter(|(_, root)| {
            self.wanted
                .fields()
                .iter()
                .any(|field| convert::is_same_name(root.name(), field.name()))
        });
        let mask = ProjectionMask::roots(schema, roots.map(|(index, _)| index).collect::<Vec<_>>());
        let group = footer.metadata.row_group(index);
        let mut ranges = Ranges::new(entry.size_bytes);
        for (leaf, column) in group.columns().iter().enumerate() {
            if mask.leaf_included(leaf) {
                let (start, len) = column.byte_range();
                let range = start..start + len;
                let bytes = self.read.files.bytes(&entry.path, range, entry.e_tag.as_deref());
                ranges.add(start, bytes.await?);
            }
        }
        let unreadable = |error: ParquetError| unreadable(entry, &error);
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(&footer.metadata), options);
        ParquetRecordBatchReaderBuilder::new_with_metadata(ranges, metadata.map_err(unreadable)?)
            .with_row_groups(vec![index])
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .with_offset(row_in_group as usize)
            .with_limit(left)
            .build()
            .map_err(unreadable)
    }

    /// Turns decoded rows into an event.
    fn deliver(&mut self, batch: &RecordBatch) -> Result<ReadEvent, ConnectError> {
        let bytes = batch.get_array_memory_size();
        let Converted { mut batch, faults } = convert::convert(batch, &self.wanted);
        if let (Some(fault), OnError::Fail) = (faults.first(), self.read.on_error) {
            let failure = ConnectError::Malformed {
                split: self.read.split.clone(),
                position: position(self.row + fault.row as u64),
                reason: fault.reason.clone(),
            };
            if fault.row == 0 {
                return Err(failure);
            }
            batch = batch.slice(0, fault.row);
            self.failure = Some(failure);
        }
        let rows = batch.num_rows() as u64;
        let mut keep = vec![true; batch.num_rows()];
        let mut rejected = Vec::new();
        for fault in faults.into_iter().filter(|fault| (fault.row as u64) < rows) {
            keep[fault.row] = false;
            rejected.push(Rejected {
                position: position(self.row + fault.row as u64),
                payload: Vec::new(),
                reason: fault.reason,
            });
        }
        for row in (0..rows).filter(|row| keep[*row as usize]) {
            self.includes.append(self.row + row, &[]);
        }
        if !rejected.is_empty() {
            batch = convert::filter(&batch, keep);
        }
        let batch = convert::with_schema(&batch, &self.wanted);
        let changes = self.read.projection.changes(&batch, &mut self.includes);
        self.row += rows;
        Ok(ReadEvent::Rows(Rows { changes, next: position(self.row), rejected, bytes }))
    }

    /// Waits until it is time to look at a watched file again; it may have been removed, but not
    /// changed.
    async fn look_again(&mut self, entry: &Entry) -> Result<(), ConnectError> {
        let End::Watched { refresh, next_look } = &mut self.read.end else {
            unreachable!("only watched files are looked at again")
        };
        tokio::time::sleep_until(*next_look).await;
        *next_look = Instant::now() + *refresh;
        match self.read.files.verify(entry, Boundedness::Bounded).await {
            Ok(_) | Err(ConnectError::Missing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl SplitReader for ParquetReader {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let (entry, footer) = match &self.file {
            Some(file) => file.clone(),
            None => self.begin().await?,
        };
        self.file = Some((entry.clone(), footer.clone()));
        loop {
            let end = match self.read.end {
                End::At(end) => end.min(footer.rows()),
                End::Watched { .. } => footer.rows(),
            };
            if let Some(group) = &mut self.group {
                match group.next() {
                    Some(batch) => {
                        let batch = batch.map_err(|error| unreadable(&entry, &error.into()))?;
                        return self.deliver(&batch);
                    }
                    None => self.group = None,
                }
            }
            if self.row < end {
                self.group = Some(self.open_group(&entry, &footer, end).await?);
            } else if let End::At(at) = self.read.end {
                self.read.files.verify(&entry, Boundedness::Bounded).await?;
                return Ok(ReadEvent::Done { at: position(at) });
            } else {
                self.look_again(&entry).await?;
            }
        }
    }
}
