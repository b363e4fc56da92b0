//! The open read: discovery, readers, and where files end now.

use std::time::Duration;

use async_trait::async_trait;
use segue_connect::{
    ConnectError, Enumeration, HasData, Latest, OnError, ReadConfig, ReadDefinition,
    SplitDefinition, SplitReader, SplitStart, StageReader,
};
use segue_types::{Position, SplitId};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::batch::Projection;
use crate::files::Files;
use crate::manifest::Manifest;
use crate::options::{Encoding, FilesOptions};
use crate::parquet::{Footer, ParquetRead, ParquetReader};
use crate::pin::end_of;
use crate::text::{End, TextDecoder, TextRead, TextReader, visible_end};
use crate::{declared_schema, number_of, position};

/// An open read of a files stage.
#[derive(Debug)]
pub(crate) struct FilesStage {
    files: Files,
    options: FilesOptions,
    definition: ReadDefinition,
    manifest: Manifest,
    projection: Projection,
    declared: arrow::datatypes::SchemaRef,
    on_error: OnError,
    /// When the directory was last listed, and the files of then.
    listed: Mutex<Option<(Instant, Vec<String>)>>,
}

impl FilesStage {
    pub(crate) fn open(
        config: &ReadConfig,
        options: FilesOptions,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<FilesStage, ConnectError> {
        Ok(FilesStage {
            files: Files::open(&options)?,
            options,
            definition: definition.clone(),
            manifest: Manifest::of(definition)?,
            projection: Projection::new(config, projection),
            declared: declared_schema(config),
            on_error: config.on_error,
            listed: Mutex::new(None),
        })
    }

    /// The files that are there, listed again when the refresh interval is over.
    async fn listing(&self, refresh: Duration) -> Result<Vec<String>, ConnectError> {
        let mut listed = self.listed.lock().await;
        if let Some((at, paths)) = &*listed
            && at.elapsed() < refresh
        {
            return Ok(paths.clone());
        }
        let paths: Vec<String> = match self.files.list().await {
            // The one file that `path` names was removed.
            Err(ConnectError::Missing { .. }) => Vec::new(),
            entries => entries?.into_iter().map(|entry| entry.path).collect(),
        };
        *listed = Some((Instant::now(), paths.clone()));
        Ok(paths)
    }

    fn end(&self, split: &SplitId, until: Option<&Position>) -> Result<End, ConnectError> {
        if let Some(until) = until {
            return Ok(End::At(number_of(split, until)?));
        }
        match (self.options.refresh, self.manifest.entry(split.as_str())) {
            (Some(refresh), _) => Ok(End::Watched { refresh, next_look: Instant::now() + refresh }),
            (None, Some(entry)) => Ok(End::At(end_of(entry))),
            (None, None) => Err(ConnectError::Missing { what: format!("file \"{split}\"") }),
        }
    }
}

#[async_trait]
impl StageReader for FilesStage {
    async fn discover(&self) -> Result<Enumeration, ConnectError> {
        let Some(refresh) = self.options.refresh else {
            return Ok(Enumeration { splits: self.definition.splits.clone(), sealed: true });
        };
        let paths = self.listing(refresh).await?;
        let known = &self.definition.splits;
        let split = |path: String| {
            let initial = known.iter().find(|split| split.id.as_str() == path).cloned();
            initial.unwrap_or_else(|| SplitDefinition {
                id: SplitId::new(path),
                start: SplitStart::At(position(0)),
                bound: None,
                after: Vec::new(),
            })
        };
        Ok(Enumeration { splits: paths.into_iter().map(split).collect(), sealed: false })
    }

    async fn read(
        &self,
        split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let end = self.end(split, until)?;
        let from = number_of(split, from)?;
        let pinned = self.manifest.entry(split.as_str()).cloned();
        let (files, projection) = (self.files.clone(), self.projection.clone());
        let (split, on_error) = (split.clone(), self.on_error);
        let declared = std::sync::Arc::clone(&self.declared);
        let decoder = TextDecoder::new(
            &self.options.encoding,
            std::sync::Arc::clone(&declared),
            &projection.declared,
        );
        let Some(decoder) = decoder else {
            let read =
                ParquetRead { files, pinned, split, from, end, projection, declared, on_error };
            return Ok(Box::new(ParquetReader::new(read)));
        };
        let options = self.options.clone();
        let read =
            TextRead { files, options, pinned, split, from, end, projection, on_error, decoder };
        Ok(Box::new(TextReader::new(read)))
    }

    async fn latest(&self, split: &SplitId) -> Result<Option<Latest>, ConnectError> {
        let pinned = self.manifest.entry(split.as_str());
        if let (None, Some(entry)) = (self.options.refresh, pinned) {
            return Ok(Some(position(end_of(entry)).into()));
        }
        let entry = match self.files.look(split.as_str()).await {
            // Removed since it was listed: the next listing says so.
            Err(ConnectError::Missing { .. }) => return Ok(None),
            entry => entry?,
        };
        let end = match self.options.encoding {
            Encoding::Parquet => Footer::read(&self.files, &entry).await?.rows(),
            Encoding::Json(_) | Encoding::Csv(_) => {
                visible_end(&self.files, &self.options, &entry, 0).await?
            }
        };
        Ok(Some(position(end).into()))
    }

    async fn has_data(&self, split: &SplitId, from: &Position) -> Result<HasData, ConnectError> {
        let from = number_of(split, from)?;
        let Some(latest) = self.latest(split).await? else { return Ok(HasData::No) };
        let more = number_of(split, &latest.position)? > from;
        Ok(if more { HasData::Yes } else { HasData::No })
    }

    async fn acknowledge(&self, _positions: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        Ok(())
    }
}
