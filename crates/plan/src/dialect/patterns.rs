//! `LIKE … ESCAPE` and `SIMILAR TO`: their patterns in the forms that DataFusion knows, LIKE with a backslash and
//! regular expressions.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use segue_types::{SqlState, SqlType};
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, ValueWithSpan};

use super::general::{self, failed};
use super::syntax::call;

const LIKE_ESCAPE: &str = "like_escape";
const SIMILAR: &str = "similar_to_escape";

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let text: general::Returns = |_| Ok(general::typed(&SqlType::Text));
    vec![
        general::function(LIKE_ESCAPE, texts, text, |columns, _| translated(columns, like)),
        general::function(SIMILAR, texts, text, |columns, _| translated(columns, similar)),
    ]
}

/// `x LIKE p ESCAPE e` and `x SIMILAR TO p ESCAPE e` without their ESCAPE.
pub(super) fn operator(expr: &Expr) -> Option<Expr> {
    let escaped = |pattern: &Expr, escape: &ValueWithSpan| {
        call(LIKE_ESCAPE, vec![pattern.clone(), Expr::Value(escape.clone())])
    };
    match expr {
        Expr::Like { negated, any: false, expr, pattern, escape_char: Some(escape) } => {
            (!is_backslash(escape)).then(|| Expr::Like {
                negated: *negated,
                any: false,
                expr: expr.clone(),
                pattern: Box::new(escaped(pattern, escape)),
                escape_char: None,
            })
        }
        Expr::ILike { negated, any: false, expr, pattern, escape_char: Some(escape) } => {
            (!is_backslash(escape)).then(|| Expr::ILike {
                negated: *negated,
                any: false,
                expr: expr.clone(),
                pattern: Box::new(escaped(pattern, escape)),
                escape_char: None,
            })
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let backslash = || Value::SingleQuotedString("\\".to_owned()).into();
            let escape = Expr::Value(escape_char.clone().unwrap_or_else(backslash));
            let pattern = call(SIMILAR, vec![pattern.as_ref().clone(), escape]);
            let matches = Expr::BinaryOp {
                left: expr.clone(),
                op: BinaryOperator::PGRegexMatch,
                right: Box::new(pattern),
            };
            let matches = Expr::Nested(Box::new(matches));
            Some(match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(matches) },
                false => matches,
            })
        }
        _ => None,
    }
}

fn is_backslash(escape: &ValueWithSpan) -> bool {
    matches!(&escape.value, Value::SingleQuotedString(text) if text == "\\")
}

fn texts(given: &[DataType]) -> Option<Vec<DataType>> {
    let fits = given.len() == 2 && given.iter().all(|ty| general::is_text(ty) || ty.is_null());
    fits.then(|| vec![DataType::Utf8; 2])
}

fn translated(
    columns: &[ArrayRef],
    how: fn(&str, Option<char>) -> Result<String>,
) -> Result<ArrayRef> {
    let [patterns, escapes] = [0, 1].map(|place| columns[place].as_string::<i32>());
    let texts = patterns.iter().zip(escapes).map(|(pattern, escape)| {
        let Some((pattern, escape)) = pattern.zip(escape) else { return Ok(None) };
        let mut chars = escape.chars();
        let first = chars.next();
        if chars.next().is_some() {
            let error = failed(SqlState::INVALID_PARAMETER_VALUE, "invalid escape string");
            return Err(error);
        }
        how(pattern, first).map(Some)
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

/// A pattern of LIKE with another escape character, or with none, as one with a backslash.
fn like(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(next) = chars.next() {
        if Some(next) == escape {
            let escaped = chars.next().ok_or_else(|| {
                let message = "LIKE pattern must not end with escape character";
                failed(SqlState::INVALID_PARAMETER_VALUE, message)
            })?;
            out.push('\\');
            out.push(escaped);
        } else {
            if next == '\\' {
                out.push('\\');
            }
            out.push(next);
        }
    }
    Ok(out)
}

/// A pattern of SIMILAR TO as a regular expression: `%` and `_` stand for any text and character, `#"` marks what
/// `substring` takes, and is no part of the text.
fn similar(pattern: &str, escape: Option<char>) -> Result<String> {
    let escape = escape.or(Some('\\'));
    let mut out = "^(?:".to_owned();
    let (mut in_brackets, mut marked) = (false, false);
    let mut chars = pattern.chars();
    while let Some(next) = chars.next() {
        if Some(next) == escape {
            match chars.next() {
                Some('"') if !in_brackets => {
                    out.push(if marked { ')' } else { '(' });
                    marked = !marked;
                }
                Some(literal) => out.push_str(&regex::escape(&literal.to_string())),
                None => {}
            }
            continue;
        }
        match next {
            ']' => {
                in_brackets = false;
                out.push(next);
            }
            _ if in_brackets => out.push(next),
            '[' => {
                in_brackets = true;
                out.push(next);
            }
            '%' => out.push_str("(?s:.*)"),
            '_' => out.push_str("(?s:.)"),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' | '\\' => {
                out.push('\\');
                out.push(next);
            }
            _ => out.push(next),
        }
    }
    out.push_str(")$");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::{like, similar};

    #[test]
    fn another_escape_character_becomes_a_backslash() {
        assert_eq!(like("a#_b%", Some('#')).ok().as_deref(), Some("a\\_b%"));
        assert_eq!(like("a\\_b", None).ok().as_deref(), Some("a\\\\_b"));
        assert!(like("____", Some('_')).is_ok() && like("___", Some('_')).is_err());
    }

    #[test]
    fn similar_patterns_are_of_the_whole_text() {
        let is = |text: &str, pattern, escape| {
            let pattern = similar(pattern, Some(escape)).expect("a pattern");
            Regex::new(&pattern).expect("a regular expression").is_match(text)
        };
        assert!(is("abc", "%(b|d)%", '\\') && !is("abc", "(b|c)%", '\\') && !is("abc", "a", '\\'));
        assert!(is("foobar", "%#\"o_b#\"%", '#') && !is("foobar", "%#\"o_b#\"%", '\\'));
        assert!(is("a.c", "a.c", '\\') && !is("abc", "a.c", '\\') && is("b1", "[a-c]_", '\\'));
        assert!(is("50%", "50\\%", '\\') && !is("500", "50\\%", '\\'));
    }
}
