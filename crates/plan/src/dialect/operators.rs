//! Operators that DataFusion types or computes otherwise: date ± interval is a timestamp, intervals can be multiplied,
//! division of fractions by zero is an error, and so is a constant that overflows; numerics are divided to 16 digits;
//! `||`, `-`, `@>` and `<@` of jsonb, `||` of lists.

mod jsonb;
mod literals;
mod numeric;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::{cast, try_binary};
use arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use segue_types::{SqlState, UserError};
use sqlparser::ast::BinaryOperator;

/// Comes before DataFusion's own planners.
#[derive(Debug)]
pub struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        // A parameter without a type is DataFusion's to guess.
        let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema))
        else {
            return Ok(PlannerResult::Original(expr));
        };
        check_constant(&expr)?;
        let (expr, left, right) = literals::typed(expr, left, right);
        if let Some(call) = jsonb::call(&expr, schema) {
            return Ok(PlannerResult::Planned(call));
        }
        if expr.op == BinaryOperator::StringConcat && (is_list(&left) || is_list(&right)) {
            return Ok(PlannerResult::Planned(super::concat::of(expr.left, expr.right)));
        }
        Ok(match (&expr.op, &left, &right) {
            (
                BinaryOperator::Plus | BinaryOperator::Minus,
                DataType::Date32,
                DataType::Interval(_),
            ) => PlannerResult::Original(RawBinaryExpr { left: to_timestamp(expr.left), ..expr }),
            (BinaryOperator::Plus, DataType::Interval(_), DataType::Date32) => {
                PlannerResult::Original(RawBinaryExpr { right: to_timestamp(expr.right), ..expr })
            }
            (
                BinaryOperator::Minus,
                DataType::Timestamp(..),
                DataType::Timestamp(..) | DataType::Date32,
            )
            | (BinaryOperator::Minus, DataType::Date32, DataType::Timestamp(..)) => {
                PlannerResult::Planned(difference(expr.left, expr.right, [&left, &right]))
            }
            (BinaryOperator::Multiply, DataType::Time64(_), number) if is_number(number) => {
                PlannerResult::Planned(call(Arithmetic::Times, to_interval(expr.left), expr.right))
            }
            (BinaryOperator::Divide, DataType::Time64(_), number) if is_number(number) => {
                PlannerResult::Planned(call(Arithmetic::Part, to_interval(expr.left), expr.right))
            }
            (BinaryOperator::Multiply, DataType::Interval(_), number) if is_number(number) => {
                PlannerResult::Planned(call(Arithmetic::Times, expr.left, expr.right))
            }
            (BinaryOperator::Multiply, number, DataType::Interval(_)) if is_number(number) => {
                PlannerResult::Planned(call(Arithmetic::Times, expr.right, expr.left))
            }
            (BinaryOperator::Divide, DataType::Interval(_), number) if is_number(number) => {
                PlannerResult::Planned(call(Arithmetic::Part, expr.left, expr.right))
            }
            (BinaryOperator::Divide, dividend, divisor)
                if is_number(dividend)
                    && is_number(divisor)
                    && (is_float(dividend) || is_float(divisor)) =>
            {
                PlannerResult::Planned(call(Arithmetic::Quotient, expr.left, expr.right))
            }
            (BinaryOperator::Divide, dividend, divisor)
                if is_number(dividend)
                    && is_number(divisor)
                    && (is_decimal(dividend) || is_decimal(divisor)) =>
            {
                PlannerResult::Planned(numeric::quotient(expr.left, expr.right))
            }
            _ => PlannerResult::Original(expr),
        })
    }

    /// The seconds of a time have a fraction; decades, centuries and millennia are counted from years.
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let [Expr::Literal(ScalarValue::Utf8(Some(part)), _), from] = args.as_slice() else {
            return Ok(PlannerResult::Original(args));
        };
        Ok(match super::names::part(part, from) {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(args),
        })
    }
}

fn to_interval(expr: Expr) -> Expr {
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    Expr::Cast(Cast::new(Box::new(expr), interval))
}

fn to_timestamp(expr: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), DataType::Timestamp(TimeUnit::Microsecond, None)))
}

/// Days and the time of day that is left over, where DataFusion counts microseconds alone.
fn difference(left: Expr, right: Expr, types: [&DataType; 2]) -> Expr {
    let has_zone = types.iter().any(|ty| matches!(ty, DataType::Timestamp(_, Some(_))));
    // Between two instants the clocks of a zone do not count.
    let operand = if has_zone { to_instant } else { to_timestamp };
    function(Arithmetic::Difference, vec![operand(left), operand(right)])
}

fn to_instant(expr: Expr) -> Expr {
    let zone = Some("+00:00".into());
    Expr::Cast(Cast::new(Box::new(expr), DataType::Timestamp(TimeUnit::Microsecond, zone)))
}

fn is_float(ty: &DataType) -> bool {
    matches!(ty, DataType::Float32 | DataType::Float64)
}

fn is_list(ty: &DataType) -> bool {
    matches!(ty, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

fn is_decimal(ty: &DataType) -> bool {
    matches!(ty, DataType::Decimal128(..))
}

fn is_number(ty: &DataType) -> bool {
    is_float(ty) || ty.is_integer() || is_decimal(ty)
}

/// DataFusion folds constants with wrapping arithmetic.
fn check_constant(expr: &RawBinaryExpr) -> Result<()> {
    let (Some(left), Some(right)) = (constant(&expr.left), constant(&expr.right)) else {
        return Ok(());
    };
    let result = match expr.op {
        BinaryOperator::Plus => left.checked_add(right),
        BinaryOperator::Minus => left.checked_sub(right),
        BinaryOperator::Multiply => left.checked_mul(right),
        _ => return Ok(()),
    };
    match result {
        Some(_) => Ok(()),
        None => {
            Err(external(UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, "bigint out of range")))
        }
    }
}

fn constant(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(value), _) => *value,
        Expr::Negative(inner) => constant(inner)?.checked_neg(),
        _ => None,
    }
}

fn external(error: UserError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn call(arithmetic: Arithmetic, left: Expr, right: Expr) -> Expr {
    let right = Expr::Cast(Cast::new(Box::new(right), DataType::Float64));
    let left = match arithmetic {
        Arithmetic::Quotient => Expr::Cast(Cast::new(Box::new(left), DataType::Float64)),
        _ => left,
    };
    function(arithmetic, vec![left, right])
}

fn function(arithmetic: Arithmetic, operands: Vec<Expr>) -> Expr {
    let function = Arc::new(ScalarUDF::new_from_impl(Function {
        arithmetic,
        signature: Signature::any(2, Volatility::Immutable),
    }));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, operands))
}

/// What is computed; the second operand is a double precision, of a difference a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Arithmetic {
    /// interval * number
    Times,
    /// interval / number
    Part,
    /// number / number, where zero is refused
    Quotient,
    /// timestamp - timestamp
    Difference,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    arithmetic: Arithmetic,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.arithmetic {
            Arithmetic::Times => "interval_mul",
            Arithmetic::Part => "interval_div",
            Arithmetic::Quotient => "float8div",
            Arithmetic::Difference => "timestamp_mi",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.arithmetic {
            Arithmetic::Times | Arithmetic::Part | Arithmetic::Difference => {
                DataType::Interval(IntervalUnit::MonthDayNano)
            }
            Arithmetic::Quotient => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [left, right] = arrays.as_slice() else {
            return Err(DataFusionError::Internal("an operator has two operands".to_owned()));
        };
        let result = self.compute(left, right)?;
        let scalar =
            arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

impl Function {
    fn compute(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        if self.arithmetic == Arithmetic::Difference {
            let differences = try_binary::<_, _, _, IntervalMonthDayNanoType>(
                left.as_primitive::<TimestampMicrosecondType>(),
                right.as_primitive::<TimestampMicrosecondType>(),
                between,
            )?;
            return Ok(Arc::new(differences));
        }
        let right = right.as_primitive::<Float64Type>();
        if self.arithmetic == Arithmetic::Quotient {
            let left = left.as_primitive::<Float64Type>();
            let quotients = try_binary::<_, _, _, Float64Type>(left, right, |left, right| {
                if right == 0.0 { Err(ArrowError::DivideByZero) } else { Ok(left / right) }
            })?;
            return Ok(Arc::new(quotients));
        }
        let intervals = cast(left, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let is_part = self.arithmetic == Arithmetic::Part;
        let scaled = try_binary::<_, _, _, IntervalMonthDayNanoType>(
            intervals,
            right,
            |interval, factor| {
                if is_part && factor == 0.0 {
                    return Err(ArrowError::DivideByZero);
                }
                Ok(scaled_by(interval, |part| if is_part { part / factor } else { part * factor }))
            },
        )?;
        Ok(Arc::new(scaled))
    }
}

fn between(left_us: i64, right_us: i64) -> Result<IntervalMonthDayNano, ArrowError> {
    const DAY_US: i64 = 86_400_000_000;
    let overflow = || ArrowError::ArithmeticOverflow("interval out of range".to_owned());
    let us = left_us.checked_sub(right_us).ok_or_else(overflow)?;
    let days = i32::try_from(us / DAY_US).map_err(|_| overflow())?;
    Ok(IntervalMonthDayNano::new(0, days, us % DAY_US * 1_000))
}

/// Fractions of a month run over into days of it (30), fractions of a day into hours, as in PostgreSQL.
fn scaled_by(interval: IntervalMonthDayNano, scale: impl Fn(f64) -> f64) -> IntervalMonthDayNano {
    const DAY_S: f64 = 86_400.0;
    let months = scale(f64::from(interval.months));
    let over = micro(months.fract() * 30.0);
    let days = scale(f64::from(interval.days));
    let left_s = micro((days.fract() + over.fract()) * DAY_S);
    // What is left over of both may be a day and more.
    let more = (left_s / DAY_S).trunc();
    let seconds = scale(interval.nanoseconds as f64 / 1e9) + left_s - more * DAY_S;
    // Intervals count microseconds.
    let nanos = (seconds * 1e6).round() as i64 * 1_000;
    let whole_days = days.trunc() + over.trunc() + more;
    IntervalMonthDayNano::new(months.trunc() as i32, whole_days as i32, nanos)
}

/// Without what floating point leaves behind the sixth digit.
fn micro(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;

    use super::{between, scaled_by};

    #[test]
    fn intervals_are_multiplied_part_by_part() {
        let times = |interval, factor: f64| scaled_by(interval, |part| part * factor);
        let day = IntervalMonthDayNano::new(0, 1, 0);
        let days = scaled_by(IntervalMonthDayNano::new(0, 12, 0), |part| part / 4.2);
        assert_eq!(days, IntervalMonthDayNano::new(0, 2, 74_057_142_857_000));
        assert_eq!(times(day, 3.0), IntervalMonthDayNano::new(0, 3, 0));
        assert_eq!(times(day, 0.5), IntervalMonthDayNano::new(0, 0, 43_200_000_000_000));
        let month = IntervalMonthDayNano::new(1, 0, 0);
        assert_eq!(times(month, 1.5), IntervalMonthDayNano::new(1, 15, 0));
    }

    #[test]
    fn a_difference_of_times_is_in_days_and_the_rest() {
        let hour_us = 3_600_000_000;
        let difference = between(0, 25 * hour_us).expect("in range");
        assert_eq!(difference, IntervalMonthDayNano::new(0, -1, -3_600_000_000_000));
    }
}
