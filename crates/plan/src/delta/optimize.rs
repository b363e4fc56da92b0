//! Analysis, and the rewrites that are right whatever the data will be.
//!
//! Left out on purpose: PushDownLimit (a limit over deltas is not a limit over rows), SingleDistinctToGroupBy
//! (one aggregate would
//! become two states), UnionsToFilter (it changes what is shared), and everything physical. There is no start
//! time, so that now() is never folded.

use std::sync::{Arc, LazyLock};

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_group_by_constant::EliminateGroupByConstant;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerContext, OptimizerRule};

use crate::dialect::Casts;

static OPTIONS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(|| {
    let mut options = ConfigOptions::default();
    options.optimizer.skip_failed_rules = false;
    Arc::new(options)
});

/// Types made explicit by casts.
pub(super) fn analyze(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut analyzer = Analyzer::new();
    analyzer.rules.push(Arc::new(Casts));
    analyzer.execute_and_check(plan, &OPTIONS, |_, _| {})
}

/// The plan, typed and rewritten.
pub(super) fn optimize(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(EliminateGroupByConstant::new()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ];
    let context = OptimizerContext::new_with_config_options(Arc::clone(&OPTIONS))
        .without_query_execution_start_time();
    Optimizer::with_rules(rules).optimize(analyze(plan)?, &context, |_, _| {})
}
