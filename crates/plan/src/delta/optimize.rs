//! Analysis, and the rewrites that are right whatever the data will be.
//!
//! Left out on purpose: PushDownLimit (a limit over deltas is not a limit over rows), SingleDistinctToGroupBy
//! (distinct aggregates are ours), UnionsToFilter (it changes what is shared), and everything physical. There is no
//! start time, so that now() is never folded. Scalar subqueries become joins: none is computed once and for all.

use std::sync::{Arc, LazyLock};

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::{Distinct, LogicalPlan};
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_group_by_constant::EliminateGroupByConstant;
use datafusion::optimizer::eliminate_join::EliminateJoin;
use datafusion::optimizer::eliminate_limit::EliminateLimit;
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerContext, OptimizerRule};

use super::fragment::STATE;
use crate::dialect::{Casts, Shapes, correlated};

static OPTIONS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(|| {
    let mut options = ConfigOptions::default();
    options.optimizer.skip_failed_rules = false;
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    Arc::new(options)
});

/// Types made explicit by casts.
pub(super) fn analyze(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut analyzer = Analyzer::new();
    analyzer.rules.insert(0, Arc::new(Shapes));
    analyzer.rules.push(Arc::new(Casts));
    analyzer.execute_and_check(plan, &OPTIONS, |_, _| {})
}

/// The plan, typed and rewritten.
pub(super) fn optimize(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
        Arc::new(RewriteSetComparison::new()),
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(EliminateJoin::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(EliminateLimit::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(EliminateGroupByConstant::new()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ];
    let context = OptimizerContext::new_with_config_options(Arc::clone(&OPTIONS))
        .without_query_execution_start_time();
    let plan = first_rows(Shapes::rewrite(plan)?)?;
    let plan = correlated::rewrite_those(plan, |one| !correlated::is_one_row(&one.subquery))?;
    Optimizer::with_rules(rules).optimize(analyze(plan)?, &context, |_, _| {})
}

/// DISTINCT ON in the form of an aggregate.
fn first_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Distinct(Distinct::On(_)) => {
            ReplaceDistinctWithAggregate::new().rewrite(node, &*STATE)
        }
        other => Ok(Transformed::no(other)),
    });
    rewritten.data()
}
