//! What PostgreSQL's clients write and DataFusion reads otherwise, rewritten in the syntax tree.
//!
//! Users' queries get the rules that keep their meaning; only queries on the catalogs get those that
//! are made for what psql and drivers send.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use datafusion_pg_catalog::sql::rules::{
    CurrentUserVariableToSessionUserFunctionCall, RewritePgCatalogOperator,
    SqlStatementRewriteRule, StripCallableQualifier, StripCollate,
};
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableFactor, VisitMut, VisitorMut,
    visit_expressions_mut,
};

static COMPATIBILITY: LazyLock<PostgresCompatibilityParser> =
    LazyLock::new(PostgresCompatibilityParser::new);

/// Whether a text asks the catalogs of PostgreSQL.
pub(crate) fn mentions_catalog(text: &str) -> bool {
    // A function that users call.
    let text = text.to_ascii_lowercase().replace("pg_typeof(", "");
    ["pg_", "information_schema", "regclass"].iter().any(|word| text.contains(word))
}

/// A user's query as DataFusion reads it.
pub(crate) fn for_query(statement: Statement) -> Statement {
    let rules: [&dyn SqlStatementRewriteRule; 4] = [
        &StripCallableQualifier,
        &CurrentUserVariableToSessionUserFunctionCall,
        &StripCollate,
        &RewritePgCatalogOperator,
    ];
    let mut statement = rules.iter().fold(statement, |statement, rule| rule.rewrite(statement));
    segue_plan::dialect::rewrite(&mut statement);
    let _: ControlFlow<()> = visit_expressions_mut(&mut statement, |expr| {
        processing_time(expr);
        ControlFlow::Continue(())
    });
    statement
}

/// `proctime()` of a SELECT is the time of the statement.
fn processing_time(expr: &mut Expr) {
    if let Expr::Function(function) = expr
        && function.name.to_string().eq_ignore_ascii_case("proctime")
    {
        function.name = ObjectName::from(vec![Ident::new("now")]);
    }
}

/// What asyncpg asks for types with: a recursive query with another one in it.
const TYPE_TREE: &str = "WITH RECURSIVE typeinfo_tree(";

/// The same for the types that there are: all built in, and none made of others but arrays.
const TYPES: &str = "
    SELECT t.oid AS oid, 'pg_catalog' AS ns, t.typname AS name, t.typtype AS kind,
        CAST(NULL AS int) AS basetype, t.typelem AS elemtype, ',' AS elemdelim,
        CAST(NULL AS int) AS range_subtype, CAST(NULL AS text[]) AS attrtypoids,
        CAST(NULL AS text[]) AS attrnames,
        CASE WHEN t.oid = ANY(CAST($1 AS oid[])) THEN 0 ELSE 1 END AS depth,
        CAST(NULL AS text) AS basetype_name, format_type(t.typelem, NULL) AS elemtype_name,
        CAST(NULL AS text) AS range_subtype_name
    FROM pg_catalog.pg_type AS t
    WHERE t.oid = ANY(CAST($1 AS oid[]))
        OR t.oid IN (SELECT a.typelem FROM pg_catalog.pg_type AS a WHERE a.oid = ANY(CAST($1 AS oid[])))
    ORDER BY depth DESC";

/// A client's query on the catalogs as DataFusion reads it. Some are known by their text and are
/// replaced whole.
pub(crate) fn for_catalog_query(text: &str, statement: Statement) -> Statement {
    if text.contains(TYPE_TREE) {
        let types = segue_sql::parse_query(TYPES).expect("our own text is a query");
        return for_catalog_query(TYPES, Statement::Query(types.tree));
    }
    let mut rewritten = match COMPATIBILITY.parse(text) {
        Ok(mut statements) if statements.len() == 1 => statements.pop().expect("there is one"),
        _ => COMPATIBILITY.rewrite(statement),
    };
    let _: ControlFlow<()> = visit_expressions_mut(&mut rewritten, |expr| {
        array_of_query(expr);
        ControlFlow::Continue(())
    });
    let _: ControlFlow<()> = VisitMut::visit(&mut rewritten, &mut Conditions);
    rewritten
}

/// Correlated subqueries in WHERE must be seen to give one row at most, which `max` shows.
struct Conditions;

impl VisitorMut for Conditions {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some(condition) = &mut select.selection
        {
            return visit_expressions_mut(condition, |expr| {
                single_row(expr);
                ControlFlow::Continue(())
            });
        }
        ControlFlow::Continue(())
    }
}

fn single_row(expr: &mut Expr) {
    let Expr::Subquery(query) = expr else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    if let [SelectItem::UnnamedExpr(item)] = select.projection.as_slice()
        && !matches!(item, Expr::Function(_))
    {
        let greatest = call("max", item.clone());
        select.projection = vec![SelectItem::UnnamedExpr(greatest)];
        query.limit_clause = None;
    }
}

fn call(name: &str, argument: Expr) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// `ARRAY(SELECT e …)` as `(SELECT array_agg(e) …)`. Options are kept as texts already, so what psql
/// makes of them by `pg_options_to_table(options)` is the options themselves.
fn array_of_query(expr: &mut Expr) {
    let Expr::Function(function) = expr else { return };
    let FunctionArguments::Subquery(query) = &function.args else { return };
    if !function.name.to_string().eq_ignore_ascii_case("array") {
        return;
    }
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    if let Some(options) = options_of(select) {
        *expr = options;
        return;
    }
    if is_of_policies(select) {
        let none = segue_sql::parse_expression("CAST(NULL AS TEXT[])");
        *expr = *none.expect("our own text is an expression").tree;
        return;
    }
    let Some(SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }) =
        select.projection.first()
    else {
        return;
    };
    let aggregate = call("array_agg", item.clone());
    let mut query = query.clone();
    query.order_by = None;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(aggregate)];
    }
    *expr = Expr::Subquery(query);
}

/// There are no policies, and what psql makes of them is deeper than DataFusion can look.
fn is_of_policies(select: &Select) -> bool {
    let [from] = select.from.as_slice() else { return false };
    matches!(&from.relation, TableFactor::Table { name, .. }
        if name.to_string().to_ascii_lowercase().ends_with("pg_policy"))
}

fn options_of(select: &Select) -> Option<Expr> {
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, args: Some(args), .. } = &from.relation else { return None };
    let name = name.to_string().to_ascii_lowercase();
    let is_options = name.ends_with("pg_options_to_table") || name.ends_with("unnest");
    match args.args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(options))) if is_options => {
            Some(options.clone())
        }
        _ => None,
    }
}
