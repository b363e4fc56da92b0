//! Which subjects are read, and what of a message's subject is its key.
//!
//! Words defined here: *key of a message*: what the wildcard of the one subject that is read stands for
//! (`orders.*` and `orders.7` give `7`); the whole subject where there is no such wildcard.

use segue_connect::ConnectError;
use segue_types::{SqlState, UserError};

/// The subjects of a read, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subjects {
    names: Vec<String>,
    /// How many bytes of a subject stand before its key.
    prefix: usize,
}

impl Subjects {
    /// Reads `a.b, c.*, d.>`.
    pub(crate) fn parse(text: &str) -> Result<Subjects, ConnectError> {
        let mut names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        names.sort();
        names.dedup();
        if let Some(bad) = names.iter().find(|name| !is_subject(name)) {
            return Err(ConnectError::Config(
                UserError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid value for option \"subject\": \"{bad}\""),
                )
                .with_hint(
                    "Give subjects like orders, orders.* or orders.>, with commas between them.",
                ),
            ));
        }
        let prefix = match names.as_slice() {
            [one] => prefix(one),
            _ => 0,
        };
        Ok(Subjects { names, prefix })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// What of a message's subject is its key.
    pub(crate) fn key_of<'a>(&self, subject: &'a str) -> &'a str {
        subject.get(self.prefix..).unwrap_or(subject)
    }
}

/// The length of what stands before the first wildcard; 0 where there is none.
fn prefix(subject: &str) -> usize {
    let mut length = 0;
    for token in subject.split('.') {
        if token == "*" || token == ">" {
            return length;
        }
        length += token.len() + 1;
    }
    0
}

fn is_subject(subject: &str) -> bool {
    let tokens: Vec<&str> = subject.split('.').collect();
    let good = |(at, token): (usize, &&str)| {
        let wild = token.contains('>') || token.contains('*');
        let whole = *token == "*" || (*token == ">" && at + 1 == tokens.len());
        !token.is_empty() && !token.contains(char::is_whitespace) && (!wild || whole)
    };
    tokens.iter().enumerate().all(good)
}

#[cfg(test)]
mod tests {
    use super::Subjects;

    fn subjects(text: &str) -> Subjects {
        Subjects::parse(text).expect("good subjects")
    }

    #[test]
    fn the_key_is_what_the_wildcard_stands_for() {
        assert_eq!(subjects("orders.*").key_of("orders.7"), "7");
        assert_eq!(subjects("$KV.b.>").key_of("$KV.b.a.c"), "a.c");
        assert_eq!(subjects("*.x").key_of("1.x"), "1.x");
        assert_eq!(subjects(">").key_of("a.b"), "a.b");
        assert_eq!(subjects("orders.7").key_of("orders.7"), "orders.7");
        assert_eq!(subjects("a.*, b.*").key_of("a.1"), "a.1");
    }

    #[test]
    fn names_are_in_order_and_what_is_no_subject_is_refused() {
        assert_eq!(subjects("b, a,b").names(), ["a", "b"]);
        for text in ["", "a..b", "a b", "a.>.b", "a*", ".", "a,"] {
            Subjects::parse(text).expect_err(text);
        }
    }
}
