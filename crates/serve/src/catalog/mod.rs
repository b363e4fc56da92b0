//! What clients ask about: `pg_catalog`, `information_schema` and the system relations in schema `segue`.
//!
//! A *system relation* has a fixed schema; its rows are made when it is scanned, from the version that the statement
//! reads and from what the engine tells.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;

use crate::plan::SnapshotCell;

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

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        vec![]
    }
    async fn table(&self, _name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        Ok(None)
    }
    fn table_exist(&self, _name: &str) -> bool {
        false
    }
}

/// The columns of a system relation.
pub(crate) fn system_relation_schema(_schema: &str, _name: &str) -> Option<SchemaRef> {
    None
}
