//! Partitions one after another: the rows of `(SELECT 1) UNION ALL (SELECT 2)` come in the order in which they are
//! written, as in PostgreSQL, and not in that of a race.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

/// The plan with its partitions in order, wherever they are brought together.
pub(super) fn in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| match node.downcast_ref::<CoalescePartitionsExec>() {
        Some(coalesce) if coalesce.fetch().is_none() => {
            Ok(Transformed::yes(InOrder::over(Arc::clone(coalesce.input()))))
        }
        _ => Ok(Transformed::no(node)),
    });
    let plan = plan.data()?;
    let partitions = plan.properties().output_partitioning().partition_count();
    Ok(if partitions > 1 { InOrder::over(plan) } else { plan })
}

#[derive(Debug)]
struct InOrder {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InOrder {
    fn over(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let of_input = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            of_input.emission_type,
            of_input.boundedness,
        );
        Arc::new(InOrder { input, properties: Arc::new(properties) })
    }
}

impl DisplayAs for InOrder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InOrder")
    }
}

impl ExecutionPlan for InOrder {
    fn name(&self) -> &'static str {
        "InOrder"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop();
        Ok(InOrder::over(input.unwrap_or_else(|| Arc::clone(&self.input))))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(DataFusionError::Internal("there is one partition".to_owned()));
        }
        let input = Arc::clone(&self.input);
        let partitions = input.properties().output_partitioning().partition_count();
        // The next one begins when the one before has ended.
        let streams = futures::stream::iter(0..partitions)
            .map(move |partition| input.execute(partition, Arc::clone(&context)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), streams.try_flatten())))
    }
}
