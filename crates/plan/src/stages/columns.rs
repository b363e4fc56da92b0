//! Columns, INCLUDE columns and the PRIMARY KEY as a schema, and what a key means for a source or a table.
//!
//! | INCLUDE | type | |
//! |---|---|---|
//! | key | bytea | the record's key, as it came |
//! | partition | text | the split |
//! | offset | bigint | the record's position in its split |
//! | timestamp | timestamptz | |
//! | header | jsonb | all of them, as a list of key and value |
//! | header 'name' | text | one of them |
//! | payload | text | the record's value, as it came |
//! | stage | text | the stage's name |
//! | file | text | the file's path |
//!
//! A stage that has no such thing gives NULL. Without AS a column is named as in RisingWave:
//! `_rw_`, the connector of the last stage, `_`, the kind.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use segue_catalog::OnConflict;
use segue_connect::IncludeKind;
use segue_flow::is_ordered;
use segue_sql::{Column, Columns, CreateTable, Include, Mutability, Name, Nullability};
use segue_types::{RowSemantics, SqlState, SqlType, UserError, nearest, sql_type_of};

use super::PlannedStage;
use crate::delta::errors::type_name;
use crate::generated::{self, Generated};
use crate::watermark::{self, WatermarkPlan};

/// The row type that all stages share.
pub(super) struct Bound {
    pub(super) schema: SchemaRef,
    pub(super) declared_columns: usize,
    /// Indexes into `schema` of the PRIMARY KEY.
    pub(super) key: Vec<usize>,
    pub(super) includes: Vec<segue_connect::Include>,
    pub(super) watermark: Option<WatermarkPlan>,
    pub(super) generated: Option<Arc<Generated>>,
}

impl Bound {
    /// What comes out of records and what lies beside them: all but the generated columns, which are the last.
    pub(super) fn read_schema(&self) -> SchemaRef {
        let Some(generated) = &self.generated else { return Arc::clone(&self.schema) };
        let read = (0..generated.base_count()).collect::<Vec<_>>();
        Arc::new(self.schema.project(&read).expect("base columns are the first"))
    }

    /// `a, b` of `PRIMARY KEY (a, b)`.
    pub(super) fn key_names(&self) -> String {
        let names = self.key.iter().map(|index| self.schema.field(*index).name().as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

pub(super) fn bind(
    columns: &Columns,
    includes: &[Include],
    connector: &str,
) -> Result<Bound, UserError> {
    // With stages the generated columns come last: connectors know of no others.
    let is_last = |column: &&Column| column.generated.is_some() && !connector.is_empty();
    let (last, first): (Vec<_>, Vec<_>) = columns.columns.iter().partition(is_last);
    let mut fields: Vec<Field> = first.iter().map(|column| declared(columns, column)).collect();
    let mut offsets: Vec<usize> = first.iter().map(|column| column.offset.0).collect();
    let declared_columns = fields.len();
    let mut bound_includes = Vec::with_capacity(includes.len());
    for include in includes {
        let (kind, ty) = include_kind(include)?;
        let column = include_name(include, connector);
        fields.push(ty.field(&column, !columns.key.contains(&Name::new(column.as_str()))));
        offsets.push(include.offset.0);
        bound_includes.push(segue_connect::Include { kind, column });
    }
    fields.extend(last.iter().map(|column| declared(columns, column)));
    offsets.extend(last.iter().map(|column| column.offset.0));
    for (index, field) in fields.iter().enumerate() {
        if fields[..index].iter().any(|earlier| earlier.name() == field.name()) {
            let message = format!("column \"{}\" specified more than once", field.name());
            return Err(UserError::new(SqlState::DUPLICATE_COLUMN, message).at(offsets[index]));
        }
    }
    let key = key(columns, &fields)?;
    let schema = Arc::new(Schema::new(fields));
    let watermark = watermark::plan(columns, &schema)?;
    let generated = generated::plan(columns, &schema)?;
    Ok(Bound {
        schema,
        declared_columns,
        key,
        includes: bound_includes,
        watermark,
        generated: generated.map(Arc::new),
    })
}

fn declared(columns: &Columns, column: &Column) -> Field {
    let nullable =
        column.nullability == Nullability::Nullable && !columns.key.contains(&column.name);
    column.ty.field(column.name.as_str(), nullable)
}

fn key(columns: &Columns, fields: &[Field]) -> Result<Vec<usize>, UserError> {
    let mut key = Vec::with_capacity(columns.key.len());
    for name in &columns.key {
        let Some(index) = fields.iter().position(|field| field.name() == name.as_str()) else {
            let message = format!("column \"{}\" named in key does not exist", name.as_str());
            return Err(
                UserError::new(SqlState::UNDEFINED_COLUMN, message).at(columns.key_offset.0)
            );
        };
        if key.contains(&index) {
            let message =
                format!("column \"{}\" appears twice in primary key constraint", name.as_str());
            return Err(
                UserError::new(SqlState::DUPLICATE_COLUMN, message).at(columns.key_offset.0)
            );
        }
        key.push(index);
    }
    Ok(key)
}

const INCLUDE_KINDS: &[&str] =
    &["key", "partition", "offset", "timestamp", "header", "payload", "stage", "file"];

fn include_kind(include: &Include) -> Result<(IncludeKind, SqlType), UserError> {
    let bound = match (include.kind.as_str(), &include.inner) {
        ("header", None) => (IncludeKind::Header(None), SqlType::Jsonb),
        ("header", Some(name)) => (IncludeKind::Header(Some(name.clone())), SqlType::Text),
        (kind, Some(_)) => {
            let message = format!("INCLUDE {} takes no name in quotes", kind.to_ascii_uppercase());
            return Err(UserError::new(SqlState::SYNTAX_ERROR, message)
                .with_hint("Only INCLUDE HEADER can pick one by name.")
                .at(include.offset.0));
        }
        ("key", None) => (IncludeKind::Key, SqlType::Bytea),
        ("partition", None) => (IncludeKind::Partition, SqlType::Text),
        ("offset", None) => (IncludeKind::Offset, SqlType::BigInt),
        ("timestamp", None) => (IncludeKind::Timestamp, SqlType::Timestamptz),
        ("payload", None) => (IncludeKind::Payload, SqlType::Text),
        ("stage", None) => (IncludeKind::Stage, SqlType::Text),
        ("file", None) => (IncludeKind::File, SqlType::Text),
        (unknown, None) => {
            let message = format!("INCLUDE {} does not exist", unknown.to_ascii_uppercase());
            let hint = match nearest(unknown, INCLUDE_KINDS.iter().copied()) {
                Some(known) => format!("Perhaps you meant INCLUDE {}.", known.to_ascii_uppercase()),
                None => format!("What can be included: {}.", INCLUDE_KINDS.join(", ")),
            };
            return Err(UserError::new(SqlState::UNDEFINED_OBJECT, message)
                .with_hint(hint)
                .at(include.offset.0));
        }
    };
    Ok(bound)
}

fn include_name(include: &Include, connector: &str) -> String {
    match (&include.column, &include.inner) {
        (Some(column), _) => column.as_str().to_owned(),
        (None, None) => format!("_rw_{}_{}", connector.replace('-', "_"), include.kind),
        (None, Some(inner)) => {
            format!("_rw_{}_{}_{inner}", connector.replace('-', "_"), include.kind)
        }
    }
}

/// The columns of WITH VERSION COLUMN.
pub(super) fn versions(
    table: &CreateTable,
    schema: &Schema,
    on_conflict: OnConflict,
) -> Result<Vec<usize>, UserError> {
    let invalid = |message: String| {
        UserError::new(SqlState::INVALID_TABLE_DEFINITION, message).at(table.offset.0)
    };
    if on_conflict == OnConflict::Ignore && !table.versions.is_empty() {
        let message = "a table that keeps the first row of a key has no use for versions";
        return Err(invalid(message.to_owned())
            .with_detail(
                "The with version column syntax cannot be used with the ignore behavior of on conflict.",
            )
            .with_hint("Use ON CONFLICT OVERWRITE or DO UPDATE IF NOT NULL, without APPEND ONLY."));
    }
    let mut versions = Vec::with_capacity(table.versions.len());
    for name in &table.versions {
        let name = name.as_str();
        let Ok(column) = schema.index_of(name) else {
            let message = format!("version column \"{name}\" does not exist");
            return Err(UserError::new(SqlState::UNDEFINED_COLUMN, message)
                .with_detail(format!("Version column {name} not found."))
                .at(table.offset.0));
        };
        let data_type = schema.field(column).data_type();
        let sql_type = sql_type_of(schema.field(column));
        let is_jsonb = sql_type == Some(SqlType::Jsonb);
        if !is_ordered(data_type) || *data_type == DataType::Boolean || is_jsonb {
            return Err(invalid(format!("versions cannot be compared by column \"{name}\""))
                .with_detail(format!(
                    "Version column {name} must be of a comparable data type; it is {}.",
                    sql_type.map_or_else(|| type_name(data_type), |named| named.to_string())
                )));
        }
        if versions.contains(&column) {
            let message = format!("version column \"{name}\" is named twice");
            return Err(UserError::new(SqlState::DUPLICATE_COLUMN, message).at(table.offset.0));
        }
        versions.push(column);
    }
    Ok(versions)
}

/// Rows that change have no watermark.
pub(super) fn check_watermark(columns: &Columns, stages: &[PlannedStage]) -> Result<(), UserError> {
    let changing = stages.iter().find(|stage| stage.capabilities.semantics != RowSemantics::Append);
    match changing {
        Some(stage) if columns.watermark.is_some() => {
            let hint = format!(
                "The rows of stage \"{}\" are {}. Leave out WATERMARK, or say AS EVENTS where each row is an event.",
                stage.name, stage.capabilities.semantics
            );
            Err(watermark::needs_events(columns, &hint))
        }
        _ => Ok(()),
    }
}

pub(super) fn refuse_defaults(columns: &Columns) -> Result<(), UserError> {
    for column in &columns.columns {
        let Some(default) = &column.default else { continue };
        if !default.text.eq_ignore_ascii_case("null") {
            let name = column.name.as_str();
            let message = format!("column \"{name}\": a DEFAULT other than NULL is not supported");
            return Err(UserError::unsupported(message)
                .with_hint("What a stage lacks is NULL; only tables without stages have defaults.")
                .at(column.offset.0));
        }
    }
    Ok(())
}

/// The key that a source's rows obey. Nothing enforces a key on events, so nobody may rely on it.
pub(super) fn source_key(
    source: &Name,
    bound: &Bound,
    stages: &mut [PlannedStage],
    notices: &mut Vec<String>,
) -> Vec<usize> {
    let events = |stage: &PlannedStage| stage.capabilities.semantics == RowSemantics::Append;
    if bound.key.is_empty() || !stages.iter().all(events) {
        return bound.key.clone();
    }
    stages.iter_mut().for_each(|stage| stage.config.key.clear());
    notices.push(format!(
        "PRIMARY KEY ({}) of source \"{}\" is not enforced: every row is an event, and rows with the same \
         key are all kept; a table would keep the last of them",
        bound.key_names(),
        source.as_str(),
    ));
    Vec::new()
}

/// Rows that change cannot feed a table that promised not to.
pub(super) fn check_mutability(
    table: &CreateTable,
    stages: &[PlannedStage],
) -> Result<(), UserError> {
    let changing = stages.iter().find(|stage| stage.capabilities.semantics != RowSemantics::Append);
    match changing {
        Some(stage) if table.mutability == Mutability::AppendOnly => {
            let message = format!(
                "table \"{}\" is APPEND ONLY, and the rows of stage \"{}\" are {}",
                table.name.as_str(),
                stage.name,
                stage.capabilities.semantics
            );
            Err(UserError::new(SqlState::INVALID_TABLE_DEFINITION, message)
                .with_hint("Leave out APPEND ONLY.")
                .at(table.offset.0))
        }
        _ => Ok(()),
    }
}
