//! What an operator does to a running server: limits of memory, rates, readers, pauses, looking for new partitions.

mod support;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::wait_for_async;
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;

/// A server that was started with these settings.
fn segue_with(settings: &[(&str, &str)]) -> Segue {
    let mut segue = segue();
    segue.kill();
    for (variable, value) in settings {
        segue.set(variable, value);
    }
    segue.start_again();
    segue
}

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

async fn number(client: &Client, sql: &str) -> i64 {
    rows(client, sql).await[0][0].parse().expect("a number")
}

async fn expect(client: &Client, sql: &str, expected: &str) {
    wait_for_async(&format!("{sql} to show {expected}"), DEADLINE, async || {
        (rows(client, sql).await == [[expected]]).then_some(())
    })
    .await;
}

const STATE_BYTES: &str = "SELECT sum(state_bytes)::bigint FROM segue.operators";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn above_the_soft_limit_sources_stand_still_until_something_is_dropped() {
    let segue = segue_with(&[("SEGUE_MEMORY_SOFT_LIMIT", "2MiB")]);
    let client = segue.connect().await;
    run(
        &client,
        "CREATE SOURCE numbers (a BIGINT) WITH (connector = 'datagen', \
         fields.a.kind = 'sequence', fields.a.start = '1', datagen.rows.per.second = '100000')",
    )
    .await;
    run(
        &client,
        "CREATE MATERIALIZED VIEW large AS SELECT a, count(*) AS n FROM numbers GROUP BY a",
    )
    .await;
    expect(
        &client,
        "SELECT DISTINCT error FROM segue.stages WHERE source = 'numbers'",
        "memory is above the soft limit",
    )
    .await;
    // What was on its way may still arrive; after that nothing does.
    let mut last = -1;
    wait_for_async("the state to stop growing", DEADLINE, async || {
        run(&client, "FLUSH").await;
        let bytes = number(&client, STATE_BYTES).await;
        let stands = bytes == last;
        last = bytes;
        stands.then_some(())
    })
    .await;
    assert!(last > 2 << 20 && last < 256 << 20, "the queue bounds what comes late: {last}");
    run(&client, "DROP MATERIALIZED VIEW large").await;
    run(&client, "CREATE MATERIALIZED VIEW small AS SELECT count(*) AS n FROM numbers").await;
    wait_for_async("rows to be read again", DEADLINE, async || {
        (number(&client, "SELECT n FROM small").await > 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn above_the_hard_limit_the_largest_view_is_suspended_and_the_server_goes_on() {
    let mut segue = segue_with(&[("SEGUE_MEMORY_HARD_LIMIT", "16MiB")]);
    let client = segue.connect().await;
    run(&client, "CREATE TABLE t (a BIGINT)").await;
    run(&client, "CREATE MATERIALIZED VIEW small AS SELECT count(*) AS n FROM t").await;
    run(
        &client,
        "CREATE MATERIALIZED VIEW large AS SELECT a, a AS b, count(*) AS n FROM t GROUP BY a",
    )
    .await;
    run(&client, "CREATE MATERIALIZED VIEW above AS SELECT max(b) AS m FROM large").await;
    for step in 0..20 {
        let (first, last) = (step * 10_000 + 1, (step + 1) * 10_000);
        run(&client, &format!("INSERT INTO t SELECT * FROM generate_series({first}, {last})"))
            .await;
        if client.simple_query("SELECT 1 FROM large LIMIT 1").await.is_err() {
            break;
        }
    }
    let check = async |client: &Client| {
        for view in ["large", "above"] {
            let error = client.simple_query(&format!("SELECT * FROM {view}")).await;
            let error = error.expect_err("a suspended view is not read");
            let error = error.as_db_error().expect("the server says why");
            assert_eq!(error.code().code(), "55000");
            let detail = error.detail().unwrap_or_default();
            assert!(detail.contains("memory is exhausted"), "{detail}");
        }
        let counted = number(client, "SELECT n FROM small").await;
        assert_eq!(counted, number(client, "SELECT count(*) FROM t").await);
    };
    check(&client).await;
    run(&client, "INSERT INTO t VALUES (-1)").await;
    check(&client).await;
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    check(&client).await;
    run(&client, "DROP MATERIALIZED VIEW large CASCADE").await;

    // Nothing is left that could be suspended: the table itself says no, and loses nothing.
    let refused = loop {
        let last = number(&client, "SELECT max(a) FROM t").await;
        let insert =
            format!("INSERT INTO t SELECT * FROM generate_series({}, {})", last + 1, last + 50_000);
        if let Err(error) = client.batch_execute(&insert).await {
            break error;
        }
        assert!(last < 10_000_000, "the limit holds");
    };
    assert_eq!(refused.code().map(|code| code.code()), Some("53200"), "{refused:?}");
    run(&client, "DELETE FROM t").await;
    run(&client, "INSERT INTO t VALUES (1)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_and_readers_can_be_changed_while_rows_flow_and_survive_a_restart() {
    let kafka = KafkaServer::start();
    kafka.create_topic("paced", 4, &[]);
    let values =
        |from: i64| (from..from + 1_000).map(|x| format!("{{\"x\":{x}}}")).collect::<Vec<_>>();
    for partition in 0..4 {
        append(&kafka, "paced", partition, &values(0));
    }
    let mut segue = segue();
    let client = segue.connect().await;
    let bootstrap = kafka.bootstrap();
    run(
        &client,
        &format!(
            "CREATE SOURCE paced (x BIGINT) WITH (connector = 'kafka', properties.bootstrap.server = '{bootstrap}', \
             topic = 'paced') FORMAT PLAIN ENCODE JSON"
        ),
    )
    .await;
    run(
        &client,
        "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, sum(x) AS s FROM paced",
    )
    .await;
    expect(&client, "SELECT n FROM counted", "4000").await;

    run(&client, "ALTER SOURCE paced SET source_rate_limit = 0").await;
    for partition in 0..4 {
        append(&kafka, "paced", partition, &values(1_000));
    }
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    // A view that joins now reads at its own rate, up to where the live reading stands still.
    run(&client, "SET background_ddl = true").await;
    run(&client, "CREATE MATERIALIZED VIEW joined AS SELECT count(*) AS n FROM paced").await;
    expect(&client, "SELECT state FROM segue.jobs", "catching up").await;
    wait_for_async("the view to meet the live reading", DEADLINE, async || {
        let sql = "SELECT DISTINCT consumer FROM segue.stages WHERE source = 'paced'";
        (rows(&client, sql).await.len() == 1).then_some(())
    })
    .await;
    assert_eq!(number(&client, "SELECT n FROM counted").await, 4000);
    run(&client, "ALTER SOURCE paced SET source_rate_limit = DEFAULT").await;
    run(&client, "WAIT").await;
    expect(&client, "SELECT n FROM counted", "8000").await;
    expect(&client, "SELECT n FROM joined", "8000").await;

    for (round, readers) in ["3", "1", "DEFAULT", "2"].into_iter().enumerate() {
        let from = 2_000 + 1_000 * i64::try_from(round).expect("few rounds");
        for partition in 0..4 {
            append(&kafka, "paced", partition, &values(from));
        }
        run(&client, &format!("ALTER SOURCE paced SET PARALLELISM = {readers}")).await;
    }
    let (per_partition, partitions) = (6_000_i64, 4);
    let sum = per_partition * (per_partition - 1) / 2 * partitions;
    expect(&client, "SELECT n FROM counted", &(per_partition * partitions).to_string()).await;
    expect(&client, "SELECT s FROM counted", &sum.to_string()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_is_paused_and_resumed_also_across_a_restart_and_holds_no_snapshot_meanwhile() {
    let postgres = PostgresServer::start();
    let holder = postgres.connect().await;
    let mut segue = segue_with(&[]);
    let query = "SELECT x::bigint AS x FROM generate_series(1, 100) x \
                 WHERE pg_advisory_lock_shared(77)::text = ''''";
    let with =
        format!("WITH (connector = 'postgres', url = '{}', query = '{query}')", postgres.url());
    let queries = async |n: &str| {
        let running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 100)%' \
                       AND state <> 'idle' AND pid <> pg_backend_pid()";
        expect(&holder, running, n).await;
    };
    for (kind, create) in [
        ("source", format!("CREATE SOURCE s (x BIGINT) {with}")),
        ("table", format!("CREATE TABLE s (x BIGINT) {with}")),
    ] {
        run(&holder, "SELECT pg_advisory_lock(77)").await;
        let client = segue.connect().await;
        run(&client, "SET background_ddl = true").await;
        run(&client, &create).await;
        queries("1").await;
        let job = number(&client, "SELECT id FROM segue.jobs").await;
        expect(&client, "SELECT state FROM segue.jobs", "capturing").await;
        run(&client, &format!("PAUSE JOB {job}")).await;
        expect(&client, "SELECT state FROM segue.jobs", "paused").await;
        queries("0").await;
        // Nothing holds the query up any more but the pause, and that is durable.
        run(&holder, "SELECT pg_advisory_unlock(77)").await;
        segue.kill();
        segue.start_again();
        let client = segue.connect().await;
        expect(&client, "SELECT state FROM segue.jobs", "paused").await;
        queries("0").await;
        run(&client, &format!("ALTER {kind} s RESUME")).await;
        run(&client, "WAIT").await;
        let count = "SELECT count(*) FROM s";
        expect(&client, count, "100").await;
        run(&client, &format!("DROP {kind} s")).await;
    }

    // A job that is paused can be canceled; one that is done has nothing to pause.
    run(&holder, "SELECT pg_advisory_lock(77)").await;
    let client = segue.connect().await;
    run(&client, "SET background_ddl = true").await;
    run(&client, &format!("CREATE SOURCE s (x BIGINT) {with}")).await;
    queries("1").await;
    run(&client, "ALTER SOURCE s PAUSE").await;
    queries("0").await;
    let job = number(&client, "SELECT id FROM segue.jobs").await;
    run(&client, &format!("CANCEL JOB {job}")).await;
    expect(&client, "SELECT count(*) FROM segue.sources", "0").await;
    run(&holder, "SELECT pg_advisory_unlock(77)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_finds_a_new_partition_at_once() {
    let kafka = KafkaServer::start();
    kafka.create_topic("growing", 1, &[]);
    let segue = segue();
    let client = segue.connect().await;
    let bootstrap = kafka.bootstrap();
    run(
        &client,
        &format!(
            "CREATE SOURCE growing (x BIGINT) WITH (connector = 'kafka', properties.bootstrap.server = '{bootstrap}', \
             topic = 'growing') FORMAT PLAIN ENCODE JSON START AT LATEST"
        ),
    )
    .await;
    run(&client, "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM growing").await;
    kafka.add_partitions("growing", 3);
    append(&kafka, "growing", 2, &["{\"x\":1}"]);
    run(&client, "ALTER SOURCE growing REFRESH").await;
    assert_eq!(number(&client, "SELECT count(*) FROM segue.splits").await, 3);
    expect(&client, "SELECT n FROM counted", "1").await;
    // A view that joins knows the partitions that the live reading has found.
    run(&client, "CREATE MATERIALIZED VIEW joined AS SELECT count(*) AS n FROM growing").await;
    assert_eq!(number(&client, "SELECT n FROM joined").await, 1);
}

/// A join of a table with a million-fold history, of which nothing comes any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn state_that_is_not_in_use_leaves_memory_and_comes_back_when_a_row_comes_for_it() {
    let mut segue = segue_with(&[("SEGUE_MEMORY_SOFT_LIMIT", "24MiB")]);
    let client = segue.connect().await;
    run(&client, "CREATE TABLE people (id BIGINT PRIMARY KEY, name VARCHAR)").await;
    run(&client, "CREATE TABLE visits (person BIGINT, at BIGINT) APPEND ONLY").await;
    run(
        &client,
        "CREATE MATERIALIZED VIEW last_visits AS \
         SELECT max(name) AS name, count(*) AS n FROM people JOIN visits ON id = person \
         GROUP BY id % 7",
    )
    .await;
    let people =
        "INSERT INTO people SELECT n, 'person ' || n FROM generate_series(1, 60000) AS g(n)";
    run(&client, people).await;
    for visits in 0..4 {
        let first = visits * 60_000 + 1;
        run(
            &client,
            &format!(
                "INSERT INTO visits SELECT n % 60000 + 1, n \
                 FROM generate_series({first}, {first} + 59999) AS g(n)"
            ),
        )
        .await;
    }
    let resting = "SELECT sum(resting_bytes) > 0 FROM segue.operators WHERE name LIKE '%join'";
    expect(&client, resting, "t").await;
    let explained = rows(&client, "EXPLAIN ANALYZE MATERIALIZED VIEW last_visits").await;
    assert!(format!("{explained:?}").contains("at rest on disk"), "{explained:?}");

    let truth = "SELECT max(name), count(*) FROM people JOIN visits ON id = person GROUP BY id % 7 \
                 ORDER BY 1";
    let view = "SELECT name, n FROM last_visits ORDER BY 1";
    let check = async |client: &Client| {
        assert_eq!(rows(client, view).await, rows(client, truth).await);
    };
    check(&client).await;
    // Each finds rows that have left memory, and takes some of them back.
    run(&client, "INSERT INTO visits VALUES (17, -1), (40000, -2)").await;
    check(&client).await;
    run(&client, "DELETE FROM people WHERE id % 1000 = 17").await;
    check(&client).await;
    expect(&client, resting, "t").await;
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    check(&client).await;
    run(&client, "UPDATE people SET name = 'z ' || name WHERE id % 500 = 40").await;
    check(&client).await;
}
