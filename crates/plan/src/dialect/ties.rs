//! `FETCH FIRST n ROWS WITH TIES`: the rows whose rank in the order is at most n.

use sqlparser::ast::{
    BinaryOperator, Expr, OrderByKind, Query, Select, SelectItem, SetExpr, Value,
};

/// Puts the bound of a rank in the place of FETCH. Other queries stay, for whoever refuses them.
pub(super) fn rewrite(query: &mut Query) {
    if let Some(condition) = bound(query)
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        select.qualify = Some(condition);
        query.fetch = None;
    }
}

fn bound(query: &Query) -> Option<Expr> {
    let fetch = query.fetch.as_ref().filter(|fetch| fetch.with_ties && !fetch.percent)?;
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    // A rank is taken before rows are made distinct or left out.
    if query.limit_clause.is_some() || select.distinct.is_some() || select.qualify.is_some() {
        return None;
    }
    let OrderByKind::Expressions(order) = &query.order_by.as_ref()?.kind else { return None };
    let order = order.iter().map(|by| {
        let mut by = by.clone();
        by.expr = selected(&by.expr, select).unwrap_or(by.expr);
        by.to_string()
    });
    let order = order.collect::<Vec<_>>().join(", ");
    let rank = segue_sql::parse_expression(&format!("rank() OVER (ORDER BY {order})")).ok()?;
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    Some(Expr::BinaryOp {
        left: rank.tree,
        op: BinaryOperator::LtEq,
        right: Box::new(fetch.quantity.clone().unwrap_or_else(one)),
    })
}

/// What ORDER BY means by a place among the selected columns, or by the name of one.
pub(super) fn selected(by: &Expr, select: &Select) -> Option<Expr> {
    match by {
        Expr::Value(value) => {
            let Value::Number(place, _) = &value.value else { return None };
            match select.projection.get(place.parse::<usize>().ok()?.checked_sub(1)?)? {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    Some(expr.clone())
                }
                _ => None,
            }
        }
        Expr::Identifier(name) => select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias == name => Some(expr.clone()),
            _ => None,
        }),
        _ => None,
    }
}
