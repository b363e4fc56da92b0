//! What sqlparser does not read in PostgreSQL's dialect, put into a form that it reads, token by token.
//!
//! `x::struct<a int>` gets a quoted name for its type, `trim(FROM x)` loses its FROM, `LIKE SOME` becomes `LIKE ANY`,
//! `* EXCEPT (a)` becomes `* EXCLUDE (a)`.
//! Spans stay those of the text, so that errors and definitions show what was written.

use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use crate::Lines;

/// The tokens as sqlparser reads them.
pub(super) fn readable(
    tokens: &[TokenWithSpan],
    text: &str,
    lines: &Lines<'_>,
) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if let Some((length, token)) = struct_type(&tokens[at..], &out, text, lines) {
            out.push(token);
            at += length;
            continue;
        }
        let mut token = tokens[at].clone();
        if is_word(&token.token, &["SOME"]) && last(&out, 0).is_some_and(is_like) {
            token.token = Token::make_keyword("ANY");
        }
        if is_word(&token.token, &["EXCEPT"]) && leaves_columns_out(&tokens[at + 1..], &out) {
            token.token = Token::make_keyword("EXCLUDE");
        }
        let is_trim = is_word(&token.token, &["FROM"]) && begins_trim(&out);
        if !is_trim {
            out.push(token);
        }
        at += 1;
    }
    out
}

fn is_word(token: &Token, words: &[&str]) -> bool {
    matches!(token, Token::Word(word)
        if word.quote_style.is_none() && words.iter().any(|known| known.eq_ignore_ascii_case(&word.value)))
}

fn is_like(token: &Token) -> bool {
    is_word(token, &["LIKE", "ILIKE"])
}

/// The token so many places before the end, blanks left out.
fn last(tokens: &[TokenWithSpan], place: usize) -> Option<&Token> {
    let visible = |token: &&Token| !matches!(token, Token::Whitespace(_));
    tokens.iter().rev().map(|token| &token.token).filter(visible).nth(place)
}

/// Whether what comes next would be the first thing that `trim(` takes.
fn begins_trim(before: &[TokenWithSpan]) -> bool {
    let side =
        last(before, 0).is_some_and(|token| is_word(token, &["BOTH", "LEADING", "TRAILING"]));
    let place = usize::from(side);
    last(before, place) == Some(&Token::LParen)
        && last(before, place + 1).is_some_and(|token| is_word(token, &["TRIM"]))
}

/// Whether an EXCEPT between these tokens belongs to a `*`, and is none of two queries.
fn leaves_columns_out(after: &[TokenWithSpan], before: &[TokenWithSpan]) -> bool {
    let visible = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let mut next = after.iter().filter(visible).map(|token| &token.token);
    let in_brackets = next.next() == Some(&Token::LParen);
    let of_query = |token: &Token| {
        *token == Token::LParen || is_word(token, &["SELECT", "VALUES", "WITH", "TABLE"])
    };
    in_brackets
        && last(before, 0) == Some(&Token::Mul)
        && next.next().is_some_and(|token| !of_query(token))
}

/// The type of a cast as one name, and how many tokens it has.
fn struct_type(
    tokens: &[TokenWithSpan],
    before: &[TokenWithSpan],
    text: &str,
    lines: &Lines<'_>,
) -> Option<(usize, TokenWithSpan)> {
    let first = tokens.first()?;
    let in_cast = last(before, 0)
        .is_some_and(|token| *token == Token::DoubleColon || is_word(token, &["AS"]));
    if !in_cast || !is_word(&first.token, &["STRUCT"]) {
        return None;
    }
    let length = angles(tokens)?;
    let span = Span { start: first.span.start, end: tokens[length - 1].span.end };
    let written = text.get(lines.byte(span.start)?..lines.byte(span.end)?)?;
    Some((length, TokenWithSpan { token: Token::make_word(written, Some('"')), span }))
}

/// How many tokens there are up to the `>` that closes the first `<`.
fn angles(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(1) {
        let closed = match &token.token {
            Token::Whitespace(_) => continue,
            Token::Lt => {
                depth += 1;
                continue;
            }
            Token::Gt => 1,
            Token::ShiftRight => 2,
            Token::CustomBinaryOperator(operator) if operator.bytes().all(|byte| byte == b'>') => {
                operator.len()
            }
            _ if depth == 0 => return None,
            _ => continue,
        };
        depth = depth.checked_sub(closed)?;
        if depth == 0 {
            return Some(place + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::parse;

    fn read(text: &str) -> String {
        match parse(text).expect("grammatical").pop() {
            Some(crate::Statement::Sql(statement)) => statement.to_string(),
            other => panic!("no query: {other:?}"),
        }
    }

    #[test]
    fn what_sqlparser_does_not_read_gets_another_form() {
        let cases = [
            ("SELECT * EXCEPT (a, t.b) FROM t", "SELECT * EXCLUDE (a, t.b) FROM t"),
            ("SELECT a * (1) FROM t EXCEPT (SELECT 1)", "SELECT a * (1) FROM t EXCEPT (SELECT 1)"),
            (
                "SELECT x::struct<a int, b struct<c text>>[]",
                "SELECT x::\"struct<a int, b struct<c text>>\"[]",
            ),
            ("SELECT trim(FROM x), trim(BOTH FROM x, 'a')", "SELECT TRIM(x), TRIM(x, 'a')"),
            ("SELECT x LIKE SOME (y)", "SELECT x LIKE ANY (y)"),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
