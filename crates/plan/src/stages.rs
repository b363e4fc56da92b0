//! From a parsed CREATE SOURCE or CREATE TABLE to configured reads and the handoffs between them.
//!
//! ```text
//! statement ─ columns ─▶ schema, key, includes ┐
//!           └ read (per stage) ─────────────────┴▶ ReadConfig + Capabilities ─ chain ─▶ handoffs, notices
//! ```
//!
//! Words defined here: *planned stage*, *planned handoff*.
//! Invariant: no I/O; the same statement gives the same plan when a server reads it again from its catalog.

mod chain;
mod columns;
mod explain;
mod read;
mod start;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use segue_catalog::{Mutability, OnConflict};
use segue_connect::{Capabilities, HandoffKind, ReadConfig, Registry};
use segue_sql::{ConflictAction, CreateSource, CreateTable, Input, Name, Read, Stage};
use segue_types::{Continuity, SqlState, UserError};

use crate::generated::Generated;
use crate::watermark::{self, WatermarkPlan};
use columns::Bound;
pub use explain::explain;

/// A source as it will be read.
#[derive(Clone, Debug)]
pub struct SourcePlan {
    pub schema: SchemaRef,
    /// Indexes into `schema`. Empty where every row is an event, even if a PRIMARY KEY was declared.
    pub key: Vec<usize>,
    pub watermark: Option<WatermarkPlan>,
    pub stages: Vec<PlannedStage>,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// A table as it will be kept, and fed.
#[derive(Clone, Debug)]
pub struct TablePlan {
    pub schema: SchemaRef,
    /// Indexes into `schema` of the PRIMARY KEY.
    pub key: Vec<usize>,
    pub on_conflict: OnConflict,
    /// Columns that say which of two rows of a key is newer.
    pub versions: Vec<usize>,
    pub mutability: Mutability,
    pub watermark: Option<WatermarkPlan>,
    /// Empty for a table that only DML feeds.
    pub stages: Vec<PlannedStage>,
    pub notices: Vec<String>,
}

/// One stage, bound.
#[derive(Clone, Debug)]
pub struct PlannedStage {
    pub name: String,
    /// Its name in the registry.
    pub connector: String,
    pub config: ReadConfig,
    pub capabilities: Capabilities,
    /// How it takes over from the stage before; `None` for the first.
    pub handoff: Option<PlannedHandoff>,
    pub on_expiry: OnExpiry,
    /// Of the object, computed as rows come in.
    pub generated: Option<Arc<Generated>>,
}

/// What becomes of a read whose position is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExpiry {
    /// It stands still with an error.
    Stop,
    /// `ALLOW GAP`: it goes on at what is left, and the gap is recorded.
    Skip,
}

/// How a stage takes over from its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedHandoff {
    /// What the predecessor's end is told by; `None` where the start does not depend on it.
    pub kind: Option<HandoffKind>,
    pub continuity: Continuity,
}

/// Plans a source.
pub fn plan_source(registry: &Registry, source: &CreateSource) -> Result<SourcePlan, UserError> {
    let parts = parts(&source.name, &source.input);
    let connector = last_connector(&parts);
    let bound = columns::bind(&source.columns, &source.includes, connector)?;
    columns::refuse_defaults(&source.columns)?;
    let (mut stages, mut notices) = plan_stages(registry, &parts, &bound)?;
    let key = columns::source_key(&source.name, &bound, &mut stages, &mut notices);
    columns::check_watermark(&source.columns, &stages)?;
    Ok(SourcePlan { schema: bound.schema, key, watermark: bound.watermark, stages, notices })
}

/// Plans a table.
pub fn plan_table(registry: &Registry, table: &CreateTable) -> Result<TablePlan, UserError> {
    let parts = table.input.as_ref().map(|input| parts(&table.name, input)).unwrap_or_default();
    if parts.is_empty() && !table.includes.is_empty() {
        let message = format!("table \"{}\" has no stages to include from", table.name.as_str());
        return Err(UserError::new(SqlState::INVALID_TABLE_DEFINITION, message)
            .with_hint("Leave out INCLUDE, or add WITH (…) or WITH STAGES (…).")
            .at(table.includes[0].offset.0));
    }
    let bound = columns::bind(&table.columns, &table.includes, last_connector(&parts))?;
    // Only statements give defaults; what a stage lacks is NULL.
    if table.input.is_some() {
        columns::refuse_defaults(&table.columns)?;
    }
    let resolves = table.on_conflict.is_some() || !table.versions.is_empty();
    if resolves && bound.key.is_empty() {
        let clause =
            if table.on_conflict.is_some() { "ON CONFLICT" } else { "WITH VERSION COLUMN" };
        let message = format!("{clause} of table \"{}\" needs a PRIMARY KEY", table.name.as_str());
        return Err(UserError::new(SqlState::INVALID_TABLE_DEFINITION, message)
            .with_hint("Declare the PRIMARY KEY by which rows are in conflict.")
            .at(table.offset.0));
    }
    let mutability = match table.mutability {
        segue_sql::Mutability::Mutable => Mutability::Mutable,
        segue_sql::Mutability::AppendOnly => Mutability::AppendOnly,
    };
    if table.columns.watermark.is_some() && !watermark::suits(mutability) {
        return Err(watermark::needs_events(&table.columns, "Declare the table APPEND ONLY."));
    }
    let on_conflict = on_conflict(table, mutability)?;
    let versions = columns::versions(table, &bound.schema, on_conflict)?;
    let (stages, notices) = plan_stages(registry, &parts, &bound)?;
    columns::check_mutability(table, &stages)?;
    columns::check_watermark(&table.columns, &stages)?;
    Ok(TablePlan {
        schema: bound.schema,
        key: bound.key,
        on_conflict,
        versions,
        mutability,
        watermark: bound.watermark,
        stages,
        notices,
    })
}

/// What a row does to one of its key. A table whose rows never change keeps the first.
fn on_conflict(table: &CreateTable, mutability: Mutability) -> Result<OnConflict, UserError> {
    match (table.on_conflict, mutability) {
        (Some(ConflictAction::DoUpdateIfNotNull), Mutability::Mutable) => {
            Ok(OnConflict::UpdateIfNotNull)
        }
        (
            Some(ConflictAction::Overwrite | ConflictAction::DoUpdateIfNotNull),
            Mutability::AppendOnly,
        ) => {
            let name = table.name.as_str();
            let message = format!("table \"{name}\" is APPEND ONLY and cannot overwrite rows");
            Err(UserError::new(SqlState::INVALID_TABLE_DEFINITION, message)
                .with_hint("Leave out APPEND ONLY, or use ON CONFLICT DO NOTHING (the default).")
                .at(table.offset.0))
        }
        (Some(ConflictAction::DoNothing), _) | (None, Mutability::AppendOnly) => {
            Ok(OnConflict::Ignore)
        }
        (None | Some(ConflictAction::Overwrite), Mutability::Mutable) => Ok(OnConflict::Overwrite),
    }
}

/// The stages of an input; the only one of a one-stage input bears the object's name.
fn parts(object: &Name, input: &Input) -> Vec<Stage> {
    match input {
        Input::Stages(stages) => stages.clone(),
        Input::Read(read) => {
            vec![Stage { name: object.clone(), read: read.clone(), offset: read.offset }]
        }
    }
}

fn last_connector(parts: &[Stage]) -> &str {
    parts.last().and_then(|stage| connector_of(&stage.read)).unwrap_or_default()
}

fn connector_of(read: &Read) -> Option<&str> {
    read.options
        .iter()
        .find(|option| option.name == "connector")
        .map(|option| option.value.as_str())
}

fn plan_stages(
    registry: &Registry,
    parts: &[Stage],
    bound: &Bound,
) -> Result<(Vec<PlannedStage>, Vec<String>), UserError> {
    refuse_repeated_names(parts)?;
    let mut stages = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let place = if index == 0 { read::Place::First } else { read::Place::Later };
        stages.push(read::bind(registry, part, place, bound)?);
    }
    let notices = chain::connect(parts, &mut stages, bound)?;
    Ok((stages, notices))
}

fn refuse_repeated_names(parts: &[Stage]) -> Result<(), UserError> {
    for (index, part) in parts.iter().enumerate() {
        if parts[..index].iter().any(|earlier| earlier.name == part.name) {
            let message = format!("stage \"{}\" specified more than once", part.name.as_str());
            return Err(UserError::new(SqlState::DUPLICATE_OBJECT, message)
                .with_hint("Give each stage a name of its own.")
                .at(part.offset.0));
        }
    }
    Ok(())
}

/// An error about one stage.
fn in_stage(stage: &Stage, state: SqlState, message: impl std::fmt::Display) -> UserError {
    UserError::new(state, format!("stage \"{}\": {message}", stage.name.as_str()))
        .at(stage.offset.0)
}
