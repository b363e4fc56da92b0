//! Arithmetic that fails where PostgreSQL fails, and rounding as PostgreSQL rounds.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Datum};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

static ADD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of(Checked::new("+")));
static SUBTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of(Checked::new("-")));
static MULTIPLY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of(Checked::new("*")));
static DIVIDE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of(Checked::new("/")));
static ROUNDED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of(Checked::new("rounded")));

fn of(function: Checked) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(function))
}

/// The function of an arithmetic operator.
///
/// # Panics
/// For an operator that is none of the four.
pub(crate) fn checked(operator: Operator) -> Arc<ScalarUDF> {
    Arc::clone(match operator {
        Operator::Plus => &ADD,
        Operator::Minus => &SUBTRACT,
        Operator::Multiply => &MULTIPLY,
        Operator::Divide => &DIVIDE,
        other => panic!("{other} is not arithmetic"),
    })
}

/// The nearest whole number in the argument's own type: of floats the even one of two, of numerics the one
/// further from zero.
pub(crate) fn rounded() -> Arc<ScalarUDF> {
    Arc::clone(&ROUNDED)
}

/// Named by its operator, so that EXPLAIN shows `+(a, b)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    name: &'static str,
    signature: Signature,
}

impl Checked {
    fn new(name: &'static str) -> Checked {
        Checked { name, signature: Signature::variadic_any(Volatility::Immutable) }
    }
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
            ("rounded", [value]) => {
                let array = value.to_array(args.number_rows)?;
                Ok(ColumnarValue::Array(round(&array)?))
            }
            ("+", [left, right]) => apply(left, right, numeric::add),
            ("-", [left, right]) => apply(left, right, numeric::sub),
            ("*", [left, right]) => apply(left, right, numeric::mul),
            ("/", [left, right]) => apply(left, right, divide),
            (name, arguments) => Err(DataFusionError::Internal(format!(
                "{name} was given {} arguments",
                arguments.len()
            ))),
        }
    }
}

/// Division of floats; by zero it is an error, as of whole numbers.
fn divide(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let (divisors, _) = right.get();
    let zero = match divisors.data_type() {
        DataType::Float32 => divisors.as_primitive::<Float32Type>().iter().any(|v| v == Some(0.0)),
        DataType::Float64 => divisors.as_primitive::<Float64Type>().iter().any(|v| v == Some(0.0)),
        _ => false,
    };
    // A NULL dividend gives NULL, whatever it is divided by.
    let (dividends, _) = left.get();
    if zero && dividends.null_count() < dividends.len() {
        return Err(ArrowError::DivideByZero);
    }
    numeric::div(left, right)
}

fn round(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even))
        }
        DataType::Float64 => {
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even))
        }
        DataType::Decimal128(precision, scale) => {
            let unit = 10_i128.pow(u32::try_from(*scale).unwrap_or(0));
            let rounded = array.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(|value| {
                let (whole, rest) = (value / unit, value % unit);
                let away = if rest.abs() * 2 >= unit && rest != 0 { rest.signum() } else { 0 };
                (whole + away) * unit
            });
            Arc::new(rounded.with_precision_and_scale(*precision, *scale)?)
        }
        _ => Arc::clone(array),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array};
    use arrow::datatypes::{Decimal128Type, Float64Type};

    use super::{divide, round};

    #[test]
    fn fractions_are_rounded_as_postgres_rounds_each_type() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5, -1.5]));
        let floats = round(&floats).expect("rounded");
        assert_eq!(floats.as_primitive::<Float64Type>().values().to_vec(), [0.0, 2.0, 2.0, -2.0]);
        let numerics = Decimal128Array::from(vec![5, 15, 25, -15, 14]);
        let numerics: ArrayRef =
            Arc::new(numerics.with_precision_and_scale(3, 1).expect("they fit"));
        let numerics = round(&numerics).expect("rounded");
        let values = numerics.as_primitive::<Decimal128Type>().values().to_vec();
        assert_eq!(values, [10, 20, 30, -20, 10]);
    }

    #[test]
    fn a_float_is_not_divided_by_zero() {
        let one = Float64Array::new_scalar(1.0);
        assert!(divide(&one, &Float64Array::new_scalar(0.0)).is_err());
        assert!(divide(&one, &Float64Array::new_scalar(2.0)).is_ok());
    }
}
