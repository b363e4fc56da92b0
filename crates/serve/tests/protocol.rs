//! The protocol against a real driver: results in both formats, errors, transactions, COPY, cancel, limits.

mod support;

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use segue_serve::ServeConfig;
use support::{DEADLINE, Server};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

const LONG: &str = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b \
                    WHERE a.a + b.b = 3";

/// The SQLSTATE of a failed statement.
fn state_of(error: &tokio_postgres::Error) -> &str {
    error.code().map_or("", |code| code.code())
}

async fn texts(client: &Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(sql).await.expect("it succeeds");
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect())
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_connects_as_risingwaves_clients_do_reads_its_forms() {
    let server = Server::start(ServeConfig::default()).await;
    let query = "SELECT 5 / 2.0, TIMESTAMPTZ '2026-01-01 00:00:00+00'";
    for (user, expected) in [
        ("dev", ["2.5000000000000000", "2026-01-01 00:00:00+00"]),
        ("root", ["2.50", "2026-01-01 00:00:00+00:00"]),
    ] {
        let text = format!("host=127.0.0.1 port={} user={user} dbname=dev", server.port);
        let connected = tokio_postgres::connect(&text, NoTls).await;
        let (client, connection) = connected.expect("a connection");
        tokio::spawn(connection);
        let expected = expected.map(|value| Some(value.to_owned()));
        assert_eq!(texts(&client, query).await, [expected]);
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_comes_back_as_it_was_written_in_text_and_in_binary() {
    let server = Server::start(ServeConfig::default()).await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t
             (id BIGINT PRIMARY KEY, v TEXT, d DOUBLE PRECISION, b BOOLEAN, a INT[])",
        )
        .await
        .expect("the table is made");
    let insert =
        client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5)").await.expect("prepared");
    let types: Vec<Type> = insert.params().to_vec();
    assert_eq!(types, [Type::INT8, Type::TEXT, Type::FLOAT8, Type::BOOL, Type::INT4_ARRAY]);
    for id in 0..5_i64 {
        let list = vec![Some(id as i32), None];
        let count = client
            .execute(&insert, &[&id, &format!("v{id}"), &(id as f64 / 2.0), &(id % 2 == 0), &list])
            .await
            .expect("inserted");
        assert_eq!(count, 1);
    }
    let row = client.query_one("SELECT * FROM t WHERE id = $1", &[&3_i64]).await.expect("one row");
    assert_eq!(row.get::<_, &str>("v"), "v3");
    assert_eq!(row.get::<_, Vec<Option<i32>>>("a"), vec![Some(3), None]);
    let row = client
        .query_one("SELECT count(*), sum(d) FROM t WHERE id < $1 AND v LIKE $2", &[&4_i64, &"v%"])
        .await
        .expect("one row");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, f64>(1)), (4, 3.0));
    let rows = texts(&client, "SELECT id, d, a FROM t WHERE NOT b ORDER BY id").await;
    let expected = [["1", "0.5", "{1,NULL}"], ["3", "1.5", "{3,NULL}"]];
    assert_eq!(rows, expected.map(|row| row.map(|text| Some(text.to_owned())).to_vec()));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_before_an_error_keep_their_results_and_those_behind_it_do_not_run() {
    let server = Server::start(ServeConfig::default()).await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").await.expect("the table is made");
    let error = client
        .simple_query("INSERT INTO t VALUES (1); SELECT 1/0; INSERT INTO t VALUES (2)")
        .await
        .expect_err("a division by zero");
    assert_eq!(state_of(&error), "22012");
    assert_eq!(texts(&client, "SELECT id FROM t").await, [[Some("1".to_owned())]]);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_carry_state_and_place() {
    let server = Server::start(ServeConfig::default()).await;
    let client = server.connect().await;
    for (sql, state, position) in [
        ("SELECT nope", "42703", Some(8)),
        ("SELECT * FROM nope", "42P01", Some(15)),
        ("SELEC 1", "42601", Some(1)),
        ("SELECT nofunc(1)", "42883", None),
        ("SET nope = 1", "42704", None),
        ("EXECUTE nope", "26000", None),
        ("FETCH 1 FROM nope", "34000", None),
        ("SAVEPOINT s", "25P01", None),
        ("DROP TABLE nope", "42P01", None),
    ] {
        let error = client.simple_query(sql).await.expect_err(sql);
        assert_eq!(state_of(&error), state, "{sql}: {error:?}");
        let given = error.as_db_error().and_then(|error| error.position().cloned());
        if let Some(position) = position {
            let expected = tokio_postgres::error::ErrorPosition::Original(position);
            assert_eq!(given, Some(expected), "{sql}");
        }
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_reads_one_version_and_sees_its_own_writes() {
    let server = Server::start(ServeConfig::default()).await;
    let (mut reader, writer) = (server.connect().await, server.connect().await);
    writer.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").await.expect("the table is made");
    let block = reader.transaction().await.expect("a block");
    let count = "SELECT count(*) FROM t";
    assert_eq!(block.query_one(count, &[]).await.expect("counted").get::<_, i64>(0), 0);
    writer.batch_execute("INSERT INTO t VALUES (1)").await.expect("inserted");
    assert_eq!(block.query_one(count, &[]).await.expect("counted").get::<_, i64>(0), 0);
    block.batch_execute("INSERT INTO t VALUES (2)").await.expect("inserted");
    assert_eq!(block.query_one(count, &[]).await.expect("counted").get::<_, i64>(0), 2);
    let error = block.query_one("SELECT 1/0", &[]).await.expect_err("a division by zero");
    assert_eq!(state_of(&error), "22012");
    let error = block.query_one(count, &[]).await.expect_err("the block has failed");
    assert_eq!(state_of(&error), "25P02");
    block.rollback().await.expect("rolled back");
    assert_eq!(reader.query_one(count, &[]).await.expect("counted").get::<_, i64>(0), 2);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_gives_its_rows_in_portions() {
    let server = Server::start(ServeConfig::default()).await;
    let mut client = server.connect().await;
    let block = client.transaction().await.expect("a block");
    let statement = block
        .prepare("SELECT generate_series FROM generate_series(1, 2500)")
        .await
        .expect("prepared");
    let portal = block.bind(&statement, &[]).await.expect("bound");
    let mut sizes = Vec::new();
    loop {
        let rows = block.query_portal(&portal, 1000).await.expect("a portion");
        sizes.push(rows.len());
        if rows.len() < 1000 {
            break;
        }
    }
    assert_eq!(sizes, [1000, 1000, 500]);
    block.commit().await.expect("committed");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_goes_in_whole_or_not_at_all_and_comes_out_again() {
    let server = Server::start(ServeConfig::default()).await;
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
        .await
        .expect("the table is made");
    let copy = async |data: &'static str| {
        let sink = client.copy_in("COPY t FROM STDIN").await.expect("it takes data");
        let mut sink = std::pin::pin!(sink);
        sink.send(Bytes::from_static(data.as_bytes())).await.expect("sent");
        sink.finish().await
    };
    let error = copy("1\tone\nx\ttwo\n").await.expect_err("x is no integer");
    assert_eq!(state_of(&error), "22P02");
    assert!(texts(&client, "SELECT * FROM t").await.is_empty());
    assert_eq!(copy("1\tone\n2\t\\N\n").await.expect("copied"), 2);
    let out = client.copy_out("COPY (SELECT * FROM t ORDER BY id) TO STDOUT").await.expect("rows");
    let lines: Vec<Bytes> = out.try_collect().await.expect("to the end");
    assert_eq!(lines.concat(), b"1\tone\n2\t\\N\n");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_request_ends_a_long_query_and_leaves_the_session_usable() {
    let server = Server::start(ServeConfig::default()).await;
    let client = server.connect().await;
    let token = client.cancel_token();
    let cancel = async {
        // The request is repeated, since the first may come before the query has begun.
        loop {
            token.cancel_query(NoTls).await.expect("the request is sent");
            tokio::task::yield_now().await;
        }
    };
    let asked = async {
        tokio::select! {
            result = client.simple_query(LONG) => result,
            () = cancel => unreachable!("it asks for ever"),
        }
    };
    let result =
        tokio::time::timeout(DEADLINE, asked).await.expect("the query is cancelled in time");
    assert_eq!(state_of(&result.expect_err("cancelled")), "57014");
    // A late request may still meet the next statement.
    let usable = async { while client.simple_query("SELECT 1").await.is_err() {} };
    tokio::time::timeout(DEADLINE, usable).await.expect("the session goes on");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_client_too_many_is_told_so_and_its_place_is_free_again_later() {
    let server = Server::start(ServeConfig { max_connections: 1, ..ServeConfig::default() }).await;
    let first = server.connect().await;
    let error = server.try_connect().await.expect_err("there is one place");
    assert_eq!(state_of(&error), "53300");
    drop(first);
    let again = async {
        while server.try_connect().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, again).await.expect("the place is free");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_running_statements_and_idle_connections() {
    let server = Server::start(ServeConfig::default()).await;
    let (busy, idle) = (server.connect().await, server.connect().await);
    let stop = server.stop.clone();
    let running = tokio::spawn(async move { busy.simple_query(LONG).await });
    idle.simple_query("SELECT 1").await.expect("it serves");
    stop.cancel();
    let result = tokio::time::timeout(DEADLINE, running).await.expect("in time").expect("no panic");
    let error = result.expect_err("the query does not outlive the server");
    assert!(["57014", "57P01", ""].contains(&state_of(&error)), "{error:?}");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_follow_the_catalog() {
    let server = Server::start(ServeConfig::default()).await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").await.expect("the table is made");
    let count = client.prepare("SELECT count(*) FROM t WHERE id <> $1").await.expect("prepared");
    client.batch_execute("CREATE TABLE other (id INT)").await.expect("another version");
    client.batch_execute("INSERT INTO t VALUES (1), (2)").await.expect("inserted");
    let row = client.query_one(&count, &[&1_i32]).await.expect("planned again");
    assert_eq!(row.get::<_, i64>(0), 1);
    client.batch_execute("DROP TABLE t").await.expect("dropped");
    let error = client.query(&count, &[&1_i32]).await.expect_err("the table is gone");
    assert_eq!(state_of(&error), "42P01");
    server.finish().await;
}
