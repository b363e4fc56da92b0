//! The connector's side of the contract.

use async_trait::async_trait;
use segue_connect::{
    Capabilities, Capture, ConnectError, Connector, Handoff, HandoffKind, KnowsData, OptionSpec,
    Ordering, ReadConfig, ReadDefinition, Replayable, Resume, SplitDefinition, SplitStart,
    StageReader,
};
use segue_types::{Boundedness, Position, PositionOrder, RowSemantics, SplitId, UserError};

use crate::capture;
use crate::options::{OPTIONS, Settings};
use crate::plan::Plan;
use crate::session::Session;

/// The one split of a captured query. What lies in it is numbered by whoever keeps the capture.
const SPLIT: &str = "capture";
const START: &str = "0";

/// Bounded queries of PostgreSQL.
#[derive(Clone, Copy, Debug, Default)]
pub struct PostgresConnector;

#[async_trait]
impl Connector for PostgresConnector {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError> {
        Settings::of(config)?;
        let semantics =
            if config.key.is_empty() { RowSemantics::Append } else { RowSemantics::State };
        Ok(Capabilities {
            boundedness: Boundedness::Bounded,
            semantics,
            resume: Resume::Capture,
            produces: vec![HandoffKind::Query, HandoffKind::Columns],
            accepts: Vec::new(),
            latest: false,
            has_data: KnowsData::No,
            replayable: Replayable::WhileCaptured,
            ordering: Ordering::Partial,
        })
    }

    async fn pin(&self, config: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
        let settings = Settings::of(config)?;
        let mut session = Session::open(&settings).await?;
        let identity = session.identity().await?;
        let plan = Plan::of(&mut session, &settings.query, config).await?;
        // EXPLAIN checks permissions, which preparing does not.
        capture::estimate(&mut session, &plan.select(&settings.query)).await?;
        session.close();
        let private = serde_json::to_value(&plan)
            .map_err(|error| ConnectError::Config(UserError::internal(error.to_string())))?;
        let split = SplitDefinition {
            id: SplitId::new(SPLIT),
            start: SplitStart::At(Position::new(START)),
            bound: None,
            after: Vec::new(),
        };
        Ok(ReadDefinition {
            identity,
            boundedness: Boundedness::Bounded,
            splits: vec![split],
            sealed: true,
            remarks: Vec::new(),
            private,
        })
    }

    async fn derive_starts(
        &self,
        _config: &ReadConfig,
        _definition: &ReadDefinition,
        _handoff: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        Err(ConnectError::Unsupported(
            "a query starts at its beginning and cannot go on from another stage".to_owned(),
        ))
    }

    async fn check(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        _starts: &[(SplitId, Position)],
    ) -> Result<(), ConnectError> {
        let mut session = Session::open(&Settings::of(config)?).await?;
        let checked = capture::check_identity(&mut session, definition).await;
        session.close();
        checked
    }

    async fn open(
        &self,
        _config: &ReadConfig,
        _definition: &ReadDefinition,
        _projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        Err(ConnectError::Unsupported(
            "a query of \"postgres\" is captured, and read from the capture alone".to_owned(),
        ))
    }

    async fn capture(
        &self,
        config: &ReadConfig,
        definition: &ReadDefinition,
        handoff_query: Option<&str>,
    ) -> Result<Capture, ConnectError> {
        capture::start(&Settings::of(config)?, config, definition, handoff_query).await
    }

    fn compare(&self, a: &Position, b: &Position) -> PositionOrder {
        if a == b { PositionOrder::Equal } else { PositionOrder::Incomparable }
    }
}
