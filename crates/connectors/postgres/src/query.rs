//! The user's query as a part of ours.
//!
//! Invariant: whatever comments, quotes or semicolon the query ends with, it ends before our closing
//! parenthesis.

/// An identifier in double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `query` as a sub-select. A comment at its end would swallow the parenthesis, hence the newline.
pub(crate) fn as_relation(query: &str) -> String {
    format!("(\n{}\n)", without_semicolon(query))
}

/// `query` up to the semicolon that ends it.
fn without_semicolon(query: &str) -> &str {
    let bytes = query.as_bytes();
    let mut at = 0;
    // Start of the run of semicolons after which only blanks and comments came so far.
    let mut end = None;
    while at < bytes.len() {
        let rest = &query[at..];
        let length = blank_or_comment(rest);
        if length > 0 {
            at += length;
        } else if bytes[at] == b';' {
            end = end.or(Some(at));
            at += 1;
        } else {
            end = None;
            at += token(rest, bytes[..at].last().copied());
        }
    }
    &query[..end.unwrap_or(query.len())]
}

/// The length of the blank or comment that `text` starts with, or 0.
fn blank_or_comment(text: &str) -> usize {
    if text.starts_with("--") {
        return text.find('\n').map_or(text.len(), |newline| newline + 1);
    }
    if text.starts_with("/*") {
        return nested_comment(text);
    }
    usize::from(text.as_bytes()[0].is_ascii_whitespace())
}

fn nested_comment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0);
    while at < bytes.len() {
        let pair = &bytes[at..bytes.len().min(at + 2)];
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of the token that `text` starts with, as far as it matters: a quoted thing whole, else one
/// character. `before` is the byte before it.
fn token(text: &str, before: Option<u8>) -> usize {
    let first = text.chars().next().expect("the caller has something left");
    match first {
        '\'' => quoted_length(text, '\'', matches!(before, Some(b'e' | b'E'))),
        '"' => quoted_length(text, '"', false),
        // `a$b$` is an identifier and no quote.
        '$' if !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            dollar_quoted_length(text)
        }
        _ => first.len_utf8(),
    }
}

/// A doubled quote reads as two strings side by side, which comes to the same end.
fn quoted_length(text: &str, quote: char, backslash_escapes: bool) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' && backslash_escapes {
            escaped = true;
        } else if character == quote {
            return at + 1;
        }
    }
    text.len()
}

fn dollar_quoted_length(text: &str) -> usize {
    let tag_end = text[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).map(|at| at + 1);
    match tag_end {
        Some(end) if text[end..].starts_with('$') => {
            let tag = &text[..=end];
            text[tag.len()..].find(tag).map_or(text.len(), |close| tag.len() * 2 + close)
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{quoted, without_semicolon};

    #[test]
    fn only_the_semicolon_that_ends_the_query_goes() {
        let same = [
            "SELECT 1",
            "SELECT ';'",
            "SELECT ';' -- ;",
            "SELECT $a$ ; $a$",
            "SELECT a$b$ FROM t",
            "SELECT \";\"",
            "SELECT E'\\';'",
            "SELECT 'it''s;'",
            "SELECT 1 /* ; /* ; */ ; */",
            "SELECT 1; SELECT 2",
            "SELECT 'é;' AS ü",
            "",
        ];
        for query in same {
            assert_eq!(without_semicolon(query), query);
        }
        for tail in [";", " ; ", ";;", "; -- done", "; /* a /* b */ c */ ; -- x\n", ";\n\n"] {
            let query = format!("SELECT ';'{tail}");
            assert_eq!(without_semicolon(&query).trim_end(), "SELECT ';'", "{query:?}");
        }
    }

    #[test]
    fn a_quote_in_a_name_is_doubled() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
