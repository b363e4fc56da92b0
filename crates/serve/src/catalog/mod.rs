//! What clients ask about: `pg_catalog`, `information_schema` and the system relations in schema `segue`.
//!
//! A *system relation* has a fixed schema; its rows are made when it is scanned, from the version that
//! the statement reads and from what the engine tells. What never changes comes from a real
//! PostgreSQL's catalog.
//! Invariant: OIDs are derived from object ids, so they are the same after a restart.

mod attribute;
mod cells;
mod class;
mod cluster;
mod constraint;
mod foreign;
mod information_schema;
mod oids;
mod segue;
mod statics;
mod views;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use segue_catalog::{Object, RelationKind};
use segue_types::UserError;

use crate::plan::{Identity, Reading, SnapshotCell};
use cells::{Relation, Source};

pub(crate) use class::{class_oid, is_on_search_path};
pub(crate) use constraint::{constraint_definition, index_definition};
pub(crate) use oids::{NAMESPACES, object_of_oid};
pub(crate) use statics::keywords;
pub(crate) use views::view_definition;

/// What a system relation is made from.
pub(crate) struct View<'a> {
    pub(crate) reading: Reading,
    pub(crate) identity: &'a Identity,
    pub(crate) cell: &'a SnapshotCell,
}

impl View<'_> {
    /// The objects that can be read; nobody reads a sink.
    pub(crate) fn relations(&self) -> impl Iterator<Item = &Arc<Object>> {
        let objects = self.reading.published.catalog.iter();
        objects.filter(|object| object.relation_kind() != RelationKind::Sink)
    }
}

/// A schema of system relations.
#[derive(Debug)]
pub(crate) struct SystemSchema {
    name: &'static str,
    cell: Arc<SnapshotCell>,
}

impl SystemSchema {
    /// All of them, by name.
    pub(crate) fn all(cell: &Arc<SnapshotCell>) -> Vec<(&'static str, Arc<SystemSchema>)> {
        ["pg_catalog", "information_schema", "segue"]
            .into_iter()
            .map(|name| (name, Arc::new(SystemSchema { name, cell: Arc::clone(cell) })))
            .collect()
    }
}

/// The relations of a system schema that are made here.
fn relations(schema: &str) -> &'static [&'static [Relation]] {
    match schema {
        "pg_catalog" => &[
            attribute::RELATIONS,
            class::RELATIONS,
            cluster::RELATIONS,
            constraint::RELATIONS,
            foreign::RELATIONS,
            views::RELATIONS,
        ],
        "information_schema" => &[information_schema::RELATIONS],
        "segue" => &[segue::RELATIONS],
        _ => &[],
    }
}

fn relation(schema: &str, name: &str) -> Option<&'static Relation> {
    relations(schema).iter().copied().flatten().find(|relation| relation.name == name)
}

/// The columns of a system relation.
pub(crate) fn system_relation_schema(schema: &str, name: &str) -> Option<SchemaRef> {
    match relation(schema, name) {
        Some(relation) => Some(relation.schema()),
        None if schema == "pg_catalog" => statics::table(name).map(|table| table.schema()),
        None => None,
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        let made = relations(self.name).iter().copied().flatten();
        made.map(|relation| relation.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if let Some(relation) = relation(self.name, name) {
            let cell = Arc::clone(&self.cell);
            return Ok(Some(Arc::new(SystemTable { relation, schema: relation.schema(), cell })));
        }
        match (self.name, statics::table(name)) {
            ("pg_catalog", Some(table)) => Ok(Some(table.try_into_memtable()?)),
            _ => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        system_relation_schema(self.name, name).is_some()
    }
}

/// A system relation as DataFusion scans it.
#[derive(Debug)]
struct SystemTable {
    relation: &'static Relation,
    schema: SchemaRef,
    cell: Arc<SnapshotCell>,
}

impl SystemTable {
    async fn batch(&self) -> Result<RecordBatch, UserError> {
        let view =
            View { reading: self.cell.get(), identity: self.cell.identity(), cell: &self.cell };
        let rows = match self.relation.source {
            Source::Catalog(rows) => rows(&view),
            Source::Status(rows) => rows(&view, &self.cell.engine().status().await?),
            Source::Latest(rows) => rows(&view, &self.cell.engine().status_with_latest().await?),
            Source::DeadLetters(rows) => rows(&view, &self.cell.engine().dead_letters().await?),
        };
        Ok(self.relation.batch(&self.schema, &rows))
    }
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let batch =
            self.batch().await.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let schema = Arc::clone(&self.schema);
        let source = MemorySourceConfig::try_new_exec(&[vec![batch]], schema, projection.cloned())?;
        Ok(source)
    }
}
