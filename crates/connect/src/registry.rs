//! The calls of a connector, and the table of those that this server has.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use futures::stream::BoxStream;
use segue_types::{Position, PositionOrder, SplitId};

use crate::{
    Capabilities, ConnectError, Distance, Enumeration, Handoff, HasData, Latest, OptionSpec,
    ReadConfig, ReadDefinition, ReadEvent,
};

/// A kind of external system.
#[async_trait]
pub trait Connector: Send + Sync {
    /// The value of the `connector` option.
    fn name(&self) -> &'static str;

    /// Every option that [`ReadConfig::options`] may hold.
    fn options(&self) -> &'static [OptionSpec];

    /// What the configured read can do. Checks the configuration's values; does no I/O.
    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError>;

    /// Resolves and freezes the read: identity, splits, starts, bounds. Whatever must be retained for a
    /// later start is secured here, before the predecessor is read.
    async fn pin(&self, config: &ReadConfig) -> Result<ReadDefinition, ConnectError>;

    /// Derives where each split starts from what the predecessor covered, and checks identity, existence and
    /// retention. Called once, when the predecessor is durably complete; the answer is stored. Splits
    /// that appeared since `pin`, and that the handoff does not name, start at their beginning.
    async fn derive_starts(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        handoff: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError>;

    /// Checks that the read can still start at `starts`: identity, existence, retention.
    async fn check(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        starts: &[(SplitId, Position)],
    ) -> Result<(), ConnectError>;

    /// Opens the read. `projection` indexes `config.schema`; delivered batches have just those columns,
    /// in that order, and for keyed reads it contains the key.
    async fn open(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError>;

    /// Runs one capture attempt of a read that resumes by [`crate::Resume::Capture`]: the whole result from one
    /// consistent snapshot, and the answer of `handoff_query` from the same snapshot.
    async fn capture(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        handoff_query: Option<&str>,
    ) -> Result<Capture, ConnectError> {
        let _ = (config, definition, handoff_query);
        Err(ConnectError::Unsupported(format!("connector \"{}\" does not capture", self.name())))
    }

    /// What a read with this configuration leaves in the external system until somebody removes it: a durable
    /// subscription, a group's offsets. The name says what and where, so that two reads that leave the same have
    /// the same name. `None`: nothing.
    fn leaves(&self, config: &ReadConfig) -> Option<String> {
        let _ = config;
        None
    }

    /// What of this a read must have for itself, by the same name: no two sources may have it. `None`: nothing.
    fn owns(&self, config: &ReadConfig) -> Option<String> {
        let _ = config;
        None
    }

    /// Removes what [`Connector::leaves`] names. Succeeds when it is gone already.
    async fn release(&self, config: &ReadConfig) -> Result<(), ConnectError> {
        let _ = config;
        Ok(())
    }

    /// How much lies between two positions of one split; `None` where positions do not tell.
    fn distance(&self, config: &ReadConfig, from: &Position, to: &Position) -> Option<Distance> {
        let _ = (config, from, to);
        None
    }

    /// Compares two positions of one split.
    fn compare(&self, a: &Position, b: &Position) -> PositionOrder;
}

/// One attempt to read a bounded query. Dropping it ends the attempt and releases the snapshot.
pub struct Capture {
    /// The answer of the handoff query, of the same snapshot as the rows.
    pub handoff: Option<Vec<(SplitId, Position)>>,
    /// Batches of `config.schema`, in the order of the query. An error ends the attempt as a whole.
    pub batches: BoxStream<'static, Result<RecordBatch, ConnectError>>,
    /// How many rows the system expects, for progress in percent.
    pub rows_estimated: Option<u64>,
}

/// An open read of one stage.
#[async_trait]
pub trait StageReader: Send + Sync {
    /// Looks for splits, again and again for a continuous read. Known splits are reported again,
    /// with the start and bound that they have in the definition.
    async fn discover(&self) -> Result<Enumeration, ConnectError>;

    /// Starts reading a split at `from`, up to `until` exclusive.
    async fn read(
        &self,
        split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError>;

    /// The split's end now, exclusive, of what a reader of this configuration can see. `None`: it cannot tell.
    async fn latest(&self, split: &SplitId) -> Result<Option<Latest>, ConnectError>;

    /// Whether anything lies at or after `from`.
    async fn has_data(&self, split: &SplitId, from: &Position) -> Result<HasData, ConnectError>;

    /// Everything before these positions is durable here and may be released upstream.
    async fn acknowledge(&self, positions: &[(SplitId, Position)]) -> Result<(), ConnectError>;
}

/// A reader of one split.
#[async_trait]
pub trait SplitReader: Send {
    /// The next delivery. Cancel-safe: a dropped future owns no row. After [`ReadEvent::Done`] or an error it
    /// is not called again.
    async fn next(&mut self) -> Result<ReadEvent, ConnectError>;
}

/// The connectors of this server, by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<&'static str, Arc<dyn Connector>>);

impl Registry {
    /// A registry of these connectors.
    ///
    /// # Panics
    /// If two bear the same name.
    pub fn new(connectors: impl IntoIterator<Item = Arc<dyn Connector>>) -> Registry {
        let mut table = BTreeMap::new();
        for connector in connectors {
            let name = connector.name();
            assert!(table.insert(name, connector).is_none(), "two connectors are named {name}");
        }
        Registry(table)
    }

    /// The connector of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Connector>> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Connector>> {
        self.0.values()
    }

    /// All names, for HINTs.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}
