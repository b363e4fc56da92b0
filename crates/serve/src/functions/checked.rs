//! Arithmetic of whole numbers that fails where PostgreSQL fails.
//!
//! Words: *chain* (`a + b - c`, computed from the left in one call, so that a long one is not a deep one: every pass
//! over a plan asks each call for its type, and a call asks its arguments).

use std::sync::Arc;

use arrow::compute::kernels::numeric;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr_common::datum::apply;

/// `left operator right`, where both are whole numbers of one type and the operator is `+`, `-` or `*`.
pub(crate) fn checked(left: Expr, operator: Operator, right: Expr) -> Expr {
    let (mut operators, mut operands) = match left {
        Expr::ScalarFunction(call) if chain(&call).is_some() => {
            let operators = chain(&call).map(|chain| chain.operators.clone()).unwrap_or_default();
            (operators, call.args)
        }
        other => (Vec::new(), vec![other]),
    };
    operators.push(operator);
    operands.push(right);
    let name = operators.iter().map(ToString::to_string).collect();
    let signature = Signature::variadic_any(Volatility::Immutable);
    let function = ScalarUDF::new_from_impl(Checked { name, operators, signature });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), operands))
}

/// The type of a chain, which is that of its first operand: found without a look at all of them.
pub(crate) fn first_of_chain(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(call) if chain(call).is_some() => call.args.first(),
        _ => None,
    }
}

fn chain(call: &ScalarFunction) -> Option<&Checked> {
    call.func.inner().downcast_ref::<Checked>()
}

/// Named by its operators, so that EXPLAIN shows `+(a, b)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    name: String,
    operators: Vec<Operator>,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let missing = || DataFusionError::Internal(format!("{} has no argument", self.name));
        arguments.first().cloned().ok_or_else(missing)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut operands = args.args.into_iter();
        let first = operands.next();
        let first = first.ok_or_else(|| DataFusionError::Internal("no operand".to_owned()))?;
        self.operators.iter().zip(operands).try_fold(
            first,
            |left, (operator, right)| match operator {
                Operator::Plus => apply(&left, &right, numeric::add),
                Operator::Minus => apply(&left, &right, numeric::sub),
                Operator::Multiply => apply(&left, &right, numeric::mul),
                other => Err(DataFusionError::Internal(format!("{other} does not overflow"))),
            },
        )
    }
}
