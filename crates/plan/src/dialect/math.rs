//! Mathematics as PostgreSQL has it: what overflows or is not defined is an error, where DataFusion answers infinity or
//! NaN; trigonometry in degrees, exact where the answer is.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array};
use arrow::compute::{try_binary, try_unary, unary};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use segue_types::{SqlState, SqlType, UserError};

use super::general;

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    macro_rules! of_one {
        ($($name:literal => $of:expr),* $(,)?) => {
            vec![$(general::function($name, doubles::<1>, double, |c, _| each(&c[0], $of))),*]
        };
    }
    macro_rules! of_two {
        ($($name:literal => $of:expr),* $(,)?) => {
            [$(general::function($name, doubles::<2>, double, |c, _| both(c, $of))),*]
        };
    }
    let mut functions = of_one![
        "sind" => |x| Ok(sine(x)),
        "cosd" => |x| Ok(cosine(x)),
        "tand" => |x| Ok(tangent(x)),
        "cotd" => |x| Ok(cotangent(x)),
        "asind" => |x| Ok(arcsine(x)),
        "acosd" => |x| Ok(arccosine(x)),
        "atand" => |x: f64| Ok(x.atan() / 1_f64.atan() * 45.0),
        "cbrt" => |x: f64| Ok(x.cbrt()),
        "coth" => |x: f64| Ok(x.tanh().recip()),
        "exp" => |x: f64| in_range(x.exp(), x.is_finite(), Least::MayNotBeZero),
        "ln" => |x: f64| positive(x).map(f64::ln),
        "log10" => |x: f64| positive(x).map(f64::log10),
        "sqrt" => root,
    ];
    functions.extend(of_two![
        "atan2d" => |y: f64, x: f64| Ok(y.atan2(x) / 1_f64.atan() * 45.0),
        "power" => power,
        "dpow" => power,
    ]);
    functions.push(general::function("log", one_or_two, double, |columns, _| match columns {
        [value] => each(value, |x: f64| positive(x).map(f64::log10)),
        _ => both(columns, |base, x| Ok(positive(x)?.ln() / positive(base)?.ln())),
    }));
    functions.extend(whole_functions());
    functions.push(general::function("scale", decimal, integer, |columns, _| Ok(scale(columns))));
    functions.push(general::function("min_scale", decimal, integer, |columns, _| {
        Ok(min_scale(columns))
    }));
    functions
}

/// How a fraction is made whole: of a decimal by its unit, and of a double precision.
type Whole = (fn(i128, i128) -> i128, fn(f64) -> f64);

const CEIL: Whole = (|value, unit| -(-value).div_euclid(unit), f64::ceil);
const FLOOR: Whole = (|value, unit| value.div_euclid(unit), f64::floor);
const TRUNC: Whole = (|value, unit| value / unit, f64::trunc);
/// Decimals away from zero, doubles to their even neighbour.
const ROUND: Whole =
    (|value, unit| (value.abs() + unit / 2) / unit * value.signum(), f64::round_ties_even);

/// Functions whose result has no fraction, and no digits for one.
fn whole_functions() -> Vec<ScalarUDF> {
    vec![
        general::function("ceil", number, whole_field, |c, f| whole(&c[0], f, CEIL)),
        general::function("floor", number, whole_field, |c, f| whole(&c[0], f, FLOOR)),
        general::function(TRUNC_WHOLE, number, whole_field, |c, f| whole(&c[0], f, TRUNC)),
        general::function(ROUND_WHOLE, number, whole_field, |c, f| whole(&c[0], f, ROUND)),
    ]
}

/// `round(x)` and `trunc(x)`, which with a second argument are DataFusion's.
pub(super) const ROUND_WHOLE: &str = "round_whole";
pub(super) const TRUNC_WHOLE: &str = "trunc_whole";

fn number(given: &[DataType]) -> Option<Vec<DataType>> {
    match given {
        [DataType::Decimal128(..)] => Some(given.to_vec()),
        _ => doubles::<1>(given),
    }
}

fn whole_field(fields: &[FieldRef]) -> Result<FieldRef> {
    Ok(match fields[0].data_type() {
        DataType::Decimal128(precision, scale) if *scale > 0 => {
            let digits = precision.saturating_sub(scale.unsigned_abs()).saturating_add(1);
            general::typed(&SqlType::Numeric { precision: digits.min(38), scale: 0 })
        }
        other => Arc::new(Field::new("value", other.clone(), true)),
    })
}

fn whole(
    column: &ArrayRef,
    fields: &[FieldRef],
    (of_decimal, of_double): Whole,
) -> Result<ArrayRef> {
    let to = whole_field(fields)?.data_type().clone();
    match column.data_type() {
        DataType::Decimal128(_, scale) if *scale > 0 => {
            let unit = 10_i128.pow(scale.unsigned_abs().into());
            let numbers = column.as_primitive::<Decimal128Type>();
            let whole = unary::<_, _, Decimal128Type>(numbers, |value| of_decimal(value, unit));
            Ok(Arc::new(whole.with_data_type(to)))
        }
        DataType::Decimal128(..) => Ok(Arc::clone(column)),
        _ => each(column, |x| Ok(of_double(x))),
    }
}

fn double(_: &[FieldRef]) -> Result<FieldRef> {
    Ok(general::typed(&SqlType::Double))
}

fn integer(_: &[FieldRef]) -> Result<FieldRef> {
    Ok(general::typed(&SqlType::Integer))
}

/// Numbers, and texts without a type of their own, as double precision.
fn doubles<const COUNT: usize>(given: &[DataType]) -> Option<Vec<DataType>> {
    let taken = |ty: &DataType| ty.is_numeric() || ty.is_null() || general::is_text(ty);
    (given.len() == COUNT && given.iter().all(taken)).then(|| vec![DataType::Float64; COUNT])
}

fn one_or_two(given: &[DataType]) -> Option<Vec<DataType>> {
    doubles::<1>(given).or_else(|| doubles::<2>(given))
}

fn decimal(given: &[DataType]) -> Option<Vec<DataType>> {
    match given {
        [DataType::Decimal128(..)] => Some(given.to_vec()),
        [ty] if ty.is_integer() => Some(vec![DataType::Decimal128(20, 0)]),
        [ty] if ty.is_null() || general::is_text(ty) => Some(vec![SqlType::NUMERIC.arrow_type()]),
        _ => None,
    }
}

type Failed = ArrowError;

fn error(message: &str) -> Failed {
    let error = UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, message);
    ArrowError::ExternalError(Box::new(error))
}

fn each(column: &ArrayRef, of: impl Fn(f64) -> Result<f64, Failed>) -> Result<ArrayRef> {
    let results = try_unary::<_, _, Float64Type>(column.as_primitive::<Float64Type>(), of)?;
    Ok(Arc::new(results))
}

fn both(columns: &[ArrayRef], of: impl Fn(f64, f64) -> Result<f64, Failed>) -> Result<ArrayRef> {
    let [left, right] = [0, 1].map(|place| columns[place].as_primitive::<Float64Type>());
    Ok(Arc::new(try_binary::<_, _, _, Float64Type>(left, right, of)?))
}

/// Whether a result may be zero.
#[derive(Clone, Copy, PartialEq)]
enum Least {
    MayBeZero,
    MayNotBeZero,
}

/// Infinity of finite operands is too much; zero, where it cannot be right, too little.
fn in_range(result: f64, finite: bool, least: Least) -> Result<f64, Failed> {
    match result {
        r if r.is_infinite() && finite => Err(error("value out of range: overflow")),
        r if r == 0.0 && finite && least == Least::MayNotBeZero => {
            Err(error("value out of range: underflow"))
        }
        r => Ok(r),
    }
}

fn positive(x: f64) -> Result<f64, Failed> {
    match x {
        0.0 => Err(error("cannot take logarithm of zero")),
        x if x < 0.0 => Err(error("cannot take logarithm of a negative number")),
        x => Ok(x),
    }
}

fn root(x: f64) -> Result<f64, Failed> {
    match x {
        x if x < 0.0 => Err(error("cannot take square root of a negative number")),
        x => Ok(x.sqrt()),
    }
}

fn power(base: f64, exponent: f64) -> Result<f64, Failed> {
    if base == 0.0 && exponent < 0.0 {
        return Err(error("zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(error(
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    let least = if base == 0.0 { Least::MayBeZero } else { Least::MayNotBeZero };
    in_range(base.powf(exponent), base.is_finite() && exponent.is_finite(), least)
}

/// Sines up to 30 degrees, such that that of 30 is a half.
fn small_sine(x: f64) -> f64 {
    x.to_radians().sin() / 30_f64.to_radians().sin() / 2.0
}

/// Cosines up to 60 degrees, such that that of 60 is a half.
fn small_cosine(x: f64) -> f64 {
    1.0 - (1.0 - x.to_radians().cos()) / (1.0 - 60_f64.to_radians().cos()) / 2.0
}

fn quarter_sine(x: f64) -> f64 {
    if x <= 30.0 { small_sine(x) } else { small_cosine(90.0 - x) }
}

fn quarter_cosine(x: f64) -> f64 {
    if x <= 60.0 { small_cosine(x) } else { small_sine(90.0 - x) }
}

/// The angle of the first quarter that has the same sine but for its sign, and the signs of sine and cosine.
fn quartered(x: f64) -> (f64, f64, f64) {
    let turned = (x % 360.0).abs();
    let (mut sine, mut cosine) = (if x < 0.0 { -1.0 } else { 1.0 }, 1.0);
    let half = if turned > 180.0 {
        sine = -sine;
        360.0 - turned
    } else {
        turned
    };
    let quarter = if half > 90.0 {
        cosine = -cosine;
        180.0 - half
    } else {
        half
    };
    (quarter, sine, cosine)
}

fn sine(x: f64) -> f64 {
    let (quarter, sign, _) = quartered(x);
    sign * quarter_sine(quarter)
}

fn cosine(x: f64) -> f64 {
    let (quarter, _, sign) = quartered(x);
    sign * quarter_cosine(quarter)
}

fn tangent(x: f64) -> f64 {
    let (quarter, sine, cosine) = quartered(x);
    let diagonal = quarter_sine(45.0) / quarter_cosine(45.0);
    // No zero is negative.
    sine * cosine * (quarter_sine(quarter) / quarter_cosine(quarter) / diagonal) + 0.0
}

fn cotangent(x: f64) -> f64 {
    let (quarter, sine, cosine) = quartered(x);
    let diagonal = quarter_cosine(45.0) / quarter_sine(45.0);
    sine * cosine * (quarter_cosine(quarter) / quarter_sine(quarter) / diagonal) + 0.0
}

fn quarter_arcsine(x: f64) -> f64 {
    if x <= 0.5 {
        x.asin() / 0.5_f64.asin() * 30.0
    } else {
        90.0 - x.acos() / 0.5_f64.acos() * 60.0
    }
}

fn arcsine(x: f64) -> f64 {
    if x < 0.0 { -quarter_arcsine(-x) } else { quarter_arcsine(x) }
}

fn arccosine(x: f64) -> f64 {
    if x > 0.5 { x.acos() / 0.5_f64.acos() * 60.0 } else { 90.0 - arcsine(x) }
}

fn scale(columns: &[ArrayRef]) -> ArrayRef {
    let numbers = columns[0].as_primitive::<Decimal128Type>();
    let scale = i32::from(numbers.scale());
    Arc::new(numbers.iter().map(|number| number.map(|_| scale)).collect::<Int32Array>())
}

/// The digits behind the point that are not zeros at the end.
fn min_scale(columns: &[ArrayRef]) -> ArrayRef {
    let numbers = columns[0].as_primitive::<Decimal128Type>();
    let least = |mut number: i128| {
        let mut scale = i32::from(numbers.scale());
        while scale > 0 && number % 10 == 0 {
            number /= 10;
            scale -= 1;
        }
        scale
    };
    Arc::new(numbers.iter().map(|number| number.map(least)).collect::<Int32Array>())
}

#[cfg(test)]
mod tests {
    use super::{arccosine, arcsine, cosine, cotangent, power, sine, tangent};

    #[test]
    fn degrees_are_exact_where_the_answer_is() {
        assert_eq!([sine(30.0), sine(-90.0), sine(150.0), sine(180.0)], [0.5, -1.0, 0.5, 0.0]);
        assert_eq!([cosine(60.0), cosine(90.0), cosine(180.0)], [0.5, 0.0, -1.0]);
        assert_eq!([tangent(45.0), tangent(-45.0), tangent(0.0)], [1.0, -1.0, 0.0]);
        assert_eq!([tangent(90.0), tangent(270.0)], [f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!([cotangent(90.0), cotangent(45.0)], [0.0, 1.0]);
        assert_eq!([arcsine(0.5), arcsine(-1.0)], [30.0, -90.0]);
        assert_eq!([arccosine(0.5), arccosine(-1.0), arccosine(1.0)], [60.0, 180.0, 0.0]);
        assert!(sine(f64::INFINITY).is_nan() && tangent(f64::NAN).is_nan());
    }

    #[test]
    fn fractions_are_made_whole() {
        let of = |how: super::Whole| [-15, -10, 0, 15].map(|value| (how.0)(value, 10));
        assert_eq!(of(super::CEIL), [-1, -1, 0, 2]);
        assert_eq!(of(super::FLOOR), [-2, -1, 0, 1]);
        assert_eq!(of(super::TRUNC), [-1, -1, 0, 1]);
        assert_eq!(of(super::ROUND), [-2, -1, 0, 2]);
    }

    #[test]
    fn powers_out_of_range_are_errors() {
        assert!(power(1e5, 1e5).is_err() && power(1e5, -1e5).is_err());
        assert!(power(0.0, -1.0).is_err() && power(-1.0, 0.5).is_err());
        assert_eq!(power(f64::INFINITY, 0.0).ok(), Some(1.0));
        assert_eq!(power(0.0, 3.0).ok(), Some(0.0));
    }
}
