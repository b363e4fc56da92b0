//! LATERAL over one row: `t, unnest(t.list) AS item` has no relation on its right side, only expressions of the left
//! one, so it is no join but a projection of `t` that is unnested.
//!
//! DataFusion turns some of the other laterals into joins, [`super::correlated`] the rest.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, Result, ScalarValue, UnnestOptions};
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, Unnest,
};

use super::correlated::refers_outside;
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
        && refers_outside(&join.right)?;
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
    let Some(chain) = over.chain(&join.right)? else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    let relation = names.iter().map(|name| Expr::Column(Column::new_unqualified(name)));
    let values = relation.chain(chain.values).zip(outer.iter().chain(join.right.schema().iter()));
    let columns = values.map(|(value, (qualifier, field))| {
        value.unalias().alias_qualified(qualifier.cloned(), field.name())
    });
    let plan = Projection::try_new(columns.collect(), Arc::new(chain.plan))?;
    let plan = LogicalPlan::Projection(plan);
    Ok(Transformed::yes(match filter {
        Some(filter) => LogicalPlan::Filter(Filter::try_new(filter, Arc::new(plan))?),
        None => plan,
    }))
}

fn is_true(filter: &Expr) -> bool {
    matches!(filter, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

/// What a chain of nodes over one row becomes over another relation.
struct Over<'a> {
    /// The relation, under names that nothing else has.
    left: LogicalPlan,
    outer: &'a DFSchemaRef,
    names: &'a [String],
    /// Whether each of its rows stays: LEFT JOIN.
    keeps: bool,
}

/// A chain that was put over the relation.
struct Chain {
    plan: LogicalPlan,
    /// The columns of the chain's last node, as expressions over the plan.
    values: Vec<Expr>,
}

impl Over<'_> {
    /// `None` when `node` does not end such a chain.
    fn chain(&self, node: &LogicalPlan) -> Result<Option<Chain>> {
        Ok(match node {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => {
                Some(Chain { plan: self.left.clone(), values: Vec::new() })
            }
            LogicalPlan::Subquery(subquery) => self.chain(&subquery.subquery)?,
            LogicalPlan::SubqueryAlias(alias) => self.chain(&alias.input)?,
            LogicalPlan::Projection(projection) => match self.chain(&projection.input)? {
                Some(chain) => {
                    let values = projection.expr.iter().map(|expr| {
                        self.inner(expr.clone().unalias(), projection.input.schema(), &chain)
                    });
                    let values = values.collect::<Result<_>>()?;
                    Some(Chain { plan: chain.plan, values })
                }
                None => None,
            },
            LogicalPlan::Filter(filter) if !self.keeps => match self.chain(&filter.input)? {
                Some(chain) => {
                    let schema = filter.input.schema();
                    let predicate = self.inner(filter.predicate.clone(), schema, &chain)?;
                    let filter = Filter::try_new(predicate, Arc::new(chain.plan))?;
                    Some(Chain { plan: LogicalPlan::Filter(filter), values: chain.values })
                }
                None => None,
            },
            LogicalPlan::Unnest(unnest) if is_plain(unnest) => match self.chain(&unnest.input)? {
                Some(chain) => Some(self.unnested(unnest, chain)?),
                None => None,
            },
            _ => None,
        })
    }

    /// The expression over the plan of a chain, of which it named columns, and of the relation.
    fn inner(&self, expr: Expr, schema: &DFSchemaRef, chain: &Chain) -> Result<Expr> {
        let replaced = expr.transform_down(|part| {
            let value = match &part {
                Expr::OuterReferenceColumn(_, column) => {
                    let place = self.outer.maybe_index_of_column(column);
                    let name = place.map(|place| &self.names[place]);
                    name.map(|name| Expr::Column(Column::new_unqualified(name)))
                }
                Expr::Column(column) => {
                    let place = schema.maybe_index_of_column(column);
                    place.map(|place| chain.values[place].clone().unalias())
                }
                _ => None,
            };
            Ok(match value {
                Some(value) => Transformed::new(value, true, TreeNodeRecursion::Jump),
                None => Transformed::no(part),
            })
        });
        replaced.data()
    }

    fn unnested(&self, unnest: &Unnest, chain: Chain) -> Result<Chain> {
        let before = chain.plan.schema().columns();
        let names = (0..chain.values.len()).map(|place| format!("value {} {place}", before.len()));
        let names = names.collect::<Vec<_>>();
        let lists = unnest.list_type_columns.iter().map(|(place, _)| *place).collect::<Vec<_>>();
        let values = chain.values.into_iter().enumerate().map(|(place, value)| {
            let filled = self.keeps && lists.contains(&place);
            let value = if filled { items::or_null_of(value) } else { value };
            value.alias(&names[place])
        });
        let columns = before.into_iter().map(Expr::Column).chain(values).collect();
        let projection = Projection::try_new(columns, Arc::new(chain.plan))?;
        let named = |name: &String| Column::new_unqualified(name);
        let lists = lists.iter().map(|place| named(&names[*place])).collect();
        let options = UnnestOptions::new().with_preserve_nulls(false);
        let plan = LogicalPlanBuilder::from(LogicalPlan::Projection(projection))
            .unnest_columns_with_options(lists, options)?
            .build()?;
        Ok(Chain { plan, values: names.iter().map(|name| Expr::Column(named(name))).collect() })
    }
}

/// Lists alone, and each unnested once, in the place where it stands.
fn is_plain(unnest: &Unnest) -> bool {
    let width = unnest.input.schema().fields().len();
    unnest.struct_type_columns.is_empty()
        && unnest.list_type_columns.iter().all(|(_, list)| list.depth == 1)
        && unnest.dependency_indices.iter().copied().eq(0..width)
        && !unnest.options.preserve_nulls()
}
