//! The domain of a subquery: the distinct values of the columns of the query around it that it refers to.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::{Distinct, Expr, Join, LogicalPlan, Projection};

use super::named;

/// The domain, and how it is named. No two in a plan, one inside the other, have a name in common.
pub(super) struct Domain {
    /// The columns of the query around.
    pub(super) outer: Vec<Column>,
    /// The same as columns of `plan`.
    pub(super) names: Vec<String>,
    pub(super) plan: LogicalPlan,
    number: usize,
}

impl Domain {
    /// That of `inner`, whose query around is `outer`; `None` where it refers to nothing of it, or out of reach.
    pub(super) fn of(inner: &LogicalPlan, outer: &LogicalPlan) -> Result<Option<Domain>> {
        let mut columns = Vec::new();
        inner.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    if let Expr::OuterReferenceColumn(_, column) = part
                        && let Some(found) = resolved(column, outer.schema())
                        && !columns.contains(&found)
                    {
                        columns.push(found);
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        if columns.is_empty() {
            return Ok(None);
        }
        let number = fresh_number(&[inner, outer])?;
        let names = (0..columns.len()).map(|place| format!("domain {number} {place}"));
        let names = names.collect::<Vec<_>>();
        let values = columns.iter().zip(&names);
        let values = values.map(|(column, name)| Expr::Column(column.clone()).alias(name));
        let picked = Projection::try_new(values.collect(), Arc::new(outer.clone()))?;
        let plan = LogicalPlan::Distinct(Distinct::All(Arc::new(LogicalPlan::Projection(picked))));
        Ok(Some(Domain { outer: columns, names, plan, number }))
    }

    /// A name that nothing else has.
    pub(super) fn name(&self, what: &str) -> String {
        format!("domain {} {what}", self.number)
    }

    /// The column of the domain that an outer reference is to.
    pub(super) fn name_of(&self, column: &Column) -> Option<&String> {
        let place = self.outer.iter().position(|outer| is_same(outer, column))?;
        Some(&self.names[place])
    }

    /// The expression over the domain.
    pub(super) fn inner(&self, expr: Expr) -> Result<Expr> {
        let replaced = expr.transform_down(|part| {
            Ok(match &part {
                Expr::OuterReferenceColumn(_, column) => match self.name_of(column) {
                    Some(name) => Transformed::yes(named(name)),
                    None => Transformed::no(part),
                },
                _ => Transformed::no(part),
            })
        });
        replaced.data()
    }

    /// Both sides where they agree in the domain, whose columns have these names on the right one.
    pub(super) fn rejoin(
        &self,
        left: (LogicalPlan, Vec<Expr>),
        right: (LogicalPlan, &[String]),
        kind: JoinType,
        filter: Option<Expr>,
    ) -> Result<LogicalPlan> {
        let on = left.1.into_iter().zip(right.1.iter().map(|name| named(name)));
        let join = Join::try_new(
            Arc::new(left.0),
            Arc::new(right.0),
            on.collect(),
            filter,
            kind,
            JoinConstraint::On,
            NullEquality::NullEqualsNull,
            false,
        )?;
        Ok(LogicalPlan::Join(join))
    }

    /// The columns of the query around.
    pub(super) fn outer_columns(&self) -> Vec<Expr> {
        self.outer.iter().cloned().map(Expr::Column).collect()
    }
}

/// `outer` next to the rows that `inner` has for each of its rows; `None` where it cannot be.
pub(super) fn join(
    outer: &Arc<LogicalPlan>,
    inner: &LogicalPlan,
    kind: JoinType,
    filter: Option<Expr>,
) -> Result<Option<LogicalPlan>> {
    let Some(domain) = Domain::of(inner, outer)? else { return Ok(None) };
    let Some(pushed) = domain.push(inner)? else { return Ok(None) };
    let columns = outer.schema().columns().into_iter().chain(inner.schema().columns());
    let columns = columns.map(Expr::Column).collect();
    let left = (outer.as_ref().clone(), domain.outer_columns());
    let joined = domain.rejoin(left, (pushed, &domain.names), kind, filter)?;
    Ok(Some(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(joined))?)))
}

/// The column under the name that the query around has for it.
fn resolved(column: &Column, schema: &DFSchema) -> Option<Column> {
    let place = schema.maybe_index_of_column(column)?;
    Some(Column::from(schema.qualified_field(place)))
}

fn is_same(outer: &Column, column: &Column) -> bool {
    let same_relation = column.relation.is_none() || column.relation == outer.relation;
    outer.name() == column.name() && same_relation
}

/// The least number that no domain in these plans has.
pub(super) fn fresh_number(plans: &[&LogicalPlan]) -> Result<usize> {
    let mut next = 0;
    for plan in plans {
        plan.apply_with_subqueries(|node| {
            for field in node.schema().fields() {
                let number = field
                    .name()
                    .strip_prefix("domain ")
                    .and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
                next = next.max(number.map_or(0, |number| number + 1));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(next)
}
