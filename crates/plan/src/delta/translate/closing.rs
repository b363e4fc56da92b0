//! EMIT ON WINDOW CLOSE over window functions that are ordered by a time with a watermark.
//!
//! Rows come to the functions once the watermark has passed them, so that none comes between two that are there, and a
//! row is put out when no row that its frames ask for is still to come: at once where they only look back, with the
//! n-th row that follows where they look ahead, with the end of its session where they are sessions.
//! The rows of a partition are kept for as long as the view is there: which of them the next one asks for is not known.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, Schema};
use datafusion::functions_aggregate::min_max::max_udaf;
use datafusion::functions_window::lead_lag::lead_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, LogicalPlan, Operator, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition, lit,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, IsNotNullExpr, Literal};
use datafusion::scalar::ScalarValue;
use segue_flow::{ColumnWatermark, Node, OperatorSpec};
use segue_sql::Emission;
use segue_types::UserError;

use super::super::physical::column;
use super::super::refuse::refusal;
use super::recompute::{Computed, Input, common_partition, places};
use super::{Output, Translator, plain_column, user};
use crate::dialect::session_frames::{gap_of, whole};

/// When a row is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Final {
    /// When so many rows have followed it in its partition.
    Followed(i64),
    /// When its session is over.
    Session { gap_us: i64 },
}

impl Translator<'_> {
    /// The functions of a window over rows that have closed; `None` where the window is closed otherwise, or not at
    /// all.
    pub(super) fn closed_window(
        &mut self,
        window: &Window,
        node: Node,
        calls: &[Expr],
        computed: &Computed,
    ) -> Result<Option<Output>, UserError> {
        if self.emission == Emission::OnChange {
            return Ok(None);
        }
        let schema = window.input.schema();
        let ordered = calls.iter().map(|call| {
            let first = function(call)?.params.order_by.into_iter().next()?;
            first.asc.then(|| plain_column(&first.expr, schema))?
        });
        let ordered = ordered.collect::<Option<Vec<_>>>();
        let Some(at) = ordered.and_then(|all| all.iter().all(|at| *at == all[0]).then(|| all[0]))
        else {
            return Ok(None);
        };
        let by_time = common_partition(calls).into_iter().any(|key| {
            plain_column(&key, schema).is_some_and(|key| self.time_of(node, key).is_some())
        });
        let Some(watermark) = self.time_of(node, at).filter(|_| !by_time) else { return Ok(None) };
        let closes = self.closes(calls)?;
        let mut input = self.input_of(node, schema, &computed.expressions)?;
        input.key = places(&common_partition(calls), &input.leaf)?;
        let withheld = OperatorSpec::Withhold { input: input.node, watermark, column: at };
        input.node = self.push(withheld);
        self.over_closed(window, input, calls, (at, watermark), closes).map(Some)
    }

    fn over_closed(
        &mut self,
        window: &Window,
        input: Input,
        calls: &[Expr],
        (at, watermark): (usize, Node),
        closes: Final,
    ) -> Result<Output, UserError> {
        let width = window.input.schema().fields().len();
        let extended = input.leaf.schema().fields().len();
        let leaf = Arc::new(input.leaf.clone().into_plan());
        let mut all = calls.to_vec();
        all.extend(closes.told_by(&calls[0]));
        let fragment = LogicalPlan::Window(Window::try_new(all, leaf).map_err(user)?);
        let key = input.key.clone();
        let node = self.recompute("a window function", &fragment, vec![input], key)?;
        let told = extended + calls.len();
        let node = match closes {
            Final::Followed(0) => node,
            Final::Followed(_) => {
                let follows = column(&self.spec.schema_of(node), told);
                let predicate = Arc::new(IsNotNullExpr::new(follows));
                self.push(OperatorSpec::Filter { input: node, predicate })
            }
            Final::Session { gap_us } => self.over_sessions(node, (told, gap_us), watermark),
        };
        let node = self.push(OperatorSpec::Settled { input: node });
        if closes == Final::Followed(0) {
            // It comes with the watermark that lets it in.
            self.times.insert(node, vec![ColumnWatermark { column: at, node: watermark }]);
        }
        let kept = (0..width).chain(extended..told).collect::<Vec<_>>();
        self.logical(node, &kept, window.schema.as_ref())
    }

    /// The rows whose session, of which `last` is the last time, the watermark has passed.
    fn over_sessions(&mut self, node: Node, (last, gap_us): (usize, i64), watermark: Node) -> Node {
        let from = self.spec.schema_of(node);
        // The row that comes at the very end begins a new one.
        let nanoseconds = (gap_us - 1) * 1000;
        let gap = IntervalMonthDayNano { months: 0, days: 0, nanoseconds };
        let gap = Arc::new(Literal::new(ScalarValue::IntervalMonthDayNano(Some(gap))));
        let end: Arc<dyn PhysicalExpr> =
            Arc::new(BinaryExpr::new(column(&from, last), Operator::Plus, gap));
        let mut expressions =
            (0..from.fields().len()).map(|at| column(&from, at)).collect::<Vec<_>>();
        let mut fields = from.fields().to_vec();
        fields.push(Arc::new(Field::new(
            "session end",
            from.field(last).data_type().clone(),
            true,
        )));
        expressions.push(end);
        let column = fields.len() - 1;
        let schema = Arc::new(Schema::new(fields));
        let input = self.push(OperatorSpec::Project { input: node, expressions, schema });
        self.push(OperatorSpec::Withhold { input, watermark, column })
    }

    /// When the rows of a window are final; functions that ask for the whole partition never have them so.
    fn closes(&self, calls: &[Expr]) -> Result<Final, UserError> {
        let number = common_partition(calls).into_iter().find_map(|key| match key {
            Expr::Column(column) => gap_of(&column.name),
            _ => None,
        });
        if let Some(gap_us) = number {
            return Ok(Final::Session { gap_us });
        }
        let mut most = 0;
        for call in calls.iter().filter_map(function) {
            most = most.max(follows(&call).ok_or_else(|| {
                let what =
                    format!("EMIT ON WINDOW CLOSE over {}() with this frame", call.fun.name());
                refusal(&what, "End the frame at CURRENT ROW, or at a number of rows FOLLOWING.")
            })?);
        }
        Ok(Final::Followed(most))
    }
}

fn function(call: &Expr) -> Option<WindowFunction> {
    match call.clone().unalias() {
        Expr::WindowFunction(call) => Some(*call),
        _ => None,
    }
}

/// How many rows behind its own a function looks at; `None` where the number is not fixed.
fn follows(call: &WindowFunction) -> Option<i64> {
    let number = |value: Option<&Expr>| match value {
        None => Some(1),
        Some(Expr::Literal(value, _)) => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) => Some(number.unwrap_or(0)),
            _ => None,
        },
        Some(_) => None,
    };
    match call.fun.name() {
        "lead" => number(call.params.args.get(1)).map(|rows| rows.max(0)),
        "lag" => number(call.params.args.get(1)).map(|rows| (-rows).max(0)),
        "row_number" | "rank" | "dense_rank" => Some(0),
        "ntile" | "percent_rank" | "cume_dist" => None,
        _ => end(&call.params.window_frame),
    }
}

fn end(frame: &WindowFrame) -> Option<i64> {
    match (&frame.end_bound, frame.units) {
        // Rows of its own time have come with it.
        (WindowFrameBound::CurrentRow | WindowFrameBound::Preceding(_), _) => Some(0),
        (WindowFrameBound::Following(rows), WindowFrameUnits::Rows) => {
            match rows.cast_to(&DataType::Int64).ok()? {
                ScalarValue::Int64(rows) => rows,
                _ => None,
            }
        }
        (WindowFrameBound::Following(_), _) => None,
    }
}

impl Final {
    /// What is asked of the rows beside the functions themselves, which `like` is one of.
    fn told_by(self, like: &Expr) -> Option<Expr> {
        let WindowFunction { params, .. } = function(like)?;
        let at = params.order_by.first()?.expr.clone();
        let (fun, args, window_frame) = match self {
            Final::Followed(0) => return None,
            Final::Followed(rows) => (
                WindowFunctionDefinition::WindowUDF(lead_udwf()),
                vec![at, lit(rows)],
                WindowFrame::new(Some(false)),
            ),
            Final::Session { .. } => {
                (WindowFunctionDefinition::AggregateUDF(max_udaf()), vec![at], whole())
            }
        };
        let params = WindowFunctionParams {
            args,
            window_frame,
            filter: None,
            null_treatment: None,
            distinct: false,
            ..params
        };
        let call = Expr::WindowFunction(Box::new(WindowFunction { fun, params }));
        Some(call.alias("when it is final"))
    }
}
