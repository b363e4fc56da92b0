//! GROUP BY and DISTINCT: a projection that computes keys, arguments and filters, then the aggregate operator.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use segue_flow::{AggregateFunction, AggregateSpec, Node, OperatorSpec, is_groupable, is_ordered};
use segue_types::UserError;

use super::super::physical::{cast_to, column, held_type, physical};
use super::{Output, Translator, user};

/// The columns that an aggregate reads, each computed once.
struct Arguments<'a> {
    schema: &'a DFSchema,
    expressions: Vec<(Expr, Arc<dyn PhysicalExpr>, DataType)>,
}

impl Arguments<'_> {
    /// The place and held type of an expression's column.
    fn place(&mut self, expression: &Expr) -> Result<(usize, DataType), UserError> {
        let expression = expression.clone().unalias();
        if let Some(place) = self.expressions.iter().position(|(known, ..)| *known == expression) {
            return Ok((place, self.expressions[place].2.clone()));
        }
        let planned = physical(&expression, self.schema).map_err(user)?;
        let data_type = planned.data_type(self.schema.as_arrow()).map_err(user)?;
        let held = held_type(&data_type);
        let planned = cast_to(planned, &data_type, &held);
        self.expressions.push((expression, planned, held.clone()));
        Ok((self.expressions.len() - 1, held))
    }
}

impl Translator<'_> {
    pub(super) fn distinct(&mut self, input: &LogicalPlan) -> Result<Output, UserError> {
        let output = self.node(input)?;
        let from = self.spec.schema_of(output.node);
        let logical =
            from.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        let held = logical.iter().map(held_type).collect::<Vec<_>>();
        if !held.iter().all(is_groupable) {
            let all = input.schema().columns().into_iter().map(Expr::Column).collect();
            let again = Aggregate::try_new(Arc::new(input.clone()), all, Vec::new());
            return self.aggregate_again(&again.map_err(user)?, output.node);
        }
        let node = self.cast(output.node, &held);
        let keys = (0..held.len()).collect::<Vec<_>>();
        let schema = self.spec.schema_of(node);
        let aggregate = OperatorSpec::Aggregate {
            input: node,
            keys: keys.clone(),
            aggregates: Vec::new(),
            schema,
        };
        let node = self.push(aggregate);
        Ok(Output { node: self.cast(node, &logical), key: keys })
    }

    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Output, UserError> {
        if let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() {
            return self.grouping_sets(aggregate, sets);
        }
        let input = self.node(&aggregate.input)?;
        self.aggregate_over(aggregate, input.node)
    }

    /// An aggregate without grouping sets over the node that its input became.
    pub(super) fn aggregate_over(
        &mut self,
        aggregate: &Aggregate,
        input: Node,
    ) -> Result<Output, UserError> {
        if aggregate.aggr_expr.iter().any(is_distinct) {
            return self.distinct_aggregates(aggregate, input);
        }
        let mut arguments = Arguments { schema: aggregate.input.schema(), expressions: Vec::new() };
        let mut types = Vec::new();
        let mut keys = Vec::new();
        for key in &aggregate.group_expr {
            let (place, held) = arguments.place(key)?;
            keys.push(place);
            types.push(held);
        }
        let maintained =
            aggregate.aggr_expr.iter().all(|call| is_maintained(call, aggregate.input.schema()));
        if !maintained || !types.iter().all(is_groupable) {
            return self.aggregate_again(aggregate, input);
        }
        let mut specs = Vec::new();
        for expression in &aggregate.aggr_expr {
            let (spec, result) = aggregate_spec(expression, &mut arguments)?;
            specs.push(spec);
            types.push(result);
        }
        let node = self.arguments(input, arguments)?;
        let names = aggregate.schema.fields().iter().zip(&types);
        let fields = names.map(|(field, held)| Field::new(field.name(), held.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let key = (0..keys.len()).collect();
        let node =
            self.push(OperatorSpec::Aggregate { input: node, keys, aggregates: specs, schema });
        let logical = aggregate.schema.fields().iter().map(|field| field.data_type().clone());
        let logical = logical.collect::<Vec<_>>();
        Ok(Output { node: self.cast(node, &logical), key })
    }

    /// The node that delivers the arguments' columns.
    fn arguments(&mut self, input: Node, arguments: Arguments<'_>) -> Result<Node, UserError> {
        let from = self.spec.schema_of(input);
        let named = arguments.expressions.iter().map(|(expression, _, held)| {
            Field::new(expression.schema_name().to_string(), held.clone(), true)
        });
        let named = Arc::new(Schema::new(named.collect::<Vec<_>>()));
        let mut planned =
            arguments.expressions.into_iter().map(|(_, planned, _)| planned).collect::<Vec<_>>();
        if planned.is_empty() && from.fields().is_empty() {
            return Ok(input);
        }
        if planned.is_empty() {
            // COUNT(*) alone: one column carries the rows.
            planned.push(column(&from, 0));
            let named = Arc::new(from.project(&[0]).expect("it has a column"));
            return self.project(input, planned, &named);
        }
        self.project(input, planned, &named)
    }
}

/// The engine's own aggregate of this name.
fn function_of(name: &str) -> Option<AggregateFunction> {
    let functions = [
        AggregateFunction::Count,
        AggregateFunction::Sum,
        AggregateFunction::Avg,
        AggregateFunction::Min,
        AggregateFunction::Max,
    ];
    functions.into_iter().find(|function| function.name() == name)
}

/// Whether equal arguments count once, and that makes a difference.
pub(super) fn is_distinct(expression: &Expr) -> bool {
    let Expr::AggregateFunction(call) = expression.clone().unalias() else { return false };
    let function = function_of(call.func.name());
    call.params.distinct
        && call.params.args.len() == 1
        && function.is_some_and(|function| !function.is_extremum())
}

/// Whether the engine has accumulators for it.
fn is_maintained(expression: &Expr, schema: &DFSchema) -> bool {
    let Expr::AggregateFunction(call) = expression.clone().unalias() else { return false };
    let Some(function) = function_of(call.func.name()) else { return false };
    let argument = match call.params.args.as_slice() {
        [] => None,
        [argument] => Some(argument),
        _ => return false,
    };
    let Some(argument) = argument else { return true };
    let Ok(data_type) = argument.get_type(schema) else { return false };
    let held = held_type(&data_type);
    (!function.is_extremum() || is_ordered(&held)) && function.result_type(&held).is_some()
}

/// What the engine accumulates for `expression`, which is one that it maintains, and the type of the result.
fn aggregate_spec(
    expression: &Expr,
    arguments: &mut Arguments<'_>,
) -> Result<(AggregateSpec, DataType), UserError> {
    let expression = expression.clone().unalias();
    let Expr::AggregateFunction(call) = &expression else {
        return Err(UserError::internal(format!("an aggregate that is none: {expression}")));
    };
    let name = call.func.name();
    let unknown = || UserError::internal(format!("no accumulator for {name}()"));
    let function = function_of(name).ok_or_else(unknown)?;
    let filter = match &call.params.filter {
        Some(filter) => Some(arguments.place(filter)?.0),
        None => None,
    };
    let argument = match call.params.args.as_slice() {
        [] => None,
        [Expr::Literal(value, _)] if function == AggregateFunction::Count && !value.is_null() => {
            None
        }
        [argument] => Some(arguments.place(argument)?),
        _ => return Err(unknown()),
    };
    let argument_type = argument.as_ref().map_or(DataType::Null, |(_, held)| held.clone());
    let result = function.result_type(&argument_type).ok_or_else(unknown)?;
    let argument = argument.map(|(place, _)| place);
    Ok((AggregateSpec { function, argument, filter }, result))
}
