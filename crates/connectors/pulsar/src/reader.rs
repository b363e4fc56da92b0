//! An open read: a task for each partition that is being read, each with a connection of its own.

use std::collections::BTreeMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use segue_connect::{
    ConnectError, Enumeration, HasData, Latest, ReadConfig, ReadDefinition, ReadEvent,
    SplitDefinition, SplitReader, SplitStart, StageReader,
};
use segue_types::{Position, SplitId};
use tokio::sync::mpsc::{Receiver, channel};

use crate::acknowledge::Acknowledger;
use crate::consumer::extent;
use crate::feed::{Feed, Range, Source};
use crate::pin::{missing, partitions};
use crate::place::{Place, partition_of, place_of, split_of};
use crate::records;
use crate::settings::Settings;

/// Deliveries that wait for the engine.
const QUEUE_EVENTS: usize = 2;

/// The open read of a stage.
pub(crate) struct PulsarReader {
    settings: Settings,
    config: ReadConfig,
    definition: ReadDefinition,
    projection: Vec<usize>,
    acknowledger: Option<Acknowledger>,
    /// Partitions that were found since the read was pinned, and where each began then.
    found: Mutex<BTreeMap<u32, Place>>,
}

impl PulsarReader {
    pub(crate) async fn open(
        settings: Settings,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<PulsarReader, ConnectError> {
        records(config, projection, 0)?;
        partitions(&settings).await?;
        Ok(PulsarReader {
            acknowledger: settings.subscription.clone().map(Acknowledger::new),
            settings,
            config: config.clone(),
            definition: definition.clone(),
            projection: projection.to_vec(),
            found: Mutex::default(),
        })
    }

    async fn topic(&self, split: &SplitId) -> Result<(u32, String), ConnectError> {
        let partition = partition_of(split)?;
        let mut topics = partitions(&self.settings).await?;
        let topic = topics.remove(&partition);
        Ok((partition, topic.ok_or_else(|| missing(&self.settings, partition))?))
    }

    /// Where a partition begins that was not there when the read was pinned.
    async fn beginning(&self, partition: u32, topic: &str) -> Result<Place, ConnectError> {
        if let Some(place) = self.found.lock().get(&partition) {
            return Ok(*place);
        }
        let place = extent(&self.settings, topic).await?.start;
        self.found.lock().insert(partition, place);
        Ok(place)
    }
}

#[async_trait]
impl StageReader for PulsarReader {
    async fn discover(&self) -> Result<Enumeration, ConnectError> {
        let mut splits = self.definition.splits.clone();
        if self.definition.sealed {
            return Ok(Enumeration { splits, sealed: true });
        }
        for (partition, topic) in partitions(&self.settings).await? {
            let id = split_of(partition);
            if splits.iter().any(|split| split.id == id) {
                continue;
            }
            let start = SplitStart::At(self.beginning(partition, &topic).await?.position());
            splits.push(SplitDefinition { id, start, bound: None, after: Vec::new() });
        }
        Ok(Enumeration { splits, sealed: false })
    }

    async fn read(
        &self,
        split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let range = Range { from: place_of(from)?, until: until.map(place_of).transpose()? };
        if let Some(until) = range.until.filter(|until| range.from >= *until) {
            return Ok(Box::new(PulsarSplitReader::Done { at: until }));
        }
        let (partition, topic) = self.topic(split).await?;
        let (sender, events) = channel(QUEUE_EVENTS);
        let records = records(&self.config, &self.projection, partition)?;
        let source = Source { settings: self.settings.clone(), partition, topic };
        let feed = Feed::new(source, records, self.config.on_error, range, sender);
        tokio::spawn(feed.run());
        Ok(Box::new(PulsarSplitReader::Reading { events }))
    }

    async fn latest(&self, split: &SplitId) -> Result<Option<Latest>, ConnectError> {
        let (_, topic) = self.topic(split).await?;
        Ok(Some(extent(&self.settings, &topic).await?.end.position().into()))
    }

    async fn has_data(&self, split: &SplitId, from: &Position) -> Result<HasData, ConnectError> {
        let (_, topic) = self.topic(split).await?;
        let extent = extent(&self.settings, &topic).await?;
        let more = place_of(from)?.max(extent.start) < extent.end;
        Ok(if more { HasData::Yes } else { HasData::No })
    }

    async fn acknowledge(&self, positions: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        let Some(acknowledger) = &self.acknowledger else { return Ok(()) };
        for (split, position) in positions {
            let (partition, place) = (partition_of(split)?, place_of(position)?);
            if acknowledger.is_news(partition, place) {
                let (_, topic) = self.topic(split).await?;
                acknowledger.tell(&self.settings, partition, &topic, place).await?;
            }
        }
        Ok(())
    }
}

/// The engine's end of a read. Dropping it ends the task, and with its connection the consumer.
enum PulsarSplitReader {
    /// There is nothing in the range.
    Done {
        at: Place,
    },
    Reading {
        events: Receiver<Result<ReadEvent, ConnectError>>,
    },
}

#[async_trait]
impl SplitReader for PulsarSplitReader {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        match self {
            PulsarSplitReader::Done { at } => Ok(ReadEvent::Done { at: at.position() }),
            PulsarSplitReader::Reading { events } => events.recv().await.unwrap_or_else(|| {
                Err(ConnectError::Unsupported("the reading task has died".to_owned()))
            }),
        }
    }
}
