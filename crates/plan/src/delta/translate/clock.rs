//! Comparisons with now(): each is a time from which, or until which, a row is shown.
//!
//! | condition | a row is shown |
//! |---|---|
//! | `at > now() + d` | until `at - d` |
//! | `at >= now() + d` | until `at - d`, and at that very moment |
//! | `at < now() + d` | after `at - d` |
//! | `at <= now() + d` | from `at - d` on |
//!
//! Times are whole microseconds, so "after" is "from one later on".

use std::sync::Arc;

use arrow::array::types::IntervalMonthDayNano;
use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Filter, Operator, lit};
use datafusion::scalar::ScalarValue;
use segue_flow::{InputKind, InputSpec, Node, OperatorSpec, Shown, mark_schema};
use segue_types::UserError;

use super::super::MarkInput;
use super::super::clock::{is, is_in, refused};
use super::super::physical::{column, physical};
use super::super::ticks::TickSource;
use super::{Output, Translator, user};

const DAY_US: i64 = 86_400_000_000;

/// A time as an expression, and what it means for a row.
struct Bound {
    time: Expr,
    shown: Shown,
}

impl Translator<'_> {
    /// The conditions of a filter over `input`, those that the clock decides last.
    pub(super) fn conditions(
        &mut self,
        filter: &Filter,
        mut input: Node,
    ) -> Result<Node, UserError> {
        let schema = filter.input.schema();
        if !is_in(&filter.predicate) {
            let predicate = physical(&filter.predicate, schema).map_err(user)?;
            return Ok(self.push(OperatorSpec::Filter { input, predicate }));
        }
        let parts = split_conjunction(&filter.predicate);
        let (timed, plain): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| is_in(part));
        if let Some(plain) = conjunction(plain.into_iter().cloned()) {
            let predicate = physical(&plain, schema).map_err(user)?;
            input = self.push(OperatorSpec::Filter { input, predicate });
        }
        for part in timed {
            for bound in bounds(part, schema).ok_or_else(refused)? {
                input = self.shown(input, &bound, schema)?;
            }
        }
        Ok(input)
    }

    fn shown(&mut self, input: Node, bound: &Bound, schema: &DFSchema) -> Result<Node, UserError> {
        let from = self.spec.schema_of(input);
        let time = physical(&bound.time, schema).map_err(user)?;
        let data_type = time.data_type(&from).map_err(user)?;
        let width = from.fields().len();
        let kept = (0..width).map(|place| (column(&from, place), from.field(place).clone()));
        let kept = kept.collect::<Vec<_>>();
        let mut columns = kept.clone();
        let name = match bound.shown {
            Shown::From => "shown from",
            Shown::Until => "shown until",
        };
        columns.push((time, Field::new(name, data_type, true)));
        let input = self.columns(input, columns);
        let clock = self.clock();
        let operator = OperatorSpec::Temporal { input, clock, column: width, shown: bound.shown };
        let node = self.push(operator);
        Ok(self.columns(node, kept))
    }

    /// `generate_series(start, now(), step)`
    pub(super) fn ticks(&mut self, source: &TickSource) -> Output {
        let clock = self.clock();
        let TickSource { schema, start_us, step_us } = source;
        let (schema, start_us, step_us) = (Arc::clone(schema), *start_us, *step_us);
        let node = self.push(OperatorSpec::Ticks { clock, start_us, step_us, schema });
        Output { node, key: Vec::new() }
    }

    /// The node that delivers the time of the step.
    fn clock(&mut self) -> Node {
        if let Some(clock) = self.clock {
            return clock;
        }
        let schema = mark_schema(&DataType::Timestamp(TimeUnit::Microsecond, None));
        let input = InputSpec { schema: Arc::clone(&schema), kind: InputKind::AppendOnly };
        self.spec.inputs.push(input);
        self.inputs.mark(MarkInput::Clock);
        let input = Node::Input(self.spec.inputs.len() - 1);
        let clock = self.push(OperatorSpec::Watermark { input, schema });
        self.clock = Some(clock);
        clock
    }
}

/// What a condition with the clock in it says, if it is such a comparison.
fn bounds(condition: &Expr, schema: &DFSchema) -> Option<Vec<Bound>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let bound = match (is_in(left), is_in(right)) {
                (false, true) => bound(left, *op, right, schema),
                (true, false) => bound(right, op.swap()?, left, schema),
                _ => None,
            };
            bound.map(|bound| vec![bound])
        }
        Expr::Between(Between { expr, negated: false, low, high }) if !is_in(expr) => {
            let sides = [(low, Operator::GtEq), (high, Operator::LtEq)];
            if !sides.iter().all(|(side, _)| is_in(side)) {
                return None;
            }
            let bounds = sides.iter().map(|(side, op)| bound(expr, *op, side, schema));
            bounds.collect()
        }
        _ => None,
    }
}

/// `time op now() + d`.
fn bound(time: &Expr, op: Operator, clock: &Expr, schema: &DFSchema) -> Option<Bound> {
    let ahead = ahead(clock)?;
    let (shown, later) = match op {
        Operator::Gt => (Shown::Until, 0),
        Operator::GtEq => (Shown::Until, 1),
        Operator::Lt => (Shown::From, 1),
        Operator::LtEq => (Shown::From, 0),
        _ => return None,
    };
    let zone = match time.get_type(schema).ok()? {
        DataType::Timestamp(_, zone) => zone,
        DataType::Date32 | DataType::Date64 => None,
        _ => return None,
    };
    let time = cast(time.clone(), DataType::Timestamp(TimeUnit::Microsecond, zone));
    let moved = later - ahead;
    let time = match moved {
        0 => time,
        moved => {
            let nanoseconds = moved.checked_mul(1000)?;
            let interval = IntervalMonthDayNano { months: 0, days: 0, nanoseconds };
            let interval = ScalarValue::IntervalMonthDayNano(Some(interval));
            Expr::BinaryExpr(BinaryExpr::new(
                Box::new(time),
                Operator::Plus,
                Box::new(lit(interval)),
            ))
        }
    };
    Some(Bound { time, shown })
}

/// How far ahead of the clock an expression is, if that is all it is.
fn ahead(expression: &Expr) -> Option<i64> {
    match expression {
        clock if is(clock) => Some(0),
        Expr::Alias(alias) => ahead(&alias.expr),
        Expr::Cast(cast) if is_time(cast.field.data_type()) => ahead(&cast.expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Minus => ahead(left)?.checked_sub(micros(right)?),
            Operator::Plus if is_in(right) => ahead(right)?.checked_add(micros(left)?),
            Operator::Plus => ahead(left)?.checked_add(micros(right)?),
            _ => None,
        },
        _ => None,
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..))
}

/// The length of an interval without months.
fn micros(expression: &Expr) -> Option<i64> {
    let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) = expression else {
        return None;
    };
    let days = i64::from(interval.days).checked_mul(DAY_US)?;
    (interval.months == 0).then(|| days.checked_add(interval.nanoseconds / 1000))?
}
