//! GROUP BY and DISTINCT: a projection that computes keys, arguments and filters, then the aggregate operator.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use segue_flow::{AggregateFunction, AggregateSpec, Node, OperatorSpec, is_groupable, is_ordered};
use segue_types::UserError;

use super::super::errors::type_name;
use super::super::physical::{cast_to, column, held_type, physical};
use super::super::refuse::refusal;
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
        held.iter().try_for_each(check_key)?;
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
        let input = self.node(&aggregate.input)?;
        let mut arguments = Arguments { schema: aggregate.input.schema(), expressions: Vec::new() };
        let mut types = Vec::new();
        let mut keys = Vec::new();
        for key in &aggregate.group_expr {
            if matches!(key, Expr::GroupingSet(_)) {
                let hint = "Write one SELECT with GROUP BY for each set, joined by UNION ALL.";
                return Err(refusal("GROUPING SETS, CUBE or ROLLUP", hint));
            }
            let (place, held) = arguments.place(key)?;
            check_key(&held)?;
            keys.push(place);
            types.push(held);
        }
        let mut specs = Vec::new();
        for expression in &aggregate.aggr_expr {
            let (spec, result) = aggregate_spec(expression, &mut arguments)?;
            specs.push(spec);
            types.push(result);
        }
        let node = self.arguments(input.node, arguments)?;
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

fn check_key(data_type: &DataType) -> Result<(), UserError> {
    if is_groupable(data_type) {
        return Ok(());
    }
    let what = format!("GROUP BY or DISTINCT over type {}", type_name(data_type));
    Err(refusal(&what, "Group by its members, or by its text."))
}

fn aggregate_spec(
    expression: &Expr,
    arguments: &mut Arguments<'_>,
) -> Result<(AggregateSpec, DataType), UserError> {
    let expression = expression.clone().unalias();
    let Expr::AggregateFunction(call) = &expression else {
        return Err(UserError::internal(format!("an aggregate that is none: {expression}")));
    };
    let name = call.func.name();
    let hint = "Use a plain view: its aggregates are computed when it is read.";
    let functions = [
        AggregateFunction::Count,
        AggregateFunction::Sum,
        AggregateFunction::Avg,
        AggregateFunction::Min,
        AggregateFunction::Max,
    ];
    let Some(function) = functions.into_iter().find(|function| function.name() == name) else {
        return Err(refusal(&format!("aggregate {name}()"), hint));
    };
    if call.params.distinct && !matches!(function, AggregateFunction::Min | AggregateFunction::Max)
    {
        return Err(refusal(
            &format!("{name}(DISTINCT …)"),
            "Put SELECT DISTINCT into a subquery in FROM.",
        ));
    }
    if !call.params.order_by.is_empty() {
        return Err(refusal(
            "ORDER BY inside an aggregate",
            "These aggregates do not depend on the order.",
        ));
    }
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
        _ => {
            return Err(refusal(
                &format!("{name}() of several columns"),
                "Count a row of them in a subquery.",
            ));
        }
    };
    let argument_type = argument.as_ref().map_or(DataType::Null, |(_, held)| held.clone());
    let extremum = matches!(function, AggregateFunction::Min | AggregateFunction::Max);
    if extremum && !is_ordered(&argument_type) {
        return Err(refusal(&format!("{name}({})", type_name(&argument_type)), "Cast it to text."));
    }
    let result = function.result_type(&argument_type);
    let result =
        result.ok_or_else(|| refusal(&format!("{name}({})", type_name(&argument_type)), hint))?;
    let argument = argument.map(|(place, _)| place);
    Ok((AggregateSpec { function, argument, filter }, result))
}
