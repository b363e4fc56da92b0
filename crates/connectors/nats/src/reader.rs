//! An open read: one client, and a task for each split that is being read.

use std::sync::Arc;

use async_trait::async_trait;
use segue_connect::{
    ConnectError, Enumeration, HasData, Latest, ReadConfig, ReadDefinition, ReadEvent, SplitReader,
    StageReader,
};
use segue_types::{Position, SplitId};
use tokio::sync::mpsc::{Receiver, channel};

use crate::feed::{Feed, Range};
use crate::handoff::present;
use crate::link::Link;
use crate::pin::Pinned;
use crate::records;
use crate::sequence::{must_be_known, position_of, sequence_of};

/// Deliveries that wait for the engine.
const QUEUE_EVENTS: usize = 2;

/// The open read of a stage.
pub(crate) struct NatsReader {
    link: Arc<Link>,
    config: ReadConfig,
    definition: Arc<ReadDefinition>,
    stream: String,
    projection: Vec<usize>,
}

impl NatsReader {
    pub(crate) async fn open(
        link: Link,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<NatsReader, ConnectError> {
        records(config, projection)?;
        present(&link, definition).await?;
        Ok(NatsReader {
            link: Arc::new(link),
            config: config.clone(),
            definition: Arc::new(definition.clone()),
            stream: Pinned::of(definition)?.stream,
            projection: projection.to_vec(),
        })
    }
}

#[async_trait]
impl StageReader for NatsReader {
    async fn discover(&self) -> Result<Enumeration, ConnectError> {
        present(&self.link, &self.definition).await?;
        let splits = self.definition.splits.clone();
        Ok(Enumeration { splits, sealed: self.definition.sealed })
    }

    async fn read(
        &self,
        split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        must_be_known(split)?;
        let range = Range { from: sequence_of(from)?, until: until.map(sequence_of).transpose()? };
        if let Some(until) = range.until.filter(|until| range.from >= *until) {
            return Ok(Box::new(NatsSplitReader::Done { at: until }));
        }
        let (sender, events) = channel(QUEUE_EVENTS);
        let records = records(&self.config, &self.projection)?;
        let feed = Feed::new(
            Arc::clone(&self.link),
            Arc::clone(&self.definition),
            self.stream.clone(),
            records,
            self.config.on_error,
            range,
            sender,
        );
        tokio::spawn(feed.run());
        Ok(Box::new(NatsSplitReader::Reading { events }))
    }

    async fn latest(&self, split: &SplitId) -> Result<Option<Latest>, ConnectError> {
        must_be_known(split)?;
        let info = present(&self.link, &self.definition).await?;
        Ok(Some(position_of(info.state.end()).into()))
    }

    async fn has_data(&self, split: &SplitId, from: &Position) -> Result<HasData, ConnectError> {
        must_be_known(split)?;
        let next = self.link.next_message(&self.stream, sequence_of(from)?).await?;
        Ok(if next.is_some() { HasData::Yes } else { HasData::No })
    }

    /// Nothing on the server waits for us.
    async fn acknowledge(&self, _: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        Ok(())
    }
}

/// The engine's end of a read. Dropping it ends the task, which takes its consumer away.
enum NatsSplitReader {
    /// There is nothing in the range.
    Done {
        at: u64,
    },
    Reading {
        events: Receiver<Result<ReadEvent, ConnectError>>,
    },
}

#[async_trait]
impl SplitReader for NatsSplitReader {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        match self {
            NatsSplitReader::Done { at } => Ok(ReadEvent::Done { at: position_of(*at) }),
            NatsSplitReader::Reading { events } => events.recv().await.unwrap_or_else(|| {
                Err(ConnectError::Unsupported("the reading task has died".to_owned()))
            }),
        }
    }
}
