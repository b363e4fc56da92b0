//! What the front end needs of the rest, and nothing more: the engine's names, and how a relation's
//! rows are read.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use segue_catalog::Object;
use segue_connect::Registry;
use segue_sql::Statement;
use segue_types::UserError;
use sqlparser::ast;

pub(crate) use segue_connect::{Changes, Ops};
pub(crate) use segue_engine::{
    Asker, CheckpointStatus, DeadLetter, Engine, Horizon, JobStatus, OperatorStatus, Patience,
    Published, SourceScan, SplitStatus, StageStatus, StatementContext, Status, Wanted,
    WatermarkReached,
};
pub(crate) use segue_flow::RelationVersion;
pub(crate) use segue_plan::tables::{compatibility_rows, connector_rows};

/// The rows of a version, batch by batch, under the schema that the catalog gives them: a version's own
/// columns may all be NULL.
pub(crate) fn chunks(
    version: &RelationVersion,
    schema: &SchemaRef,
) -> impl Iterator<Item = RecordBatch> + Send + use<> {
    let schema = SchemaRef::clone(schema);
    version.batches().map(move |batch| {
        let options =
            arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(
            SchemaRef::clone(&schema),
            batch.columns().to_vec(),
            &options,
        )
        .expect("a relation holds what its object declares")
    })
}

/// How many rows a version holds.
pub(crate) fn row_count(version: &RelationVersion) -> usize {
    version.row_count()
}

/// The row of one key; no row when it is not there. `None` when the version has no such key.
pub(crate) fn lookup(version: &RelationVersion, key: Vec<ArrayRef>) -> Option<RecordBatch> {
    let schema = version.schema();
    let fields = version.key().iter().map(|column| schema.field(*column).clone());
    let fields: Vec<_> = fields.collect();
    let key = RecordBatch::try_new(Schema::new(fields).into(), key).ok()?;
    version.lookup(&key)
}

/// The query of a view.
pub(crate) fn view_query(object: &Object) -> Result<ast::Query, UserError> {
    match segue_sql::parse(&object.definition)?.pop() {
        Some(Statement::CreateView(view) | Statement::CreateMaterializedView(view)) => {
            Ok(*view.query.tree)
        }
        _ => Err(UserError::internal(format!("\"{}\" has no query", object.name))),
    }
}

/// The text of a view's query.
pub(crate) fn view_query_text(object: &Object) -> Result<String, UserError> {
    match segue_sql::parse(&object.definition)?.pop() {
        Some(Statement::CreateView(view) | Statement::CreateMaterializedView(view)) => {
            Ok(view.query.text)
        }
        _ => Err(UserError::internal(format!("\"{}\" has no query", object.name))),
    }
}

/// The statement that made an object, without its secrets.
pub(crate) fn shown_definition(object: &Object, registry: &Registry) -> String {
    let is_secret = |connector: &str, option: &str| {
        registry.get(connector).is_some_and(|connector| {
            connector.options().iter().any(|spec| {
                let named = match spec.name.strip_suffix('*') {
                    Some(prefix) => option.starts_with(prefix),
                    None => option == spec.name,
                };
                spec.secret && named
            })
        })
    };
    match segue_sql::parse(&object.definition) {
        Ok(statements) => statements
            .iter()
            .map(|statement| statement.redacted(&is_secret).to_string())
            .collect::<Vec<_>>()
            .join("; "),
        // It was parsed once; if it no longer can be, nothing of it is safe to show.
        Err(_) => String::new(),
    }
}
