//! A subquery computed for a whole domain at once: the domain is pushed down to where it is referred to, and its
//! columns go along from there to the top.
//!
//! Invariant: what [`Domain::push`] makes of a node has the node's columns, and behind them the domain's; for each row
//! of the domain it has the rows that the node has for those values. Rows of values that are not in the domain may be
//! there too: they meet nothing when it is joined back.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{JoinType, Result, UnnestOptions};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprFunctionExt, FetchType, Filter, Join, Limit,
    LogicalPlan, LogicalPlanBuilder, Operator, Projection, SkipType, SortExpr, Union, Unnest,
    Window, binary_expr, lit,
};

use super::domain::Domain;
use super::shape::{has_outer, refers_outside};
use super::{named, under_names};

impl Domain {
    /// `None` where the domain cannot be pushed down to what refers to it.
    pub(super) fn push(&self, node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        if !refers_outside(node)? {
            return self.crossed(node).map(Some);
        }
        if has_subqueries(node)? {
            return Ok(None);
        }
        match node {
            LogicalPlan::Subquery(subquery) => self.push(&subquery.subquery),
            LogicalPlan::SubqueryAlias(alias) => self.renamed(node, &alias.input),
            LogicalPlan::Projection(projection) => self.projected(projection, node),
            LogicalPlan::Filter(filter) => self.filtered(filter),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.push(&sort.input),
            LogicalPlan::Limit(limit) => self.limited(limit),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let distinct = |input| LogicalPlan::Distinct(Distinct::All(Arc::new(input)));
                Ok(self.push(input)?.map(distinct))
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregated(aggregate),
            LogicalPlan::Window(window) => self.windowed(window),
            LogicalPlan::Join(join) => self.joined(join),
            LogicalPlan::Union(union) => self.united(union),
            LogicalPlan::Unnest(unnest) => self.unnested(unnest),
            _ => Ok(None),
        }
    }

    fn columns(&self) -> Vec<Expr> {
        self.names.iter().map(|name| named(name)).collect()
    }

    /// The rows of `node` for each row of the domain.
    fn crossed(&self, node: &LogicalPlan) -> Result<LogicalPlan> {
        if node.schema().fields().is_empty() {
            return Ok(self.plan.clone());
        }
        LogicalPlanBuilder::from(node.clone()).cross_join(self.plan.clone())?.build()
    }

    fn inner_all(&self, exprs: &[Expr]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.inner(expr.clone())).collect()
    }

    /// The columns of `plan` at these places, under the names of `node`.
    fn at_places(
        &self,
        plan: LogicalPlan,
        places: impl IntoIterator<Item = usize>,
        node: &LogicalPlan,
    ) -> Result<LogicalPlan> {
        let columns = plan.schema().columns();
        let values = places.into_iter().map(|place| Expr::Column(columns[place].clone()));
        let values = values.collect();
        under_names(plan, values, node.schema(), &self.names)
    }

    fn renamed(&self, node: &LogicalPlan, input: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let Some(plan) = self.push(input)? else { return Ok(None) };
        self.at_places(plan, 0..input.schema().fields().len(), node).map(Some)
    }

    fn projected(
        &self,
        projection: &Projection,
        node: &LogicalPlan,
    ) -> Result<Option<LogicalPlan>> {
        let Some(plan) = self.push(&projection.input)? else { return Ok(None) };
        let values = self.inner_all(&projection.expr)?;
        under_names(plan, values, node.schema(), &self.names).map(Some)
    }

    fn filtered(&self, filter: &Filter) -> Result<Option<LogicalPlan>> {
        let parts = split_conjunction_owned(filter.predicate.clone());
        if let Some(plan) = self.determined(&parts, &filter.input)? {
            return Ok(Some(plan));
        }
        let Some(plan) = self.push(&filter.input)? else { return Ok(None) };
        let predicate = self.inner(filter.predicate.clone())?;
        let filter = Filter::try_new(predicate, Arc::new(plan))?;
        Ok(Some(LogicalPlan::Filter(filter)))
    }

    /// Where conditions `expression = outer column` determine every column of the domain, there is no need of it.
    fn determined(&self, parts: &[Expr], input: &Arc<LogicalPlan>) -> Result<Option<LogicalPlan>> {
        if refers_outside(input)? {
            return Ok(None);
        }
        let determines = |part: &Expr| {
            let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else {
                return None;
            };
            match (left.as_ref(), right.as_ref()) {
                (Expr::OuterReferenceColumn(_, outer), value)
                | (value, Expr::OuterReferenceColumn(_, outer))
                    if !has_outer(value) =>
                {
                    Some((self.name_of(outer)?, value.clone()))
                }
                _ => None,
            }
        };
        let mut rest = Vec::new();
        let mut values = vec![None; self.names.len()];
        for part in parts {
            let place = determines(part).and_then(|(name, value)| {
                let place = self.names.iter().position(|other| other == name)?;
                values[place].is_none().then_some((place, value))
            });
            match place {
                Some((place, value)) => {
                    rest.push(value.clone().is_not_null());
                    values[place] = Some(value);
                }
                None => rest.push(part.clone()),
            }
        }
        let Some(values) = values.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        let values = values.into_iter().zip(&self.names).map(|(value, name)| value.alias(name));
        let plan = Projection::try_new(columns.chain(values).collect(), Arc::clone(input))?;
        let plan = LogicalPlan::Projection(plan);
        let rest = rest.into_iter().map(|part| self.inner(part)).collect::<Result<Vec<_>>>()?;
        let predicate = conjunction(rest).unwrap_or_else(|| lit(true));
        Ok(Some(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?)))
    }

    /// The first rows for each row of the domain.
    fn limited(&self, limit: &Limit) -> Result<Option<LogicalPlan>> {
        // What stands between the limit and its order goes above the limit.
        let below = |input: &Arc<LogicalPlan>| {
            let limit = Limit { input: Arc::clone(input), ..limit.clone() };
            Arc::new(LogicalPlan::Limit(limit))
        };
        match limit.input.as_ref() {
            LogicalPlan::Projection(projection) => {
                let input = below(&projection.input);
                let moved = Projection::try_new(projection.expr.clone(), input)?;
                self.push(&LogicalPlan::Projection(moved))
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let limited = below(&alias.input);
                let Some(plan) = self.push(&limited)? else { return Ok(None) };
                self.at_places(plan, 0..alias.input.schema().fields().len(), &limit.input).map(Some)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                self.first_rows(limit, &sort.input, &sort.expr)
            }
            _ => self.first_rows(limit, &limit.input, &[]),
        }
    }

    fn first_rows(
        &self,
        limit: &Limit,
        input: &LogicalPlan,
        order: &[SortExpr],
    ) -> Result<Option<LogicalPlan>> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Ok(None);
        };
        let Some(plan) = self.push(input)? else { return Ok(None) };
        let columns = plan.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
        let order = order
            .iter()
            .map(|sort| Ok(SortExpr { expr: self.inner(sort.expr.clone())?, ..sort.clone() }));
        let order = order.collect::<Result<Vec<_>>>()?;
        let number = row_number().partition_by(self.columns());
        let number = match order.is_empty() {
            true => number.build()?,
            false => number.order_by(order).build()?,
        };
        let place = self.name("place");
        let up_to = |number: usize| lit(u64::try_from(number).unwrap_or(u64::MAX));
        let mut builder = LogicalPlanBuilder::from(plan).window(vec![number.alias(&place)])?;
        let last = fetch.map(|fetch| named(&place).lt_eq(up_to(skip.saturating_add(fetch))));
        let first = (skip > 0).then(|| named(&place).gt(up_to(skip)));
        if let Some(predicate) = conjunction(last.into_iter().chain(first)) {
            builder = builder.filter(predicate)?;
        }
        builder.project(columns)?.build().map(Some)
    }

    fn aggregated(&self, aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
        if aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
            return Ok(None);
        }
        let Some(plan) = self.push(&aggregate.input)? else { return Ok(None) };
        let given = self.inner_all(&aggregate.group_expr)?;
        let width = given.len();
        // A key may be a column of the domain itself; an aggregate has each key once.
        let mut keys: Vec<Expr> = Vec::new();
        for key in given.iter().cloned().chain(self.columns()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let place = |key| keys.iter().position(|known| known == key).expect("it was put there");
        let places = given.iter().map(place).collect::<Vec<_>>();
        let all = keys.len();
        let calls = self.inner_all(&aggregate.aggr_expr)?;
        let results = calls.len();
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), keys, calls)?);
        let places = places.into_iter().chain(all..all + results);
        let node = LogicalPlan::Aggregate(aggregate.clone());
        let plan = self.at_places(plan, places, &node)?;
        if width > 0 { Ok(Some(plan)) } else { self.of_nothing_too(plan, aggregate).map(Some) }
    }

    /// A global aggregate has a row for every row of the domain, also where there is nothing to aggregate.
    fn of_nothing_too(&self, plan: LogicalPlan, aggregate: &Aggregate) -> Result<LogicalPlan> {
        let (plan, others) = self.under_other_names(plan, aggregate.schema.as_ref())?;
        let left = (self.plan.clone(), self.columns());
        let joined = self.rejoin(left, (plan, &others), JoinType::Left, None)?;
        let results = aggregate.schema.columns().into_iter().zip(&aggregate.aggr_expr);
        let values = results.map(|(column, call)| {
            let value = Expr::Column(column);
            if counts(call) { coalesce(vec![value, lit(0_i64)]) } else { value }
        });
        let values = values.collect();
        under_names(joined, values, aggregate.schema.as_ref(), &self.names)
    }

    /// The columns of `schema`, and the domain under other names, which are returned.
    fn under_other_names(
        &self,
        plan: LogicalPlan,
        schema: &datafusion::common::DFSchema,
    ) -> Result<(LogicalPlan, Vec<String>)> {
        let others = self.names.iter().map(|name| format!("{name} too")).collect::<Vec<_>>();
        let columns = schema.columns().into_iter().map(Expr::Column);
        let renamed = self.names.iter().zip(&others).map(|(name, other)| named(name).alias(other));
        let plan = Projection::try_new(columns.chain(renamed).collect(), Arc::new(plan))?;
        Ok((LogicalPlan::Projection(plan), others))
    }

    fn windowed(&self, window: &Window) -> Result<Option<LogicalPlan>> {
        let Some(plan) = self.push(&window.input)? else { return Ok(None) };
        let calls = window.window_expr.iter().map(|call| {
            let call = self.inner(call.clone())?.unalias();
            let Expr::WindowFunction(mut call) = call else { return Ok(None) };
            call.params.partition_by.extend(self.columns());
            Ok(Some(Expr::WindowFunction(call)))
        });
        let Some(calls) = calls.collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
        let (before, added) = (window.input.schema().fields().len(), calls.len());
        let after = plan.schema().fields().len();
        let plan = LogicalPlan::Window(Window::try_new(calls, Arc::new(plan))?);
        let places = (0..before).chain(after..after + added);
        self.at_places(plan, places, &LogicalPlan::Window(window.clone())).map(Some)
    }

    fn united(&self, union: &Union) -> Result<Option<LogicalPlan>> {
        let node = LogicalPlan::Union(union.clone());
        let branches = union.inputs.iter().map(|branch| {
            let Some(plan) = self.push(branch)? else { return Ok(None) };
            self.at_places(plan, 0..branch.schema().fields().len(), &node).map(Arc::new).map(Some)
        });
        let Some(inputs) = branches.collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        self.at_places(plan, 0..union.schema.fields().len(), &node).map(Some)
    }

    fn unnested(&self, unnest: &Unnest) -> Result<Option<LogicalPlan>> {
        let width = unnest.input.schema().fields().len();
        let is_plain = unnest.struct_type_columns.is_empty()
            && unnest.list_type_columns.iter().all(|(_, list)| list.depth == 1)
            && unnest.dependency_indices.iter().copied().eq(0..width);
        let Some(plan) = self.push(&unnest.input)?.filter(|_| is_plain) else { return Ok(None) };
        let columns = unnest.input.schema().columns();
        let lists = unnest.list_type_columns.iter().map(|(place, _)| columns[*place].clone());
        let nulls = unnest.options.preserve_nulls();
        let options = UnnestOptions::new().with_preserve_nulls(nulls);
        let plan = LogicalPlanBuilder::from(plan)
            .unnest_columns_with_options(lists.collect(), options)?
            .build()?;
        self.at_places(plan, 0..width, &LogicalPlan::Unnest(unnest.clone())).map(Some)
    }

    fn joined(&self, join: &Join) -> Result<Option<LogicalPlan>> {
        if join.null_aware {
            return Ok(None);
        }
        let asked = [refers_outside(&join.left)?, refers_outside(&join.right)?];
        let [of_left, of_right] = pushed_sides(join.join_type, asked);
        let side = |plan: &Arc<LogicalPlan>, is_pushed: bool| match is_pushed {
            true => self.push(plan),
            false => Ok(Some(plan.as_ref().clone())),
        };
        let (Some(left), Some(mut right)) =
            (side(&join.left, of_left)?, side(&join.right, of_right)?)
        else {
            return Ok(None);
        };
        let on = join
            .on
            .iter()
            .map(|(one, other)| Ok((self.inner(one.clone())?, self.inner(other.clone())?)));
        let mut filters = Vec::new();
        filters.extend(join.filter.clone().map(|filter| self.inner(filter)).transpose()?);
        let mut columns = self.columns();
        if of_left && of_right {
            let (renamed, others) = self.under_other_names(right, join.right.schema())?;
            right = renamed;
            let agree = self.names.iter().zip(&others);
            filters.extend(agree.map(|(name, other)| {
                binary_expr(named(name), Operator::IsNotDistinctFrom, named(other))
            }));
            columns = both(join.join_type, &self.names, &others);
        }
        let plan = LogicalPlan::Join(Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on.collect::<Result<Vec<_>>>()?,
            conjunction(filters),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            false,
        )?);
        let own = join.schema.columns().into_iter().map(Expr::Column);
        let domain = columns.into_iter().zip(&self.names).map(|(column, name)| column.alias(name));
        let plan = Projection::try_new(own.chain(domain).collect(), Arc::new(plan))?;
        Ok(Some(LogicalPlan::Projection(plan)))
    }
}

/// Into which sides of a join the domain is pushed, given which refer to it.
fn pushed_sides(kind: JoinType, [of_left, of_right]: [bool; 2]) -> [bool; 2] {
    match kind {
        JoinType::Inner if of_left && of_right => [true, true],
        JoinType::Inner => [!of_right, of_right],
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            [true, of_right]
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            [of_left, true]
        }
        JoinType::Full => [true, true],
    }
}

/// The domain of a join whose sides both have it.
fn both(kind: JoinType, left: &[String], right: &[String]) -> Vec<Expr> {
    let pairs = left.iter().zip(right);
    let column = |(left, right): (&String, &String)| match kind {
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            named(right)
        }
        JoinType::Full => coalesce(vec![named(left), named(right)]),
        _ => named(left),
    };
    pairs.map(column).collect()
}

/// Whether an aggregate of nothing is 0 and not NULL.
fn counts(call: &Expr) -> bool {
    match call.clone().unalias() {
        Expr::AggregateFunction(call) => matches!(
            call.func.name(),
            "count" | "approx_distinct" | "approx_count_distinct" | "regr_count"
        ),
        _ => false,
    }
}

/// Whether an expression of the node itself holds a subquery: what that refers to is not looked into.
fn has_subqueries(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.exists(|part| {
            Ok(matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)))
        })?;
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
