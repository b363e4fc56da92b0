//! Functions that return sets, and FETCH: rewritten where they stand in a query.
//!
//! A set is a list that is unnested. PostgreSQL calls the column of `generate_series(1, 3)` after the function or its
//! alias, gives a row for each value also where the call stands among the selected columns, and lets a function in
//! FROM refer to what stands before it, which is LATERAL in other places.
//! Words: *set* (such a function), *list* (our function that gives its rows as one value).

use std::ops::ControlFlow;

use sqlparser::ast::{
    DataType, ExcludeSelectItem, Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Ident,
    LimitClause, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    Value, Values, VisitMut, VisitorMut, visit_expressions_mut,
};

use super::calls::arguments;
use super::items::{ITEMS, ORDINALS, SUBSCRIPTS};
use super::syntax::{call, cast_to};

/// A function that returns a set.
struct Set {
    name: &'static str,
    list: &'static str,
    /// What a row is.
    row: Row,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// One value, called after the function.
    Plain,
    /// One value, called so.
    Named(&'static str),
    /// The same of jsonb.
    Jsonb(&'static str),
    /// A key and a value.
    Pair,
    JsonbPair,
}

const fn set(name: &'static str, list: &'static str, row: Row) -> Set {
    Set { name, list, row }
}

const SETS: &[Set] = &[
    set("generate_series", "generate_series", Row::Plain),
    set("generate_subscripts", SUBSCRIPTS, Row::Plain),
    set("jsonb_array_elements", "jsonb_array_elements_list", Row::Jsonb("value")),
    set("jsonb_array_elements_text", "jsonb_array_elements_text_list", Row::Named("value")),
    set("jsonb_each", "jsonb_each_list", Row::JsonbPair),
    set("jsonb_each_text", "jsonb_each_text_list", Row::Pair),
    set("jsonb_object_keys", "jsonb_object_keys_list", Row::Plain),
    set("range", "range", Row::Plain),
    set("regexp_matches", "regexp_matches_list", Row::Plain),
    set("regexp_split_to_table", "regexp_split_to_array", Row::Plain),
    set("string_to_table", "string_to_array", Row::Plain),
    set("unnest", ITEMS, Row::Plain),
];

/// Functions in FROM that stay as they are.
const TABLES: &[&str] = &["gap_fill", "hop", "session", "tumble"];

/// The set of this name; `json_…` is `jsonb_…`.
fn set_of(name: &str) -> Option<&'static Set> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let jsonb = name.strip_prefix("json_").map(|rest| format!("jsonb_{rest}"));
    let name = jsonb.as_deref().unwrap_or(name);
    SETS.iter().find(|set| set.name == name)
}

/// The rewriting of whole queries.
struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        super::ties::rewrite(query);
        fetch(query);
        if let SetExpr::Values(values) = query.body.as_mut() {
            of_one_type(values);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.projection.iter_mut().for_each(exclude_by_name);
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                unnest_sets(expr);
            }
        }
        // `GROUP BY (a, b)` groups by both.
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by
            && keys.iter().any(|key| matches!(key, Expr::Tuple(_)))
        {
            let flat = std::mem::take(keys).into_iter().flat_map(|key| match key {
                Expr::Tuple(parts) => parts,
                other => vec![other],
            });
            *keys = flat.collect();
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if is_constant_series(factor) {
            name_column(factor);
        } else if let Some(derived) = derived(factor) {
            *factor = derived;
        }
        ControlFlow::Continue(())
    }
}

/// `FETCH FIRST n ROWS ONLY` is LIMIT n. PERCENT is not, and stays for whoever refuses it.
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

/// A column of VALUES with a typed value in one row has that type where texts stand in other rows. Of jsonb and uuid
/// also NULL is one: DataFusion does not tell them from texts.
fn of_one_type(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.len());
    for column in 0..width {
        let typed = values.rows.iter().find_map(|row| match row.get(column) {
            Some(Expr::Cast { data_type, .. }) => Some(data_type.clone()),
            Some(Expr::TypedString(typed)) => Some(typed.data_type.clone()),
            _ => None,
        });
        let Some(ty) = typed else { continue };
        let is_text_held = matches!(ty, DataType::JSON | DataType::JSONB | DataType::Uuid);
        for cell in values.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            let takes_type = match cell {
                Expr::Value(value) => {
                    is_text_held || matches!(value.value, Value::SingleQuotedString(_))
                }
                _ => false,
            };
            if takes_type {
                *cell = cast_to(cell.clone(), ty.clone());
            }
        }
    }
}

/// `* EXCEPT (t.a)` leaves out what is called `a`.
fn exclude_by_name(item: &mut SelectItem) {
    let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
        return;
    };
    if let Some(ExcludeSelectItem::Multiple(names)) = &mut options.opt_exclude {
        for name in names {
            let last = name.0.len().saturating_sub(1);
            name.0.drain(..last);
        }
    }
}

fn unnest_sets(expr: &mut Expr) {
    let _: ControlFlow<()> = expr.visit(&mut OwnSets { queries: 0 });
}

/// The sets of an expression, without those of the queries in it, which have their own columns.
struct OwnSets {
    queries: usize,
}

impl VisitorMut for OwnSets {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.queries == 0
            && let Expr::Function(function) = &*expr
            && function.over.is_none()
            && let Some(set) = set_of(&function.name.to_string())
            && let Some(arguments) = arguments(function)
        {
            *expr = rows(set, arguments);
        }
        ControlFlow::Continue(())
    }
}

/// The rows of a set as an expression.
fn rows(set: &Set, arguments: Vec<Expr>) -> Expr {
    let unnested = call("unnest", vec![list(set, arguments)]);
    match set.row {
        Row::Jsonb(_) => call("as_jsonb", vec![unnested]),
        _ => unnested,
    }
}

/// The rows of a set as one list. A set of sets is one of all their values.
fn list(set: &Set, mut arguments: Vec<Expr>) -> Expr {
    if set.list == ITEMS
        && let [argument] = arguments.as_mut_slice()
    {
        if let Some(inner) = unnested(argument) {
            *argument = inner;
        } else if is_call(argument, ITEMS) {
            return arguments.remove(0);
        } else if let Some(inner) = list_of(argument) {
            *argument = inner;
        }
    }
    call(set.list, arguments)
}

/// The list of a set that was not rewritten yet.
fn list_of(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else { return None };
    let set = set_of(&function.name.to_string())?;
    Some(list(set, arguments(function)?))
}

fn is_call(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Function(function) if function.name.to_string() == name)
}

/// What is unnested, if that is all an expression does.
fn unnested(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else { return None };
    let mut arguments = arguments(function)?;
    match function.name.to_string().as_str() {
        "unnest" => arguments.pop(),
        "as_jsonb" => unnested(&arguments.pop()?),
        _ => None,
    }
}

/// A series in FROM whose bounds are known when it is planned.
fn is_constant_series(factor: &TableFactor) -> bool {
    let TableFactor::Table { name, args: Some(arguments), with_ordinality: false, .. } = factor
    else {
        return false;
    };
    let is_series = set_of(&name.to_string()).is_some_and(|set| set.name == set.list);
    is_series && !arguments.args.iter().any(refers)
}

/// Whether an argument refers to columns, or might.
fn refers(argument: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else { return true };
    let mut expr = expr.clone();
    let found = visit_expressions_mut(&mut expr, |part| match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Gives the one column of a function in FROM its PostgreSQL name.
fn name_column(factor: &mut TableFactor) {
    let TableFactor::Table { name, alias, .. } = factor else { return };
    let Some(function) = name.0.last().and_then(|part| part.as_ident()).cloned() else { return };
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

/// A function in FROM.
struct Call {
    name: Ident,
    arguments: Vec<Expr>,
    alias: Option<TableAlias>,
    ordinality: bool,
}

fn function_in_from(factor: &TableFactor) -> Option<Call> {
    let plain = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    match factor {
        TableFactor::Table { name, args: Some(list), alias, with_ordinality, .. } => Some(Call {
            name: name.0.last()?.as_ident()?.clone(),
            arguments: list.args.iter().map(plain).collect::<Option<_>>()?,
            alias: alias.clone(),
            ordinality: *with_ordinality,
        }),
        TableFactor::Function { name, args, alias, with_ordinality, .. } => Some(Call {
            name: name.0.last()?.as_ident()?.clone(),
            arguments: args.iter().map(plain).collect::<Option<_>>()?,
            alias: alias.clone(),
            ordinality: *with_ordinality,
        }),
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } => {
            Some(Call {
                name: Ident::new("unnest"),
                arguments: array_exprs.clone(),
                alias: alias.clone(),
                ordinality: *with_ordinality,
            })
        }
        _ => None,
    }
}

/// The subquery that a function in FROM stands for.
fn derived(factor: &TableFactor) -> Option<TableFactor> {
    let mut call = function_in_from(factor)?;
    let lower = call.name.value.to_ascii_lowercase();
    if TABLES.contains(&lower.as_str()) || lower.starts_with("pg_") {
        return None;
    }
    let text = match lower.as_str() {
        "jsonb_to_record" | "json_to_record" => record(&mut call, "SELECT {columns}")?,
        "jsonb_to_recordset" | "json_to_recordset" => {
            let from = "SELECT {columns} FROM (SELECT unnest(jsonb_array_elements_list({document})) \
                        AS \"set row\") AS \"set\"";
            record(&mut call, from)?
        }
        _ => match set_of(&lower) {
            Some(set) => of_set(set, &mut call)?,
            None => of_value(&call)?,
        },
    };
    let subquery = segue_sql::parse_query(&text).ok()?.tree;
    let alias = call.alias.unwrap_or(TableAlias {
        explicit: true,
        name: call.name,
        columns: Vec::new(),
        at: None,
    });
    Some(TableFactor::Derived { lateral: true, subquery, alias: Some(alias), sample: None })
}

/// What the one column of a call is called.
fn column_name(call: &Call, own: Option<&'static str>) -> Ident {
    match (&call.alias, own) {
        (Some(alias), _) => alias.name.clone(),
        (None, Some(own)) => Ident::new(own),
        (None, None) => call.name.clone(),
    }
}

/// Names that no user gives.
const ROW: &str = "\"set row\"";
const PLACE: &str = "\"set place\"";
const SET: &str = "\"set\"";

fn of_set(set: &Set, call: &mut Call) -> Option<String> {
    let arguments = std::mem::take(&mut call.arguments);
    if set.list == ITEMS && arguments.len() > 1 {
        return of_lists(&arguments, call.ordinality);
    }
    let list = list(set, arguments);
    let own = match set.row {
        Row::Named(name) | Row::Jsonb(name) => Some(name),
        _ => None,
    };
    let name = column_name(call, own);
    let columns = match set.row {
        Row::Plain | Row::Named(_) => format!("{ROW} AS {name}"),
        Row::Jsonb(_) => format!("as_jsonb({ROW}) AS {name}"),
        Row::Pair => format!("{ROW}['key'] AS key, {ROW}['value'] AS value"),
        Row::JsonbPair => format!("{ROW}['key'] AS key, as_jsonb({ROW}['value']) AS value"),
    };
    Some(match call.ordinality {
        true => format!(
            "SELECT {columns}, {PLACE} AS ordinality FROM \
             (SELECT unnest({list}) AS {ROW}, unnest({ORDINALS}({list})) AS {PLACE}) AS {SET}"
        ),
        false => format!("SELECT {columns} FROM (SELECT unnest({list}) AS {ROW}) AS {SET}"),
    })
}

/// `unnest(a, b)`: shorter lists end in NULLs. They are counted where they have one length.
fn of_lists(lists: &[Expr], ordinality: bool) -> Option<String> {
    let columns = lists.iter().enumerate().map(|(place, list)| {
        let suffix = if place == 0 { String::new() } else { format!("_{place}") };
        format!("unnest({ITEMS}({list})) AS unnest{suffix}")
    });
    let mut columns = columns.collect::<Vec<_>>();
    if ordinality {
        columns.push(format!("unnest({ORDINALS}({})) AS ordinality", lists.first()?));
    }
    Some(format!("SELECT {}", columns.join(", ")))
}

/// A function that gives one value is a relation of one row.
fn of_value(call: &Call) -> Option<String> {
    let name = column_name(call, None);
    let arguments = call.arguments.iter().map(ToString::to_string).collect::<Vec<_>>();
    let value = format!("{}({})", call.name, arguments.join(", "));
    Some(match call.ordinality {
        true => format!("SELECT {value} AS {name}, CAST(1 AS BIGINT) AS ordinality"),
        false => format!("SELECT {value} AS {name}"),
    })
}

/// `jsonb_to_record(d) AS t(a int, b text)`: the members that the alias names, cast to its types.
fn record(call: &mut Call, from: &str) -> Option<String> {
    let [document] = call.arguments.as_slice() else { return None };
    let document = document.to_string();
    let row = if from.contains("{document}") { ROW } else { document.as_str() };
    let alias = call.alias.as_mut()?;
    let column = |column: &mut TableAliasColumnDef| {
        let ty = column.data_type.take()?;
        let name = &column.name;
        let key =
            if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() };
        let key = key.replace('\'', "''");
        let is_jsonb =
            matches!(segue_sql::parse_type(&ty.to_string()), Ok(segue_types::SqlType::Jsonb));
        Some(match is_jsonb {
            true => format!("jsonb_get({row}, '{key}') AS {name}"),
            false => format!("CAST(jsonb_get_text({row}, '{key}') AS {ty}) AS {name}"),
        })
    };
    let columns = alias.columns.iter_mut().map(column).collect::<Option<Vec<_>>>()?;
    Some(from.replace("{columns}", &columns.join(", ")).replace("{document}", &document))
}

/// Rewrites all queries of a tree.
pub(super) fn rewrite<T: VisitMut>(tree: &mut T) {
    let _: ControlFlow<()> = tree.visit(&mut Queries);
}
