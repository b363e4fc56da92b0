//! ASOF joins: each row meets the one row of the other side whose time is nearest to its own, in the direction of the
//! inequality. It is the first row of a LATERAL in that order.

use std::ops::ControlFlow;

use segue_sql::Statement;
use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, TableAlias, TableFactor,
    TableWithJoins, Value, VisitMut, VisitorMut,
};

/// Rewrites all of them in a statement or query. What is none of these stays, and is refused.
pub(super) fn rewrite<T: VisitMut>(tree: &mut T) {
    let _: ControlFlow<()> = tree.visit(&mut AsOf);
}

struct AsOf;

impl VisitorMut for AsOf {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut sqlparser::ast::Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(joins);
        ControlFlow::Continue(())
    }
}

fn joins(from: &mut TableWithJoins) {
    for join in &mut from.joins {
        if let Some(lateral) = lateral(join) {
            *join = lateral;
        }
    }
}

fn lateral(join: &Join) -> Option<Join> {
    let JoinOperator::AsOf { match_condition, constraint: JoinConstraint::On(condition) } =
        &join.join_operator
    else {
        return None;
    };
    let Expr::Value(value) = match_condition else { return None };
    let Value::Boolean(is_inner) = value.value else { return None };
    let name = name_of(&join.relation)?;
    let (nearest, direction) =
        conjuncts(condition).into_iter().find_map(|part| nearest(part, &name))?;
    let text = format!(
        "SELECT 1 FROM x, LATERAL (SELECT * FROM {} WHERE {condition} \
         ORDER BY {nearest} {direction} LIMIT 1) AS {name}",
        join.relation
    );
    let Some(Statement::Sql(statement)) = segue_sql::parse(&text).ok()?.pop() else { return None };
    let sqlparser::ast::Statement::Query(query) = *statement else { return None };
    let sqlparser::ast::SetExpr::Select(select) = *query.body else { return None };
    let relation = select.from.into_iter().nth(1)?.relation;
    let always = JoinConstraint::On(Expr::value(Value::Boolean(true)));
    let join_operator = match is_inner {
        true => JoinOperator::Inner(always),
        false => JoinOperator::Left(always),
    };
    Some(Join { relation, global: false, join_operator })
}

/// The name by which a relation's columns are called.
fn name_of(relation: &TableFactor) -> Option<Ident> {
    match relation {
        TableFactor::Table { alias: Some(TableAlias { name, .. }), .. }
        | TableFactor::Derived { alias: Some(TableAlias { name, .. }), .. } => Some(name.clone()),
        TableFactor::Table { name, .. } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left).into_iter().chain(conjuncts(right)).collect()
        }
        Expr::Nested(inner) => conjuncts(inner),
        other => vec![other],
    }
}

/// What of the relation an inequality compares, and how its nearest value comes first.
fn nearest<'a>(part: &'a Expr, name: &Ident) -> Option<(&'a Expr, &'static str)> {
    let Expr::BinaryOp { left, op, right } = part else { return None };
    let is_less = match op {
        BinaryOperator::Lt | BinaryOperator::LtEq => true,
        BinaryOperator::Gt | BinaryOperator::GtEq => false,
        _ => return None,
    };
    match (is_of(left, name), is_of(right, name)) {
        // Below the other side's value, the greatest is nearest.
        (true, false) => Some((left, if is_less { "DESC" } else { "ASC" })),
        (false, true) => Some((right, if is_less { "ASC" } else { "DESC" })),
        _ => None,
    }
}

/// Whether an expression names a column of the relation.
fn is_of(expr: &Expr, name: &Ident) -> bool {
    let found = sqlparser::ast::visit_expressions(expr, |part| match part {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., relation, _] if relation.value.eq_ignore_ascii_case(&name.value) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}
