//! Subqueries that refer to the query around them and that DataFusion has no plan for: with `<`, with LIMIT, with
//! windows, or on the right side of a LEFT JOIN LATERAL.
//!
//! They are computed for the *domain*, the distinct values of the columns that they refer to, and joined back (Neumann
//! and Kemper, "Unnesting Arbitrary Queries"). What DataFusion turns into a join by itself is left to it; what cannot
//! be pushed down either stays as it is, to be refused.

mod domain;
mod one_row;
mod push;
mod shape;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, Projection, Subquery};
use datafusion::scalar::ScalarValue;

pub(crate) use one_row::is_one_row;
pub(super) use shape::{is_joined_by_datafusion, refers_outside};

/// All of them in a plan, the inner ones first.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_those(plan, shape::needs_a_domain)
}

/// The scalar subqueries that `are_ours`, and every LATERAL that DataFusion has no join for.
pub(crate) fn rewrite_those(
    plan: LogicalPlan,
    are_ours: fn(&Subquery) -> bool,
) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if shape::is_lateral(&join)? => lateral(join),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) => scalars(node, are_ours),
        other => Ok(Transformed::no(other)),
    });
    rewritten.data()
}

fn lateral(join: Join) -> Result<Transformed<LogicalPlan>> {
    let filter = join.filter.clone().filter(|filter| !is_true(filter));
    let joined = domain::join(&join.left, &join.right, join.join_type, filter)?;
    Ok(match joined {
        Some(plan) => Transformed::yes(plan),
        None => Transformed::no(LogicalPlan::Join(join)),
    })
}

fn is_true(filter: &Expr) -> bool {
    matches!(filter, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

/// The node over its input joined with its scalar subqueries.
fn scalars(node: LogicalPlan, are_ours: fn(&Subquery) -> bool) -> Result<Transformed<LogicalPlan>> {
    let found = subqueries(&node, are_ours)?;
    let mut inputs = node.inputs().into_iter();
    let (false, Some(input)) = (found.is_empty(), inputs.next()) else {
        return Ok(Transformed::no(node));
    };
    let columns = input.schema().columns();
    let mut joined = input.clone();
    let mut values = Vec::with_capacity(found.len());
    for subquery in &found {
        let Some((plan, value)) = one_row::join(joined, &subquery.subquery)? else {
            return Ok(Transformed::no(node));
        };
        joined = plan;
        values.push(value);
    }
    let of = |subquery: &Subquery| found.iter().position(|found| found == subquery);
    let names = NamePreserver::new(&node);
    let replace = |expr: Expr| {
        let name = names.save(&expr);
        let replaced = expr.transform_down(|part| {
            Ok(match &part {
                Expr::ScalarSubquery(subquery) => match of(subquery) {
                    Some(place) => Transformed::yes(values[place].clone()),
                    None => Transformed::no(part),
                },
                _ => Transformed::no(part),
            })
        });
        Ok(name.restore(replaced.data()?))
    };
    let plan = match node {
        LogicalPlan::Projection(projection) => {
            let exprs = projection.expr.into_iter().map(replace).collect::<Result<Vec<_>>>()?;
            LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(joined))?)
        }
        LogicalPlan::Filter(filter) => {
            let filter = Filter::try_new(replace(filter.predicate)?, Arc::new(joined))?;
            let kept = columns.into_iter().map(Expr::Column).collect();
            let filter = Arc::new(LogicalPlan::Filter(filter));
            LogicalPlan::Projection(Projection::try_new(kept, filter)?)
        }
        other => return Ok(Transformed::no(other)),
    };
    Ok(Transformed::new(plan, true, TreeNodeRecursion::Continue))
}

/// Each of the scalar subqueries in a node's expressions once.
fn subqueries(node: &LogicalPlan, are_ours: fn(&Subquery) -> bool) -> Result<Vec<Subquery>> {
    let mut found = Vec::new();
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Expr::ScalarSubquery(subquery) = part
                && are_ours(subquery)
                && !found.contains(subquery)
            {
                found.push(subquery.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// A column by its name alone.
fn named(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The columns of a plan under the names that another has, then those of these names.
fn under_names(
    plan: LogicalPlan,
    values: Vec<Expr>,
    schema: &datafusion::common::DFSchema,
    others: &[String],
) -> Result<LogicalPlan> {
    let columns =
        values.into_iter().zip(schema.iter()).map(|(value, (qualifier, field))| match &value {
            Expr::Column(column)
                if column.relation.as_ref() == qualifier && column.name() == field.name() =>
            {
                value
            }
            _ => value.unalias().alias_qualified(qualifier.cloned(), field.name()),
        });
    let columns = columns.chain(others.iter().map(|name| named(name))).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// The kinds of join that give all columns of both sides for each row of the left one.
const LATERAL_KINDS: [JoinType; 2] = [JoinType::Inner, JoinType::Left];
