//! Window functions over SESSION frames: `OVER (PARTITION BY k ORDER BY t SESSION WITH GAP g)`.
//!
//! A row that comes `g` or more after the row before it begins a new session, and the frame of a row is its session.
//! The parser makes `session_gap(g)` the last key of the order. Here the sessions of a partition are numbered, by
//! functions over the rows before, and the number becomes a key of the partition.
//! Word defined here: the *number* of a session is a column whose name tells the gap, for whoever has to know when a
//! session is over.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, Result, plan_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_window::expr_fn::lag;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprFunctionExt, LogicalPlan, Projection, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, SortExpr, Volatility, Window, WindowFrame, WindowFrameBound,
    WindowFrameUnits, lit, when,
};
use datafusion::scalar::ScalarValue;
use segue_types::{SqlState, UserError};
use sqlparser::ast;

const SESSION_GAP: &str = "session_gap";
const BEFORE: &str = "row before with gap";
const NUMBER: &str = "session with gap";

/// The gap, in microseconds, of the sessions that a column of this name numbers.
pub(crate) fn gap_of(name: &str) -> Option<i64> {
    name.strip_prefix(NUMBER)?.trim().parse().ok()
}

/// In a syntax tree: the gaps become numbers of microseconds.
pub(super) fn measure<T: ast::VisitMut>(tree: &mut T) {
    let _: ControlFlow<()> = tree.visit(&mut Measure);
}

struct Measure;

impl ast::VisitorMut for Measure {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(function) = expr
            && function.name.to_string() == SESSION_GAP
            && let ast::FunctionArguments::List(list) = &mut function.args
        {
            for argument in &mut list.args {
                if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(gap)) = argument
                    && let Some(micros) = super::windows::signed_micros(gap)
                    && micros > 0
                {
                    *gap = ast::Expr::value(ast::Value::Number(micros.to_string(), false));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// In a plan: all of them.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let lowered = plan.transform_down_with_subqueries(below_others);
    let rewritten = lowered.data()?.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Window(window) => match gap(&window)? {
            Some((of, gap_us)) => Ok(Transformed::yes(sessions(&window, of, gap_us)?)),
            None => Ok(Transformed::no(LogicalPlan::Window(window))),
        },
        other => Ok(Transformed::no(other)),
    });
    rewritten.data()
}

/// Functions with other frames are computed first: of a session that is not over nothing is known.
fn below_others(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Window(upper) = &node else { return Ok(Transformed::no(node)) };
    let LogicalPlan::Window(lower) = upper.input.as_ref() else {
        return Ok(Transformed::no(node));
    };
    if gap(upper)?.is_some() || gap(lower)?.is_none() {
        return Ok(Transformed::no(node));
    }
    let columns = node.schema().columns().into_iter().map(Expr::Column).collect();
    let first = Window::try_new(upper.window_expr.clone(), Arc::clone(&lower.input))?;
    let then = Window::try_new(lower.window_expr.clone(), Arc::new(LogicalPlan::Window(first)))?;
    let plan = Projection::try_new(columns, Arc::new(LogicalPlan::Window(then)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}

/// What a window whose functions have a SESSION frame has in common.
struct Of {
    partition: Vec<Expr>,
    order: SortExpr,
}

fn gap(window: &Window) -> Result<Option<(Of, i64)>> {
    let Some(Expr::WindowFunction(call)) = window.window_expr.first().map(|e| e.clone().unalias())
    else {
        return Ok(None);
    };
    let is_gap = |sort: &&SortExpr| matches!(&sort.expr, Expr::ScalarFunction(call) if call.func.name() == SESSION_GAP);
    let Some(last) = call.params.order_by.last().filter(is_gap) else { return Ok(None) };
    let Expr::ScalarFunction(gap) = &last.expr else { return Ok(None) };
    let [Expr::Literal(gap, _)] = gap.args.as_slice() else {
        return Err(refused("the gap of a SESSION frame must be an interval without months"));
    };
    let ScalarValue::Int64(Some(gap_us)) = gap.cast_to(&DataType::Int64)? else {
        return Err(refused("the gap of a SESSION frame must be an interval without months"));
    };
    let [order, _] = call.params.order_by.as_slice() else {
        return Err(refused("a SESSION frame needs ORDER BY one time"));
    };
    let of = Of { partition: call.params.partition_by.clone(), order: order.clone() };
    Ok(Some((of, gap_us)))
}

fn refused(message: &str) -> DataFusionError {
    let error = UserError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let error = error.with_hint("Write ORDER BY at SESSION WITH GAP INTERVAL '10 minutes'.");
    DataFusionError::External(Box::new(error))
}

fn sessions(window: &Window, of: Of, gap_us: i64) -> Result<LogicalPlan> {
    let at = of.order.expr.clone();
    let before_name = format!("{BEFORE} {gap_us}");
    let number_name = format!("{NUMBER} {gap_us}");
    let named = |name: &str| Expr::Column(Column::new_unqualified(name));
    let before = lag(at.clone(), Some(1), None)
        .partition_by(of.partition.clone())
        .order_by(vec![of.order.clone()])
        .build()?;
    let input = over(&window.input, vec![before.alias(&before_name)])?;
    let gap = IntervalMonthDayNano { months: 0, days: 0, nanoseconds: gap_us * 1000 };
    let gap = lit(ScalarValue::IntervalMonthDayNano(Some(gap)));
    let begins = when(at.lt(named(&before_name) + gap), lit(0_i64)).otherwise(lit(1_i64))?;
    let number = WindowFunction {
        fun: datafusion::logical_expr::WindowFunctionDefinition::AggregateUDF(sum_udaf()),
        params: WindowFunctionParams {
            args: vec![begins],
            partition_by: of.partition,
            order_by: vec![of.order],
            window_frame: WindowFrame::new(Some(false)),
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    };
    let number = Expr::WindowFunction(Box::new(number)).alias(&number_name);
    let input = over(&input, vec![number])?;
    let calls = window.window_expr.iter().map(|call| of_session(call, &named(&number_name)));
    let calls = calls.collect::<Result<Vec<_>>>()?;
    let (own, helpers) = (window.input.schema().fields().len(), 2);
    let plan = over(&input, calls)?;
    let columns = plan.schema().columns();
    let kept =
        columns.iter().enumerate().filter(|(place, _)| !(own..own + helpers).contains(place));
    let kept = kept.zip(window.schema.iter()).map(|((_, column), (qualifier, field))| {
        let value = Expr::Column(column.clone());
        match column.name() == field.name() && column.relation.as_ref() == qualifier {
            true => value,
            false => value.alias_qualified(qualifier.cloned(), field.name()),
        }
    });
    let kept = kept.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(kept, plan)?))
}

fn over(input: &Arc<LogicalPlan>, calls: Vec<Expr>) -> Result<Arc<LogicalPlan>> {
    Ok(Arc::new(LogicalPlan::Window(Window::try_new(calls, Arc::clone(input))?)))
}

/// The call over the whole session of each row.
fn of_session(call: &Expr, number: &Expr) -> Result<Expr> {
    let called = call.clone().transform_down(|part| {
        let Expr::WindowFunction(mut call) = part else { return Ok(Transformed::no(part)) };
        call.params.order_by.pop();
        call.params.partition_by.push(number.clone());
        call.params.window_frame = whole();
        Ok(Transformed::new(Expr::WindowFunction(call), true, TreeNodeRecursion::Jump))
    });
    called.data()
}

/// The frame that is the partition.
pub(crate) fn whole() -> WindowFrame {
    WindowFrame::new_bounds(
        WindowFrameUnits::Rows,
        WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::Following(ScalarValue::UInt64(None)),
    )
}

/// What stands for the frame until the plan is rewritten.
pub(super) fn function() -> ScalarUDF {
    static FUNCTION: LazyLock<ScalarUDF> = LazyLock::new(|| {
        ScalarUDF::new_from_impl(SessionGap { signature: Signature::any(1, Volatility::Immutable) })
    });
    FUNCTION.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SessionGap {
    signature: Signature,
}

impl ScalarUDFImpl for SessionGap {
    fn name(&self) -> &str {
        SESSION_GAP
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("a session frame is one of a window function")
    }
}
