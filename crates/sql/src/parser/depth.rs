//! How deep a statement nests, counted on its tokens before anything is parsed.
//!
//! The parser itself bounds brackets and subqueries, but reads `1 + 1 + …` in a loop, and makes a tree of it that
//! is as deep as the chain is long. Whoever walks that tree recurses. Word defined here: *depth*, an upper bound of
//! the tree's: brackets that are open, and in each of them the operators that are chained so far.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::{Lines, ParseError};

/// How deep a statement may nest. [`STACK_BYTES`] is enough for it, also without optimisation.
const DEPTH_MAX: usize = 1000;

/// The stack of every thread that plans or runs statements. Only what is used of it takes memory.
pub const STACK_BYTES: usize = 128 * 1024 * 1024;

/// What is chained between two brackets.
#[derive(Default)]
struct Level {
    /// UNION, JOIN and the like: each takes all before it as its left side.
    relations: usize,
    logic: usize,
    operators: usize,
    /// Commas join relations here.
    in_from: bool,
}

impl Level {
    fn depth(&self) -> usize {
        1 + self.relations + self.logic + self.operators
    }

    fn take(&mut self, token: &Token) {
        match token {
            Token::Comma => {
                self.relations += usize::from(self.in_from);
                (self.logic, self.operators) = (0, 0);
            }
            Token::Word(word) if word.quote_style.is_none() => self.take_word(&word.value),
            Token::Word(_)
            | Token::Whitespace(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Period
            | Token::EOF => {}
            _ => self.operators += 1,
        }
    }

    fn take_word(&mut self, word: &str) {
        let is = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        if is(&["AND", "OR"]) {
            self.logic += 1;
            self.operators = 0;
        } else if is(&["NOT", "IS", "AT", "COLLATE", "LIKE", "IN", "BETWEEN"]) {
            self.operators += 1;
        } else if is(&["UNION", "EXCEPT", "INTERSECT", "JOIN"]) {
            self.relations += 1;
            (self.logic, self.operators) = (0, 0);
        } else if is(&["SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "VALUES"]) {
            self.in_from = is(&["FROM"]);
            (self.logic, self.operators) = (0, 0);
        } else if is(&["ON", "WHEN", "THEN", "ELSE"]) {
            (self.logic, self.operators) = (0, 0);
        }
    }
}

/// Refuses a statement that nests too deeply, at the token where it does.
pub(super) fn check(statement: &[TokenWithSpan], lines: &Lines<'_>) -> Result<(), ParseError> {
    let mut open = vec![Level::default()];
    let mut outer = 0;
    for token in statement {
        let level = open.last_mut().expect("the outermost level is never closed");
        let is_word = |text: &str| {
            matches!(&token.token, Token::Word(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
        };
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                outer += level.depth();
                open.push(Level::default());
            }
            _ if is_word("CASE") => {
                outer += level.depth();
                open.push(Level::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => outer -= close(&mut open),
            _ if is_word("END") => outer -= close(&mut open),
            token => level.take(token),
        }
        let depth = outer + open.last().map_or(0, Level::depth);
        if depth > DEPTH_MAX {
            let place = lines.offset(token.span.start);
            return Err(ParseError::TooDeep { offset: place.unwrap_or_else(|| lines.end()) });
        }
    }
    Ok(())
}

/// Goes back to the level outside, and returns its depth; a bracket too many is the parser's to refuse.
fn close(open: &mut Vec<Level>) -> usize {
    if open.len() == 1 {
        return 0;
    }
    open.pop();
    open.last().map_or(0, Level::depth)
}

#[cfg(test)]
mod tests {
    use crate::{ParseError, parse};

    fn is_too_deep(text: &str) -> bool {
        matches!(parse(text), Err(ParseError::TooDeep { .. }))
    }

    #[test]
    fn a_long_chain_is_deep_and_a_long_list_is_not() {
        for chain in [" + 1", " || 'x'", "::text", " OR k = 1", " UNION ALL SELECT 1", " IS NULL"] {
            assert!(!is_too_deep(&format!("SELECT 1{}", chain.repeat(300))), "{chain}");
            assert!(is_too_deep(&format!("SELECT 1{}", chain.repeat(2000))), "{chain}");
        }
        assert!(is_too_deep(&format!("SELECT * FROM t{}", ", t".repeat(2000))));
        assert!(is_too_deep(&format!("SELECT * FROM t{}", " JOIN t USING (k)".repeat(2000))));
        let rows = "(1 + 1, -2, CASE WHEN a = 1 THEN 2 ELSE 3 END),".repeat(5000);
        assert!(!is_too_deep(&format!("INSERT INTO t VALUES {rows} (1)")));
        let keys = "-1,".repeat(5000);
        assert!(!is_too_deep(&format!("SELECT 1 FROM t WHERE k IN ({keys} 1) OR k > 1")));
    }

    #[test]
    fn nested_calls_are_read_once() {
        let (open, close) = ("replace(".repeat(30), ", 'a', b => 'c')".repeat(30));
        assert_eq!(parse(&format!("SELECT {open}x{close}")).map(|parsed| parsed.len()), Ok(1));
    }

    #[test]
    fn a_bracket_too_many_is_a_syntax_error() {
        assert!(matches!(parse("SELECT 1)) + END"), Err(ParseError::Unexpected { .. })));
    }
}
