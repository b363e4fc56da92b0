//! New views over large tables are filled in pieces: others go on meanwhile, changes that come meanwhile are not lost,
//! and a crash or a cancel in the middle leaves nothing half done.

mod support;

use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use support::{DEADLINE, rows, segue};
use tokio_postgres::Client;

const ROWS: usize = 120_000;
const QUERY: &str = "SELECT g, name, count(*) AS n, sum(v) AS s, max(v) AS m \
                     FROM large JOIN names ON names.id = large.g GROUP BY g, name";

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// A table with many rows, one to join it with, and a small one of which somebody else keeps a view.
async fn tables(client: &Client) {
    run(client, "CREATE TABLE large (id bigint PRIMARY KEY, g bigint, v bigint)").await;
    run(client, "CREATE TABLE names (id bigint PRIMARY KEY, name text)").await;
    run(client, "CREATE TABLE small (id bigint PRIMARY KEY)").await;
    run(
        client,
        "INSERT INTO names SELECT i, 'name ' || i::text FROM generate_series(0, 999) AS s(i)",
    )
    .await;
    let insert =
        format!("INSERT INTO large SELECT i, i % 1000, i FROM generate_series(1, {ROWS}) AS s(i)");
    run(client, &insert).await;
    run(client, "CREATE MATERIALIZED VIEW others AS SELECT count(*) AS n FROM small").await;
}

async fn expect_filling(client: &Client) {
    wait_for_async("the view to be half filled", DEADLINE, async || {
        let jobs = "SELECT 1 FROM segue.jobs WHERE state = 'filling'";
        (!rows(client, jobs).await.is_empty()).then_some(())
    })
    .await;
}

/// One change of each kind, also to rows that have been taken already.
async fn change(client: &Client, round: usize) {
    let (new, moved, gone) = (ROWS + round, round * 7 + 1, round * 7 + 2);
    run(
        client,
        &format!("INSERT INTO large VALUES ({new}, {}, 5), ({moved}, 3, -1)", round % 1000),
    )
    .await;
    for id in [gone, ROWS - round] {
        run(client, &format!("DELETE FROM large WHERE id = {id}")).await;
    }
    run(client, &format!("UPDATE names SET name = 'round {round}' WHERE id = {round}")).await;
}

async fn expect_filled(client: &Client) {
    let kept = rows(client, "SELECT * FROM filled ORDER BY g, name").await;
    let expected = rows(client, &format!("{QUERY} ORDER BY g, name")).await;
    assert!(kept.len() >= 1000, "only {} groups", kept.len());
    assert_eq!(kept, expected);
}

async fn start() -> (Segue, Client) {
    let segue = segue();
    let client = segue.connect().await;
    tables(&client).await;
    (segue, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_go_on_while_a_view_is_filled_and_what_changes_meanwhile_is_in_it() {
    let (mut segue, _) = start().await;
    // Each piece takes as long as on a much slower machine.
    segue.kill();
    segue.set_failpoints("mid-filling=sleep(500)");
    segue.start_again();
    let client = segue.connect().await;
    let creator = segue.connect().await;
    let create = tokio::spawn(async move {
        run(&creator, &format!("CREATE MATERIALIZED VIEW filled AS {QUERY}")).await;
    });
    expect_filling(&client).await;
    run(&client, "INSERT INTO small VALUES (1)").await;
    assert_eq!(rows(&client, "SELECT n FROM others").await, [["1"]]);
    assert!(
        !create.is_finished(),
        "it is durable and visible while the other view is being filled"
    );
    change(&client, 1).await;
    create.await.expect("the view is new");
    expect_filled(&client).await;
    change(&client, 2).await;
    expect_filled(&client).await;
}

/// Starts the creation of a view, during which the server dies after so many pieces. They take their time, for the
/// statement is to be accepted, durably, before that.
async fn die_filling(segue: &mut Segue, pieces: usize, create: &str) {
    segue.kill();
    segue.set_failpoints(&format!("mid-filling={pieces}*sleep(150)->1*return"));
    segue.start_again();
    let client = segue.connect().await;
    run(&client, "SET background_ddl = true").await;
    // It may die before it answers.
    drop(client.batch_execute(create).await);
    segue.set_failpoints("");
    wait_for("the process to die", DEADLINE, || (!segue.is_running()).then_some(()));
    segue.kill();
    segue.start_again();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_that_was_half_filled_when_the_server_died_is_filled_anew() {
    let (mut segue, client) = start().await;
    let source = "CREATE SOURCE read (id bigint) WITH (connector = 'datagen', fields.id.kind = 'sequence', \
                  fields.id.start = '1', fields.id.end = '1000', \
                  datagen.rows.per.second = '100000')";
    run(&client, source).await;
    // It takes the table before it reads its source.
    let joined = "CREATE MATERIALIZED VIEW joined AS \
                  SELECT count(*) AS n, sum(v) AS s FROM read JOIN large USING (id)";
    let filled = format!("CREATE MATERIALIZED VIEW filled AS {QUERY}");
    for (round, create) in [joined, &filled].into_iter().enumerate() {
        die_filling(&mut segue, 4, create).await;
        let client = segue.connect().await;
        change(&client, round + 1).await;
        run(&client, "WAIT").await;
    }
    let client = segue.connect().await;
    let both = "SELECT count(*) FROM pg_class WHERE relname IN ('filled', 'joined')";
    assert_eq!(rows(&client, both).await, [["2"]], "the statements had been accepted");
    expect_filled(&client).await;
    let kept = rows(&client, "SELECT n, s FROM joined").await;
    let expected = "SELECT count(*), sum(v) FROM large WHERE id <= 1000";
    assert_eq!(kept, rows(&client, expected).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_was_half_filled_when_the_server_died_gives_its_table_each_row_once() {
    let (mut segue, client) = start().await;
    run(&client, "CREATE TABLE fed (id bigint, v bigint) APPEND ONLY").await;
    run(&client, "CREATE MATERIALIZED VIEW of_fed AS SELECT count(*) AS n, sum(v) AS s FROM fed")
        .await;
    let create =
        "CREATE SINK feeding INTO fed AS SELECT id, v FROM large WITH (force_append_only = 'true')";
    die_filling(&mut segue, 3, create).await;
    let client = segue.connect().await;
    run(&client, "WAIT").await;
    run(&client, &format!("INSERT INTO large VALUES ({}, 1, 7)", 2 * ROWS)).await;
    let expected = rows(&client, "SELECT count(*), sum(v) FROM large").await;
    assert_eq!(rows(&client, "SELECT count(*), sum(v) FROM fed").await, expected);
    assert_eq!(rows(&client, "SELECT n, s FROM of_fed").await, expected);
    assert_eq!(
        rows(&client, "SELECT count(DISTINCT id) FROM fed").await,
        [[expected[0][0].clone()]]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_asked_to_stop_does_not_wait_until_a_view_is_filled() {
    let (mut segue, _) = start().await;
    segue.kill();
    segue.set_failpoints("mid-filling=sleep(300)");
    segue.start_again();
    let client = segue.connect().await;
    run(&client, "SET background_ddl = true").await;
    run(&client, &format!("CREATE MATERIALIZED VIEW filled AS {QUERY}")).await;
    expect_filling(&client).await;
    assert!(segue.stop().success());
    segue.start_again();
    expect_filling(&segue.connect().await).await;
    segue.kill();
    segue.set_failpoints("");
    segue.start_again();
    let client = segue.connect().await;
    run(&client, "WAIT").await;
    expect_filled(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canceled_filling_leaves_nothing() {
    let (segue, client) = start().await;
    let creator = segue.connect().await;
    let cancel = creator.cancel_token();
    let create = tokio::spawn(async move {
        creator.batch_execute(&format!("CREATE MATERIALIZED VIEW filled AS {QUERY}")).await
    });
    expect_filling(&client).await;
    cancel.cancel_query(tokio_postgres::NoTls).await.expect("it is asked to stop");
    let error = create.await.expect("no panic").expect_err("it was canceled");
    assert_eq!(error.code().map(|code| code.code()), Some("57014"));
    assert!(rows(&client, "SELECT * FROM segue.jobs").await.is_empty());
    let operators = "SELECT * FROM segue.operators WHERE object = 'filled'";
    assert!(rows(&client, operators).await.is_empty());
    run(&client, &format!("CREATE MATERIALIZED VIEW filled AS {QUERY}")).await;
    expect_filled(&client).await;
}
