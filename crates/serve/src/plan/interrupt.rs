//! Joins that multiply: they can compute for hours between two batches, so they are made to yield, and
//! their condition looks at the statement's token.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use tokio_util::sync::CancellationToken;

use crate::errors::canceled;

/// The plan, interruptible.
pub(super) fn interruptible(
    plan: Arc<dyn ExecutionPlan>,
    cancel: &CancellationToken,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if node.downcast_ref::<CrossJoinExec>().is_some() {
            return Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)) as _));
        }
        let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else {
            return Ok(Transformed::no(node));
        };
        let filter = join.filter().map(|filter| {
            let watched =
                Watched { inner: Arc::clone(filter.expression()), cancel: cancel.clone() };
            JoinFilter::new(
                Arc::new(watched),
                filter.column_indices().to_vec(),
                Arc::clone(filter.schema()),
            )
        });
        let projection = join.projection().as_ref().map(|columns| columns.to_vec());
        let watched = NestedLoopJoinExec::try_new(
            Arc::clone(join.left()),
            Arc::clone(join.right()),
            filter,
            join.join_type(),
            projection,
        )?;
        Ok(Transformed::yes(Arc::new(CooperativeExec::new(Arc::new(watched))) as _))
    })
    .data()
}

/// A condition that fails once the statement is cancelled.
#[derive(Clone)]
struct Watched {
    inner: Arc<dyn PhysicalExpr>,
    cancel: CancellationToken,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl PhysicalExpr for Watched {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.cancel.is_cancelled() {
            return Err(DataFusionError::External(Box::new(canceled())));
        }
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| Arc::clone(&self.inner));
        Ok(Arc::new(Watched { inner, cancel: self.cancel.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
