//! Functions that return sets, and FETCH: rewritten where they stand in a query.
//!
//! PostgreSQL calls the column of `generate_series(1, 3)` after the function or its alias, and gives a row for each
//! value also where the call stands among the selected columns.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, Ident, LimitClause, Query, Select, SelectItem, TableAlias, TableAliasColumnDef,
    TableFactor, Value, VisitMut, VisitorMut, visit_expressions_mut,
};

use super::syntax::call;

/// Those that DataFusion answers with a list outside FROM.
const SETS: &[&str] = &["generate_series", "range"];

/// The rewriting of whole queries.
pub(super) struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        fetch(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                unnest_sets(expr);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        name_column(factor);
        ControlFlow::Continue(())
    }
}

/// `FETCH FIRST n ROWS ONLY` is LIMIT n. WITH TIES and PERCENT are not, and stay for whoever refuses them.
fn fetch(query: &mut Query) {
    let Some(fetch) = &query.fetch else { return };
    if fetch.with_ties || fetch.percent {
        return;
    }
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    let rows = fetch.quantity.clone().unwrap_or_else(one);
    match &mut query.limit_clause {
        None => {
            query.limit_clause = Some(LimitClause::LimitOffset {
                limit: Some(rows),
                offset: None,
                limit_by: Vec::new(),
            });
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(rows),
        Some(_) => return,
    }
    query.fetch = None;
}

fn is_set(function: &Function) -> bool {
    let name = function.name.to_string();
    SETS.iter().any(|set| name.eq_ignore_ascii_case(set))
}

fn unnest_sets(expr: &mut Expr) {
    let _: ControlFlow<()> = visit_expressions_mut(expr, |part| {
        if matches!(part, Expr::Function(function) if is_set(function)) {
            let list = std::mem::replace(part, Expr::value(Value::Null));
            *part = call("unnest", vec![list]);
        }
        ControlFlow::Continue(())
    });
}

/// Gives the one column of a function in FROM its PostgreSQL name.
fn name_column(factor: &mut TableFactor) {
    let (function, alias) = match factor {
        TableFactor::Table { name, args: Some(_), alias, with_ordinality: false, .. } => {
            let Some(ident) = name.0.last().and_then(|part| part.as_ident()) else { return };
            (ident.clone(), alias)
        }
        TableFactor::UNNEST { alias, with_ordinality: false, array_exprs, .. }
            if array_exprs.len() == 1 =>
        {
            (Ident::new("unnest"), alias)
        }
        _ => return,
    };
    let is_known =
        SETS.iter().chain(&["unnest"]).any(|set| function.value.eq_ignore_ascii_case(set));
    if !is_known {
        return;
    }
    let column = |name: &Ident| TableAliasColumnDef { name: name.clone(), data_type: None };
    match alias {
        Some(alias) if alias.columns.is_empty() => alias.columns = vec![column(&alias.name)],
        Some(_) => {}
        None => {
            let columns = vec![column(&function)];
            *alias = Some(TableAlias { explicit: true, name: function, columns, at: None });
        }
    }
}

/// Rewrites all queries of a tree.
pub(super) fn rewrite<T: VisitMut>(tree: &mut T) {
    let _: ControlFlow<()> = tree.visit(&mut Queries);
}
