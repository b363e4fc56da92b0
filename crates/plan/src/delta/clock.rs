//! now() in a maintained query: the clock of the steps, not a value.
//!
//! It stands in the plan as a function that no rewrite moves or computes. In conditions of WHERE it becomes an
//! operator that lets rows in and out as time passes; anywhere else it is refused.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use segue_types::UserError;

use super::refuse::refusal;

static CLOCK: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Clock::default())));

#[derive(Debug, PartialEq, Eq, Hash)]
struct Clock {
    signature: Signature,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { signature: Signature::nullary(Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Clock {
    fn name(&self) -> &'static str {
        "now"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        datafusion::common::internal_err!("the clock of a maintained query has no value")
    }
}

/// Puts the clock in the place of now().
pub(super) fn put(plan: LogicalPlan) -> Result<LogicalPlan> {
    let replaced = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expression| {
            let name = expression.name_for_alias()?;
            let replaced = expression.transform_up(|part| {
                Ok(match part {
                    Expr::ScalarFunction(call) if call.func.name() == "now" && !is_clock(&call) => {
                        Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                            Arc::clone(&CLOCK),
                            Vec::new(),
                        )))
                    }
                    other => Transformed::no(other),
                })
            })?;
            replaced.map_data(|expression| expression.alias_if_changed(name))
        })
    });
    replaced.data()
}

fn is_clock(call: &ScalarFunction) -> bool {
    Arc::ptr_eq(&call.func, &CLOCK)
}

/// Whether the expression is the clock itself.
pub(super) fn is(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarFunction(call) if is_clock(call))
}

/// Whether the clock is part of the expression.
pub(super) fn is_in(expression: &Expr) -> bool {
    expression.exists(|part| Ok(is(part))).unwrap_or(true)
}

/// Whether the clock is anywhere in the plan.
pub(super) fn is_in_plan(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let walked = plan.apply(|node| {
        node.apply_expressions(|expression| {
            found |= is_in(expression);
            Ok(TreeNodeRecursion::Continue)
        })
    });
    walked.is_err() || found
}

/// Refuses the clock anywhere but in conditions of WHERE and HAVING.
pub(super) fn only_in_filters(plan: &LogicalPlan) -> Result<(), UserError> {
    let mut elsewhere = false;
    let walked = plan.apply(|node| {
        if !matches!(node, LogicalPlan::Filter(_)) {
            node.apply_expressions(|expression| {
                elsewhere |= is_in(expression);
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    match walked.is_err() || elsewhere {
        true => Err(refused()),
        false => Ok(()),
    }
}

/// The refusal of now() where it is no condition that time makes true or false once.
pub(super) fn refused() -> UserError {
    refusal(
        "now(), other than in a comparison of a time with now() or now() and an interval in WHERE,",
        "Write at > now() - INTERVAL '1 hour', an interval without months, joined to others by AND; or use it in the \
         SELECT that reads the view.",
    )
}
