//! What options are taken, and that no refusal repeats a password.

use std::sync::Arc;

use arrow::datatypes::Schema;
use segue_connect::{ConnectError, Format, OnError, Options, ReadConfig, RowFormat, Start};

use super::{Settings, Trust};

fn config(options: &[(&str, &str)]) -> ReadConfig {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    ReadConfig {
        stage: "history".to_owned(),
        options: Options(options.iter().map(owned).collect()),
        format: Format {
            rows: RowFormat::Plain,
            encode: "native".to_owned(),
            options: Options::default(),
        },
        start: Start::Handoff,
        stop: None,
        schema: Arc::new(Schema::empty()),
        declared_columns: 0,
        key: Vec::new(),
        includes: Vec::new(),
        on_error: OnError::Fail,
    }
}

fn refusal(options: &[(&str, &str)]) -> String {
    match Settings::of(&config(options)) {
        Err(ConnectError::Config(error)) => error.message,
        other => panic!("{options:?} gave {other:?}"),
    }
}

#[test]
fn a_url_or_its_parts_say_where_the_server_is() {
    let settings = Settings::of(&config(&[
        ("url", "postgres://app:se%40cret@db:6543/shop"),
        ("query", "SELECT 1"),
    ]));
    let settings = settings.expect("a plain configuration");
    assert_eq!(settings.system, "postgres at db:6543");
    assert_eq!(settings.connection.get_password(), Some(b"se@cret".as_slice()));
    let settings = Settings::of(&config(&[
        ("hostname", "db"),
        ("username", "app"),
        ("schema.name", "s\"x"),
        ("table.name", "orders"),
        ("ssl.mode", "verify-full"),
        ("ssl.root.cert", "/ca.pem"),
    ]));
    let settings = settings.expect("a plain configuration");
    assert_eq!(settings.system, "postgres at db:5432");
    assert_eq!(settings.query, "SELECT * FROM \"s\"\"x\".\"orders\"");
    assert_eq!(settings.trust, Trust::Roots("/ca.pem".into()));
}

#[test]
fn what_is_missing_or_contradicts_is_named() {
    let url = ("url", "postgres://app@db/shop");
    let query = ("query", "SELECT 1");
    for (options, part) in [
        (vec![query], "\"url\" or \"hostname\" is required"),
        (vec![url], "\"query\" or \"table.name\" is required"),
        (vec![url, query, ("table.name", "t")], "exclude each other"),
        (vec![url, query, ("hostname", "db")], "exclude each other"),
        (vec![url, query, ("port", "1")], "exclude each other"),
        (vec![url, query, ("schema.name", "s")], "goes with"),
        (vec![url, query, ("ssl.mode", "maybe")], "ssl.mode"),
        (vec![url, query, ("ssl.mode", "verify-full")], "ssl.root.cert"),
        (vec![url, query, ("connect.timeout", "soon")], "connect.timeout"),
        (vec![("url", "postgres://app@/shop"), query], "no host"),
    ] {
        let message = refusal(&options);
        assert!(message.contains(part), "{options:?}: {message}");
    }
}

#[test]
fn a_bad_url_is_refused_without_repeating_it() {
    for url in ["postgres://app:hunter2@db:port/x", "postgres://app@db/x?hunter2=1", "hunter2"] {
        let refused = Settings::of(&config(&[("url", url), ("query", "SELECT 1")]));
        let error = refused.expect_err("not a URL");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}
