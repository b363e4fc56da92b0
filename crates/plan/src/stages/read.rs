//! One stage's clauses as a [`ReadConfig`]: every name checked, every value that is not a connector's own parsed.

use std::sync::Arc;

use segue_connect::{
    Connector, Format, OnError, OptionSpec, Options, ReadConfig, Registry, RowFormat, Start,
};
use segue_sql::{FormatClause, Rows, Stage, WeakHandoff, WithOption};
use segue_types::{RowSemantics, SqlState, UserError, nearest};

use super::{OnExpiry, PlannedStage, columns::Bound, connector_of, in_stage, start};

/// Whether a stage has a predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    First,
    Later,
}

/// Options that every stage has.
const COMMON: &[&str] = &["connector", "on_error"];

/// Formats and encodings that the grammar of records knows. Which of them a connector reads is its own word.
const FORMATS: &[(&str, RowFormat)] = &[("plain", RowFormat::Plain), ("upsert", RowFormat::Upsert)];
const ENCODES: &[&str] = &["json", "csv", "parquet", "native", "bytes"];

pub(super) fn bind(
    registry: &Registry,
    stage: &Stage,
    place: Place,
    bound: &Bound,
) -> Result<PlannedStage, UserError> {
    let connector = connector(registry, stage)?;
    let format = format(stage)?;
    let as_events = stage.read.rows == Rows::AsEvents;
    if as_events && format.rows == RowFormat::Upsert {
        return Err(no_events(stage, RowSemantics::Upsert));
    }
    if format.rows == RowFormat::Upsert && bound.key.is_empty() {
        return Err(missing_key(stage, RowSemantics::Upsert));
    }
    let mut options = options(stage, connector.options())?;
    let on_error = on_error(stage, &mut options)?;
    let config = ReadConfig {
        stage: stage.name.as_str().to_owned(),
        start: start::start(stage, place, connector.options(), &mut options)?,
        stop: start::stop(stage)?,
        options,
        format,
        schema: bound.read_schema(),
        declared_columns: bound.declared_columns,
        // A snapshot is told from events by its key.
        key: if as_events { Vec::new() } else { bound.key.clone() },
        includes: bound.includes.clone(),
        on_error,
    };
    describe(stage, connector.as_ref(), config, bound)
}

fn describe(
    stage: &Stage,
    connector: &dyn Connector,
    mut config: ReadConfig,
    bound: &Bound,
) -> Result<PlannedStage, UserError> {
    let describe = |config: &ReadConfig| {
        connector.describe(config).map_err(|error| {
            let error = error.to_user_error(stage.name.as_str());
            if error.offset.is_none() { error.at(stage.offset.0) } else { error }
        })
    };
    let capabilities = if may_be_whole(&config, stage) {
        config.start = Start::Earliest;
        let whole = describe(&config)?;
        if whole.accepts.is_empty() {
            whole
        } else {
            config.start = Start::Handoff;
            describe(&config)?
        }
    } else {
        describe(&config)?
    };
    if stage.read.rows == Rows::AsEvents && capabilities.semantics != RowSemantics::Append {
        return Err(no_events(stage, capabilities.semantics));
    }
    if crate::tables::needs_key(capabilities.semantics) && bound.key.is_empty() {
        return Err(missing_key(stage, capabilities.semantics));
    }
    Ok(PlannedStage {
        name: config.stage.clone(),
        connector: connector.name().to_owned(),
        config,
        capabilities,
        handoff: None,
        on_expiry: match stage.read.allow {
            Some(WeakHandoff::Gap) => OnExpiry::Skip,
            Some(WeakHandoff::Overlap) | None => OnExpiry::Stop,
        },
        generated: bound.generated.clone(),
    })
}

/// A stage that was given no start takes over from its predecessor if it can, and else is read whole.
fn may_be_whole(config: &ReadConfig, stage: &Stage) -> bool {
    config.start == Start::Handoff && stage.read.start.is_none()
}

fn no_events(stage: &Stage, semantics: RowSemantics) -> UserError {
    let message = format!("AS EVENTS cannot be said of {semantics} rows");
    in_stage(stage, SqlState::INVALID_OBJECT_DEFINITION, message)
        .with_detail("Rows that delete or replace others are no events.")
        .with_hint("Use FORMAT PLAIN, or leave out AS EVENTS.")
}

pub(super) fn missing_key(stage: &Stage, semantics: RowSemantics) -> UserError {
    in_stage(
        stage,
        SqlState::INVALID_TABLE_DEFINITION,
        format!("{semantics} rows need a PRIMARY KEY"),
    )
    .with_hint("Declare the columns that name a row: PRIMARY KEY (…).")
}

fn connector<'a>(
    registry: &'a Registry,
    stage: &Stage,
) -> Result<&'a Arc<dyn Connector>, UserError> {
    let known = || registry.names().collect::<Vec<_>>().join(", ");
    let Some(name) = connector_of(&stage.read) else {
        let message = "option \"connector\" is required";
        return Err(in_stage(stage, SqlState::INVALID_PARAMETER_VALUE, message)
            .with_hint(format!("Known connectors are {}.", known())));
    };
    registry.get(name).ok_or_else(|| {
        let hint = match nearest(name, registry.names()) {
            Some(near) => format!("Perhaps you meant the connector \"{near}\"."),
            None => format!("Known connectors are {}.", known()),
        };
        let message = format!("connector \"{name}\" does not exist");
        in_stage(stage, SqlState::UNDEFINED_OBJECT, message).with_hint(hint)
    })
}

/// The options but `connector`, each of them known and none missing.
fn options(stage: &Stage, specs: &[OptionSpec]) -> Result<Options, UserError> {
    let mut options = Options::default();
    for option in &stage.read.options {
        if !COMMON.contains(&option.name.as_str()) && !specs.iter().any(|spec| names(spec, option))
        {
            return Err(unknown_option(stage, specs, option));
        }
        if option.name != "connector" {
            options.0.insert(option.name.clone(), option.value.clone());
        }
    }
    match specs.iter().find(|spec| spec.required && options.get(spec.name).is_none()) {
        None => Ok(options),
        Some(spec) => {
            let message = format!("option \"{}\" is required", spec.name);
            Err(in_stage(stage, SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint(format!("{}: {}", spec.name, spec.doc)))
        }
    }
}

fn names(spec: &OptionSpec, option: &WithOption) -> bool {
    match spec.name.strip_suffix('*') {
        Some(prefix) => option.name.len() > prefix.len() && option.name.starts_with(prefix),
        None => spec.name == option.name,
    }
}

fn unknown_option(stage: &Stage, specs: &[OptionSpec], option: &WithOption) -> UserError {
    let known = || COMMON.iter().copied().chain(specs.iter().map(|spec| spec.name));
    let connector = connector_of(&stage.read).unwrap_or_default();
    let message = format!("connector \"{connector}\" has no option \"{}\"", option.name);
    // Nobody means a prefix such as properties.*.
    let hint = match nearest(&option.name, known().filter(|name| !name.ends_with('*'))) {
        _ if option.name.starts_with("scan.startup.") => "Say START AT instead.".to_owned(),
        Some(near) => format!("Perhaps you meant the option \"{near}\"."),
        None => format!("Its options are {}.", known().collect::<Vec<_>>().join(", ")),
    };
    in_stage(stage, SqlState::UNDEFINED_OBJECT, message).with_hint(hint).at(option.offset.0)
}

fn on_error(stage: &Stage, options: &mut Options) -> Result<OnError, UserError> {
    match options.0.remove("on_error").as_deref() {
        None | Some("dead_letter") => Ok(OnError::DeadLetter),
        Some("fail") => Ok(OnError::Fail),
        Some(other) => {
            let message = format!("invalid value for option \"on_error\": \"{other}\"");
            Err(in_stage(stage, SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint("Give 'dead_letter' (the default) or 'fail'."))
        }
    }
}

/// Without FORMAT the connector's own rows are taken, one by one.
fn format(stage: &Stage) -> Result<Format, UserError> {
    let Some(clause) = &stage.read.format else {
        let options = Options::default();
        return Ok(Format { rows: RowFormat::Plain, encode: "native".to_owned(), options });
    };
    let Some((_, rows)) = FORMATS.iter().find(|(name, _)| *name == clause.format) else {
        let known: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        return Err(unknown_word(stage, clause, ("FORMAT", &clause.format), &known));
    };
    if !ENCODES.contains(&clause.encode.as_str()) {
        return Err(unknown_word(stage, clause, ("ENCODE", &clause.encode), ENCODES));
    }
    let options = clause.options.iter().map(|option| (option.name.clone(), option.value.clone()));
    Ok(Format { rows: *rows, encode: clause.encode.clone(), options: Options(options.collect()) })
}

fn unknown_word(
    stage: &Stage,
    clause: &FormatClause,
    (what, given): (&str, &str),
    known: &[&str],
) -> UserError {
    let message = format!("{what} {} does not exist", given.to_ascii_uppercase());
    let hint = match nearest(given, known.iter().copied()) {
        Some(near) => format!("Perhaps you meant {what} {}.", near.to_ascii_uppercase()),
        None => format!("Use one of {}.", known.join(", ").to_ascii_uppercase()),
    };
    in_stage(stage, SqlState::UNDEFINED_OBJECT, message).with_hint(hint).at(clause.offset.0)
}
