//! A connector that serves bytes of this process: JSON records, one a line, decoded as Kafka's are. So a
//! view's cost is measured without anybody else's.
//!
//! A *feed* is the bytes of one split and how far they are released. Positions count bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use segue_connect::{
    Capabilities, Changes, ConnectError, Connector, Enumeration, Handoff, HasData, KnowsData,
    Latest, Ops, OptionSpec, Ordering, ReadConfig, ReadDefinition, ReadEvent, Replayable, Resume,
    Rows, SplitDefinition, SplitReader, SplitStart, StageReader, Start,
};
use segue_formats::{JsonDecoder, JsonOptions};
use segue_types::{Boundedness, Position, PositionOrder, RowSemantics, SplitId};
use tokio::sync::watch;

/// Rows of one delivery, unless the feed says otherwise.
pub(crate) const BATCH_ROWS: usize = 8192;

const OPTIONS: &[OptionSpec] =
    &[OptionSpec { name: "feed", required: true, secret: false, doc: "which bytes to serve" }];

/// Bytes to serve.
pub(crate) struct Feed {
    lines: Vec<u8>,
    boundedness: Boundedness,
    batch_rows: usize,
    /// Bytes that readers may see.
    released: watch::Sender<usize>,
}

impl Feed {
    /// Bytes that are all there and end.
    pub(crate) fn bounded(lines: Vec<u8>) -> Arc<Feed> {
        let released = watch::Sender::new(lines.len());
        Arc::new(Feed {
            lines,
            boundedness: Boundedness::Bounded,
            batch_rows: BATCH_ROWS,
            released,
        })
    }

    /// A log that has the first `released` bytes now.
    pub(crate) fn log(lines: Vec<u8>, batch_rows: usize, released: usize) -> Arc<Feed> {
        assert!(released <= lines.len(), "only what is there can be released");
        let released = watch::Sender::new(released);
        Arc::new(Feed { lines, boundedness: Boundedness::Continuous, batch_rows, released })
    }

    /// Lets readers see the bytes before `end`, which is the end of a line.
    pub(crate) fn release(&self, end: usize) {
        assert!(end <= self.lines.len(), "only what is there can be released");
        self.released.send_replace(end);
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The bytes, when nobody reads them any more.
    pub(crate) fn into_lines(self) -> Vec<u8> {
        self.lines
    }
}

/// Serves feeds by name.
pub(crate) struct EncodedConnector(pub(crate) BTreeMap<&'static str, Arc<Feed>>);

impl EncodedConnector {
    fn feed(&self, config: &ReadConfig) -> Result<Arc<Feed>, ConnectError> {
        let name = config.options.require("feed").map_err(ConnectError::Config)?;
        let feed = self.0.get(name).map(Arc::clone);
        feed.ok_or_else(|| ConnectError::Missing { what: format!("feed \"{name}\"") })
    }
}

#[async_trait]
impl Connector for EncodedConnector {
    fn name(&self) -> &'static str {
        "encoded"
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError> {
        Ok(Capabilities {
            boundedness: self.feed(config)?.boundedness,
            semantics: RowSemantics::Append,
            resume: Resume::Position,
            produces: Vec::new(),
            accepts: Vec::new(),
            latest: true,
            has_data: KnowsData::Yes,
            replayable: Replayable::ForEver,
            ordering: Ordering::TotalPerSplit,
        })
    }

    async fn pin(&self, config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
        let feed = self.feed(config)?;
        let id = SplitId::new("0");
        let start = match &config.start {
            Start::Offsets(offsets) => offsets.get(&id).map_or("0", String::as_str),
            _ => "0",
        };
        let is_bounded = feed.boundedness == Boundedness::Bounded;
        let bound = is_bounded.then(|| position(feed.len()));
        let start = SplitStart::At(Position::new(start));
        Ok(ReadDefinition {
            identity: "encoded".to_owned(),
            boundedness: feed.boundedness,
            splits: vec![SplitDefinition { id, start, bound, after: Vec::new() }],
            sealed: is_bounded,
            remarks: Vec::new(),
            private: Default::default(),
        })
    }

    async fn derive_starts(
        &self,
        _config: &ReadConfig,
        _definition: &ReadDefinition,
        _handoff: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        Err(ConnectError::Unsupported("a feed derives no start".to_owned()))
    }

    async fn check(
        &self,
        _config: &ReadConfig,
        _definition: &ReadDefinition,
        _starts: &[(SplitId, Position)],
    ) -> Result<(), ConnectError> {
        Ok(())
    }

    async fn open(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        Ok(Box::new(FeedStage {
            feed: self.feed(config)?,
            config: config.clone(),
            definition: definition.clone(),
            projection: projection.to_vec(),
        }))
    }

    fn compare(&self, a: &Position, b: &Position) -> PositionOrder {
        match (byte_of(a), byte_of(b)) {
            (Ok(a), Ok(b)) => a.cmp(&b).into(),
            _ => PositionOrder::Incomparable,
        }
    }
}

fn position(byte: usize) -> Position {
    Position::new(byte.to_string())
}

fn byte_of(position: &Position) -> Result<usize, ConnectError> {
    let unreadable = |_| ConnectError::Unsupported(format!("position \"{position}\" is no number"));
    position.as_str().parse().map_err(unreadable)
}

struct FeedStage {
    feed: Arc<Feed>,
    config: ReadConfig,
    definition: ReadDefinition,
    projection: Vec<usize>,
}

#[async_trait]
impl StageReader for FeedStage {
    async fn discover(&self) -> Result<Enumeration, ConnectError> {
        let splits = self.definition.splits.clone();
        Ok(Enumeration { splits, sealed: self.definition.sealed })
    }

    async fn read(
        &self,
        _split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let schema = Arc::clone(&self.config.schema);
        Ok(Box::new(FeedReader {
            decoder: JsonDecoder::new(schema, &self.projection, JsonOptions::default()),
            released: self.feed.released.subscribe(),
            at: byte_of(from)?,
            until: until.map(byte_of).transpose()?,
            feed: Arc::clone(&self.feed),
        }))
    }

    async fn latest(&self, _split: &SplitId) -> Result<Option<Latest>, ConnectError> {
        Ok(Some(position(*self.feed.released.borrow()).into()))
    }

    async fn has_data(&self, _split: &SplitId, from: &Position) -> Result<HasData, ConnectError> {
        let has = byte_of(from)? < *self.feed.released.borrow();
        Ok(if has { HasData::Yes } else { HasData::No })
    }

    async fn acknowledge(&self, _positions: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        Ok(())
    }
}

struct FeedReader {
    feed: Arc<Feed>,
    decoder: JsonDecoder,
    released: watch::Receiver<usize>,
    at: usize,
    until: Option<usize>,
}

impl FeedReader {
    /// Decodes one delivery of the bytes before `end`.
    fn rows(&mut self, end: usize) -> Rows {
        let from = self.at;
        let mut rest = &self.feed.lines[from..end];
        while self.decoder.len() < self.feed.batch_rows
            && let Some(length) = memchr::memchr(b'\n', rest)
        {
            self.decoder.decode(&rest[..length]).expect("the workload is well formed");
            rest = &rest[length + 1..];
        }
        self.at = end - rest.len();
        assert!(self.at > from, "what is released ends with a newline");
        let changes = Changes { rows: self.decoder.finish(), ops: Ops::Insert };
        Rows { changes, next: position(self.at), rejected: Vec::new(), bytes: self.at - from }
    }
}

#[async_trait]
impl SplitReader for FeedReader {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        loop {
            if self.until.is_some_and(|until| self.at >= until) {
                return Ok(ReadEvent::Done { at: position(self.at) });
            }
            let there = *self.released.borrow_and_update();
            let end = there.min(self.until.unwrap_or(usize::MAX));
            if self.at < end {
                return Ok(ReadEvent::Rows(self.rows(end)));
            }
            if self.released.changed().await.is_err() {
                return Err(ConnectError::Unsupported("the feed is gone".to_owned()));
            }
        }
    }
}
