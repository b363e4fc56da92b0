//! What is refused at CREATE: SQLSTATE, the thing's name, the remedy, and never a password.

use segue_connect::ConnectError;
use segue_testkit::ports::free_port;
use segue_types::{SqlType, UserError};

use crate::support::{capture, config, pin, run, server, set, start, url_at};

async fn refused(query: &str, columns: &[(&str, SqlType)]) -> UserError {
    match pin(&config(query, columns)).await {
        Err(ConnectError::Config(error)) => error,
        other => panic!("{query} gave {other:?}"),
    }
}

#[tokio::test]
async fn a_query_that_does_not_give_the_columns_is_refused_with_the_remedy() {
    run("CREATE TABLE typed (id int8, label text, place point, tags text[], at timestamptz)").await;
    let struct_ = SqlType::Struct(vec![("x".to_owned(), SqlType::Double)]);
    let all = "SELECT * FROM typed";
    for (query, column, declared, state, message, hint) in [
        (all, "lable", SqlType::Text, "42703", "no column \"lable\"", "\"label\""),
        (
            all,
            "label",
            SqlType::BigInt,
            "42804",
            "\"label\" is of type bigint but the query returns text",
            "\"label\"::bigint AS \"label\"",
        ),
        (all, "place", SqlType::BigInt, "42804", "returns point", "::bigint"),
        (all, "place", struct_, "42804", "returns point", "as text"),
        (all, "tags", SqlType::Text, "", "", ""),
        (all, "tags", SqlType::BigInt, "42804", "returns text[]", "::bigint"),
        (all, "at", SqlType::BigInt, "42804", "returns timestamp with time zone", "::bigint"),
        (all, "label", SqlType::Uuid, "42804", "returns text", "::uuid"),
        ("SELECT 1::int8 AS a, 2 AS a", "a", SqlType::BigInt, "42702", "more than one", "AS"),
        ("INSERT INTO typed VALUES (1)", "id", SqlType::BigInt, "22023", "no columns", "SELECT"),
        (
            "DELETE FROM typed RETURNING id",
            "id",
            SqlType::BigInt,
            "42601",
            "rejected",
            "sub-select",
        ),
        ("SHOW server_version", "server_version", SqlType::Text, "42601", "rejected", "sub-select"),
        ("SELECT $1::int8 AS a", "a", SqlType::BigInt, "42P02", "parameters", "values"),
    ] {
        if state.is_empty() {
            pin(&config(query, &[(column, declared)])).await.expect("any type is text");
            continue;
        }
        let error = refused(query, &[(column, declared)]).await;
        assert_eq!(error.state.as_str(), state, "{query}: {error:?}");
        assert!(error.message.contains(message), "{query}: {error:?}");
        assert!(
            error.hint.as_deref().is_some_and(|given| given.contains(hint)),
            "{query}: {error:?}"
        );
    }
}

#[tokio::test]
async fn what_the_server_says_is_passed_on_with_its_sqlstate() {
    for (query, state, detail) in [
        ("SELECT 1 FROM nowhere", "42P01", "relation \"nowhere\" does not exist"),
        ("SELECT nothing FROM pg_class", "42703", "at character 8"),
        ("SELEC 1", "42601", "syntax error"),
        ("SELECT 1; SELECT 2", "42601", "multiple commands"),
        ("SELECT 1) AS q, (SELECT 2", "42601", "syntax error"),
    ] {
        let error = refused(query, &[("n", SqlType::BigInt)]).await;
        assert_eq!(error.state.as_str(), state, "{query}: {error:?}");
        assert!(error.detail.as_deref().is_some_and(|text| text.contains(detail)), "{error:?}");
    }
    let divided = config(
        "SELECT 1 / (n - 1) AS n FROM generate_series(1, 1) AS s (n)",
        &[("n", SqlType::Integer)],
    );
    let error = capture(&divided).await.expect_err("a division by zero");
    assert_eq!(error.to_user_error("history").state.as_str(), "22012");
    let writing = config("SELECT nextval('numbers') AS n", &[("n", SqlType::BigInt)]);
    run("CREATE SEQUENCE numbers").await;
    let error = capture(&writing).await.expect_err("the transaction only reads");
    assert_eq!(error.to_user_error("history").state.as_str(), "25006");
}

#[tokio::test]
async fn a_handoff_query_must_name_each_split_once() {
    let config = config("SELECT 1::int8 AS n", &[("n", SqlType::BigInt)]);
    let definition = pin(&config).await.expect("pins");
    for (query, state) in [
        ("SELECT 1", "42804"),
        ("SELECT 1, 2, 3", "42804"),
        ("SELECT 'p', NULL", "23502"),
        ("VALUES ('p', 1), ('p', 2)", "21000"),
        ("SELECT x FROM nowhere", "42P01"),
    ] {
        let capture = start(&config, &definition, Some(query)).await;
        let error = capture.map(|_| ()).expect_err(query).to_user_error("history");
        assert_eq!(error.state.as_str(), state, "{query}: {error:?}");
    }
}

#[tokio::test]
async fn neither_a_wrong_password_nor_a_missing_one_shows_up_anywhere() {
    run("CREATE ROLE password_required; CREATE ROLE app LOGIN PASSWORD 'right' IN ROLE password_required; \
         CREATE TABLE secret (n int8)")
    .await;
    let port = server().port();
    let mut config = config("SELECT n FROM secret", &[("n", SqlType::BigInt)]);
    for url in ["postgres://app:hunter2@127.0.0.1", "postgres://app@127.0.0.1"] {
        set(&mut config, "url", &format!("{url}:{port}/postgres"));
        let error = pin(&config).await.expect_err("a wrong or no password");
        assert!(matches!(error, ConnectError::Denied { .. }), "{error:?}");
        let shown = format!("{error} {error:?} {:?}", error.to_user_error("history"));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("28P01") || shown.contains("password missing"), "{shown}");
    }
    set(&mut config, "password", "right");
    let error = pin(&config).await.expect_err("no permission on the table");
    assert!(format!("{error}").contains("42501"), "{error}");
    run("GRANT SELECT ON secret TO app").await;
    pin(&config).await.expect("the right password");
}

#[tokio::test]
async fn a_wrong_address_and_a_wrong_database_are_told_apart() {
    let mut config = config("SELECT 1::int8 AS n", &[("n", SqlType::BigInt)]);
    set(&mut config, "database.name", "nowhere");
    let error = pin(&config).await.expect_err("no such database");
    assert_eq!(error.to_user_error("history").state.as_str(), "3D000");
    set(&mut config, "url", &url_at(free_port()));
    let error = pin(&config).await.expect_err("nobody listens");
    assert!(error.is_transient(), "{error:?}");
    set(&mut config, "url", "postgres://app:hunter2@does-not-exist.invalid/shop");
    let error = pin(&config).await.expect_err("no such host");
    assert!(error.is_transient() && !format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_hides_its_identifier_is_known_by_its_address() {
    run("CREATE ROLE plain LOGIN").await;
    let mut config = config("SELECT 1::int8 AS n", &[("n", SqlType::BigInt)]);
    let known = pin(&config).await.expect("pins").identity;
    run("CREATE DATABASE hiding").await;
    set(&mut config, "database.name", "hiding");
    let port = server().port();
    let url = format!("postgres://postgres@127.0.0.1:{port}/hiding");
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("connects");
    tokio::spawn(connection);
    let revoke = "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC";
    client.batch_execute(revoke).await.expect("revokes");
    set(&mut config, "username", "plain");
    let hidden = pin(&config).await.expect("pins without it").identity;
    assert!(hidden.starts_with(&format!("postgres:127.0.0.1:{port}/")), "{hidden}");
    assert!(known.ends_with("/postgres") && !known.contains("127.0.0.1"), "{known}");
}
