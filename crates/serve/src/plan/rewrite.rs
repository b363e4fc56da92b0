//! What PostgreSQL's clients write and DataFusion reads otherwise, rewritten in the syntax tree.
//!
//! Users' queries get the rules that keep their meaning; only queries on the catalogs get those that are made
//! for what psql and drivers send.

use std::sync::LazyLock;

use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use datafusion_pg_catalog::sql::rules::{
    CurrentUserVariableToSessionUserFunctionCall, RewriteArrayAnyAllOperation,
    RewritePgCatalogOperator, SqlStatementRewriteRule, StripCallableQualifier, StripCollate,
};
use sqlparser::ast::Statement;

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
    match COMPATIBILITY.parse(text) {
        Ok(mut statements) if statements.len() == 1 => {
            statements.pop().expect("there is one")
        }
        _ => COMPATIBILITY.rewrite(statement),
    }
}
