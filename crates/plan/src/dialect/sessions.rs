//! SESSION in FROM: rows that follow each other within a gap belong together.
//!
//! `SESSION(t, at, gap [, column, …])` is `t` with the columns window_start, the time of the session's first row, and
//! window_end, that of its last one and the gap; sessions are counted for each value of the columns by itself.
//! It stands for window functions: the row before, how many sessions began up to here, the ends of each. Rows of one
//! time are peers in all three, so that their order does not matter.

use sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, ObjectName, Query, SelectItem, SetExpr,
    WildcardAdditionalOptions,
};

/// Names that nobody has.
const BEFORE: &str = "session's row before";
const NUMBER: &str = "session's number";

/// The query that a call stands for; `None` if the arguments are of another kind.
pub(super) fn query(base: &str, at: &Expr, gap_us: i64, by: &[Expr]) -> Option<Box<Query>> {
    let at = column(at)?;
    let by = by.iter().map(column).collect::<Option<Vec<_>>>()?;
    let gap = format!("INTERVAL '{gap_us} microseconds'");
    let partition = |more: Option<String>| {
        let columns = by.iter().map(ToString::to_string).chain(more).collect::<Vec<_>>();
        match columns.as_slice() {
            [] => String::new(),
            columns => format!("PARTITION BY {}", columns.join(", ")),
        }
    };
    let (of_key, of_session) = (partition(None), partition(Some(format!("\"{NUMBER}\""))));
    let text = format!(
        "SELECT *, min({at}) OVER ({of_session}) AS window_start, \
         max({at}) OVER ({of_session}) + {gap} AS window_end FROM (\
         SELECT *, sum(CASE WHEN {at} <= \"{BEFORE}\" + {gap} THEN 0 ELSE 1 END) OVER ({of_key} ORDER BY {at}) \
         AS \"{NUMBER}\" FROM (\
         SELECT *, lag({at}) OVER ({of_key} ORDER BY {at}) AS \"{BEFORE}\" FROM {base} WHERE {at} IS NOT NULL\
         ) AS before) AS numbered"
    );
    let mut query = segue_sql::parse_query(&text).ok()?.tree;
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let helpers = [BEFORE, NUMBER].map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
    *select.projection.first_mut()? = SelectItem::Wildcard(WildcardAdditionalOptions {
        opt_exclude: Some(ExcludeSelectItem::Multiple(helpers.to_vec())),
        ..WildcardAdditionalOptions::default()
    });
    Some(query)
}

/// A column by its own name: what is around it is another relation further out.
pub(super) fn column(expression: &Expr) -> Option<&Ident> {
    match expression {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}
