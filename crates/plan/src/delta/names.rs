//! Output column names as PostgreSQL makes them: a function's name, a cast's argument or type, `?column?`.

use arrow::datatypes::Fields;
use sqlparser::ast::{AccessExpr, Expr, Query, Select, SelectItem, SetExpr};

/// What PostgreSQL calls a column that has no name.
pub(super) const UNNAMED: &str = "?column?";

/// The names of the query's columns. `fields` are DataFusion's, whose names are right for `*` and plain columns.
pub(super) fn output_names(query: &Query, fields: &Fields) -> Vec<String> {
    let planned = || fields.iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let Some(select) = first_select(&query.body) else { return planned() };
    let items = &select.projection;
    let wildcards = items.iter().filter(|item| item_name(item).is_none()).count();
    if wildcards > 1 || items.len() - wildcards > fields.len() {
        return planned();
    }
    let expanded = fields.len() - (items.len() - wildcards);
    let mut names = Vec::with_capacity(fields.len());
    for item in items {
        match item_name(item) {
            Some(name) => names.push(name),
            None => {
                let from = names.len();
                names.extend(
                    fields.iter().skip(from).take(expanded).map(|field| field.name().clone()),
                );
            }
        }
    }
    if names.len() == fields.len() { names } else { planned() }
}

/// The names that the query itself gives, leaving out `*`.
pub(super) fn written_names(query: &Query) -> Vec<String> {
    let select = first_select(&query.body);
    select.map_or_else(Vec::new, |select| select.projection.iter().filter_map(item_name).collect())
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

/// `None` for a wildcard.
fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expression) => {
            Some(expression_name(expression).unwrap_or_else(|| UNNAMED.to_owned()))
        }
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        _ => None,
    }
}

fn folded(name: &sqlparser::ast::Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

fn expression_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Identifier(name) => Some(folded(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(folded),
        Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
            Some(AccessExpr::Dot(Expr::Identifier(name))) => Some(folded(name)),
            _ => None,
        },
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => expression_name(inner),
        Expr::Function(function) => {
            function.name.0.last().and_then(|part| part.as_ident()).map(folded)
        }
        Expr::Cast { expr, data_type, .. } => {
            expression_name(expr).or_else(|| Some(type_name(&data_type.to_string())))
        }
        Expr::TypedString(typed) => Some(type_name(&typed.data_type.to_string())),
        Expr::Case { else_result, .. } => else_result
            .as_ref()
            .and_then(|value| expression_name(value))
            .or(Some("case".to_owned())),
        Expr::Extract { .. } => Some("extract".to_owned()),
        Expr::Substring { .. } => Some("substring".to_owned()),
        Expr::Position { .. } => Some("position".to_owned()),
        Expr::Trim { .. } => Some("btrim".to_owned()),
        Expr::Overlay { .. } => Some("overlay".to_owned()),
        Expr::Ceil { .. } => Some("ceil".to_owned()),
        Expr::Floor { .. } => Some("floor".to_owned()),
        Expr::Exists { .. } => Some("exists".to_owned()),
        Expr::Array(_) => Some("array".to_owned()),
        Expr::Interval(_) => Some("interval".to_owned()),
        _ => None,
    }
}

/// PostgreSQL's internal name of a type, which is what a cast column is called.
fn type_name(written: &str) -> String {
    let written = written.to_lowercase();
    let base = written.split('(').next().unwrap_or_default().trim();
    match base {
        "bigint" => "int8",
        "int" | "integer" => "int4",
        "smallint" => "int2",
        "boolean" => "bool",
        "real" => "float4",
        "double precision" | "double" => "float8",
        "decimal" => "numeric",
        "character varying" => "varchar",
        "timestamp with time zone" => "timestamptz",
        "timestamp without time zone" => "timestamp",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Fields};
    use segue_sql::Statement;

    use super::output_names;

    #[test]
    fn columns_are_named_as_postgresql_names_them() {
        let sql = "SELECT a, t.\"B\", *, count(*), a + 1, a::text, 1::bigint, (a), CASE WHEN a > 1 THEN 2 END, \
                   sum(a) AS Total FROM t";
        let statement = segue_sql::parse(sql).expect("valid").pop();
        let Some(Statement::Sql(statement)) = statement else { panic!("a query") };
        let sqlparser::ast::Statement::Query(query) = *statement else { panic!("a query") };
        let field = |place: usize| Field::new(format!("planned{place}"), DataType::Int64, true);
        let names = output_names(&query, &(0..11).map(field).collect::<Fields>());
        let expected = [
            "a", "B", "planned2", "planned3", "count", "?column?", "a", "int8", "a", "case",
            "total",
        ];
        assert_eq!(names, expected);
    }
}
