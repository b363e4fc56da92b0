//! A *leaf* of a fragment: the place in a plan where rows of an operator's input come in.

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};

/// In the logical plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leaf {
    number: usize,
    schema: DFSchemaRef,
}

impl Leaf {
    /// The leaf under which the columns of `schema` come in, all of them nullable.
    pub(super) fn new(number: usize, schema: &DFSchema) -> Result<Leaf> {
        let fields = schema.iter().map(|(qualifier, field)| {
            let field = Arc::new(field.as_ref().clone().with_nullable(true));
            (qualifier.cloned(), field)
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), Default::default())?;
        Ok(Leaf { number, schema: Arc::new(schema) })
    }

    pub(super) fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn schema(&self) -> &DFSchema {
        &self.schema
    }

    pub(super) fn arrow_schema(&self) -> SchemaRef {
        Arc::clone(self.schema.inner())
    }
}

impl PartialOrd for Leaf {
    fn partial_cmp(&self, other: &Leaf) -> Option<Ordering> {
        self.number.partial_cmp(&other.number)
    }
}

impl UserDefinedLogicalNodeCore for Leaf {
    fn name(&self) -> &str {
        "Leaf"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        Vec::new()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leaf {}", self.number)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, _inputs: Vec<LogicalPlan>) -> Result<Leaf> {
        Ok(self.clone())
    }
}

/// What the leaves of a fragment give at the moment, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Feed {
    batches: Mutex<Vec<RecordBatch>>,
}

impl Feed {
    pub(super) fn set(&self, batches: Vec<RecordBatch>) {
        *self.batches.lock().unwrap_or_else(PoisonError::into_inner) = batches;
    }

    fn get(&self, number: usize) -> Option<RecordBatch> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
    }
}

/// In the physical plan.
#[derive(Debug)]
pub(super) struct LeafExec {
    number: usize,
    feed: Arc<Feed>,
    properties: Arc<PlanProperties>,
}

impl LeafExec {
    pub(super) fn new(leaf: &Leaf, feed: Arc<Feed>) -> LeafExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(leaf.arrow_schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        LeafExec { number: leaf.number, feed, properties: Arc::new(properties) }
    }
}

impl DisplayAs for LeafExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeafExec {}", self.number)
    }
}

impl ExecutionPlan for LeafExec {
    fn name(&self) -> &str {
        "LeafExec"
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

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
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
        let missing = || DataFusionError::Internal(format!("nothing feeds leaf {}", self.number));
        let batch = self.feed.get(self.number).ok_or_else(missing)?;
        let schema = batch.schema();
        Ok(Box::pin(MemoryStream::try_new(in_pieces(&batch), schema, None)?))
    }
}

/// Batches of the size that DataFusion's operators expect.
fn in_pieces(batch: &RecordBatch) -> Vec<RecordBatch> {
    const ROWS: usize = 8192;
    let starts = (0..batch.num_rows()).step_by(ROWS);
    starts.map(|start| batch.slice(start, ROWS.min(batch.num_rows() - start))).collect()
}
