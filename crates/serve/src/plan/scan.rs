//! Reading a version, batch by batch as the query asks for them: a LIMIT reads no more than it needs,
//! and nothing is filtered before the query runs.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};

use crate::backend::{RelationVersion, chunks, row_count};

/// The scan of one version.
#[derive(Debug)]
pub(super) struct VersionScan {
    relation: String,
    version: RelationVersion,
    /// Of all columns.
    schema: SchemaRef,
    projection: Vec<usize>,
    properties: Arc<PlanProperties>,
}

impl VersionScan {
    pub(super) fn new(
        relation: String,
        version: RelationVersion,
        schema: SchemaRef,
        projection: Option<&Vec<usize>>,
    ) -> Result<VersionScan> {
        let all = || (0..schema.fields().len()).collect();
        let projection: Vec<usize> = projection.map_or_else(all, Clone::clone);
        let projected = Arc::new(schema.project(&projection)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(projected),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(VersionScan { relation, version, schema, projection, properties: Arc::new(properties) })
    }

    fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + Send + use<> {
        let projection = self.projection.clone();
        chunks(&self.version, &self.schema)
            .map(move |batch| batch.project(&projection).map_err(DataFusionError::from))
    }
}

impl DisplayAs for VersionScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VersionScan: {}, rows={}", self.relation, row_count(&self.version))
    }
}

impl ExecutionPlan for VersionScan {
    fn name(&self) -> &'static str {
        "VersionScan"
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
        let stream = futures::stream::iter(self.batches());
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }

    fn partition_statistics(&self, _partition: Option<usize>) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.num_rows = Precision::Exact(row_count(&self.version));
        Ok(Arc::new(statistics))
    }
}
