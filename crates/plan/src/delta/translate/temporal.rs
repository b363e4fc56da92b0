//! Which side of a join is read as of the moment at which the other side's rows arrive.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use super::super::provider::{ReadAs, RelationSource};

/// Whether `plan` reads a relation FOR SYSTEM_TIME AS OF PROCTIME().
pub(super) fn is_temporal(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let walked = plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.downcast_ref::<RelationSource>()
        {
            found |= source.read == ReadAs::OfArrival;
        }
        Ok(match node {
            // A join below has met its temporal side itself.
            LogicalPlan::Join(_) => TreeNodeRecursion::Jump,
            _ => TreeNodeRecursion::Continue,
        })
    });
    walked.is_ok() && found
}
