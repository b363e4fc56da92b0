//! Scalar subqueries that might have more than one row. PostgreSQL stops with 21000 there; a view goes on with NULL,
//! counted among the expressions that failed.

use std::sync::{Arc, LazyLock};

use arrow::array::{AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, exec_err};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Subquery, Volatility, lit,
};

static ONE_ROW: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OneRow { signature }))
});

/// Every scalar subquery gives at most one row.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expression| expression.transform_up(at_most_one_row))
    });
    rewritten.data()
}

fn at_most_one_row(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = &expression else {
        return Ok(Transformed::no(expression));
    };
    let plan = &subquery.subquery;
    if is_one_row(plan) {
        return Ok(Transformed::no(expression));
    }
    let value = Expr::Column(plan.schema().columns().swap_remove(0));
    let name = plan.schema().field(0).name().clone();
    let counted = LogicalPlanBuilder::from(plan.as_ref().clone())
        .aggregate(
            Vec::<Expr>::new(),
            vec![count(lit(1)).alias("rows"), value_of(value, plan).alias("value")],
        )?
        .build()?;
    let columns = counted.schema().columns();
    let arguments = columns.into_iter().map(Expr::Column).collect();
    let checked = ONE_ROW.call(arguments).alias(name);
    let plan = LogicalPlanBuilder::from(counted).project([checked])?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(plan),
        ..subquery.clone()
    })))
}

/// Any one of the values: the greatest, where there is an order.
fn value_of(value: Expr, plan: &LogicalPlan) -> Expr {
    match segue_flow::is_ordered(&super::physical::held_type(plan.schema().field(0).data_type())) {
        true => datafusion::functions_aggregate::expr_fn::max(value),
        false => first_value(value, Vec::new()),
    }
}

fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
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
            return exec_err!("more than one row returned by a subquery used as an expression");
        }
        let all = UInt32Array::from_iter_values(0..rows.values().len() as u32);
        Ok(ColumnarValue::Array(take(&arrays[1], &all, None)?))
    }
}
