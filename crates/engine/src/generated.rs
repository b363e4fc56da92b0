//! Readers of stages with generated columns: the connector reads the base columns, the rest is computed as rows come
//! in.
//!
//! Invariant: a connector never sees a generated column; they are the last ones of an object with stages.

use std::sync::Arc;

use async_trait::async_trait;
use segue_connect::{
    Changes, ConnectError, Enumeration, HasData, Latest, ReadEvent, Rows, SplitReader, StageReader,
};
use segue_plan::generated::Generated;
use segue_types::{Position, SplitId};

use crate::clock::now_us;

/// What is read, and what is made of it.
#[derive(Clone)]
struct Columns {
    generated: Arc<Generated>,
    read: Arc<[usize]>,
    wanted: Arc<[usize]>,
}

struct GeneratingStage {
    inner: Box<dyn StageReader>,
    columns: Columns,
}

struct GeneratingSplit {
    inner: Box<dyn SplitReader>,
    columns: Columns,
}

/// The columns that a connector is asked for.
pub(crate) fn read_columns(generated: Option<&Arc<Generated>>, wanted: &[usize]) -> Vec<usize> {
    generated.map_or_else(|| wanted.to_vec(), |generated| generated.reads(wanted))
}

/// A reader that delivers `wanted` from one that delivers [`read_columns`] of them.
pub(crate) fn generating(
    inner: Box<dyn StageReader>,
    generated: Option<&Arc<Generated>>,
    wanted: &[usize],
) -> Box<dyn StageReader> {
    let Some(generated) = generated else { return inner };
    let read = generated.reads(wanted);
    if read == wanted {
        return inner;
    }
    let generated = Arc::clone(generated);
    let columns = Columns { generated, read: read.into(), wanted: wanted.into() };
    Box::new(GeneratingStage { inner, columns })
}

#[async_trait]
impl StageReader for GeneratingStage {
    async fn discover(&self) -> Result<Enumeration, ConnectError> {
        self.inner.discover().await
    }

    async fn read(
        &self,
        split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let inner = self.inner.read(split, from, until).await?;
        Ok(Box::new(GeneratingSplit { inner, columns: self.columns.clone() }))
    }

    async fn latest(&self, split: &SplitId) -> Result<Option<Latest>, ConnectError> {
        self.inner.latest(split).await
    }

    async fn has_data(&self, split: &SplitId, from: &Position) -> Result<HasData, ConnectError> {
        self.inner.has_data(split, from).await
    }

    async fn acknowledge(&self, positions: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        self.inner.acknowledge(positions).await
    }
}

#[async_trait]
impl SplitReader for GeneratingSplit {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        Ok(match self.inner.next().await? {
            ReadEvent::Rows(rows) => {
                let Changes { rows: batch, ops } = rows.changes;
                let Columns { generated, read, wanted } = &self.columns;
                let batch = generated.complete(&batch, read, wanted, now_us());
                ReadEvent::Rows(Rows { changes: Changes { rows: batch, ops }, ..rows })
            }
            other => other,
        })
    }
}
