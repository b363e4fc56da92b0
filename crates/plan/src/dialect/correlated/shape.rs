//! Which subqueries DataFusion turns into joins by itself, and right ones.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator, Subquery};

use super::LATERAL_KINDS;
use super::one_row::is_one_row;

/// Whether a join is a LATERAL that DataFusion has no plan for.
pub(super) fn is_lateral(join: &Join) -> Result<bool> {
    let is_candidate = LATERAL_KINDS.contains(&join.join_type) && join.on.is_empty();
    if !is_candidate || !refers_outside(&join.right)? {
        return Ok(false);
    }
    let is_theirs = join.join_type == JoinType::Inner
        && (is_compared_by_equality(&join.right, Below::Aggregate) || is_filtered(&join.right));
    Ok(!is_theirs)
}

/// Whether a scalar subquery refers to the query around it in a way that DataFusion has no join for.
pub(super) fn needs_a_domain(subquery: &Subquery) -> bool {
    let plan = &subquery.subquery;
    refers_outside(plan).unwrap_or(false)
        && !(is_one_row(plan) && is_compared_by_equality(plan, Below::Aggregate))
}

/// Whether DataFusion has a semi or anti join for a subquery whose rows are asked for alone.
pub(in crate::dialect) fn is_joined_by_datafusion(subquery: &Subquery) -> bool {
    let plan = &subquery.subquery;
    !refers_outside(plan).unwrap_or(true) || is_filtered_alone(plan)
}

/// What stands above the conditions that refer outside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    Aggregate,
    Rows,
}

/// Whether what refers outside are conditions `inner = outer`, below nothing but projections and at most one global
/// aggregate.
fn is_compared_by_equality(plan: &LogicalPlan, may_be: Below) -> bool {
    match plan {
        LogicalPlan::Subquery(subquery) => is_compared_by_equality(&subquery.subquery, may_be),
        LogicalPlan::SubqueryAlias(alias) => is_compared_by_equality(&alias.input, may_be),
        LogicalPlan::Projection(projection) => {
            !projection.expr.iter().any(has_outer)
                && is_compared_by_equality(&projection.input, may_be)
        }
        LogicalPlan::Aggregate(aggregate) => {
            may_be == Below::Aggregate
                && aggregate.group_expr.is_empty()
                && !aggregate.aggr_expr.iter().any(has_outer)
                && is_compared_by_equality(&aggregate.input, Below::Rows)
        }
        LogicalPlan::Filter(filter) => {
            split_conjunction(&filter.predicate).into_iter().all(is_equality)
                && is_compared_by_equality(&filter.input, may_be)
        }
        other => !refers_outside(other).unwrap_or(true),
    }
}

/// Whether what refers outside are conditions below nothing but projections that do not.
fn is_filtered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(subquery) => is_filtered(&subquery.subquery),
        LogicalPlan::SubqueryAlias(alias) => is_filtered(&alias.input),
        LogicalPlan::Projection(projection) => {
            !projection.expr.iter().any(has_outer) && is_filtered(&projection.input)
        }
        LogicalPlan::Filter(filter) => is_filtered(&filter.input),
        other => !refers_outside(other).unwrap_or(true),
    }
}

/// Whether what refers outside are conditions below nothing but projections and DISTINCT.
fn is_filtered_alone(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(subquery) => is_filtered_alone(&subquery.subquery),
        LogicalPlan::SubqueryAlias(alias) => is_filtered_alone(&alias.input),
        LogicalPlan::Projection(projection) => is_filtered_alone(&projection.input),
        LogicalPlan::Distinct(distinct) => is_filtered_alone(distinct.input()),
        LogicalPlan::Filter(filter) => is_filtered_alone(&filter.input),
        other => !refers_outside(other).unwrap_or(true),
    }
}

/// Whether a condition says nothing of the query around, or that a value of it is equal to one of the subquery.
fn is_equality(part: &Expr) -> bool {
    let is_equal = matches!(part, Expr::BinaryExpr(BinaryExpr { op: Operator::Eq, .. }));
    !has_outer(part) || is_equal && sides_are_apart(part)
}

/// One side is of the query around alone, the other of the subquery alone.
fn sides_are_apart(part: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = part else { return false };
    let is_outer = |side: &Expr| has_outer(side) && !has_inner(side);
    is_outer(left) && !has_outer(right) || is_outer(right) && !has_outer(left)
}

pub(super) fn has_outer(expr: &Expr) -> bool {
    exists(expr, |part| matches!(part, Expr::OuterReferenceColumn(..)) || has_outer_inside(part))
}

fn has_outer_inside(part: &Expr) -> bool {
    let subquery = match part {
        Expr::ScalarSubquery(subquery) => subquery,
        Expr::Exists(exists) => &exists.subquery,
        Expr::InSubquery(test) => &test.subquery,
        _ => return false,
    };
    !subquery.outer_ref_columns.is_empty()
}

fn has_inner(expr: &Expr) -> bool {
    exists(expr, |part| matches!(part, Expr::Column(_)))
}

fn exists(expr: &Expr, is_it: impl Fn(&Expr) -> bool) -> bool {
    expr.exists(|part| Ok(is_it(part))).unwrap_or(true)
}

/// Whether anything in a plan refers to a query around it, be it one that is itself inside the plan.
pub(in crate::dialect) fn refers_outside(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= node.contains_outer_reference();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
