//! Operands that PostgreSQL gives another type before an operator sees them: texts without a type of their own, reals
//! beside other numbers, rows whose members have other names, times beside intervals.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Cast, Expr};
use segue_types::sql_type_of;
use sqlparser::ast::BinaryOperator;

use super::super::cast;
use super::{is_list, is_number};

/// The operands with the types that the operator takes.
pub(super) fn typed(
    mut expr: RawBinaryExpr,
    left: DataType,
    right: DataType,
) -> (RawBinaryExpr, DataType, DataType) {
    let (mut left, mut right) = (left, right);
    if let Some(ty) = operand_type(&expr.op, &expr.left, &left, &right) {
        expr.left = converted(expr.left, &ty);
        left = ty;
    }
    if let Some(ty) = operand_type(&expr.op, &expr.right, &right, &left) {
        expr.right = converted(expr.right, &ty);
        right = ty;
    }
    if is_comparison(&expr.op)
        && let Some(ty) = renamed(&left, &right)
        && let Some(sql) = sql_type_of(&Field::new("", ty.clone(), true))
    {
        let function = Arc::new(cast::function(sql));
        expr.right =
            Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![expr.right.clone()]));
        right = ty;
    }
    (expr, left, right)
}

fn converted(expr: Expr, ty: &DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), ty.clone()))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
    )
}

/// The other type of an operand of type `own` that stands beside one of type `other`.
fn operand_type(
    op: &BinaryOperator,
    operand: &Expr,
    own: &DataType,
    other: &DataType,
) -> Option<DataType> {
    let is_text = matches!(operand, Expr::Literal(ScalarValue::Utf8(Some(_)), _));
    match (own, other) {
        (DataType::Utf8, number) if is_text && is_number(number) && is_arithmetic(op) => {
            Some(number.clone())
        }
        (DataType::Utf8, list) if is_text && is_list(list) && is_comparison(op) => {
            Some(list.clone())
        }
        (DataType::Utf8, DataType::Struct(_) | DataType::Interval(_))
            if is_text && is_comparison(op) =>
        {
            Some(other.clone())
        }
        // Of numbers beside one another only reals are computed as reals.
        (DataType::Float32, number) | (number, DataType::Float32)
            if is_arithmetic(op) && is_number(number) && *number != DataType::Float32 =>
        {
            (*own != DataType::Float64).then_some(DataType::Float64)
        }
        (DataType::Time64(_), DataType::Interval(_)) if is_comparison(op) => Some(other.clone()),
        _ => None,
    }
}

/// The type of the right row with the names of the left one's members, where they differ.
fn renamed(left: &DataType, right: &DataType) -> Option<DataType> {
    let (DataType::Struct(ours), DataType::Struct(theirs)) = (left, right) else { return None };
    if ours.len() != theirs.len() {
        return None;
    }
    let members = ours.iter().zip(theirs).map(|(our, their)| {
        let ty = match their.data_type() {
            DataType::Null => our.data_type().clone(),
            other => renamed(our.data_type(), other).unwrap_or_else(|| other.clone()),
        };
        Field::new(our.name(), ty, true)
    });
    let named = DataType::Struct(members.collect());
    (named != *right).then_some(named)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::renamed;

    #[test]
    fn rows_are_compared_by_place() {
        let row = |names: [&str; 2], ty: DataType| {
            let field = |name: &str| Field::new(name, ty.clone(), true);
            DataType::Struct(names.map(field).to_vec().into())
        };
        let left = row(["x", "y"], DataType::Int32);
        let right = row(["f1", "f2"], DataType::Int64);
        assert_eq!(renamed(&left, &right), Some(row(["x", "y"], DataType::Int64)));
        assert_eq!(renamed(&left, &left), None);
        assert_eq!(renamed(&left, &row(["f1", "f2"], DataType::Null)), Some(left.clone()));
    }
}
