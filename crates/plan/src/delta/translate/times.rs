//! Watermarks through a plan: which columns of a node have one, and what is made of that.
//!
//! A watermark is delivered by a node of its own. It goes with its column through everything that lets the rows pass
//! as they come, with an expression that keeps the order of times, through a union or a join by it as the least
//! of both sides, and through GROUP BY or PARTITION BY with the column. What holds rows by such a column takes
//! none whose time was passed, and forgets those that it holds.
//! Here, and not where nodes of a query are translated: a kind of operator decides it, whatever it came from.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use segue_flow::{
    ColumnWatermark, End, JoinKind, JoinSpec, Node, OperatorSpec, TopNSpec, mark_schema,
};
use segue_sql::Emission;
use segue_types::UserError;

use super::ends::{self, Ends};
use super::{Output, Translator};

/// Columns that have a watermark, and the nodes that deliver it.
pub(super) type Times = Vec<ColumnWatermark>;

impl Translator<'_> {
    /// Adds an operator.
    pub(super) fn push(&mut self, operator: OperatorSpec) -> Node {
        let operator = self.in_time(operator);
        let node = self.add(operator);
        let times = self.passed_on(node);
        // The number may have been that of an operator that was taken back.
        self.times.remove(&node);
        if !times.is_empty() {
            self.times.insert(node, times);
        }
        node
    }

    pub(super) fn add(&mut self, operator: OperatorSpec) -> Node {
        self.spec.operators.push(operator);
        Node::Operator(self.spec.operators.len() - 1)
    }

    fn times(&self, node: Node) -> &[ColumnWatermark] {
        self.times.get(&node).map_or(&[], Vec::as_slice)
    }

    pub(super) fn time_of(&self, node: Node, column: usize) -> Option<Node> {
        self.times(node).iter().find(|time| time.column == column).map(|time| time.node)
    }

    /// The operator as it is where times end.
    fn in_time(&mut self, operator: OperatorSpec) -> OperatorSpec {
        match operator {
            OperatorSpec::Aggregate { input, keys, aggregates, schema } => {
                let window = keys.iter().position(|key| self.time_of(input, *key).is_some());
                match window {
                    None => OperatorSpec::Aggregate { input, keys, aggregates, schema },
                    Some(window) => OperatorSpec::WindowedAggregate {
                        input,
                        watermark: self.time_of(input, keys[window]).expect("just found"),
                        window,
                        keys,
                        aggregates,
                        schema,
                    },
                }
            }
            OperatorSpec::TopN { input, top, schema } => {
                let Some(time) = self.first_time(input, &top.partition) else {
                    let first = self.first_rows_by_time(input, &top);
                    let time = first.and_then(|column| self.first_time(input, &[column]));
                    let input = time.map_or(input, |time| self.without_late(input, time));
                    return OperatorSpec::TopN { input, top, schema };
                };
                let input = self.without_late(input, time);
                forgetting(OperatorSpec::TopN { input, top, schema }, time.node, vec![at(time)])
            }
            OperatorSpec::Recompute { mut inputs, program, key, schema, what } => {
                let time = match inputs.as_mut_slice() {
                    [input] => {
                        let time = self.first_time(input.node, &input.key);
                        if let Some(time) = time {
                            input.node = self.without_late(input.node, time);
                        }
                        time
                    }
                    _ => None,
                };
                let recompute = OperatorSpec::Recompute { inputs, program, key, schema, what };
                match time {
                    Some(time) => forgetting(recompute, time.node, vec![at(time)]),
                    None => recompute,
                }
            }
            OperatorSpec::Join { left, right, join, schema } => {
                self.join_in_time(left, right, join, schema)
            }
            other => other,
        }
    }

    /// The first of these columns that has a watermark.
    fn first_time(&self, input: Node, columns: &[usize]) -> Option<ColumnWatermark> {
        let timed = |column: &usize| {
            Some(ColumnWatermark { column: *column, node: self.time_of(input, *column)? })
        };
        columns.iter().find_map(timed)
    }

    /// The time that a top-n is ordered by, where rows are shown once and for all: those that the watermark has passed
    /// stay among the first, if none comes that is late.
    fn first_rows_by_time(&self, input: Node, top: &TopNSpec) -> Option<usize> {
        let first = top.order.first()?;
        let is_upwards = !first.options.descending && !first.options.nulls_first;
        let is_closed = self.emission == Emission::OnWindowClose && is_upwards;
        (is_closed && self.time_of(input, first.column).is_some()).then_some(first.column)
    }

    /// The node without the rows that the watermark has passed.
    fn without_late(&mut self, input: Node, time: ColumnWatermark) -> Node {
        let ColumnWatermark { column, node: watermark } = time;
        self.push(OperatorSpec::DropLate { input, watermark, column })
    }

    /// A join by a time, or with a condition on two of them, forgets rows that meet nothing any more.
    fn join_in_time(
        &mut self,
        left: Node,
        right: Node,
        join: JoinSpec,
        schema: SchemaRef,
    ) -> OperatorSpec {
        let of_left = self.times(left).to_vec();
        let of_right = self.times(right).to_vec();
        let width = self.spec.schema_of(left).fields().len();
        let Some(Ends { columns, ends }) = ends::of(&join, width, &of_left, &of_right) else {
            return OperatorSpec::Join { left, right, join, schema };
        };
        let node_of = |times: &[ColumnWatermark], column: usize| {
            let time = times.iter().find(|time| time.column == column);
            time.expect("it was found among them").node
        };
        let watermarks = vec![node_of(&of_left, columns.0), node_of(&of_right, columns.1)];
        let node = self.least(watermarks);
        let left = self.without_late(left, ColumnWatermark { column: columns.0, node });
        let right = self.without_late(right, ColumnWatermark { column: columns.1, node });
        forgetting(OperatorSpec::Join { left, right, join, schema }, node, ends)
    }

    /// The watermarks of a node that was just added.
    fn passed_on(&mut self, node: Node) -> Times {
        let Node::Operator(place) = node else { unreachable!("inputs are not added") };
        match self.spec.operators[place].lasting().clone() {
            OperatorSpec::Filter { input, .. }
            | OperatorSpec::Settled { input, .. }
            | OperatorSpec::DropLate { input, .. }
            | OperatorSpec::Withhold { input, .. }
            | OperatorSpec::Lookup { left: input, .. } => self.times(input).to_vec(),
            OperatorSpec::Unnest { input, lists, .. } => {
                self.kept(input, |column| (!lists.contains(&column)).then_some(column))
            }
            OperatorSpec::TopN { input, top, .. } => {
                let order = self.first_rows_by_time(input, &top);
                self.kept(input, |column| {
                    let is_kept = top.partition.contains(&column) || order == Some(column);
                    is_kept.then_some(column)
                })
            }
            OperatorSpec::WindowedAggregate { input, keys, .. } => {
                self.kept(input, |column| keys.iter().position(|key| *key == column))
            }
            OperatorSpec::Recompute { inputs, key, .. } => match inputs.as_slice() {
                [input] => {
                    let at = |column| input.key.iter().position(|key| *key == column);
                    self.kept(input.node, |column| Some(key[at(column)?]))
                }
                _ => Vec::new(),
            },
            OperatorSpec::Project { input, expressions, .. } => self.projected(input, &expressions),
            OperatorSpec::UnionAll { inputs, .. } => self.united(&inputs),
            OperatorSpec::Join { left, right, join, .. } => self.joined(left, right, &join),
            _ => Vec::new(),
        }
    }

    /// The watermarks of `input` at the places where its columns are now.
    fn kept(&self, input: Node, place: impl Fn(usize) -> Option<usize>) -> Times {
        let times = self.times(input).iter();
        let kept = times.filter_map(|time| Some((place(time.column)?, time.node)));
        kept.map(|(column, node)| ColumnWatermark { column, node }).collect()
    }

    fn projected(&mut self, input: Node, expressions: &[Arc<dyn PhysicalExpr>]) -> Times {
        let mut times = Times::new();
        for (column, expression) in expressions.iter().enumerate() {
            let Some(of) = ordered(expression) else { continue };
            let Some(watermark) = self.time_of(input, of) else { continue };
            let node = match expression.downcast_ref::<Column>() {
                Some(_) => Some(watermark),
                None => self.moved(watermark, expression),
            };
            times.extend(node.map(|node| ColumnWatermark { column, node }));
        }
        times
    }

    /// The watermark of an expression over one column that has `watermark`.
    fn moved(&mut self, watermark: Node, expression: &Arc<dyn PhysicalExpr>) -> Option<Node> {
        let from = self.spec.schema_of(watermark);
        let over_mark = Arc::clone(expression).transform_up(|part| {
            Ok(match part.downcast_ref::<Column>() {
                Some(_) => {
                    let time: Arc<dyn PhysicalExpr> = Arc::new(Column::new("time", 0));
                    Transformed::yes(time)
                }
                None => Transformed::no(part),
            })
        });
        let over_mark = over_mark.data().ok()?;
        let data_type = over_mark.data_type(&from).ok()?;
        if !matches!(data_type, DataType::Timestamp(..)) {
            return None;
        }
        let ended: Arc<dyn PhysicalExpr> = Arc::new(Column::new("ended", 1));
        Some(self.add(OperatorSpec::Project {
            input: watermark,
            expressions: vec![over_mark, ended],
            schema: mark_schema(&data_type),
        }))
    }

    fn united(&mut self, inputs: &[Node]) -> Times {
        let Some((first, others)) = inputs.split_first() else { return Times::new() };
        let mut times = Times::new();
        for ColumnWatermark { column, node } in self.times(*first).to_vec() {
            let others = others.iter().map(|input| self.time_of(*input, column));
            if let Some(others) = others.collect::<Option<Vec<_>>>() {
                let all = std::iter::once(node).chain(others).collect();
                times.push(ColumnWatermark { column, node: self.least(all) });
            }
        }
        times
    }

    /// Rows that meet by a time come until both sides have passed it.
    fn joined(&mut self, left: Node, right: Node, join: &JoinSpec) -> Times {
        let width = self.spec.schema_of(left).fields().len();
        let mut times = Times::new();
        for (of_left, of_right) in join.left_key.iter().zip(&join.right_key) {
            let both = (self.time_of(left, *of_left), self.time_of(right, *of_right));
            let (Some(one), Some(other)) = both else { continue };
            let node = self.least(vec![one, other]);
            times.push(ColumnWatermark { column: *of_left, node });
            if matches!(join.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Full) {
                times.push(ColumnWatermark { column: width + of_right, node });
            }
        }
        times
    }

    fn least(&mut self, mut inputs: Vec<Node>) -> Node {
        inputs.dedup();
        if let [only] = inputs[..] {
            return only;
        }
        let schema = self.spec.schema_of(inputs[0]);
        self.add(OperatorSpec::LeastWatermark { inputs, schema })
    }

    /// Whether all rows of a node have been held back already.
    fn is_closed(&self, node: Node) -> bool {
        let Node::Operator(place) = node else { return false };
        match &self.spec.operators[place] {
            OperatorSpec::Settled { .. } => true,
            operator @ (OperatorSpec::Project { .. }
            | OperatorSpec::Filter { .. }
            | OperatorSpec::Unnest { .. }
            | OperatorSpec::UnionAll { .. }) => {
                let inputs = operator.inputs();
                !inputs.is_empty() && inputs.into_iter().all(|input| self.is_closed(input))
            }
            _ => false,
        }
    }

    /// The result as it is shown: as it changes, or once a row's time was passed.
    pub(super) fn emitted(&mut self, output: Output) -> Result<Output, UserError> {
        if self.emission == Emission::OnChange || self.is_closed(output.node) {
            return Ok(output);
        }
        let Some(ColumnWatermark { column, node: watermark }) =
            self.times(output.node).first().copied()
        else {
            let message = "EMIT ON WINDOW CLOSE needs a column of the result that has a watermark";
            return Err(UserError::unsupported(message).with_hint(
                "Declare WATERMARK FOR it on the source or append-only table, and select it; GROUP BY, PARTITION BY \
                 or join by the column, or by window_start of a TUMBLE or HOP over it, or ORDER BY it in OVER.",
            ));
        };
        let input = output.node;
        let node = self.push(OperatorSpec::Withhold { input, watermark, column });
        Ok(Output { node, key: output.key })
    }
}

fn forgetting(operator: OperatorSpec, watermark: Node, ends: Vec<Option<End>>) -> OperatorSpec {
    OperatorSpec::Forgetting { operator: Box::new(operator), watermark, ends }
}

/// Rows are of no use once their own time was passed.
fn at(time: ColumnWatermark) -> Option<End> {
    Some(End { column: time.column, later_us: 0 })
}

/// The column of which this is a function that never exchanges the order of two times.
fn ordered(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        return Some(column.index());
    }
    if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        let to_time = matches!(cast.cast_type(), DataType::Timestamp(..));
        return to_time.then(|| ordered(cast.expr()))?;
    }
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        let moves = matches!(binary.op(), Operator::Plus | Operator::Minus);
        return (moves && is_literal(binary.right())).then(|| ordered(binary.left()))?;
    }
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let rounds = matches!(call.fun().name(), "date_bin" | "date_trunc");
    match call.args() {
        [step, time, rest @ ..] if rounds && is_literal(step) && rest.iter().all(is_literal) => {
            ordered(time)
        }
        _ => None,
    }
}

fn is_literal(expression: &Arc<dyn PhysicalExpr>) -> bool {
    expression.downcast_ref::<Literal>().is_some()
}
