//! LATERAL over one row: `t, unnest(t.list) AS item` has no relation on its right side, only expressions of the left
//! one, so it is no join but a projection of `t` that is unnested.
//!
//! DataFusion turns the other laterals into joins. What refers to the left side and is neither stays as it is, for
//! DataFusion to refuse.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, Result, ScalarValue};
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection,
};

use super::items;

/// All of them in a plan, the inner ones first.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) => joined(join),
        other => Ok(Transformed::no(other)),
    });
    rewritten.data()
}

fn joined(join: Join) -> Result<Transformed<LogicalPlan>> {
    let is_lateral = matches!(join.join_type, JoinType::Inner | JoinType::Left)
        && join.on.is_empty()
        && has_outer_columns(&join.right)?;
    let keeps = join.join_type == JoinType::Left;
    let filter = join.filter.clone().filter(|filter| !is_true(filter));
    if !is_lateral || keeps && filter.is_some() {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let outer = Arc::clone(join.left.schema());
    let names = (0..outer.fields().len()).map(|place| format!("lateral {place}"));
    let names = names.collect::<Vec<_>>();
    let columns = outer.columns().into_iter().zip(&names);
    let columns = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    let left = Projection::try_new(columns, Arc::clone(&join.left))?;
    let over = Over { left: LogicalPlan::Projection(left), outer: &outer, names: &names, keeps };
    let Some(plan) = over.plan(&join.right)? else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    let mut columns = plan.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
    for (column, (qualifier, field)) in columns.iter_mut().zip(outer.iter()) {
        let named = std::mem::take(column).alias_qualified(qualifier.cloned(), field.name());
        *column = named;
    }
    let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
    Ok(Transformed::yes(match filter {
        Some(filter) => LogicalPlan::Filter(Filter::try_new(filter, Arc::new(plan))?),
        None => plan,
    }))
}

fn is_true(filter: &Expr) -> bool {
    matches!(filter, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

fn has_outer_columns(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= node.contains_outer_reference();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// A chain of nodes over one row, to be put over another relation instead.
struct Over<'a> {
    /// The relation, under names that nothing else has.
    left: LogicalPlan,
    outer: &'a DFSchemaRef,
    names: &'a [String],
    /// Whether each of its rows stays: LEFT JOIN.
    keeps: bool,
}

impl Over<'_> {
    /// The relation's columns, then those of `plan`. `None` when it is no such chain.
    fn plan(&self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        Ok(match plan {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Some(self.left.clone()),
            LogicalPlan::Subquery(subquery) => self.plan(&subquery.subquery)?,
            LogicalPlan::Projection(projection) => match self.plan(&projection.input)? {
                Some(input) => {
                    let columns = projection.expr.iter().zip(projection.schema.iter()).map(
                        |(expr, (qualifier, field))| {
                            let expr = self.inner(expr.clone().unalias())?;
                            Ok(expr.alias_qualified(qualifier.cloned(), field.name()))
                        },
                    );
                    Some(self.project(columns.collect::<Result<_>>()?, input)?)
                }
                None => None,
            },
            LogicalPlan::SubqueryAlias(alias) => match self.plan(&alias.input)? {
                Some(input) => {
                    let own = input.schema().columns().split_off(self.names.len());
                    let columns = own.into_iter().zip(alias.schema.iter()).map(
                        |(column, (qualifier, field))| {
                            Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
                        },
                    );
                    Some(self.project(columns.collect(), input)?)
                }
                None => None,
            },
            LogicalPlan::Filter(filter) if !self.keeps => match self.plan(&filter.input)? {
                Some(input) => {
                    let predicate = self.inner(filter.predicate.clone())?;
                    Some(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?))
                }
                None => None,
            },
            LogicalPlan::Unnest(unnest) => match self.plan(&unnest.input)? {
                Some(input) => {
                    let lists = &unnest.exec_columns;
                    let input = if self.keeps { self.filled(input, lists)? } else { input };
                    let plan = LogicalPlanBuilder::from(input)
                        .unnest_columns_with_options(lists.clone(), unnest.options.clone())?;
                    Some(plan.build()?)
                }
                None => None,
            },
            _ => None,
        })
    }

    /// The relation's columns and these.
    fn project(&self, columns: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
        let relation = self.names.iter().map(|name| Expr::Column(Column::new_unqualified(name)));
        let columns = relation.chain(columns).collect();
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?))
    }

    /// The expression with the outer columns in the place of references to them.
    fn inner(&self, expr: Expr) -> Result<Expr> {
        let replaced = expr.transform_up(|part| {
            if let Expr::OuterReferenceColumn(_, column) = &part
                && let Some(place) = self.outer.maybe_index_of_column(column)
            {
                let column = Column::new_unqualified(&self.names[place]);
                return Ok(Transformed::yes(Expr::Column(column)));
            }
            Ok(Transformed::no(part))
        });
        replaced.data()
    }

    /// The lists with a NULL in those that would give no row.
    fn filled(&self, input: LogicalPlan, lists: &[Column]) -> Result<LogicalPlan> {
        let columns = input.schema().columns().into_iter().map(|column| {
            if !lists.contains(&column) {
                return Expr::Column(column);
            }
            let (relation, name) = (column.relation.clone(), column.name.clone());
            items::or_null_of(Expr::Column(column)).alias_qualified(relation, name)
        });
        let columns = columns.collect();
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?))
    }
}
