//! What may be shown of a statement: secret options and passwords in URLs become `***`.

use crate::{Explain, Explained, Input, Read, Statement, WithOption};

/// What stands for a secret.
pub const REDACTED: &str = "***";

impl Statement {
    /// The statement as it may be shown. `is_secret(connector, option)` is the connectors' word; option names
    /// that speak for themselves are hidden even without it, as pass-through options have no words of their own.
    #[must_use]
    pub fn redacted(&self, is_secret: &dyn Fn(&str, &str) -> bool) -> Statement {
        let mut shown = self.clone();
        match &mut shown {
            Statement::CreateSource(source) => redact_input(&mut source.input, is_secret),
            Statement::CreateTable(table) => {
                if let Some(input) = &mut table.input {
                    redact_input(input, is_secret);
                }
            }
            Statement::CreateSink(sink) => {
                let options = sink.format.iter_mut().flat_map(|format| &mut format.options);
                redact_options(sink.options.iter_mut().chain(options), "", is_secret);
            }
            Statement::Explain(Explain { subject: Explained::Create(statement), .. }) => {
                **statement = statement.redacted(is_secret);
            }
            _ => {}
        }
        shown
    }
}

fn redact_input(input: &mut Input, is_secret: &dyn Fn(&str, &str) -> bool) {
    match input {
        Input::Read(read) => redact_read(read, is_secret),
        Input::Stages(stages) => {
            stages.iter_mut().for_each(|stage| redact_read(&mut stage.read, is_secret));
        }
    }
}

fn redact_read(read: &mut Read, is_secret: &dyn Fn(&str, &str) -> bool) {
    let connector = read.options.iter().find(|option| option.name == "connector");
    let connector = connector.map(|option| option.value.clone()).unwrap_or_default();
    let format_options = read.format.iter_mut().flat_map(|format| &mut format.options);
    redact_options(read.options.iter_mut().chain(format_options), &connector, is_secret);
}

fn redact_options<'a>(
    options: impl Iterator<Item = &'a mut WithOption>,
    connector: &str,
    is_secret: &dyn Fn(&str, &str) -> bool,
) {
    for WithOption { name, value, .. } in options {
        *value = if is_secret(connector, name) || names_a_secret(name) {
            REDACTED.to_owned()
        } else {
            redact_url(value)
        };
    }
}

/// Whether an option's name says that its value is a secret.
fn names_a_secret(option: &str) -> bool {
    let last = option.rsplit('.').next().unwrap_or(option).to_ascii_lowercase();
    ["password", "secret", "token", "access_key", "private_key"]
        .iter()
        .any(|word| last.contains(word))
        || option.ends_with(".key.pem")
}

/// The text with the passwords of its URLs and connection strings hidden. Where a text is ambiguous it hides too
/// much: an unescaped `@` or `/` in a password is common, and showing half of it is not an option.
pub fn redact_url(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme) = rest.find("://") {
        let start = scheme + "://".len();
        let end = rest[start..].find(char::is_whitespace).map_or(rest.len(), |at| start + at);
        shown.push_str(&rest[..start]);
        shown.push_str(&redact_userinfo(&rest[start..end]));
        rest = &rest[end..];
    }
    shown.push_str(rest);
    redact_parameters(&shown)
}

/// Hides what stands between the first `:` and the `@` of `user:password@host…`.
fn redact_userinfo(url: &str) -> String {
    let path = url.find('?').unwrap_or(url.len());
    let Some(at) = url[..path].rfind('@').or_else(|| url.rfind('@')) else { return url.to_owned() };
    match url[..at].find(':') {
        Some(colon) => format!("{}:{REDACTED}{}", &url[..colon], &url[at..]),
        None => url.to_owned(),
    }
}

/// Hides the values of `password=…`, quoted or not.
fn redact_parameters(text: &str) -> String {
    const KEY: &str = "password";
    let folded = text.to_ascii_lowercase();
    let (mut shown, mut done) = (String::with_capacity(text.len()), 0);
    while let Some(found) = folded[done..].find(KEY) {
        let after = done + found + KEY.len();
        let equals = after + folded[after..].len() - folded[after..].trim_start().len();
        if !folded[equals..].starts_with('=') {
            shown.push_str(&text[done..after]);
            done = after;
            continue;
        }
        let value =
            equals + 1 + folded[equals + 1..].len() - folded[equals + 1..].trim_start().len();
        shown.push_str(&text[done..value]);
        shown.push_str(REDACTED);
        done = value + value_length(&text[value..]);
    }
    shown.push_str(&text[done..]);
    shown
}

/// The length of a connection string's value: in single quotes with backslash escapes, or up to a blank or `&`.
fn value_length(text: &str) -> usize {
    if !text.starts_with('\'') {
        return text.find(|c: char| c.is_whitespace() || c == '&').unwrap_or(text.len());
    }
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'\'' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::redact_url;
    use crate::parse;

    #[test]
    fn a_statement_is_shown_without_what_its_connectors_and_its_names_call_secret() {
        let text = "CREATE SOURCE s (a int) WITH STAGES (
            h WITH (connector = 'postgres', url = 'postgres://app:pw@db/shop', pin = '1234'),
            l WITH (connector = 'kafka', pin = '1', properties.sasl.password = 'pw') FORMAT PLAIN ENCODE AVRO
              (schema.registry.password = 'pw'))";
        let statement = parse(text).expect("it is grammatical").remove(0);
        let is_secret = |connector: &str, option: &str| connector == "postgres" && option == "pin";
        let shown = statement.redacted(&is_secret).to_string();
        assert!(!shown.contains("pw") && !shown.contains("1234"), "{shown}");
        assert!(shown.contains("'postgres://app:***@db/shop', pin = '***'"), "{shown}");
        assert!(shown.contains("pin = '1', properties.sasl.password = '***'"), "{shown}");
        assert!(shown.contains("schema.registry.password = '***'"), "{shown}");
    }

    #[test]
    fn no_password_is_shown_and_nothing_else_is_hidden() {
        let cases = [
            ("postgres://app:s3cret@db:5432/shop", "postgres://app:***@db:5432/shop"),
            ("postgres://app:p@ss/w@db/shop", "postgres://app:***@db/shop"),
            ("postgres://app:p?w@db/shop", "postgres://app:***@db/shop"),
            ("postgres://app@db/shop", "postgres://app@db/shop"),
            ("postgres://db:5432/shop?sslmode=require", "postgres://db:5432/shop?sslmode=require"),
            (
                "postgres://db/shop?user=a&password=x&n=1",
                "postgres://db/shop?user=a&password=***&n=1",
            ),
            ("host=db password = 'a b\\' c' user=x", "host=db password = *** user=x"),
            ("a://u:p@h b://u:q@h", "a://u:***@h b://u:***@h"),
            ("the password of", "the password of"),
            ("kafka:9092", "kafka:9092"),
        ];
        for (given, shown) in cases {
            assert_eq!(redact_url(given), shown);
        }
    }
}
