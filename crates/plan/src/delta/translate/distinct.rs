//! Aggregates over distinct values: those of one argument and filter are an aggregate over the distinct tuples of key,
//! argument and filter; several such, and the aggregates over all rows, are joined by their keys.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use segue_flow::{JoinKind, JoinSpec, Node, NullKeys};
use segue_types::UserError;

use super::super::physical::{cast_to, column, held_type};
use super::aggregate::is_distinct;
use super::join::Side;
use super::{Output, Translator, user};

/// Calls that can be computed by one aggregate.
struct Class {
    /// Argument and filter; `None` for calls over all rows.
    distinct: Option<(Expr, Option<Expr>)>,
    /// Their places among all calls.
    calls: Vec<usize>,
}

impl Translator<'_> {
    pub(super) fn distinct_aggregates(
        &mut self,
        aggregate: &Aggregate,
        input: Node,
    ) -> Result<Output, UserError> {
        self.shared.push(input);
        let keys = aggregate.group_expr.len();
        let mut joined: Option<Side> = None;
        // By call: where its result is among the joined columns.
        let mut results = vec![0; aggregate.aggr_expr.len()];
        for class in classes(&aggregate.aggr_expr) {
            let node = self.class(aggregate, input, &class)?;
            let side = self.held_side(node, keys);
            let before = joined.as_ref().map_or(0, Side::width);
            for (place, call) in class.calls.iter().enumerate() {
                results[*call] = before + keys + place;
            }
            joined = Some(match joined {
                None => side,
                Some(left) => self.join_by_key(left, side, keys),
            });
        }
        let joined = joined.expect("an aggregate over distinct values has a call");
        let from = self.spec.schema_of(joined.node);
        let places = (0..keys).chain(results).zip(aggregate.schema.fields());
        let columns = places.map(|(place, field)| {
            let held = from.field(place).data_type();
            let expression = cast_to(column(&from, place), held, field.data_type());
            (expression, Field::new(field.name(), field.data_type().clone(), true))
        });
        let columns = columns.collect();
        Ok(Output { node: self.columns(joined.node, columns), key: (0..keys).collect() })
    }

    /// Keys, then the results of the calls of one class.
    fn class(
        &mut self,
        aggregate: &Aggregate,
        input: Node,
        class: &Class,
    ) -> Result<Node, UserError> {
        let calls = class.calls.iter().map(|call| aggregate.aggr_expr[*call].clone());
        let keys = aggregate.group_expr.clone();
        let Some((argument, filter)) = &class.distinct else {
            let all = Aggregate::try_new(Arc::clone(&aggregate.input), keys, calls.collect());
            return Ok(self.aggregate_over(&all.map_err(user)?, input)?.node);
        };
        let mut tuple = keys.clone();
        tuple.push(argument.clone().alias("distinct argument"));
        tuple.extend(filter.clone().map(|filter| filter.alias("distinct filter")));
        let tuples = Aggregate::try_new(Arc::clone(&aggregate.input), tuple, Vec::new());
        let tuples = tuples.map_err(user)?;
        let node = self.aggregate_over(&tuples, input)?.node;
        let columns = tuples.schema.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
        let over_tuples = calls.map(|call| {
            let Expr::AggregateFunction(mut call) = call.unalias() else {
                unreachable!("a class is made of aggregates")
            };
            call.params.distinct = false;
            call.params.args = vec![columns[keys.len()].clone()];
            call.params.filter = filter.as_ref().map(|_| Box::new(columns[keys.len() + 1].clone()));
            Expr::AggregateFunction(call)
        });
        let over_tuples = over_tuples.collect();
        let keys = columns[..keys.len()].to_vec();
        let outer = Aggregate::try_new(Arc::new(LogicalPlan::Aggregate(tuples)), keys, over_tuples);
        Ok(self.aggregate_over(&outer.map_err(user)?, node)?.node)
    }

    /// All columns in held types, the first of them the key.
    fn held_side(&mut self, node: Node, keys: usize) -> Side {
        let from = self.spec.schema_of(node);
        let held = from.fields().iter().map(|field| held_type(field.data_type()));
        let held = held.collect::<Vec<_>>();
        let node = self.cast(node, &held);
        let keys = (0..keys).collect::<Vec<_>>();
        Side { node, logical: held, key: keys.clone(), unique: keys }
    }

    fn join_by_key(&mut self, left: Side, right: Side, keys: usize) -> Side {
        let key = (0..keys).collect::<Vec<_>>();
        let join = JoinSpec {
            kind: JoinKind::Inner,
            left_key: key.clone(),
            right_key: key.clone(),
            null_keys: NullKeys::MeetNull,
            residual: None,
        };
        let node = self.push_join(&left, &right, join);
        let logical = left.logical.into_iter().chain(right.logical).collect();
        Side { node, logical, key: key.clone(), unique: key }
    }
}

/// The calls by what they can share.
fn classes(calls: &[Expr]) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    for (place, expression) in calls.iter().enumerate() {
        let distinct = match expression.clone().unalias() {
            Expr::AggregateFunction(call) if is_distinct(expression) => {
                let filter = call.params.filter.map(|filter| *filter);
                Some((call.params.args[0].clone(), filter))
            }
            _ => None,
        };
        match classes.iter_mut().find(|class| class.distinct == distinct) {
            Some(class) => class.calls.push(place),
            None => classes.push(Class { distinct, calls: vec![place] }),
        }
    }
    classes
}
