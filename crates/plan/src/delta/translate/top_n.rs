//! The first rows in an order: LIMIT over a sort, and a bound on row_number().

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Expr, FetchType, Filter, Limit, LogicalPlan, Operator, SkipType, SortExpr, Window,
};
use datafusion::scalar::ScalarValue;
use segue_flow::{OperatorSpec, RowNumbers, SortColumn, TopNSpec};
use segue_types::UserError;

use super::super::leaf::Leaf;
use super::super::physical::{cast_to, column, held_type};
use super::super::refuse::refusal;
use super::recompute::Computed;
use super::{Output, Translator, plain_column, user};

/// What decides which rows are first.
struct Order<'a> {
    partition: &'a [Expr],
    order: &'a [SortExpr],
    skip: usize,
    fetch: Option<usize>,
    numbers: RowNumbers,
}

impl Translator<'_> {
    /// The first rows of an order, or any rows if there is none.
    pub(super) fn limit(&mut self, limit: &Limit) -> Result<Output, UserError> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type().map_err(user)?, limit.get_fetch_type().map_err(user)?)
        else {
            return Err(refusal("a LIMIT that is no number", "Write the number of rows."));
        };
        let (below, order) = match sorted(&limit.input) {
            Some(LogicalPlan::Sort(sort)) => (&*sort.input, sort.expr.as_slice()),
            _ => (&*limit.input, [].as_slice()),
        };
        let order = Order { partition: &[], order, skip, fetch, numbers: RowNumbers::None };
        let output = self.first_rows(below, &order)?;
        let Some(sort) = sorted(&limit.input) else { return Ok(output) };
        // What stands between the limit and the sort is computed of the rows that are left.
        self.given.push(output);
        let leaf = Leaf::new(self.given.len() - 1, below.schema()).map_err(user)?;
        let above = over_leaf(&limit.input, sort, &leaf.into_plan()).map_err(user)?;
        self.node(&above)
    }

    /// A filter that bounds a row number, if `filter` is one.
    pub(super) fn bounded(&mut self, filter: &Filter) -> Option<Result<Output, UserError>> {
        let LogicalPlan::Window(window) = &*filter.input else { return None };
        let (call, number) = row_number(window)?;
        let fetch = split_conjunction(&filter.predicate)
            .into_iter()
            .filter_map(|part| bound(part, window, number))
            .min()?;
        let order = Order {
            partition: &call.params.partition_by,
            order: &call.params.order_by,
            skip: 0,
            fetch: Some(fetch),
            numbers: RowNumbers::Last,
        };
        Some(self.first_rows(&window.input, &order))
    }

    fn first_rows(&mut self, below: &LogicalPlan, order: &Order<'_>) -> Result<Output, UserError> {
        let mut computed = Computed::default();
        let partition = order.partition.iter().filter(|key| !matches!(key, Expr::Literal(..)));
        let partition = partition.map(|key| computed.column(key.clone().unalias()));
        let partition = partition.collect::<Vec<_>>();
        let sorts = order.order.iter().map(|sort| {
            (
                computed.column(sort.expr.clone().unalias()),
                SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first },
            )
        });
        let sorts = sorts.collect::<Vec<_>>();
        let below_output = self.node(below)?;
        let input = self.input_of(below_output.node, below.schema(), &computed.expressions)?;
        let place = |column: &Expr| {
            let place = plain_column(column, input.leaf.schema());
            place.ok_or_else(|| UserError::internal(format!("{column} is no column")))
        };
        let partition = partition.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let sorts = sorts
            .iter()
            .map(|(column, options)| Ok(SortColumn { column: place(column)?, options: *options }));
        let top = TopNSpec {
            partition,
            order: sorts.collect::<Result<Vec<_>, UserError>>()?,
            skip: order.skip,
            fetch: order.fetch,
            numbers: order.numbers,
        };
        let mut fields = self.spec.schema_of(input.node).fields().to_vec();
        let width = fields.len();
        if order.numbers == RowNumbers::Last {
            fields.push(Arc::new(Field::new("row_number", DataType::Int64, true)));
        }
        let schema = Arc::new(Schema::new(fields));
        let node = self.push(OperatorSpec::TopN { input: input.node, top, schema });
        let from = self.spec.schema_of(node);
        let logical = below
            .schema()
            .fields()
            .iter()
            .enumerate()
            .map(|(place, field)| (place, field.name().clone(), field.data_type().clone()));
        let number = (order.numbers == RowNumbers::Last)
            .then(|| (width, "row_number".to_owned(), DataType::UInt64));
        let columns = logical.chain(number).map(|(place, name, logical)| {
            let held = held_type(&logical);
            let expression = cast_to(column(&from, place), &held, &logical);
            (expression, Field::new(name, logical, true))
        });
        let columns = columns.collect();
        Ok(Output { node: self.columns(node, columns), key: below_output.key })
    }
}

/// The sort below a limit, through projections and names.
fn sorted(input: &LogicalPlan) -> Option<&LogicalPlan> {
    match input {
        LogicalPlan::Sort(_) => Some(input),
        LogicalPlan::Projection(projection) => sorted(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => sorted(&alias.input),
        _ => None,
    }
}

/// `plan` with `leaf` in the place of `below`, which is a descendant through nodes of one input.
fn over_leaf(
    plan: &LogicalPlan,
    below: &LogicalPlan,
    leaf: &LogicalPlan,
) -> Result<LogicalPlan, DataFusionError> {
    if std::ptr::eq(plan, below) {
        return Ok(leaf.clone());
    }
    let inputs = plan.inputs();
    let inputs = inputs.into_iter().map(|input| over_leaf(input, below, leaf));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    plan.with_new_exprs(plan.expressions(), inputs)
}

/// The one call of a window, if it is row_number(), and the place of its column.
fn row_number(window: &Window) -> Option<(WindowFunction, usize)> {
    let [call] = window.window_expr.as_slice() else { return None };
    let Expr::WindowFunction(call) = call.clone().unalias() else { return None };
    (call.fun.name() == "row_number").then(|| (*call, window.input.schema().fields().len()))
}

/// The greatest number that passes `part`, if it bounds the column `number` from above.
fn bound(part: &Expr, window: &Window, number: usize) -> Option<usize> {
    let Expr::BinaryExpr(compare) = part else { return None };
    if plain_column(&compare.left, &window.schema) != Some(number) {
        return None;
    }
    let Expr::Literal(value, _) = compare.right.as_ref() else { return None };
    let value = match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(Some(value)) => usize::try_from(value).ok()?,
        _ => return None,
    };
    match compare.op {
        Operator::LtEq | Operator::Eq => Some(value),
        Operator::Lt => Some(value.saturating_sub(1)),
        _ => None,
    }
}
