//! What PostgreSQL's clients write and DataFusion reads otherwise, rewritten in the syntax tree.
//!
//! Users' queries get the rules that keep their meaning; only queries on the catalogs get those that are made
//! for what psql and drivers send.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use datafusion_pg_catalog::sql::rules::{
    CurrentUserVariableToSessionUserFunctionCall, RewriteArrayAnyAllOperation,
    RewritePgCatalogOperator, SqlStatementRewriteRule, StripCallableQualifier, StripCollate,
};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    Select, SelectItem, SetExpr, Statement, TableFactor, visit_expressions_mut,
};

static COMPATIBILITY: LazyLock<PostgresCompatibilityParser> =
    LazyLock::new(PostgresCompatibilityParser::new);

/// Whether a text asks the catalogs of PostgreSQL.
pub(crate) fn mentions_catalog(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["pg_", "information_schema", "regclass"].iter().any(|word| text.contains(word))
}

/// A user's query as DataFusion reads it.
pub(crate) fn for_query(statement: Statement) -> Statement {
    let rules: [&dyn SqlStatementRewriteRule; 5] = [
        &RewriteArrayAnyAllOperation,
        &StripCallableQualifier,
        &CurrentUserVariableToSessionUserFunctionCall,
        &StripCollate,
        &RewritePgCatalogOperator,
    ];
    rules.iter().fold(statement, |statement, rule| rule.rewrite(statement))
}

/// A client's query on the catalogs as DataFusion reads it. Some are known by their text and are replaced whole.
pub(crate) fn for_catalog_query(text: &str, statement: Statement) -> Statement {
    let mut rewritten = match COMPATIBILITY.parse(text) {
        Ok(mut statements) if statements.len() == 1 => {
            statements.pop().expect("there is one")
        }
        _ => COMPATIBILITY.rewrite(statement),
    };
    let _: ControlFlow<()> = visit_expressions_mut(&mut rewritten, |expr| {
        array_of_query(expr);
        ControlFlow::Continue(())
    });
    rewritten
}

/// `ARRAY(SELECT e …)` as `(SELECT array_agg(e) …)`. Options are kept as texts already, so what psql makes of them
/// by `pg_options_to_table(options)` is the options themselves.
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
    let Some(SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }) =
        select.projection.first()
    else {
        return;
    };
    let mut aggregate = function.clone();
    aggregate.name = ObjectName::from(vec![Ident::new("array_agg")]);
    let argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(item.clone()));
    aggregate.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![argument],
        clauses: Vec::new(),
    });
    let mut query = query.clone();
    query.order_by = None;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(Expr::Function(aggregate))];
    }
    *expr = Expr::Subquery(query);
}

fn options_of(select: &Select) -> Option<Expr> {
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, args: Some(args), .. } = &from.relation else { return None };
    let is_options = name.to_string().to_ascii_lowercase().ends_with("pg_options_to_table");
    match args.args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(options))) if is_options => {
            Some(options.clone())
        }
        _ => None,
    }
}
