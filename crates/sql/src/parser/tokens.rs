//! What sqlparser's grammar lacks, written in tokens that it has, before a statement is parsed.
//!
//! CREATE USER becomes CREATE ROLE; `s AS CHANGELOG FROM t`, in a WITH list, becomes
//! `s AS (SELECT * FROM changelog(t))`; the options behind the query of a CREATE SINK are cut off by a semicolon, for
//! after a table's name they would be read as hints.
//! Invariant: a token that is put in stands where one of the text stood, so that errors name places of the text.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The function that [`changelogs`] puts in.
const CHANGELOG: &str = "changelog";

pub(super) fn rewritten(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut tokens = changelogs(tokens);
    cut_sink_options(&mut tokens);
    users_are_roles(&mut tokens);
    tokens
}

pub(super) fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// The places of the tokens that are neither blanks nor comments.
fn visible(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let is_visible = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    (0..tokens.len()).filter(|place| is_visible(&tokens[*place])).collect()
}

fn changelogs(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(token, CHANGELOG)) {
        return tokens;
    }
    let places = visible(&tokens);
    let words = ["AS", CHANGELOG, "FROM"];
    let starts = places.windows(4).filter(|window| {
        let follows = |(place, word): (&usize, &&str)| is_word(&tokens[*place], word);
        window.iter().zip(&words).all(follows) && matches!(tokens[window[3]].token, Token::Word(_))
    });
    // From the last on, so that the places before stay.
    let starts: Vec<[usize; 3]> = starts.map(|window| [window[1], window[2], window[3]]).collect();
    for [changelog, from, first] in starts.into_iter().rev() {
        let at = places.iter().position(|place| *place == first).expect("it is one of them");
        let qualified = places.get(at + 1).is_some_and(|dot| tokens[*dot].token == Token::Period);
        let last = places.get(at + if qualified { 2 } else { 0 }).copied().unwrap_or(first);
        let closing = tokens[last].span;
        let opening = tokens[changelog].span;
        let put = |token: Token, span| TokenWithSpan { token, span };
        tokens.splice(
            last + 1..last + 1,
            [Token::RParen, Token::RParen].map(|token| put(token, closing)),
        );
        let function = [Token::make_word(CHANGELOG, None), Token::LParen];
        let from_span = tokens[from].span;
        tokens.splice(from + 1..from + 1, function.map(|token| put(token, from_span)));
        let select = Token::Word(Word {
            value: "SELECT".to_owned(),
            quote_style: None,
            keyword: Keyword::SELECT,
        });
        let query = [Token::LParen, select, Token::Mul].map(|token| put(token, opening));
        tokens.splice(changelog..=changelog, query);
    }
    tokens
}

/// PostgreSQL's CREATE USER is a CREATE ROLE.
fn users_are_roles(tokens: &mut [TokenWithSpan]) {
    let places = visible(tokens);
    let [verb, user, ..] = places.as_slice() else { return };
    let verbs = ["CREATE", "ALTER", "DROP"];
    if verbs.iter().any(|word| is_word(&tokens[*verb], word)) && is_word(&tokens[*user], "USER") {
        tokens[*user].token = Token::make_word("ROLE", None);
    }
}

fn cut_sink_options(tokens: &mut [TokenWithSpan]) {
    let places = visible(tokens);
    let creates = |window: &&[usize]| {
        is_word(&tokens[window[0]], "CREATE") && is_word(&tokens[window[1]], "SINK")
    };
    if !places.windows(2).take(3).any(|window| creates(&window)) {
        return;
    }
    let mut depth = 0_usize;
    for window in places.windows(2) {
        let [this, next] = [&tokens[window[0]], &tokens[window[1]]];
        match this.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_word(this, "WITH") && next.token == Token::LParen => {
                tokens[window[0]].token = Token::SemiColon;
                return;
            }
            _ => {}
        }
    }
}
