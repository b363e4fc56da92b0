//! Arithmetic of whole numbers that fails where PostgreSQL fails.

use std::sync::{Arc, LazyLock};

use arrow::compute::kernels::numeric;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

static ADD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of("+"));
static SUBTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of("-"));
static MULTIPLY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of("*"));

fn of(name: &'static str) -> Arc<ScalarUDF> {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Checked { name, signature }))
}

/// The function of an arithmetic operator.
///
/// # Panics
/// For an operator that is none of the three.
pub(crate) fn checked(operator: Operator) -> Arc<ScalarUDF> {
    Arc::clone(match operator {
        Operator::Plus => &ADD,
        Operator::Minus => &SUBTRACT,
        Operator::Multiply => &MULTIPLY,
        other => panic!("{other} does not overflow"),
    })
}

/// Named by its operator, so that EXPLAIN shows `+(a, b)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let missing = || DataFusionError::Internal(format!("{} has no argument", self.name));
        arguments.first().cloned().ok_or_else(missing)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (self.name, args.args.as_slice()) {
            ("+", [left, right]) => apply(left, right, numeric::add),
            ("-", [left, right]) => apply(left, right, numeric::sub),
            ("*", [left, right]) => apply(left, right, numeric::mul),
            (name, arguments) => {
                let count = arguments.len();
                Err(DataFusionError::Internal(format!("{name} was given {count} arguments")))
            }
        }
    }
}
