//! A table or materialized view as a DataFusion table: its schema is the catalog's, its rows are those
//! of the version that the running statement reads.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use segue_catalog::Object;

use super::scan::VersionScan;
use super::snapshot::SnapshotCell;

/// A stored relation.
#[derive(Debug)]
pub(crate) struct StoredRelation {
    object: Arc<Object>,
    cell: Arc<SnapshotCell>,
}

impl StoredRelation {
    pub(crate) fn new(object: Arc<Object>, cell: Arc<SnapshotCell>) -> StoredRelation {
        StoredRelation { object, cell }
    }
}

#[async_trait]
impl TableProvider for StoredRelation {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.object.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let reading = self.cell.get();
        let schema = Arc::clone(&self.object.schema);
        if let Some(returned) =
            reading.returned.as_ref().filter(|rows| rows.table == self.object.id)
        {
            let rows: Vec<RecordBatch> = returned.rows.to_vec();
            return Ok(MemorySourceConfig::try_new_exec(&[rows], schema, projection.cloned())?);
        }
        match reading.version(self.object.id) {
            Some(version) => {
                let name = self.object.name.clone();
                let scan = VersionScan::new(name, version.clone(), schema, projection)?;
                Ok(Arc::new(scan))
            }
            None => Ok(MemorySourceConfig::try_new_exec(&[vec![]], schema, projection.cloned())?),
        }
    }
}
