//! Functions that are there under another name, or as an operator, a cast, or a call of others.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use datafusion::functions::datetime::date_part;
use datafusion::logical_expr::{Cast, Expr as Planned, Operator, ScalarUDF, binary_expr, lit};
use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, TimezoneInfo, Value, VisitMut, visit_expressions_mut,
};

use super::calls::arguments;
use super::general;
use super::syntax::{call, cast_to};

/// DataFusion's name, or ours, of a function that is there under another one.
const NAMES: &[(&str, &str)] = &[
    ("array_contains", "array_has_all"),
    ("array_is_intersect", "array_has_any"),
    ("array_is_overlap", "array_has_any"),
    ("array_join", "array_to_string"),
    ("array_overlaps", "array_has_any"),
    ("approx_count_distinct", "approx_distinct"),
    ("ceiling", "ceil"),
    ("clock_timestamp", "now"),
    ("every", "bool_and"),
    ("gen_random_uuid", "uuid"),
    ("jsonb_extract_path", "jsonb_path"),
    ("jsonb_extract_path_text", "jsonb_path_text"),
    ("json_agg", "jsonb_agg"),
    ("json_object_agg", "jsonb_object_agg"),
    ("pow", "power"),
    ("statement_timestamp", "now"),
    ("transaction_timestamp", "now"),
    ("variance", "var_samp"),
];

/// Gives back its first argument; the second one makes it another one than its like.
const APART: &str = "told_apart";

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let same: general::Returns = |fields| Ok(Arc::clone(&fields[0]));
    vec![general::function(APART, general::any, same, |columns, _| Ok(Arc::clone(&columns[0])))]
}

/// DataFusion does not show casts in names, and so takes `sum(a)` and `sum(a::bigint)` for one column: each cast that
/// a function takes gets a number.
pub fn tell_apart<T: VisitMut>(tree: &mut T) {
    let mut number = 0;
    let _: ControlFlow<()> = visit_expressions_mut(tree, |expr| {
        if let Expr::Function(function) = expr
            && let FunctionArguments::List(list) = &mut function.args
        {
            for argument in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value @ Expr::Cast { .. })) =
                    argument
                {
                    number += 1;
                    let place = Expr::value(Value::Number(number.to_string(), false));
                    *value = call(APART, vec![value.clone(), place]);
                }
            }
        }
        ControlFlow::Continue(())
    });
}

/// The call under the name by which it is there.
pub(super) fn renamed(function: &Function, name: &str) -> Option<Expr> {
    let (_, ours) = NAMES.iter().find(|(known, _)| *known == name)?;
    let mut renamed = function.clone();
    renamed.name = vec![Ident::new(*ours)].into();
    Some(Expr::Function(renamed))
}

/// Functions of numbers: a text without a type of its own is a double precision there.
const OF_NUMBERS: &[&str] = &[
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh",
    "cot", "degrees", "floor", "radians", "round", "sign", "sin", "sinh", "tan", "tanh", "trunc",
];

/// What a call of these names stands for.
pub(super) fn function(function: &Function) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    let mut arguments = arguments(function)?;
    let is_whole = matches!(name.as_str(), "round" | "trunc") && arguments.len() == 1;
    if OF_NUMBERS.contains(&name.as_str()) && !is_whole {
        let mut any = false;
        for argument in &mut arguments {
            if is_text(argument) {
                *argument = cast_to(argument.clone(), DataType::DoublePrecision);
                any = true;
            }
        }
        return any.then(|| call(&name, arguments));
    }
    match (name.as_str(), arguments.as_slice()) {
        ("date_part", [Expr::Value(part), from]) => {
            let Value::SingleQuotedString(part) = &part.value else { return None };
            let text = format!("extract({part} FROM ({from}))");
            let is_ours = ["decade", "century", "centuries", "millenni", "second"];
            let is_ours = is_ours.iter().any(|known| part.to_ascii_lowercase().starts_with(known));
            is_ours
                .then(|| segue_sql::parse_expression(&text).ok())
                .flatten()
                .map(|text| *text.tree)
        }
        ("pg_typeof", [Expr::Value(value)])
            if matches!(value.value, Value::SingleQuotedString(_) | Value::Null) =>
        {
            Some(Expr::value(Value::SingleQuotedString("unknown".to_owned())))
        }
        ("booleq", [left, right]) => Some(compared(left, BinaryOperator::Eq, right)),
        ("boolne", [left, right]) => Some(compared(left, BinaryOperator::NotEq, right)),
        ("date", [value]) if !is_number(value) => Some(cast_to(value.clone(), DataType::Date)),
        ("quote_nullable", [text]) => {
            let null = Expr::value(Value::SingleQuotedString("NULL".to_owned()));
            Some(call("coalesce", vec![call("quote_literal", vec![text.clone()]), null]))
        }
        ("round", [value]) => Some(call(super::math::ROUND_WHOLE, vec![value.clone()])),
        ("trunc", [value]) => Some(call(super::math::TRUNC_WHOLE, vec![value.clone()])),
        ("array_sort", [list]) => {
            let word = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
            Some(call("array_sort", vec![list.clone(), word("ASC"), word("NULLS LAST")]))
        }
        ("trim_array", [list, count]) => {
            let length = cast_to(call("cardinality", vec![list.clone()]), DataType::BigInt(None));
            let kept = compared(&length, BinaryOperator::Minus, count);
            let first = Expr::value(Value::Number("1".to_owned(), false));
            Some(call("array_slice", vec![list.clone(), first, kept]))
        }
        ("make_timestamptz", [parts @ .., zone]) if parts.len() == 6 => {
            let local = call("make_timestamp", parts.to_vec());
            Some(call(super::zone::AT_TIME_ZONE, vec![local, zone.clone()]))
        }
        ("make_timestamptz", parts) if parts.len() == 6 => {
            let local = call("make_timestamp", parts.to_vec());
            Some(cast_to(local, DataType::Timestamp(None, TimezoneInfo::Tz)))
        }
        _ => None,
    }
}

/// `extract(part FROM from)` of the parts that DataFusion does not give, or gives without a fraction.
pub(super) fn part(part: &str, from: &Planned) -> Option<Planned> {
    let years = |round: i64, size: i64| {
        let year = date_part().call(vec![lit("year"), from.clone()]);
        let year = Planned::Cast(Cast::new(Box::new(year), ArrowType::Int64));
        let begun = binary_expr(year, Operator::Plus, lit(round));
        Some(binary_expr(begun, Operator::Divide, lit(size)))
    };
    match part.to_ascii_lowercase().as_str() {
        "second" | "seconds" => {
            let micros = date_part().call(vec![lit("microsecond"), from.clone()]);
            let micros = Planned::Cast(Cast::new(Box::new(micros), ArrowType::Float64));
            Some(binary_expr(micros, Operator::Divide, lit(1_000_000.0_f64)))
        }
        "decade" | "decades" => years(0, 10),
        "century" | "centuries" => years(99, 100),
        "millennium" | "millennia" => years(999, 1_000),
        _ => None,
    }
}

fn compared(left: &Expr, op: BinaryOperator, right: &Expr) -> Expr {
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    Expr::Nested(Box::new(Expr::BinaryOp { left: nested(left), op, right: nested(right) }))
}

fn is_text(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_text(inner),
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        _ => false,
    }
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}
