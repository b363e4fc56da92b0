//! Scalar subqueries as joins, where they may have more than one row. PostgreSQL stops with 21000 there; a view goes on
//! with NULL, counted among the expressions that failed.
//!
//! It fails for the rows of the query around that need the value, and for no others.

use std::sync::{Arc, LazyLock};

use arrow::array::{AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, JoinType, Result};
use datafusion::functions_aggregate::expr_fn::{count, first_value, max};
use datafusion::logical_expr::{
    ColumnarValue, Expr, FetchType, LogicalPlan, LogicalPlanBuilder, Projection,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use segue_flow::SeveralRows;

use super::domain::Domain;
use super::named;

static ONE_ROW: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OneRow { signature }))
});

/// `outer` with further columns, and the value of the subquery over them; `None` where it cannot be.
pub(super) fn join(
    outer: LogicalPlan,
    subquery: &LogicalPlan,
) -> Result<Option<(LogicalPlan, Expr)>> {
    match Domain::of(subquery, &outer)? {
        Some(domain) => correlated(outer, subquery, &domain),
        None if super::shape::refers_outside(subquery)? => Ok(None),
        None => alone(outer, subquery).map(Some),
    }
}

fn correlated(
    outer: LogicalPlan,
    subquery: &LogicalPlan,
    domain: &Domain,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let Some(pushed) = domain.push(subquery)? else { return Ok(None) };
    let value = Expr::Column(subquery.schema().columns().swap_remove(0));
    let by = domain.names.iter().map(|name| named(name)).collect::<Vec<_>>();
    let (plan, columns) = values(pushed, subquery, value, by, |what| domain.name(what))?;
    let kept = outer.schema().columns().into_iter().map(Expr::Column);
    let kept = kept.chain(columns.iter().map(|name| named(name))).collect::<Vec<_>>();
    let left = (outer, domain.outer_columns());
    let joined = domain.rejoin(left, (plan, &domain.names), JoinType::Left, None)?;
    let joined = LogicalPlan::Projection(Projection::try_new(kept, Arc::new(joined))?);
    Ok(Some((joined, value_of(&columns))))
}

/// A subquery that refers to nothing around it.
fn alone(outer: LogicalPlan, subquery: &LogicalPlan) -> Result<(LogicalPlan, Expr)> {
    let number = super::domain::fresh_number(&[&outer, subquery])?;
    let value = Expr::Column(subquery.schema().columns().swap_remove(0));
    let name = |what: &str| format!("domain {number} {what}");
    let (plan, columns) = values(subquery.clone(), subquery, value, Vec::new(), name)?;
    let joined = LogicalPlanBuilder::from(outer).join_on(plan, JoinType::Left, [lit(true)])?;
    Ok((joined.build()?, value_of(&columns)))
}

/// The value for each value of `by`, and how many there are if there may be more than one; and the names of both.
fn values(
    rows: LogicalPlan,
    subquery: &LogicalPlan,
    value: Expr,
    by: Vec<Expr>,
    name: impl Fn(&str) -> String,
) -> Result<(LogicalPlan, Vec<String>)> {
    let value_name = name("value");
    let builder = LogicalPlanBuilder::from(rows);
    if is_one_row(subquery) {
        let columns = by.into_iter().chain([value.alias(&value_name)]);
        return Ok((builder.project(columns)?.build()?, vec![value_name]));
    }
    let rows_name = name("rows");
    let calls = [count(lit(1_i64)).alias(&rows_name), any_of(value, subquery).alias(&value_name)];
    Ok((builder.aggregate(by, calls)?.build()?, vec![rows_name, value_name]))
}

fn value_of(columns: &[String]) -> Expr {
    match columns {
        [value] => named(value),
        _ => ONE_ROW.call(columns.iter().map(|name| named(name)).collect()),
    }
}

/// Any one of the values: the greatest, where there is an order.
fn any_of(value: Expr, plan: &LogicalPlan) -> Expr {
    let held = crate::delta::held_type(plan.schema().field(0).data_type());
    match segue_flow::is_ordered(&held) {
        true => max(value),
        false => first_value(value, Vec::new()),
    }
}

/// Whether a plan has at most one row, whatever it reads.
pub(crate) fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Subquery(subquery) => is_one_row(&subquery.subquery),
        LogicalPlan::Filter(filter) => is_one_row(&filter.input),
        LogicalPlan::Sort(sort) => is_one_row(&sort.input),
        LogicalPlan::Limit(limit) => {
            matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1))))
        }
        LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}

/// `one_row(rows, value)`: the value, an error where there are several rows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OneRow {
    signature: Signature,
}

impl ScalarUDFImpl for OneRow {
    fn name(&self) -> &str {
        "one_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[1].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let rows = arrays[0].as_primitive::<Int64Type>();
        if rows.iter().flatten().any(|rows| rows > 1) {
            return Err(DataFusionError::External(Box::new(SeveralRows)));
        }
        let all = UInt32Array::from_iter_values(0..rows.values().len() as u32);
        Ok(ColumnarValue::Array(take(&arrays[1], &all, None)?))
    }
}
