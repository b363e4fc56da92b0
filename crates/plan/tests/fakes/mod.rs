//! Connectors that consist of their description: what the planner knows of a connector is all that they have.

use std::sync::Arc;

use async_trait::async_trait;
use segue_connect::{
    Capabilities, ConnectError, Connector, Handoff, HandoffKind, KnowsData, OptionSpec, Ordering,
    ReadConfig, ReadDefinition, Registry, Replayable, Resume, RowFormat, StageReader, Start,
};
use segue_types::{
    Boundedness, Position, PositionOrder, RowSemantics, SplitId, SqlState, UserError,
};

struct Fake {
    name: &'static str,
    options: &'static [OptionSpec],
    describe: fn(&ReadConfig) -> Result<Capabilities, ConnectError>,
}

pub fn registry() -> Registry {
    let fakes: [Arc<dyn Connector>; 6] = [
        Arc::new(Fake { name: "postgres", options: POSTGRES, describe: query }),
        Arc::new(Fake { name: "kafka", options: KAFKA, describe: topic }),
        Arc::new(Fake { name: "pulsar", options: PULSAR, describe: topic }),
        Arc::new(Fake { name: "files", options: FILES, describe: files }),
        Arc::new(Fake { name: "datagen", options: DATAGEN, describe: generator }),
        Arc::new(Fake { name: "changes", options: &[], describe: changes }),
    ];
    Registry::new(fakes)
}

const fn option(name: &'static str, required: bool, secret: bool) -> OptionSpec {
    OptionSpec { name, required, secret, doc: "A doc." }
}

const POSTGRES: &[OptionSpec] =
    &[option("url", true, true), option("query", true, false), option("table.name", false, false)];
const KAFKA: &[OptionSpec] = &[
    option("topic", true, false),
    option("properties.bootstrap.server", false, false),
    option("scan.startup.mode", false, false),
    option("scan.startup.timestamp.millis", false, false),
    option("properties.*", false, false),
];
const PULSAR: &[OptionSpec] = &[option("topic", true, false), option("service.url", true, false)];
const FILES: &[OptionSpec] = &[option("path", true, false), option("match_pattern", false, false)];
const DATAGEN: &[OptionSpec] = &[option("fields.*", false, false), option("rows", false, false)];

fn capabilities(boundedness: Boundedness, semantics: RowSemantics) -> Capabilities {
    Capabilities {
        boundedness,
        semantics,
        resume: Resume::Position,
        produces: Vec::new(),
        accepts: Vec::new(),
        latest: false,
        has_data: KnowsData::No,
        replayable: Replayable::ForEver,
        ordering: Ordering::TotalPerSplit,
    }
}

fn stopped(config: &ReadConfig) -> Boundedness {
    if config.stop.is_some() { Boundedness::Bounded } else { Boundedness::Continuous }
}

fn query(config: &ReadConfig) -> Result<Capabilities, ConnectError> {
    if !matches!(config.start, Start::Handoff | Start::Earliest) || config.stop.is_some() {
        return Err(ConnectError::Unsupported("a query is read whole".to_owned()));
    }
    if config.format.encode != "native" {
        let error = UserError::new(SqlState::INVALID_PARAMETER_VALUE, "a query has no FORMAT");
        return Err(ConnectError::Config(error.with_hint("Leave it out.")));
    }
    let keyed = !config.key.is_empty();
    Ok(Capabilities {
        resume: Resume::Capture,
        produces: vec![HandoffKind::Query, HandoffKind::Columns],
        ..capabilities(
            Boundedness::Bounded,
            if keyed { RowSemantics::State } else { RowSemantics::Append },
        )
    })
}

fn topic(config: &ReadConfig) -> Result<Capabilities, ConnectError> {
    if config.format.encode != "json" {
        return Err(ConnectError::Unsupported("only ENCODE JSON".to_owned()));
    }
    let semantics = match config.format.rows {
        RowFormat::Plain => RowSemantics::Append,
        RowFormat::Upsert if config.key.is_empty() => {
            return Err(ConnectError::Unsupported("an upsert needs a key".to_owned()));
        }
        RowFormat::Upsert => RowSemantics::Upsert,
    };
    Ok(Capabilities {
        produces: vec![HandoffKind::LogEnds],
        accepts: vec![HandoffKind::LogEnds, HandoffKind::Query, HandoffKind::Columns],
        latest: true,
        replayable: Replayable::UntilRetention,
        ..capabilities(stopped(config), semantics)
    })
}

fn files(_: &ReadConfig) -> Result<Capabilities, ConnectError> {
    Ok(Capabilities {
        produces: vec![HandoffKind::Columns],
        ..capabilities(Boundedness::Bounded, RowSemantics::Append)
    })
}

fn generator(config: &ReadConfig) -> Result<Capabilities, ConnectError> {
    if config.start != Start::Earliest {
        return Err(ConnectError::Unsupported("nothing to take over".to_owned()));
    }
    let bounded = config.options.get("rows").is_some();
    let boundedness = if bounded { Boundedness::Bounded } else { Boundedness::Continuous };
    Ok(capabilities(boundedness, RowSemantics::Append))
}

fn changes(config: &ReadConfig) -> Result<Capabilities, ConnectError> {
    Ok(Capabilities {
        produces: vec![HandoffKind::LogEnds],
        accepts: vec![HandoffKind::LogEnds, HandoffKind::Query, HandoffKind::Columns],
        ..capabilities(stopped(config), RowSemantics::Changelog)
    })
}

fn no_system<T>() -> Result<T, ConnectError> {
    Err(ConnectError::Unsupported("there is no system behind a description".to_owned()))
}

#[async_trait]
impl Connector for Fake {
    fn name(&self) -> &'static str {
        self.name
    }

    fn options(&self) -> &'static [OptionSpec] {
        self.options
    }

    fn describe(&self, config: &ReadConfig) -> Result<Capabilities, ConnectError> {
        (self.describe)(config)
    }

    async fn pin(&self, _: &ReadConfig) -> Result<ReadDefinition, ConnectError> {
        no_system()
    }

    async fn derive_starts(
        &self,
        _: &ReadConfig,
        _: &ReadDefinition,
        _: &Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        no_system()
    }

    async fn check(
        &self,
        _: &ReadConfig,
        _: &ReadDefinition,
        _: &[(SplitId, Position)],
    ) -> Result<(), ConnectError> {
        no_system()
    }

    async fn open(
        &self,
        _: &ReadConfig,
        _: &ReadDefinition,
        _: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        no_system()
    }

    fn compare(&self, _: &Position, _: &Position) -> PositionOrder {
        PositionOrder::Incomparable
    }
}
