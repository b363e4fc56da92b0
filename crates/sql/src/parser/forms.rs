//! Forms that sqlparser does not read, in tokens that it does.
//!
//! `ASOF [LEFT] JOIN t ON …` gets the MATCH_CONDITION that sqlparser asks for: whether rows that meet nothing are left
//! out. `SESSION WITH GAP g` in a window becomes a last key of its order, `session_gap(g)`.
//! Invariant: the text is what was written; the tokens that were added stand where others do.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// The function that stands for the frame.
const SESSION_GAP: &str = "session_gap";

pub(super) fn read(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    // The last first, so that places stay what they are.
    for at in (0..tokens.len()).rev() {
        if is_word(&tokens[at], "asof") {
            asof(&mut tokens, at);
        } else if is_word(&tokens[at], "session") {
            session(&mut tokens, at);
        }
    }
    tokens
}

fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// The places of the visible tokens from `at` on.
fn visible(tokens: &[TokenWithSpan], at: usize) -> impl Iterator<Item = usize> + '_ {
    (at..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
}

fn asof(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut kind = Vec::new();
    let mut after = visible(tokens, at + 1);
    let join = loop {
        let Some(place) = after.next() else { return };
        match &tokens[place] {
            word if is_word(word, "join") => break place,
            word if ["left", "outer", "inner"].iter().any(|kind| is_word(word, kind)) => {
                kind.push(place);
            }
            _ => return,
        }
    };
    drop(after);
    let Some(on) = condition(tokens, join + 1) else { return };
    let keeps = kind.iter().any(|place| is_word(&tokens[*place], "left"));
    let span = tokens[on].span;
    let value = if keeps { "false" } else { "true" };
    let added = [
        Token::make_keyword("MATCH_CONDITION"),
        Token::LParen,
        Token::make_keyword(value),
        Token::RParen,
    ];
    tokens.splice(on..on, added.into_iter().map(|token| at_span(token, span)));
    for place in kind.into_iter().rev() {
        tokens.remove(place);
    }
}

/// The place of the ON that ends the relation at `at`.
fn condition(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for place in visible(tokens, at) {
        match &tokens[place].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            Token::Word(word) if depth == 0 => match word.keyword {
                Keyword::ON => return Some(place),
                Keyword::MATCH_CONDITION | Keyword::JOIN | Keyword::WHERE | Keyword::USING => {
                    return None;
                }
                _ => {}
            },
            Token::Comma | Token::SemiColon if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn session(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let places = visible(tokens, at).take(4).collect::<Vec<_>>();
    let [_, with, gap, first] = places[..] else { return };
    if !is_word(&tokens[with], "with") || !is_word(&tokens[gap], "gap") {
        return;
    }
    let Some(close) = closing(tokens, gap + 1) else { return };
    let at_gap = |token: Token| at_span(token, tokens[gap].span);
    let mut added =
        [Token::Comma, Token::make_word(SESSION_GAP, None), Token::LParen].map(at_gap).to_vec();
    if matches!(tokens[first].token, Token::SingleQuotedString(_)) {
        added.push(at_gap(Token::make_keyword("INTERVAL")));
    }
    let end = at_span(Token::RParen, tokens[close].span);
    tokens.insert(close, end);
    tokens.splice(at..=gap, added);
}

/// The place of the parenthesis that closes what stands around `at`.
fn closing(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for place in visible(tokens, at) {
        match &tokens[place].token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(place),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

fn at_span(token: Token, span: Span) -> TokenWithSpan {
    TokenWithSpan { token, span }
}

#[cfg(test)]
mod tests {
    fn read(text: &str) -> String {
        crate::parse_query(text).expect("a query").tree.to_string()
    }

    #[test]
    fn asof_joins_say_whether_rows_that_meet_nothing_stay() {
        let text = "SELECT * FROM a ASOF JOIN b ON a.k = b.k AND a.t >= b.t";
        let expected =
            "SELECT * FROM a ASOF JOIN b MATCH_CONDITION (true) ON a.k = b.k AND a.t >= b.t";
        assert_eq!(read(text), expected);
        let text =
            "SELECT * FROM a ASOF LEFT JOIN (SELECT 1 FROM c JOIN d ON true) AS b ON a.t >= b.t";
        let expected = "SELECT * FROM a ASOF JOIN (SELECT 1 FROM c JOIN d ON true) AS b \
                        MATCH_CONDITION (false) ON a.t >= b.t";
        assert_eq!(read(text), expected);
    }

    #[test]
    fn a_session_frame_is_a_key_of_the_order() {
        let text = "SELECT count(*) OVER (PARTITION BY k ORDER BY t SESSION WITH GAP INTERVAL '1' MINUTE) FROM a";
        let expected = "SELECT count(*) OVER (PARTITION BY k ORDER BY t, session_gap(INTERVAL '1' MINUTE)) FROM a";
        assert_eq!(read(text), expected);
        let text =
            "SELECT count(*) OVER w FROM a WINDOW w AS (ORDER BY t session with gap '10 minutes')";
        let expected = "SELECT count(*) OVER w FROM a WINDOW w AS (ORDER BY t, session_gap(INTERVAL '10 minutes'))";
        assert_eq!(read(text), expected);
    }
}
