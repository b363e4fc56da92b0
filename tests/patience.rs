//! How long a statement waits for a system that is away: as long as `connector_timeout` says, and then it fails with a
//! hint and leaves nothing behind; a system that comes back in time is waited for.

mod support;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use segue_testkit::kafka::KafkaServer;
use segue_testkit::wait::wait_for_async;
use support::{DEADLINE, append, rows, segue, try_rows};
use tokio_postgres::Client;
use tokio_postgres::error::DbError;

/// How much later than the patience of a statement its error may come.
const SLACK: Duration = Duration::from_secs(4);

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// Fails for want of an answer, not before `patience` has passed and not long after.
async fn expect_given_up(client: &Client, sql: &str, patience: Duration) -> DbError {
    let began = Instant::now();
    let error = try_rows(client, sql).await.expect_err(sql);
    let (error, took) = (error.as_db_error().expect("the server's").clone(), began.elapsed());
    assert_eq!(error.code().code(), "08006", "{sql}: {error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("connector_timeout")), "{error:?}");
    assert!((patience..patience + SLACK).contains(&took), "{sql}: took {took:?}");
    error
}

async fn nothing_is_left(client: &Client, relation: &str) {
    let tables = format!("SELECT 1 FROM information_schema.tables WHERE table_name = '{relation}'");
    assert_eq!(rows(client, &tables).await.len(), 0, "{relation}");
    assert_eq!(rows(client, "SELECT * FROM segue.jobs").await.len(), 0, "jobs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_connections_and_never_answers_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let segue = segue();
    let client = segue.connect().await;
    run(&client, "SET connector_timeout = 700").await;
    for with in [
        format!("connector = 'kafka', properties.bootstrap.server = '{address}', topic = 't'"),
        format!("connector = 'pulsar', service.url = 'pulsar://{address}', topic = 't'"),
        format!("connector = 'nats', server_url = 'nats://{address}', subject = 't'"),
    ] {
        let sql = format!("CREATE SOURCE s (x BIGINT) WITH ({with}) FORMAT PLAIN ENCODE JSON");
        let error = expect_given_up(&client, &sql, Duration::from_millis(700)).await;
        assert!(error.message().contains("no answer for 0.7 s"), "{error:?}");
        nothing_is_left(&client, "s").await;
    }
    let sql = format!(
        "CREATE SOURCE s (x BIGINT) WITH (connector = 'postgres', \
         url = 'postgres://app@{address}/db', query = 'SELECT 1 AS x')"
    );
    expect_given_up(&client, &sql, Duration::from_millis(700)).await;
    nothing_is_left(&client, "s").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_down_is_waited_for_as_long_as_the_session_says() {
    let kafka = KafkaServer::start();
    kafka.create_topic("t", 1, &[]);
    append(&kafka, "t", 0, &["{\"x\":1}", "{\"x\":2}"]);
    let segue = segue();
    let client = segue.connect().await;
    let live = format!(
        "WITH (connector = 'kafka', properties.bootstrap.server = '{}', topic = 't')",
        kafka.bootstrap()
    );
    run(&client, &format!("CREATE SOURCE s (x BIGINT) {live} FORMAT PLAIN ENCODE JSON")).await;

    // A CREATE that reads already, and cannot go on, when the broker goes away.
    run(&client, "ALTER SOURCE s SET source_rate_limit = 0").await;
    let creating = segue.connect().await;
    run(&creating, "SET connector_timeout = '1s'").await;
    let creating = tokio::spawn(async move {
        try_rows(&creating, "CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM s").await
    });
    wait_for_async("the view to read", DEADLINE, async || {
        let state = rows(&client, "SELECT state FROM segue.jobs").await;
        (state == [["catching up"]]).then_some(())
    })
    .await;
    kafka.stop();
    let ended = tokio::time::timeout(DEADLINE, creating).await.expect("it ends");
    let error = ended.expect("it does not panic").expect_err("it is given up");
    let error = error.as_db_error().expect("the server's");
    assert_eq!(error.code().code(), "08006", "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("waits 1s")), "{error:?}");
    nothing_is_left(&client, "w").await;
    run(&client, "ALTER SOURCE s SET source_rate_limit = DEFAULT").await;

    run(&client, "SET connector_timeout = '1500 ms'").await;
    let patience = Duration::from_millis(1500);
    let view = "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s";
    expect_given_up(&client, view, patience).await;
    nothing_is_left(&client, "v").await;
    expect_given_up(&client, "SELECT count(*) FROM s", patience).await;

    // Somebody who waits for longer sees it come back.
    let patient = segue.connect().await;
    run(&patient, "SET connector_timeout = '5min'").await;
    let created = tokio::spawn(async move {
        run(&patient, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s").await;
        rows(&patient, "SELECT n FROM v").await
    });
    // It has been given up by others meanwhile.
    expect_given_up(&client, "SELECT count(*) FROM s", patience).await;
    kafka.start_again();
    let counted = tokio::time::timeout(DEADLINE, created).await.expect("it is created in time");
    assert_eq!(counted.expect("it is created"), [["2"]]);
}
