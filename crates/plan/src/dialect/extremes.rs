//! `min` and `max` of lists in lists, which DataFusion does not compare one by one: the first in order.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::{Expr, ExprSchemable};

/// The aggregate as the first value of an order; `None` for what is no such aggregate.
pub(super) fn of_nested(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::AggregateFunction(aggregate) = expr else { return None };
    let rises = match aggregate.func.name() {
        "min" => true,
        "max" => false,
        _ => return None,
    };
    let [value] = aggregate.params.args.as_slice() else { return None };
    let is_nested = |ty: &DataType| match ty {
        DataType::List(item) => item.data_type().is_nested(),
        _ => false,
    };
    if !value.get_type(schema).is_ok_and(|ty| is_nested(&ty)) {
        return None;
    }
    let mut params = aggregate.params.clone();
    params.distinct = false;
    params.order_by = vec![Sort::new(value.clone(), rises, false)];
    Some(Expr::AggregateFunction(AggregateFunction { func: first_value_udaf(), params }))
}
