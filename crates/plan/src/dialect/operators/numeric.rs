//! numeric / numeric: to 16 digits behind the point at least, rounded, where DataFusion gives four more than the
//! dividend has and cuts.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::try_binary;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, i256};
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;

use super::super::general;

/// Digits behind the point.
const SCALE: i8 = 16;

/// `dividend / divisor`
pub(super) fn quotient(dividend: Expr, divisor: Expr) -> Expr {
    let function = general::function("numeric_div", decimals, result, |columns, fields| {
        Ok(Arc::new(divided(columns, fields)?))
    });
    let operands = vec![dividend, divisor];
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), operands))
}

fn decimals(given: &[DataType]) -> Option<Vec<DataType>> {
    let decimal = |ty: &DataType| match ty {
        DataType::Decimal128(..) => Some(ty.clone()),
        DataType::Null => Some(DataType::Decimal128(1, 0)),
        ty if ty.is_integer() => Some(DataType::Decimal128(20, 0)),
        _ => None,
    };
    given.iter().map(decimal).collect()
}

fn scale_of(field: &Field) -> i8 {
    match field.data_type() {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

fn result(fields: &[FieldRef]) -> Result<FieldRef> {
    let scale = fields.iter().map(|field| scale_of(field)).fold(SCALE, i8::max);
    Ok(Arc::new(Field::new("quotient", DataType::Decimal128(38, scale), true)))
}

fn divided(columns: &[ArrayRef], fields: &[FieldRef]) -> Result<Decimal128Array> {
    let [dividends, divisors] = [0, 1].map(|place| columns[place].as_primitive::<Decimal128Type>());
    let ty = result(fields)?.data_type().clone();
    let DataType::Decimal128(_, scale) = ty else { unreachable!("it is a numeric") };
    let shift = i32::from(scale) + i32::from(divisors.scale()) - i32::from(dividends.scale());
    let factor = i256::from_i128(10).wrapping_pow(shift.unsigned_abs());
    let quotients = try_binary::<_, _, _, Decimal128Type>(dividends, divisors, |left, right| {
        if right == 0 {
            return Err(ArrowError::DivideByZero);
        }
        let overflow = || ArrowError::ArithmeticOverflow("numeric field overflow".to_owned());
        // The shift is not negative: the result's scale is the greater one.
        let dividend = i256::from_i128(left).checked_mul(factor).ok_or_else(overflow)?;
        let divisor = i256::from_i128(right);
        let (whole, rest) = (dividend.wrapping_div(divisor), dividend.wrapping_rem(divisor));
        let twice = rest.wrapping_abs().checked_mul(i256::from_i128(2)).ok_or_else(overflow)?;
        let away = if (left < 0) == (right < 0) { i256::ONE } else { i256::MINUS_ONE };
        let rounded =
            if twice >= divisor.wrapping_abs() { whole.wrapping_add(away) } else { whole };
        let fits = |value: &i128| value.unsigned_abs() < 10_u128.pow(38);
        rounded.to_i128().filter(fits).ok_or_else(overflow)
    })?;
    Ok(quotients.with_data_type(ty))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Decimal128Array};
    use arrow::datatypes::{DataType, Field};

    use super::divided;

    fn quotient(left: i128, left_scale: i8, right: i128, right_scale: i8) -> Option<i128> {
        let operands = [(left, left_scale), (right, right_scale)].map(|(value, scale)| {
            let ty = DataType::Decimal128(38, scale);
            let array: ArrayRef =
                Arc::new(Decimal128Array::from(vec![value]).with_data_type(ty.clone()));
            (array, Arc::new(Field::new("o", ty, true)))
        });
        let [(left, left_field), (right, right_field)] = operands;
        divided(&[left, right], &[left_field, right_field]).ok().map(|array| array.value(0))
    }

    #[test]
    fn quotients_have_sixteen_digits_and_are_rounded() {
        assert_eq!(quotient(10, 1, 3, 0), Some(3_333_333_333_333_333));
        assert_eq!(quotient(2, 0, 3, 0), Some(6_666_666_666_666_667));
        assert_eq!(quotient(-2, 0, 3, 0), Some(-6_666_666_666_666_667));
        assert_eq!(quotient(50, 1, 2, 0), Some(25_000_000_000_000_000));
        assert_eq!(quotient(1, 0, 0, 0), None);
        assert_eq!(quotient(10_i128.pow(37), 0, 1, 0), None);
    }
}
