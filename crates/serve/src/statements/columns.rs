//! The names of a result's columns, as PostgreSQL makes them: a function's name, a cast's argument or type,
//! `?column?`. They are put on the outside of a plan, where two columns may share one.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Fields, Schema, SchemaRef};
use sqlparser::ast::{AccessExpr, Expr, Ident, Query, Select, SelectItem, SetExpr};

use super::target::folded;

/// The schema under its PostgreSQL names. `schema` is DataFusion's, whose names are right for `*`.
pub(super) fn named(query: &Query, schema: &Schema) -> SchemaRef {
    let names = names(query, schema.fields());
    let fields = schema.fields().iter().zip(names);
    let fields: Vec<_> =
        fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
    Arc::new(Schema::new(fields))
}

fn names(query: &Query, fields: &Fields) -> Vec<String> {
    let planned = || fields.iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let Some(select) = first_select(&query.body) else { return planned() };
    let items: Vec<Option<String>> = select.projection.iter().map(item_name).collect();
    let wildcards = items.iter().filter(|name| name.is_none()).count();
    let written = items.len() - wildcards;
    if wildcards > 1 || written > fields.len() {
        return planned();
    }
    let expanded = fields.len() - written;
    let mut names = Vec::with_capacity(fields.len());
    for item in items {
        match item {
            Some(name) => names.push(name),
            None => {
                let from = names.len();
                let columns = fields.iter().skip(from).take(expanded);
                names.extend(columns.map(|field| field.name().clone()));
            }
        }
    }
    if names.len() == fields.len() { names } else { planned() }
}

/// DataFusion wants the columns of a SELECT to differ; what is written twice gets a name of its own, which
/// [`named`] takes away again.
pub(super) fn told_apart(query: &mut Query) {
    let Some(select) = first_select_mut(&mut query.body) else { return };
    let mut seen = BTreeSet::new();
    for (place, item) in select.projection.iter_mut().enumerate() {
        let shown = match item {
            SelectItem::UnnamedExpr(expr) => expr.to_string(),
            SelectItem::ExprWithAlias { alias, .. } => folded(alias),
            _ => continue,
        };
        if seen.insert(shown) {
            continue;
        }
        let alias = Ident::with_quote('"', format!("column {}", place + 1));
        match item {
            SelectItem::UnnamedExpr(expr) => {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
            SelectItem::ExprWithAlias { alias: given, .. } => *given = alias,
            _ => {}
        }
    }
}

/// Gives every expression that has no name a name of its own: two that are written differently can
/// still have one name in DataFusion, which does not show casts.
pub(super) fn all_told_apart(query: &mut Query) {
    segue_plan::dialect::tell_apart(query);
    let Some(select) = first_select_mut(&mut query.body) else { return };
    for (place, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::UnnamedExpr(expr) = item
            && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            let alias = Ident::with_quote('"', format!("column {}", place + 1));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// The SELECT that names the columns of a query: of a UNION its first branch.
fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

fn first_select_mut(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select_mut(&mut query.body),
        _ => None,
    }
}

/// `None` for a wildcard.
fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => {
            Some(expression_name(expr).unwrap_or_else(|| "?column?".to_owned()))
        }
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        _ => None,
    }
}

fn expression_name(expr: &Expr) -> Option<String> {
    let name = match expr {
        Expr::Identifier(name) => return Some(folded(name)),
        Expr::CompoundIdentifier(parts) => return parts.last().map(folded),
        Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
            Some(AccessExpr::Dot(Expr::Identifier(name))) => return Some(folded(name)),
            _ => return None,
        },
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => return expression_name(inner),
        Expr::Function(function) => {
            return function.name.0.last().and_then(|part| part.as_ident()).map(folded);
        }
        Expr::Cast { expr, data_type, .. } => {
            return expression_name(expr).or_else(|| Some(type_name(&data_type.to_string())));
        }
        Expr::TypedString(typed) => return Some(type_name(&typed.data_type.to_string())),
        Expr::Case { else_result, .. } => {
            let inner = else_result.as_ref().and_then(|value| expression_name(value));
            return inner.or_else(|| Some("case".to_owned()));
        }
        Expr::Subquery(query) => {
            let select = first_select(&query.body)?;
            return select.projection.first().and_then(item_name);
        }
        Expr::Extract { .. } => "extract",
        Expr::Substring { .. } => "substring",
        Expr::Position { .. } => "position",
        Expr::Trim { .. } => "btrim",
        Expr::Overlay { .. } => "overlay",
        Expr::Ceil { .. } => "ceil",
        Expr::Floor { .. } => "floor",
        Expr::Exists { .. } => "exists",
        Expr::Array(_) => "array",
        Expr::Interval(_) => "interval",
        _ => return None,
    };
    Some(name.to_owned())
}

/// PostgreSQL's internal name of a type, which is what a cast column is called.
fn type_name(written: &str) -> String {
    segue_sql::parse_type(written).map_or_else(
        |_| written.to_lowercase(),
        |ty| crate::pg_type::pg_type(&ty).name().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use segue_sql::Statement;
    use sqlparser::ast;

    use super::{named, told_apart};

    fn query(text: &str) -> ast::Query {
        match segue_sql::parse(text).expect("grammatical").pop() {
            Some(Statement::Sql(statement)) => match *statement {
                ast::Statement::Query(query) => *query,
                other => panic!("not a query: {other}"),
            },
            other => panic!("not a query: {other:?}"),
        }
    }

    #[test]
    fn columns_are_named_as_postgres_names_them() {
        let text = "SELECT a, t.\"B\", *, count(*), a + 1, a::text, 1::bigint, (a), sum(a) AS Total FROM t";
        let field = |place: usize| Field::new(format!("planned{place}"), DataType::Int64, true);
        let schema = Schema::new((0..10).map(field).collect::<Vec<_>>());
        let schema = named(&query(text), &schema);
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let expected =
            ["a", "B", "planned2", "planned3", "count", "?column?", "a", "int8", "a", "total"];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_is_selected_twice_is_told_apart_for_the_planner_alone() {
        let mut query = query("SELECT 1, 1, a AS x, b AS x FROM t");
        told_apart(&mut query);
        let text = query.to_string();
        assert_eq!(text, "SELECT 1, 1 AS \"column 2\", a AS x, b AS \"column 4\" FROM t");
    }
}
