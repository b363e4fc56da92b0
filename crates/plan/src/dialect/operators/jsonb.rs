//! Operators whose meaning hangs on an operand being jsonb, which is text to DataFusion.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};
use segue_types::{SqlType, sql_type_of};
use sqlparser::ast::BinaryOperator;

use super::super::{cast, jsonb};

static FUNCTIONS: LazyLock<Vec<Arc<ScalarUDF>>> =
    LazyLock::new(|| jsonb::functions().into_iter().map(Arc::new).collect());

/// The call that an operator of jsonb stands for.
pub(super) fn call(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let (name, swapped) = match expr.op {
        BinaryOperator::StringConcat => ("jsonb_concat", false),
        BinaryOperator::Minus => ("jsonb_delete", false),
        BinaryOperator::AtArrow => ("jsonb_contains", false),
        BinaryOperator::ArrowAt => ("jsonb_contains", true),
        _ => return None,
    };
    let is_jsonb = |operand: &Expr| {
        let field = operand.to_field(schema).ok();
        field.is_some_and(|(_, field)| sql_type_of(&field) == Some(SqlType::Jsonb))
    };
    let both = [&expr.left, &expr.right];
    let operands = match name {
        "jsonb_delete" if is_jsonb(&expr.left) => vec![expr.left.clone(), expr.right.clone()],
        "jsonb_delete" => return None,
        // Of a text column and jsonb the text is meant.
        _ if !both.iter().any(|operand| is_jsonb(operand)) => return None,
        _ if !both.iter().all(|operand| is_jsonb(operand) || is_literal(operand, schema)) => {
            return None;
        }
        _ => both.into_iter().map(|operand| read(operand, is_jsonb(operand))).collect(),
    };
    let operands = if swapped { operands.into_iter().rev().collect() } else { operands };
    let function = FUNCTIONS.iter().find(|function| function.name() == name)?;
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), operands)))
}

/// A text without a type of its own.
fn is_literal(operand: &Expr, schema: &DFSchema) -> bool {
    matches!(operand, Expr::Literal(..))
        && matches!(operand.get_type(schema), Ok(DataType::Utf8 | DataType::Null))
}

fn read(operand: &Expr, is_jsonb: bool) -> Expr {
    if is_jsonb {
        return operand.clone();
    }
    let function = Arc::new(cast::function(SqlType::Jsonb));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![operand.clone()]))
}
