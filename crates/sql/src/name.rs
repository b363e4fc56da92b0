//! Names and literals as SQL writes them: unquoted names fold to lower case, and are quoted again only where
//! they must be.

use std::fmt;

/// The name of an object, column or stage, as it is stored: folded unless it was quoted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// A name from its stored form.
    pub fn new(text: impl Into<String>) -> Name {
        Name(text.into())
    }

    /// The stored form, for look-ups and messages.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

/// As SQL must write it.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_plain(&self.0) && !is_reserved(&self.0) {
            f.write_str(&self.0)
        } else {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        }
    }
}

/// A string as SQL writes it.
#[derive(Clone, Copy, Debug)]
pub struct Literal<'a>(pub &'a str);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

/// Whether folding leaves this text as it is.
pub(crate) fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether PostgreSQL refuses the word as a name unless it is quoted.
pub(crate) fn is_reserved(folded: &str) -> bool {
    RESERVED.binary_search(&folded).is_ok()
}

#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization", "binary",
    "both", "case", "cast", "check", "collate", "collation", "column", "concurrently", "constraint", "create",
    "cross", "current_catalog", "current_date", "current_role", "current_schema", "current_time",
    "current_timestamp", "current_user", "default", "deferrable", "desc", "distinct", "do", "else", "end",
    "except", "false", "fetch", "for", "foreign", "freeze", "from", "full", "grant", "group", "having", "ilike",
    "in", "initially", "inner", "intersect", "into", "is", "isnull", "join", "lateral", "leading", "left", "like",
    "limit", "localtime", "localtimestamp", "natural", "not", "notnull", "null", "offset", "on", "only", "or",
    "order", "outer", "overlaps", "placing", "primary", "references", "returning", "right", "select",
    "session_user", "similar", "some", "symmetric", "system_user", "table", "tablesample", "then", "to",
    "trailing", "true", "union", "unique", "user", "using", "variadic", "verbose", "when", "where", "window",
    "with",
];

#[cfg(test)]
mod tests {
    use super::{Literal, Name, RESERVED};

    #[test]
    fn names_are_quoted_exactly_when_folding_or_the_grammar_would_change_them() {
        let shown = |name: &str| Name::new(name).to_string();
        assert_eq!(shown("orders_2"), "orders_2");
        assert_eq!(shown("Orders"), "\"Orders\"");
        assert_eq!(shown("order"), "\"order\"");
        assert_eq!(shown("a\"b"), "\"a\"\"b\"");
        assert_eq!(shown("2x"), "\"2x\"");
        assert_eq!(Literal("it's").to_string(), "'it''s'");
    }

    #[test]
    fn the_reserved_words_are_sorted_for_the_binary_search() {
        assert!(RESERVED.is_sorted());
    }
}
