//! `x op ANY (list)` and `x op ALL (list)`, with the rule for NULLs: unknown where an item that decides is.
//!
//! Over a subquery `= ANY` is IN and `<> ALL` is NOT IN; the other comparisons are DataFusion's.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::compute::kernels::cmp;
use arrow::compute::{cast, ilike, like, nilike, nlike, take};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use segue_types::SqlType;
use sqlparser::ast::{BinaryOperator, Expr, Query, SetExpr};

use super::general;
use super::syntax::call;

type Compare = fn(&ArrayRef, &ArrayRef) -> Result<BooleanArray, arrow::error::ArrowError>;

/// What of an operator decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    Any,
    All,
}

/// All of them, one for each operator and quantifier.
pub(super) fn functions() -> Vec<ScalarUDF> {
    macro_rules! both {
        ($($name:literal => $compare:expr),* $(,)?) => {
            vec![$(
                function(concat!("any ", $name), |c, _| decided(c, $compare, Quantifier::Any)),
                function(concat!("all ", $name), |c, _| decided(c, $compare, Quantifier::All)),
            )*]
        };
    }
    both![
        "=" => |a, b| cmp::eq(a, b),
        "<>" => |a, b| cmp::neq(a, b),
        "<" => |a, b| cmp::lt(a, b),
        "<=" => |a, b| cmp::lt_eq(a, b),
        ">" => |a, b| cmp::gt(a, b),
        ">=" => |a, b| cmp::gt_eq(a, b),
        "like" => |a, b| like(a, b),
        "not like" => |a, b| nlike(a, b),
        "ilike" => |a, b| ilike(a, b),
        "not ilike" => |a, b| nilike(a, b),
    ]
}

fn function(name: &'static str, body: general::Body) -> ScalarUDF {
    general::function(name, comparable, |_| Ok(general::typed(&SqlType::Boolean)), body)
}

/// A value and a list of the same type.
fn comparable(given: &[DataType]) -> Option<Vec<DataType>> {
    let [value, list] = given else { return None };
    let item = match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item,
        // A text is an array of the value's type, as in `= ANY('{1,2}')`; NULL is one of any.
        DataType::Null => {
            let item = Arc::new(arrow::datatypes::Field::new_list_field(value.clone(), true));
            return Some(vec![value.clone(), DataType::List(item)]);
        }
        _ => return None,
    };
    let common = comparison_coercion(value, item.data_type())?;
    let item = Arc::new(item.as_ref().clone().with_data_type(common.clone()));
    Some(vec![common, DataType::List(item)])
}

fn decided(columns: &[ArrayRef], compare: Compare, quantifier: Quantifier) -> Result<ArrayRef> {
    let list = columns[1].as_list::<i32>();
    let offsets = list.value_offsets();
    let (first, last) = (offsets[0] as usize, offsets[list.len()] as usize);
    let rows = (0..list.len()).flat_map(|row| {
        let length = offsets[row + 1] - offsets[row];
        std::iter::repeat_n(row as u32, length as usize)
    });
    let values = take(&columns[0], &UInt32Array::from_iter_values(rows), None)?;
    let items = list.values().slice(first, last - first);
    let items = cast(&items, values.data_type())?;
    let holds = compare(&values, &items)?;
    let decides = quantifier == Quantifier::Any;
    let verdict = |row: usize| {
        if list.is_null(row) {
            return None;
        }
        let mut unknown = false;
        for item in offsets[row] as usize - first..offsets[row + 1] as usize - first {
            if holds.is_null(item) {
                unknown = true;
            } else if holds.value(item) == decides {
                return Some(decides);
            }
        }
        if unknown { None } else { Some(!decides) }
    };
    Ok(Arc::new((0..list.len()).map(verdict).collect::<BooleanArray>()))
}

/// `left op ANY (right)`
pub(super) fn any(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    match subquery(right) {
        Some(query) => (*op == BinaryOperator::Eq).then(|| in_query(left, query, Negated::No)),
        None => Some(call(&format!("any {}", name(op)?), vec![left.clone(), inner(right)])),
    }
}

/// `left op ALL (right)`
pub(super) fn all(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    match subquery(right) {
        Some(query) => (*op == BinaryOperator::NotEq).then(|| in_query(left, query, Negated::Yes)),
        None => Some(call(&format!("all {}", name(op)?), vec![left.clone(), inner(right)])),
    }
}

#[derive(Clone, Copy)]
enum Negated {
    No,
    Yes,
}

fn in_query(left: &Expr, query: &Query, negated: Negated) -> Expr {
    Expr::InSubquery {
        expr: Box::new(left.clone()),
        subquery: Box::new(query.clone()),
        negated: matches!(negated, Negated::Yes),
    }
}

fn subquery(right: &Expr) -> Option<&Query> {
    match right {
        Expr::Subquery(query) if !matches!(query.body.as_ref(), SetExpr::Values(_)) => Some(query),
        _ => None,
    }
}

fn inner(right: &Expr) -> Expr {
    match right {
        Expr::Nested(inner) => inner.as_ref().clone(),
        other => other.clone(),
    }
}

fn name(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        BinaryOperator::PGLikeMatch => "like",
        BinaryOperator::PGNotLikeMatch => "not like",
        BinaryOperator::PGILikeMatch => "ilike",
        BinaryOperator::PGNotILikeMatch => "not ilike",
        _ => return None,
    })
}
