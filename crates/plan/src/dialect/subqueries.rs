//! Subqueries and set operations that DataFusion has no plan for, or a wrong one: as counts that are compared.
//!
//! `IN` and `EXISTS` outside of conditions become scalar subqueries that count; so does a correlated `NOT IN`, whose
//! rule for NULLs an anti join does not know. `INTERSECT ALL` and `EXCEPT ALL` number the copies of each row, so that
//! copy meets copy.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, JoinType, NullEquality, Result, Spans};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Filter, Join, LogicalPlan, LogicalPlanBuilder, Subquery, lit,
    when,
};
use datafusion::scalar::ScalarValue;

use super::correlated::is_joined_by_datafusion;

/// All of them in a plan.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Projection(_) => projection(node),
        LogicalPlan::Filter(filter) => condition(filter),
        LogicalPlan::Join(join) if is_of_copies(&join) => copies(&join),
        other => Ok(Transformed::no(other)),
    });
    rewritten.data()
}

fn projection(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let counted = counted(expr, &schema)?;
        Ok(counted.update_data(|expr| name.restore(expr)))
    })
}

/// What a join answers right stays in a condition.
fn condition(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(filter.input.schema());
    let mut changed = false;
    let parts = split_conjunction_owned(filter.predicate).into_iter().map(|part| {
        if is_joined(&part) {
            return Ok(part);
        }
        let counted = counted_but(part, &schema, is_joined_inside)?;
        changed |= counted.transformed;
        Ok(counted.data)
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let predicate = conjunction(parts).unwrap_or_else(|| lit(true));
    let filter = LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?);
    Ok(if changed { Transformed::yes(filter) } else { Transformed::no(filter) })
}

/// Whether DataFusion has a join for what a condition requires.
fn is_joined(part: &Expr) -> bool {
    match part {
        Expr::Not(inner) => {
            matches!(inner.as_ref(), Expr::Exists(_) | Expr::InSubquery(_)) && is_joined(inner)
        }
        Expr::Exists(exists) => is_joined_by_datafusion(&exists.subquery),
        Expr::InSubquery(test) => match test.negated {
            true => !is_correlated(&test.subquery),
            false => is_joined_by_datafusion(&test.subquery),
        },
        _ => false,
    }
}

/// Below OR and the like a mark join tells true from all else.
fn is_joined_inside(part: &Expr) -> bool {
    match part {
        Expr::Exists(exists) => is_joined_by_datafusion(&exists.subquery),
        Expr::InSubquery(test) => !test.negated && is_joined_by_datafusion(&test.subquery),
        _ => false,
    }
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

fn counted(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    counted_but(expr, schema, |_| false)
}

/// The tests of an expression as counts, but for those that may stay where only AND and OR are around them.
fn counted_but(
    expr: Expr,
    schema: &DFSchema,
    may_stay: fn(&Expr) -> bool,
) -> Result<Transformed<Expr>> {
    let connects = |part: &Expr| {
        use datafusion::logical_expr::{
            BinaryExpr,
            Operator::{And, Or},
        };
        matches!(part, Expr::BinaryExpr(BinaryExpr { op: And | Or, .. }))
    };
    if may_stay(&expr) {
        return Ok(Transformed::no(expr));
    }
    if connects(&expr) {
        return expr.map_children(|part| counted_but(part, schema, may_stay));
    }
    expr.transform_down(|part| match part {
        Expr::Exists(exists) => Ok(Transformed::yes(exists_counted(&exists)?)),
        Expr::InSubquery(test) => {
            let counted = in_counted(&test, schema)?;
            Ok(Transformed::new(counted, true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// How many rows a subquery has.
fn count_of(plan: LogicalPlan) -> Result<Expr> {
    let none: Vec<Expr> = Vec::new();
    let plan = LogicalPlanBuilder::from(plan)
        .aggregate(none, vec![count(lit(1_i64)).alias("count")])?
        .build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Arc::new(plan);
    Ok(Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, spans: Spans::new() }))
}

fn exists_counted(exists: &Exists) -> Result<Expr> {
    let rows = count_of(exists.subquery.subquery.as_ref().clone())?;
    Ok(if exists.negated { rows.eq(lit(0_i64)) } else { rows.gt(lit(0_i64)) })
}

/// True where a row is equal; else false where there is no row; else NULL where anything compared is NULL.
fn in_counted(test: &InSubquery, schema: &DFSchema) -> Result<Expr> {
    let plan = test.subquery.subquery.as_ref().clone();
    let value = Expr::Column(plan.schema().columns().swap_remove(0));
    let outer = test.expr.as_ref().clone().transform_up(|part| {
        if let Expr::Column(column) = &part
            && let Ok((_, field)) = schema.qualified_field_from_column(column)
        {
            let outer = Expr::OuterReferenceColumn(Arc::clone(field), column.clone());
            return Ok(Transformed::yes(outer));
        }
        Ok(Transformed::no(part))
    });
    let filtered = |predicate: Expr| {
        let plan = LogicalPlanBuilder::from(plan.clone()).filter(predicate)?.build()?;
        count_of(plan)
    };
    let equal = filtered(value.clone().eq(outer.data()?))?;
    let nulls = filtered(value.is_null())?;
    let all = count_of(plan.clone())?;
    let unknown = test.expr.as_ref().clone().is_null().or(nulls.gt(lit(0_i64)));
    let (yes, no) = (lit(!test.negated), lit(test.negated));
    when(equal.gt(lit(0_i64)), yes)
        .when(all.eq(lit(0_i64)), no.clone())
        .when(unknown, Expr::Literal(ScalarValue::Boolean(None), None))
        .otherwise(no)
}

/// A set operation with ALL: without it the left side is made distinct.
fn is_of_copies(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)))
        && join.left.schema().fields().last().is_none_or(|last| last.name() != COPY)
}

/// The column that numbers the copies of a row.
const COPY: &str = "copy of a row";

fn copies(join: &Join) -> Result<Transformed<LogicalPlan>> {
    let numbered = |plan: &LogicalPlan| {
        let all = plan.schema().columns().into_iter().map(Expr::Column).collect();
        let copy = row_number().partition_by(all).build()?.alias(COPY);
        LogicalPlanBuilder::from(plan.clone()).window(vec![copy])?.build()
    };
    let (left, right) = (numbered(&join.left)?, numbered(&join.right)?);
    let number = |plan: &LogicalPlan| {
        Expr::Column(plan.schema().columns().pop().expect("the number is its last column"))
    };
    let mut on = join.on.clone();
    on.push((number(&left), number(&right)));
    let kept = left.schema().columns();
    let kept = kept[..kept.len() - 1].iter().cloned().map(Expr::Column).collect::<Vec<_>>();
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        None,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let plan = LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(kept)?.build()?;
    Ok(Transformed::new(plan, true, TreeNodeRecursion::Jump))
}
