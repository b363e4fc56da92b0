//! What is rewritten in the syntax tree, since DataFusion's planner would already lose it.

use std::ops::ControlFlow;

use segue_types::SqlType;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, CharacterLength, DataType, ExactNumberInfo, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, Subscript, UnaryOperator, Value, VisitMut, visit_expressions_mut,
};

/// Rewrites all expressions and table functions of a statement or query.
pub fn rewrite<T: VisitMut>(tree: &mut T) {
    super::merged::rewrite(tree);
    super::session_frames::measure(tree);
    super::windows::rewrite(tree);
    super::asof::rewrite(tree);
    super::sets::rewrite(tree);
    let _: ControlFlow<()> = visit_expressions_mut(tree, |expr| {
        expression(expr);
        ControlFlow::Continue(())
    });
}

fn expression(expr: &mut Expr) {
    let rewritten = match &mut *expr {
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            cast(expr, data_type)
        }
        Expr::TypedString(typed) => cast(&Expr::Value(typed.value.clone()), &typed.data_type),
        Expr::Interval(interval) if interval.leading_field.is_none() => {
            match interval.value.as_ref() {
                Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)) => {
                    Some(cast_to(
                        Expr::Value(value.clone()),
                        DataType::Interval { fields: None, precision: None },
                    ))
                }
                _ => None,
            }
        }
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => large(text),
            Value::UnicodeStringLiteral(text) => {
                Some(Expr::value(Value::SingleQuotedString(text.clone())))
            }
            _ => None,
        },
        Expr::AtTimeZone { timestamp, time_zone } => Some(call(
            super::zone::AT_TIME_ZONE,
            vec![timestamp.as_ref().clone(), time_zone.as_ref().clone()],
        )),
        Expr::Function(function) if is_row(function) => {
            super::calls::arguments(function).filter(|parts| !parts.is_empty()).map(row)
        }
        Expr::Tuple(parts) if !parts.is_empty() => Some(row(std::mem::take(parts))),
        Expr::Function(function) => remainder(function)
            .or_else(|| super::frames::without_rows(function))
            .or_else(|| super::names::function(function))
            .or_else(|| super::calls::function(function)),
        // DataFusion plans a literal without what stands around it, which a LATERAL refers to.
        Expr::Array(array) if !array.elem.is_empty() => {
            Some(call("make_array", std::mem::take(&mut array.elem)))
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            if let [AccessExpr::Subscript(slice)] = access_chain.as_mut_slice() {
                bounded(root, slice);
            }
            access_chain.iter_mut().for_each(member);
            access_chain.iter_mut().for_each(before_first);
            None
        }
        other => super::calls::operator(other),
    };
    if let Some(rewritten) = rewritten {
        *expr = rewritten;
    }
}

/// Types that DataFusion holds as text have to be told apart; a length cuts.
fn cast(expr: &Expr, to: &DataType) -> Option<Expr> {
    if let DataType::Varchar(Some(length))
    | DataType::CharacterVarying(Some(length))
    | DataType::Char(Some(length))
    | DataType::Character(Some(length)) = to
    {
        let CharacterLength::IntegerLength { length, .. } = length else { return None };
        let text = cast_to(expr.clone(), DataType::Text);
        let length = Expr::value(Value::Number(length.to_string(), false));
        return Some(call("left", vec![text, length]));
    }
    if let Some(exact) = exact(expr, to) {
        return Some(exact);
    }
    match segue_sql::parse_type(&to.to_string()) {
        Ok(ty @ (SqlType::Uuid | SqlType::Jsonb)) => {
            Some(call(&format!("cast_to_{ty}"), vec![expr.clone()]))
        }
        _ => None,
    }
}

/// A literal keeps all digits behind its point that `numeric` without precision has none for.
fn exact(expr: &Expr, to: &DataType) -> Option<Expr> {
    const DIGITS: usize = 10;
    let (DataType::Numeric(ExactNumberInfo::None) | DataType::Decimal(ExactNumberInfo::None)) = to
    else {
        return None;
    };
    let text = match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) | Value::SingleQuotedString(text) => text.trim(),
            _ => return None,
        },
        _ => return None,
    };
    let (whole, fraction) = text.split_once('.')?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = whole.trim_start_matches(['-', '+']);
    if !plain(digits) || !plain(fraction) || fraction.len() <= DIGITS {
        return None;
    }
    let scale = i64::try_from(fraction.len().min(38_usize.saturating_sub(digits.len()))).ok()?;
    Some(cast_to(expr.clone(), DataType::Numeric(ExactNumberInfo::PrecisionAndScale(38, scale))))
}

/// A slice without bounds is of all items: `l[2:]` is `l[2:cardinality(l)]`.
fn bounded(root: &Expr, subscript: &mut Subscript) {
    let Subscript::Slice { lower_bound, upper_bound, .. } = subscript else { return };
    if lower_bound.is_none() {
        *lower_bound = Some(Expr::value(Value::Number("1".to_owned(), false)));
    }
    if upper_bound.is_none() {
        let all = call("cardinality", vec![root.clone()]);
        *upper_bound = Some(cast_to(all, DataType::BigInt(None)));
    }
}

/// `(p).x` is `(p)['x']`.
fn member(access: &mut AccessExpr) {
    if let AccessExpr::Dot(Expr::Identifier(name)) = access {
        let folded =
            if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() };
        let index = Expr::value(Value::SingleQuotedString(folded));
        *access = AccessExpr::Subscript(Subscript::Index { index });
    }
}

/// Nothing stands before the first item of a list, where DataFusion counts from the end.
fn before_first(access: &mut AccessExpr) {
    if let AccessExpr::Subscript(Subscript::Index { index }) = access
        && matches!(index, Expr::UnaryOp { op: UnaryOperator::Minus, .. })
    {
        *index = Expr::value(Value::Number("0".to_owned(), false));
    }
}

fn is_row(function: &Function) -> bool {
    function.name.to_string().eq_ignore_ascii_case("row")
}

/// `ROW(a, b)`, whose members are called f1 and f2.
fn row(parts: Vec<Expr>) -> Expr {
    let name = |place: usize| Expr::value(Value::SingleQuotedString(format!("f{}", place + 1)));
    let members = parts.into_iter().enumerate().flat_map(|(place, part)| [name(place), part]);
    call(ROW, members.collect())
}

/// The parts of what [`row`] has made.
pub(super) fn row_parts(expr: &Expr) -> Option<Vec<Expr>> {
    let Expr::Function(function) = expr else { return None };
    let is_row = function.name.to_string() == ROW;
    is_row
        .then(|| super::calls::arguments(function))?
        .map(|members| members.into_iter().skip(1).step_by(2).collect())
}

/// DataFusion's function of names and values.
const ROW: &str = "named_struct";

/// `mod(a, b)` is `a % b`.
fn remainder(function: &Function) -> Option<Expr> {
    if !function.name.to_string().eq_ignore_ascii_case("mod") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(left)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(right)),
    ] = list.args.as_slice()
    else {
        return None;
    };
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    let remainder =
        Expr::BinaryOp { left: nested(left), op: BinaryOperator::Modulo, right: nested(right) };
    Some(Expr::Nested(Box::new(remainder)))
}

/// `1e300` is no numeric of 38 digits, and DataFusion's `1e15` is a little less.
fn large(text: &str) -> Option<Expr> {
    text.contains(['e', 'E']).then(|| {
        let digits = Expr::value(Value::SingleQuotedString(text.to_owned()));
        cast_to(digits, DataType::DoublePrecision)
    })
}

/// `CAST(expr AS to)`
pub(super) fn cast_to(expr: Expr, to: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type: to,
        array: false,
        format: None,
    }
}

/// `name(arguments)`
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(argument).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A query of our own making, to be filled in.
pub(super) fn query(text: &'static str) -> Query {
    *segue_sql::parse_query(text).expect("our own text is a query").tree
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::rewrite;

    fn rewritten(text: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, text).expect("grammatical");
        rewrite(&mut statements);
        statements[0].to_string()
    }

    #[test]
    fn casts_that_would_be_lost_become_calls() {
        let text = "SELECT x::uuid, CAST(y AS jsonb), UUID 'z', a::varchar(3), b::int";
        let expected = "SELECT cast_to_uuid(x), cast_to_jsonb(y), cast_to_uuid('z'), \
                        left(CAST(a AS TEXT), 3), b::INT";
        assert_eq!(rewritten(text), expected);
    }

    #[test]
    fn what_datafusion_calls_otherwise_is_called_so() {
        let text = "SELECT mod(a + 1, 2), t AT TIME ZONE 'UTC', (p).X";
        let expected = "SELECT ((a + 1) % (2)), at_time_zone(t, 'UTC'), (p)['x']";
        assert_eq!(rewritten(text), expected);
    }

    #[test]
    fn sets_and_fetch_are_written_as_datafusion_reads_them() {
        let text = "SELECT generate_series(1, 3) + 1 FROM generate_series(1, 2) AS g, range(0, 1) \
                    FETCH FIRST 2 ROWS ONLY";
        let expected = "SELECT unnest(generate_series(1, 3)) + 1 FROM generate_series(1, 2) AS g (g), \
                        range(0, 1) AS range (range) LIMIT 2";
        assert_eq!(rewritten(text), expected);
    }

    #[test]
    fn operators_that_datafusion_lacks_become_calls() {
        let text =
            "SELECT a -> 'b' ->> 0, |/ 4, ~1, ARRAY(SELECT x FROM t), substring(a FROM 'o.b')";
        let expected = "SELECT jsonb_get_text(jsonb_get(a, 'b'), 0), sqrt(4), ((1) # (-1)), \
                        list_cat((SELECT array_agg(x) FROM t), make_array()), \
                        regexp_match(a, 'o.b')[1]";
        assert_eq!(rewritten(text), expected);
    }

    #[test]
    fn intervals_and_large_numbers_become_casts() {
        let text = "SELECT INTERVAL '1 day', INTERVAL '1' DAY, 1e300, 1000";
        let expected = "SELECT CAST('1 day' AS INTERVAL), INTERVAL '1' DAY, \
                        CAST('1e300' AS DOUBLE PRECISION), 1000";
        assert_eq!(rewritten(text), expected);
    }
}
