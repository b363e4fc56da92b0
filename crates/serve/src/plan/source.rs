//! A source as a DataFusion table: what it stores is nothing, so a query reads its stages up to now and ends.
//!
//! Word: *horizons*, where the sources that a statement reads begin and end; asked once a statement and source.
//! Invariant: nothing is asked of an external system before the query runs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::stream;
use parking_lot::Mutex;
use segue_catalog::Object;
use segue_types::{ObjectId, UserError};
use tokio::sync::OnceCell;

use super::snapshot::SnapshotCell;
use crate::backend::{Asker, Engine, Horizon, SourceScan, Wanted};

/// The horizons of one statement, and whom it tells what it leaves out.
pub(crate) struct Horizons {
    engine: Engine,
    asker: Asker,
    by_source: Mutex<HashMap<ObjectId, Arc<OnceCell<Horizon>>>>,
}

impl Horizons {
    pub(crate) fn new(engine: Engine, asker: Asker) -> Horizons {
        Horizons { engine, asker, by_source: Mutex::default() }
    }

    async fn of(&self, source: ObjectId) -> Result<Horizon, UserError> {
        let cell = Arc::clone(self.by_source.lock().entry(source).or_default());
        cell.get_or_try_init(|| self.engine.horizon(source, self.asker.clone())).await.cloned()
    }
}

/// A source.
#[derive(Debug)]
pub(crate) struct SourceRelation {
    object: Arc<Object>,
    schema: SchemaRef,
    cell: Arc<SnapshotCell>,
}

impl SourceRelation {
    pub(crate) fn new(object: Arc<Object>, cell: Arc<SnapshotCell>) -> SourceRelation {
        // What a record lacks is NULL, whatever the column was declared as.
        let fields = object.schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        SourceRelation { object, schema, cell }
    }
}

#[async_trait]
impl TableProvider for SourceRelation {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
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
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let columns: Vec<usize> = projection.map_or_else(all, Clone::clone);
        let memory_mb = self.cell.identity().settings.integer("source_scan_memory_mb");
        let wanted = Wanted { columns, memory_bytes_max: memory_mb.unwrap_or(0) << 20 };
        let schema = Arc::new(self.schema.project(&wanted.columns)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(SourceExec {
            object: Arc::clone(&self.object),
            horizons: self.cell.horizons(),
            wanted,
            properties: Arc::new(properties),
        }))
    }
}

/// The reading of a source by one query.
struct SourceExec {
    object: Arc<Object>,
    horizons: Arc<Horizons>,
    wanted: Wanted,
    properties: Arc<PlanProperties>,
}

/// A reading that has begun.
struct Open {
    scan: SourceScan,
    rejected: usize,
}

impl SourceExec {
    async fn open(&self) -> Result<Open> {
        let horizon = self.horizons.of(self.object.id).await.map_err(external)?;
        let scan = self.horizons.engine.scan(&self.object, &horizon, self.wanted.clone());
        Ok(Open { scan, rejected: 0 })
    }

    fn ended(&self, rejected: usize) {
        if rejected > 0 {
            let name = &self.object.name;
            self.horizons
                .asker
                .tell(format!("source \"{name}\": {rejected} malformed records were left out"));
        }
    }
}

fn external(error: UserError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn under(schema: &SchemaRef, rows: &RecordBatch) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let columns = rows.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

impl fmt::Debug for SourceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceExec").field("source", &self.object.name).finish_non_exhaustive()
    }
}

impl DisplayAs for SourceExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.properties.eq_properties.schema();
        let columns: Vec<&str> =
            schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "SourceScan: {}, columns=[{}]", self.object.name, columns.join(", "))
    }
}

impl ExecutionPlan for SourceExec {
    fn name(&self) -> &'static str {
        "SourceScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let exec = SourceExec {
            object: Arc::clone(&self.object),
            horizons: Arc::clone(&self.horizons),
            wanted: self.wanted.clone(),
            properties: Arc::clone(&self.properties),
        };
        let (schema, under_schema) = (self.schema(), self.schema());
        let batches = stream::try_unfold((exec, None), move |(exec, open)| {
            let schema = SchemaRef::clone(&under_schema);
            async move {
                let mut open = match open {
                    Some(open) => open,
                    None => exec.open().await?,
                };
                let Some(scanned) = open.scan.next().await else {
                    exec.ended(open.rejected);
                    return Ok(None);
                };
                let scanned = scanned.map_err(external)?;
                open.rejected += scanned.rejected;
                Ok(Some((under(&schema, &scanned.rows)?, (exec, Some(open)))))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
