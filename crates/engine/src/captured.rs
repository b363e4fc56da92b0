//! Reading a published capture: a stage like any other, served from this disk.
//!
//! One split; its positions are `chunk:row`; its bound is the end of the last chunk.

use std::sync::Arc;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use segue_connect::{
    Changes, ConnectError, Enumeration, HasData, Latest, Ops, ReadEvent, Rows, SplitDefinition,
    SplitReader, SplitStart, StageReader,
};
use segue_store::Store;
use segue_store::capture::{CaptureError, CapturePosition, CaptureReader, Manifest};
use segue_types::{Position, RowSemantics, SplitId, UserError};

use crate::source::StageRuntime;

/// The one split of a captured stage.
const SPLIT: &str = "capture";

/// The end of a capture, exclusive.
pub(crate) fn end(manifest: &Manifest) -> Position {
    manifest.end().to_position()
}

/// The split of a stage that will be captured: sealed from the beginning, its end known when it is published.
pub(crate) fn split(manifest: Option<&Manifest>) -> SplitDefinition {
    SplitDefinition {
        id: SplitId::new(SPLIT),
        start: SplitStart::At(CapturePosition::START.to_position()),
        bound: manifest.map(end),
        after: Vec::new(),
    }
}

/// The answer of the handoff query, from the snapshot of the rows.
///
/// # Panics
/// If the capture was made without one: the planner asks for it when the next stage needs it.
pub(crate) fn handoff(manifest: &Manifest) -> Vec<(SplitId, Position)> {
    let answer = manifest.handoff.clone().expect("captured with the query of the next stage");
    serde_json::from_value(answer).expect("the store checks what it gives back")
}

/// An open capture of one consumer.
pub(crate) struct CapturedStage {
    stage: Arc<StageRuntime>,
    manifest: Arc<Manifest>,
    store: Arc<Store>,
    projection: Vec<usize>,
}

impl CapturedStage {
    pub(crate) fn new(
        stage: Arc<StageRuntime>,
        manifest: Arc<Manifest>,
        store: Arc<Store>,
        projection: &[usize],
    ) -> CapturedStage {
        CapturedStage { stage, manifest, store, projection: projection.to_vec() }
    }
}

#[async_trait]
impl StageReader for CapturedStage {
    async fn discover(&self) -> Result<Enumeration, ConnectError> {
        Ok(Enumeration { splits: vec![split(Some(&self.manifest))], sealed: true })
    }

    async fn read(
        &self,
        split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        assert_eq!(split.as_str(), SPLIT, "a capture has one split");
        let end = end(&self.manifest);
        assert!(until.is_none_or(|until| *until == end), "a capture is read to its end");
        // Chunks hold the columns in the stage's order, whatever order the reader wants.
        let mut sorted = self.projection.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let order = self.projection.iter().map(|column| sorted.partition_point(|c| c < column));
        let order = order.collect();
        let (store, manifest, from) =
            (Arc::clone(&self.store), Arc::clone(&self.manifest), from.clone());
        let schema = Arc::clone(&self.stage.config.schema);
        let opened = tokio::task::spawn_blocking(move || {
            let mut reader = store.captures().open(manifest, &schema, &sorted)?;
            reader.seek(&from)?;
            Ok(reader)
        });
        let reader = opened
            .await
            .expect("opening a capture does not panic")
            .map_err(|error| failure(&error))?;
        let ops = match self.stage.capabilities.semantics {
            RowSemantics::State | RowSemantics::Upsert => Ops::Put,
            RowSemantics::Append | RowSemantics::Changelog => Ops::Insert,
        };
        Ok(Box::new(CapturedSplit { reader, end, order, ops }))
    }

    async fn latest(&self, _split: &SplitId) -> Result<Option<Latest>, ConnectError> {
        Ok(Some(end(&self.manifest).into()))
    }

    async fn has_data(&self, _split: &SplitId, from: &Position) -> Result<HasData, ConnectError> {
        Ok(if *from == end(&self.manifest) { HasData::No } else { HasData::Yes })
    }

    async fn acknowledge(&self, _positions: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        Ok(())
    }
}

/// A capture being read.
struct CapturedSplit {
    reader: CaptureReader,
    end: Position,
    order: Vec<usize>,
    ops: Ops,
}

#[async_trait]
impl SplitReader for CapturedSplit {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        // A batch is a slice of a chunk that is in memory, or one file of a few MiB: short enough to read here.
        match self.reader.next_batch().map_err(|error| failure(&error))? {
            None => Ok(ReadEvent::Done { at: self.end.clone() }),
            Some((batch, next)) => {
                let rows: RecordBatch =
                    batch.project(&self.order).expect("the order was made for these columns");
                let bytes = rows.get_array_memory_size();
                let changes = Changes { rows, ops: self.ops.clone() };
                Ok(ReadEvent::Rows(Rows {
                    changes,
                    next: next.to_position(),
                    rejected: Vec::new(),
                    bytes,
                }))
            }
        }
    }
}

/// A damaged or unreadable file: not to be tried again.
fn failure(error: &CaptureError) -> ConnectError {
    ConnectError::Value(UserError::from(error))
}
