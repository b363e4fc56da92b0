//! Operators and functions that DataFusion does not have, or has under another name, as calls of those that it has.

use sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, DuplicateTreatment, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident,
    OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, SelectItem, SetExpr, Subscript,
    TableAliasColumnDef, TableFactor, TimezoneInfo, UnaryOperator, Value,
};

use super::syntax::{call, cast_to, query};

/// What an operator stands for.
pub(super) fn operator(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::UnaryOp { op, expr } => unary(*op, expr),
        Expr::InSubquery { expr, subquery, negated: false } => {
            row_in(&super::syntax::row_parts(expr)?, subquery)
        }
        Expr::Like { any: true, negated, expr, pattern, escape_char: None } => {
            let name = if *negated { "any not like" } else { "any like" };
            Some(call(name, vec![expr.as_ref().clone(), pattern.as_ref().clone()]))
        }
        Expr::ILike { any: true, negated, expr, pattern, escape_char: None } => {
            let name = if *negated { "any not ilike" } else { "any ilike" };
            Some(call(name, vec![expr.as_ref().clone(), pattern.as_ref().clone()]))
        }
        Expr::AnyOp { left, compare_op, right, .. } => {
            super::quantified::any(left, compare_op, right)
        }
        Expr::AllOp { left, compare_op, right } => super::quantified::all(left, compare_op, right),
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (left.as_ref().clone(), right.as_ref().clone());
            binary(op, left, right)
        }
        // sqlparser takes the pattern of `substring(x from 'pattern')` for a place.
        Expr::Substring { expr, substring_from: Some(from), substring_for: None, .. }
            if is_text(from) =>
        {
            let groups = call("regexp_match", vec![expr.as_ref().clone(), from.as_ref().clone()]);
            let first = Expr::value(Value::Number("1".to_owned(), false));
            Some(Expr::CompoundFieldAccess {
                root: Box::new(groups),
                access_chain: vec![AccessExpr::Subscript(Subscript::Index { index: first })],
            })
        }
        Expr::Identifier(name)
            if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("localtimestamp") =>
        {
            let now = call("now", Vec::new());
            Some(cast_to(now, DataType::Timestamp(None, TimezoneInfo::None)))
        }
        other => super::patterns::operator(other),
    }
}

/// `(a, b) IN (query)` is the question whether a row of the query has these values.
fn row_in(values: &[Expr], query: &Query) -> Option<Expr> {
    let names = (0..values.len()).map(|place| format!("\"in {place}\"")).collect::<Vec<_>>();
    let equal = names.iter().zip(values).map(|(name, value)| format!("{name} = ({value})"));
    let equal = equal.collect::<Vec<_>>().join(" AND ");
    let text = format!("SELECT 1 FROM ({query}) AS \"in\" ({}) WHERE {equal}", names.join(", "));
    let subquery = segue_sql::parse_query(&text).ok()?.tree;
    Some(Expr::Exists { subquery, negated: false })
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

/// What `^` stands for; `power` is the same as a function.
const POWER: &str = "dpow";

/// A sign in front of `a ^ b` is that of `a`.
fn negated_base(operand: &Expr) -> Option<Expr> {
    let Expr::Function(function) = operand else { return None };
    let is_power = function.name.to_string() == POWER;
    let [base, exponent] = is_power.then(|| arguments(function))??.try_into().ok()?;
    let base = negated_base(&base).unwrap_or_else(|| Expr::UnaryOp {
        op: UnaryOperator::Minus,
        expr: Box::new(Expr::Nested(Box::new(base))),
    });
    Some(call(POWER, vec![base, exponent]))
}

fn unary(op: UnaryOperator, operand: &Expr) -> Option<Expr> {
    let name = match op {
        UnaryOperator::Minus => return negated_base(operand),
        UnaryOperator::PGSquareRoot => "sqrt",
        UnaryOperator::PGCubeRoot => "cbrt",
        UnaryOperator::PGAbs => "abs",
        UnaryOperator::BitwiseNot => {
            let all = Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: Box::new(Expr::value(Value::Number("1".to_owned(), false))),
            };
            return Some(Expr::Nested(Box::new(Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(operand.clone()))),
                op: BinaryOperator::PGBitwiseXor,
                right: Box::new(Expr::Nested(Box::new(all))),
            })));
        }
        _ => return None,
    };
    Some(call(name, vec![operand.clone()]))
}

fn binary(op: &BinaryOperator, left: Expr, right: Expr) -> Option<Expr> {
    let name = match op {
        BinaryOperator::Arrow => "jsonb_get",
        BinaryOperator::LongArrow => "jsonb_get_text",
        BinaryOperator::HashArrow => "jsonb_get_path",
        BinaryOperator::HashLongArrow => "jsonb_get_path_text",
        BinaryOperator::Question => "jsonb_exists",
        BinaryOperator::QuestionPipe => "jsonb_exists_any",
        BinaryOperator::QuestionAnd => "jsonb_exists_all",
        BinaryOperator::HashMinus => "jsonb_delete_path",
        BinaryOperator::PGStartsWith => "starts_with",
        BinaryOperator::PGOverlap => "array_has_any",
        BinaryOperator::PGExp => POWER,
        _ => return None,
    };
    let is_path = matches!(
        op,
        BinaryOperator::HashArrow
            | BinaryOperator::HashLongArrow
            | BinaryOperator::HashMinus
            | BinaryOperator::QuestionPipe
            | BinaryOperator::QuestionAnd
    );
    let right = if is_path {
        let texts = ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None);
        cast_to(right, DataType::Array(texts))
    } else {
        right
    };
    Some(call(name, vec![left, right]))
}

/// The one column of a plain query gathered where it stands, so that a query around it is seen.
fn gather(query: &mut Query) -> Option<()> {
    if query.with.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
        return None;
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let is_plain = select.distinct.is_none()
        && select.having.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
        select.projection.as_slice()
    else {
        return None;
    };
    // A call may be an aggregate or a set, and then there is more to do.
    if !is_plain || !matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
        return None;
    }
    let mut gathered = call("array_agg", vec![value.clone()]);
    match &query.order_by {
        None => {}
        Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) => {
            if order.iter().any(|by| matches!(by.expr, Expr::Value(_))) {
                return None;
            }
            if let Expr::Function(function) = &mut gathered
                && let FunctionArguments::List(list) = &mut function.args
            {
                list.clauses.push(FunctionArgumentClause::OrderBy(order.clone()));
            }
        }
        Some(_) => return None,
    }
    select.projection = vec![SelectItem::UnnamedExpr(gathered)];
    query.order_by = None;
    Some(())
}

/// What a call stands for.
pub(super) fn function(function: &Function) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    if let FunctionArguments::Subquery(rows) = &function.args {
        // Nothing gathered is an empty array.
        let gathered = || vec![array_of((**rows).clone()), call("make_array", Vec::new())];
        return (name == "array").then(|| call(super::concat::CONCAT, gathered()));
    }
    let arguments = arguments(function)?;
    if let Some(ordered) = distinct_in_order(function, &name, &arguments) {
        return Some(ordered);
    }
    match (name.as_str(), arguments.as_slice()) {
        ("to_timestamp", [text, pattern]) => {
            Some(call(super::parse::TO_TIMESTAMP, vec![text.clone(), pattern.clone()]))
        }
        ("to_date", [text, pattern]) => {
            let moment = call(super::parse::TO_TIMESTAMP, vec![text.clone(), pattern.clone()]);
            Some(cast_to(moment, DataType::Date))
        }
        ("arg_max" | "arg_min", [value, by]) => Some(at_extreme(function, &name, value, by)),
        ("timezone", [zone, moment]) => {
            Some(call(super::zone::AT_TIME_ZONE, vec![moment.clone(), zone.clone()]))
        }
        ("array_cat" | "array_append" | "array_prepend", [_, _]) => {
            Some(call(super::concat::CONCAT, arguments))
        }
        // PostgreSQL has no length for a list of nothing.
        ("array_length", [_, _]) => {
            let length = Expr::Function(function.clone());
            Some(call("nullif", vec![length, Expr::value(Value::Number("0".to_owned(), false))]))
        }
        ("div", [dividend, divisor]) => {
            let numeric = |expr: &Expr| {
                let none = sqlparser::ast::ExactNumberInfo::None;
                Box::new(cast_to(expr.clone(), DataType::Numeric(none)))
            };
            let quotient = Expr::BinaryOp {
                left: numeric(dividend),
                op: BinaryOperator::Divide,
                right: numeric(divisor),
            };
            Some(call("trunc", vec![quotient]))
        }
        _ => super::names::renamed(function, &name),
    }
}

/// `arg_max(v, by)` is the first value in the order of what it is the maximum of.
fn at_extreme(function: &Function, name: &str, value: &Expr, by: &Expr) -> Expr {
    let asc = name == "arg_min";
    let options = OrderByOptions { asc: Some(asc), nulls_first: Some(false) };
    let by = OrderByExpr { expr: by.clone(), options, with_fill: None };
    let mut first = function.clone();
    first.name = vec![Ident::new("first_value")].into();
    if let FunctionArguments::List(list) = &mut first.args {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value.clone()))];
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![by]));
    }
    Expr::Function(first)
}

/// PostgreSQL finds distinct values by sorting them, and so gathers them in order.
fn distinct_in_order(function: &Function, name: &str, arguments: &[Expr]) -> Option<Expr> {
    if !matches!(name, "array_agg" | "string_agg" | "jsonb_agg") || function.over.is_some() {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    if list.duplicate_treatment != Some(DuplicateTreatment::Distinct) || !list.clauses.is_empty() {
        return None;
    }
    let options = OrderByOptions { asc: None, nulls_first: None };
    let by = OrderByExpr { expr: arguments.first()?.clone(), options, with_fill: None };
    let mut ordered = function.clone();
    if let FunctionArguments::List(list) = &mut ordered.args {
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![by]));
    }
    Some(Expr::Function(ordered))
}

/// The plain arguments of a call; `None` when it has any others.
pub(super) fn arguments(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let plain = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

/// What a query is ordered by as columns of its own, behind those that it has; the order is left out where it says
/// nothing else.
fn order_keys(query: &mut Query) -> Vec<OrderByExpr> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Vec::new() };
    let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = &query.order_by else {
        return Vec::new();
    };
    if select.distinct.is_some() || select.projection.len() != 1 {
        return Vec::new();
    }
    let mut keys = Vec::new();
    for (place, by) in order.iter().enumerate() {
        let expr = super::ties::selected(&by.expr, select).unwrap_or_else(|| by.expr.clone());
        let alias = Ident::with_quote('"', format!("array key {place}"));
        select.projection.push(SelectItem::ExprWithAlias { expr, alias: alias.clone() });
        let options = by.options;
        keys.push(OrderByExpr { expr: Expr::Identifier(alias), options, with_fill: None });
    }
    if query.limit_clause.is_none() && query.fetch.is_none() {
        query.order_by = None;
    }
    keys
}

/// `ARRAY(query)` gathers the one column of the query, in its order.
fn array_of(mut rows: Query) -> Expr {
    if gather(&mut rows).is_some() {
        return Expr::Subquery(Box::new(rows));
    }
    let keys = order_keys(&mut rows);
    let mut gathered = query("SELECT array_agg(e) FROM t AS r(e)");
    if let SetExpr::Select(select) = gathered.body.as_mut()
        && let [from] = select.from.as_mut_slice()
        && let TableFactor::Table { alias: Some(alias), .. } = &from.relation
        && let Some(SelectItem::UnnamedExpr(Expr::Function(function))) =
            select.projection.first_mut()
        && let FunctionArguments::List(list) = &mut function.args
    {
        let mut alias = alias.clone();
        let name = |key: &OrderByExpr| match &key.expr {
            Expr::Identifier(name) => {
                Some(TableAliasColumnDef { name: name.clone(), data_type: None })
            }
            _ => None,
        };
        alias.columns.extend(keys.iter().filter_map(name));
        if !keys.is_empty() {
            list.clauses.push(FunctionArgumentClause::OrderBy(keys));
        }
        let alias = Some(alias);
        let subquery = Box::new(rows);
        from.relation = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
    }
    Expr::Subquery(Box::new(gathered))
}
