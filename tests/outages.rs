//! What happens when the systems outside, or the server, go away at the wrong moment: nothing is lost or counted
//! twice, what cannot go on says why, what is cancelled leaves nothing behind.

mod support;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use segue_testkit::kafka::{KafkaServer, Record};
use segue_testkit::postgres::PostgresServer;
use segue_testkit::proxy::Proxy;
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use support::{DEADLINE, Random, append, rows, segue};
use tokio::task::JoinHandle;
use tokio_postgres::error::DbError;
use tokio_postgres::{CancelToken, Client, NoTls};

/// Servers of the tests that leave them running; each test has topics and tables of its own.
static KAFKA: LazyLock<KafkaServer> = LazyLock::new(KafkaServer::start);
static POSTGRES: LazyLock<PostgresServer> = LazyLock::new(PostgresServer::start);

/// What a person calls at once.
const PROMPTLY: Duration = Duration::from_secs(3);

/// A statement that runs while the test does something else.
struct Running {
    cancel: CancelToken,
    task: JoinHandle<Result<(), tokio_postgres::Error>>,
}

impl Running {
    async fn start(segue: &Segue, sql: &str) -> Running {
        let (client, sql) = (segue.connect().await, sql.to_owned());
        let cancel = client.cancel_token();
        Running { cancel, task: tokio::spawn(async move { client.batch_execute(&sql).await }) }
    }

    /// The error that the statement ends with.
    async fn error(self) -> DbError {
        let ended = tokio::time::timeout(DEADLINE, self.task).await.expect("the statement ends");
        database_error(&ended.expect("it does not panic").expect_err("the statement fails"))
    }

    /// Ctrl-C, as psql sends it.
    async fn expect_canceled_promptly(self) {
        self.cancel.cancel_query(NoTls).await.expect("the request is taken");
        let ended = tokio::time::timeout(PROMPTLY, self.task).await.expect("it ends promptly");
        let error = database_error(&ended.expect("it does not panic").expect_err("it is canceled"));
        assert_eq!(error.code().code(), "57014", "{error:?}");
    }
}

fn database_error(error: &tokio_postgres::Error) -> DbError {
    error.as_db_error().unwrap_or_else(|| panic!("not an answer of the server: {error:?}")).clone()
}

/// Holds up a query of PostgreSQL inside its snapshot.
struct Gate {
    key: i32,
    holder: Client,
}

impl Gate {
    async fn close(key: i32) -> Gate {
        let holder = POSTGRES.connect().await;
        holder.batch_execute(&format!("SELECT pg_advisory_lock({key})")).await.expect("locks");
        Gate { key, holder }
    }

    /// A query of the numbers 1 to `n`, that passes the gate first.
    fn query(&self, n: u32) -> String {
        let key = self.key;
        format!(
            "SELECT x::bigint AS x FROM generate_series(1, {n}) x \
             WHERE pg_advisory_lock_shared({key})::text = ''''"
        )
    }

    /// Waits until `n` queries stand before the gate.
    async fn wait_for_waiting(&self, n: usize) {
        let key = self.key;
        let waiting = format!(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = {key} AND NOT granted"
        );
        wait_for_async(&format!("{n} queries at the gate"), DEADLINE, async || {
            (rows(&self.holder, &waiting).await.len() == n).then_some(())
        })
        .await;
    }

    async fn open(&self) {
        let unlock = format!("SELECT pg_advisory_unlock({})", self.key);
        self.holder.batch_execute(&unlock).await.expect("unlocks");
    }
}

/// `WITH (…)` of a topic.
fn topic(kafka: &KafkaServer, topic: &str) -> String {
    let bootstrap = kafka.bootstrap();
    format!(
        "WITH (connector = 'kafka', properties.bootstrap.server = '{bootstrap}', topic = '{topic}')"
    )
}

/// A source of one number per record, straight from a topic.
fn numbers_of(name: &str, with: &str) -> String {
    format!("CREATE SOURCE {name} (x BIGINT) {with} FORMAT PLAIN ENCODE JSON")
}

/// A source of numbers: `history`, then a topic from its offset 0.
fn numbers_after(name: &str, history: &str, live: &str) -> String {
    format!(
        "CREATE SOURCE {name} (x BIGINT) WITH STAGES (history {history}, \
         live {live} FORMAT PLAIN ENCODE JSON START AT OFFSETS '{{\"0\": 0}}')"
    )
}

/// A history that takes three seconds to read.
const SLOW_HISTORY: &str = "WITH (connector = 'datagen', fields.x.kind = 'sequence', fields.x.start = '1', \
                            fields.x.end = '300', datagen.rows.per.second = '100')";

fn counting(view: &str, source: &str) -> String {
    format!("CREATE MATERIALIZED VIEW {view} AS SELECT COUNT(*) AS n, SUM(x) AS s FROM {source}")
}

/// Produces the numbers of `range`, in order, to partition 0.
fn produce(kafka: &KafkaServer, topic: &str, range: std::ops::Range<i64>) {
    let values: Vec<String> = range.map(|x| format!("{{\"x\":{x}}}")).collect();
    append(kafka, topic, 0, &values);
}

/// COUNT and SUM of a range, as a view shows them.
fn counted(range: std::ops::Range<i64>) -> Vec<Vec<String>> {
    let (n, sum) = (range.end - range.start, range.sum::<i64>());
    vec![vec![n.to_string(), sum.to_string()]]
}

async fn expect_rows(client: &Client, sql: &str, expected: &[Vec<String>]) {
    let mut last = Vec::new();
    let began = std::time::Instant::now();
    while began.elapsed() < DEADLINE {
        last = rows(client, sql).await;
        if last == expected {
            return;
        }
        tokio::task::yield_now().await;
    }
    let stages = rows(client, "SELECT source, stage, phase, rows, error FROM segue.stages").await;
    panic!("{sql}: {last:?} and not {expected:?}; stages {stages:?}");
}

/// Waits until a stage of `source` says why it does not move.
async fn stage_error(client: &Client, source: &str, contains: &str) -> String {
    let sql =
        format!("SELECT error FROM segue.stages WHERE source = '{source}' AND error IS NOT NULL");
    wait_for_async(&format!("{source} to say {contains:?}"), DEADLINE, async || {
        let errors = rows(client, &sql).await;
        errors.into_iter().flatten().find(|error| error.contains(contains))
    })
    .await
}

/// Waits until the job of `object` has failed; returns its number and error.
async fn failed_job(client: &Client, object: &str) -> (String, String) {
    let sql =
        format!("SELECT id, error FROM segue.jobs WHERE object = '{object}' AND state = 'failed'");
    wait_for_async(&format!("the job of {object} to fail"), DEADLINE, async || {
        let mut jobs = rows(client, &sql).await;
        jobs.pop().map(|job| (job[0].clone(), job[1].clone()))
    })
    .await
}

/// Waits until a job of `object` is in `state`.
async fn job_is(client: &Client, object: &str, state: &str) {
    let sql = format!("SELECT state FROM segue.jobs WHERE object = '{object}'");
    wait_for_async(&format!("the job of {object} to be {state}"), DEADLINE, async || {
        (rows(client, &sql).await == [[state]]).then_some(())
    })
    .await;
}

/// Names of the server's threads that belong to a read of Kafka.
fn kafka_threads(segue: &Segue) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", segue.pid())).expect("it runs");
    let names = tasks.flatten().filter_map(|task| {
        std::fs::read_to_string(task.path().join("comm")).ok().map(|name| name.trim().to_owned())
    });
    names.filter(|name| name.starts_with("rdk:") || name.starts_with("kafka-")).collect()
}

fn capture_files(segue: &Segue) -> Vec<std::path::PathBuf> {
    let mut folders = vec![segue.data_dir().join("captures")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// Only these relations are there; nothing is left of any other.
async fn only_these_are_left(segue: &Segue, client: &Client, names: &[&str]) {
    let tables =
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
    assert_eq!(rows(client, tables).await.concat(), names, "relations");
    assert_eq!(rows(client, "SELECT * FROM segue.jobs").await.concat(), [""; 0], "jobs");
    let readers = "SELECT reader FROM segue.stages WHERE reader IS NOT NULL";
    for reader in rows(client, readers).await.concat() {
        assert!(names.contains(&reader.as_str()), "{reader} reads");
    }
    if names.is_empty() {
        wait_for("the threads of Kafka to end", DEADLINE, || {
            kafka_threads(segue).is_empty().then_some(())
        });
        wait_for("the captures to go", DEADLINE, || capture_files(segue).is_empty().then_some(()));
    }
}

/// A table that changes all the while, and the log of its changes. Each of its transactions stores the end of the
/// log that belongs to it, so that rows of one snapshot with the offsets of another give a wrong sum.
struct Ledger<'a> {
    postgres: Client,
    kafka: &'a KafkaServer,
    truth: BTreeMap<i64, i64>,
    next_id: i64,
    logged: i64,
    random: Random,
}

impl<'a> Ledger<'a> {
    const ROWS: i64 = 10_000;

    async fn new(postgres: &PostgresServer, kafka: &'a KafkaServer) -> Ledger<'a> {
        let postgres = postgres.connect().await;
        let rows = Ledger::ROWS;
        let tables = format!(
            "CREATE TABLE items (id bigint PRIMARY KEY, v bigint, pad text); \
             INSERT INTO items SELECT i, i % 1000, repeat('x', 200) FROM generate_series(1, {rows}) i; \
             CREATE TABLE ends (split text, next bigint); INSERT INTO ends VALUES ('0', 0)"
        );
        postgres.batch_execute(&tables).await.expect("the tables are new");
        for topic in ["deltas", "changes"] {
            kafka.create_topic(topic, 1, &[]);
        }
        let truth = (1..=rows).map(|id| (id, id % 1000)).collect();
        Ledger { postgres, kafka, truth, next_id: rows, logged: 0, random: Random(3) }
    }

    /// Some updates, deletes and inserts, logged and then committed with the end of the log.
    async fn transaction(&mut self) {
        let (mut deltas, mut changes, mut sql) = (Vec::new(), Vec::new(), String::from("BEGIN;"));
        for _ in 0..10 {
            let kind = self.random.below(4);
            let id = if kind == 0 {
                self.next_id += 1;
                self.next_id
            } else {
                let last = u64::try_from(self.next_id).expect("ids are positive");
                i64::try_from(self.random.below(last)).expect("below an i64") + 1
            };
            let before = self.truth.get(&id).copied();
            let key = format!("{{\"id\":{id}}}");
            let after =
                (kind != 1).then(|| i64::try_from(self.random.below(1_000_000)).expect("small"));
            match after {
                Some(v) => {
                    self.truth.insert(id, v);
                    changes.push((key, format!("{{\"id\":{id},\"v\":{v}}}")));
                    sql += &format!(
                        "INSERT INTO items VALUES ({id}, {v}, repeat('y', 200)) \
                         ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v;"
                    );
                }
                None => {
                    self.truth.remove(&id);
                    changes.push((key, String::new()));
                    sql += &format!("DELETE FROM items WHERE id = {id};");
                }
            }
            let n = i64::from(after.is_some()) - i64::from(before.is_some());
            let v = after.unwrap_or(0) - before.unwrap_or(0);
            deltas.push(format!("{{\"n\":{n},\"v\":{v},\"id\":{}}}", n * id));
            self.logged += 1;
        }
        append(self.kafka, "deltas", 0, &deltas);
        self.kafka.produce_all(
            "changes",
            changes.iter().map(|(key, value)| match value.as_str() {
                "" => Record::tombstone(key),
                value => Record::value(value).key(key),
            }),
        );
        sql += &format!("UPDATE ends SET next = {}; COMMIT", self.logged);
        self.postgres.batch_execute(&sql).await.expect("the transaction is valid");
    }

    /// Sources over the same table: one counts each change, one replaces by key.
    fn source(&self, kind: Kind, name: &str, postgres: &str) -> String {
        let (columns, query, topic, format) = match kind {
            Kind::Append => (
                "n BIGINT, v BIGINT, id BIGINT, pad VARCHAR",
                "1::bigint AS n, v, id, pad",
                "deltas",
                "PLAIN",
            ),
            Kind::Upsert => (
                "id BIGINT, v BIGINT, pad VARCHAR, PRIMARY KEY (id)",
                "id, v, pad",
                "changes",
                "UPSERT",
            ),
        };
        let live = self::topic(self.kafka, topic);
        format!(
            "CREATE SOURCE {name} ({columns}) WITH STAGES (\
             history WITH (connector = 'postgres', url = '{postgres}', query = 'SELECT {query} FROM items'), \
             live {live} FORMAT {format} ENCODE JSON START AT QUERY 'SELECT split, next FROM ends')"
        )
    }

    /// Rows, their sum, and the sum of their keys.
    fn totals(&self) -> Vec<Vec<String>> {
        let (n, v) = (self.truth.len(), self.truth.values().sum::<i64>());
        vec![vec![n.to_string(), v.to_string(), self.truth.keys().sum::<i64>().to_string()]]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Append,
    Upsert,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_was_cut_at_any_byte_is_one_snapshot_and_so_is_its_handoff() {
    let postgres = PostgresServer::start();
    let mut ledger = Ledger::new(&postgres, &KAFKA).await;
    let proxy = Proxy::start(postgres.port()).await;
    let url = postgres.url().replace(&postgres.port().to_string(), &proxy.port().to_string());
    let segue = segue();
    let client = segue.connect().await;
    // A row is 200 characters and 40 bytes of numbers and lengths; the session's own bytes come on top.
    let whole = u64::try_from(Ledger::ROWS).expect("positive") * 230;
    let mut views = Vec::new();
    for (name, bytes) in [("early", 16_000), ("middle", whole / 2), ("late", whole)] {
        for kind in [Kind::Append, Kind::Upsert] {
            let (source, view) = (format!("{name}_{kind:?}"), format!("{name}_{kind:?}_totals"));
            let attempts = || postgres.statements_matching("COPY (");
            let before = attempts();
            proxy.cut_always_after(bytes);
            let creating = Running::start(&segue, &ledger.source(kind, &source, &url)).await;
            while attempts() < before + 3 {
                assert!(!creating.task.is_finished(), "{name}: nothing was cut");
                ledger.transaction().await;
            }
            proxy.restore();
            while !creating.task.is_finished() {
                ledger.transaction().await;
            }
            creating.task.await.expect("no panic").expect("the source is created");
            let n = if kind == Kind::Append { "SUM(n)" } else { "COUNT(*)" };
            let query = format!("SELECT {n} AS n, SUM(v) AS v, SUM(id) AS ids FROM {source}");
            let create = format!("CREATE MATERIALIZED VIEW {view} AS {query}");
            client.batch_execute(&create).await.expect("the view is created");
            views.push(view);
        }
    }
    for _ in 0..5 {
        ledger.transaction().await;
    }
    for view in views {
        expect_rows(&client, &format!("SELECT n, v, ids FROM {view}"), &ledger.totals()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_goes_on_when_its_broker_comes_back_and_says_meanwhile_why_it_waits() {
    let kafka = KafkaServer::start();
    kafka.create_topic("t", 1, &[]);
    produce(&kafka, "t", 0..1000);
    let mut segue = segue();
    let client = segue.connect().await;
    client.batch_execute(&numbers_of("s", &topic(&kafka, "t"))).await.expect("created");
    client.batch_execute(&counting("v", "s")).await.expect("created");
    let no_error = "SELECT error FROM segue.stages";

    kafka.stop();
    stage_error(&client, "s", "could not reach Kafka").await;
    assert_eq!(rows(&client, "SELECT n, s FROM v").await, counted(0..1000));
    kafka.start_again();
    produce(&kafka, "t", 1000..2000);
    expect_rows(&client, "SELECT n, s FROM v", &counted(0..2000)).await;
    expect_rows(&client, no_error, &[vec!["NULL".to_owned()]]).await;

    // The server starts while the broker is away.
    kafka.kill();
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    assert_eq!(rows(&client, "SELECT n, s FROM v").await, counted(0..2000));
    stage_error(&client, "s", "could not reach Kafka").await;
    kafka.start_again();
    produce(&kafka, "t", 2000..3000);
    expect_rows(&client, "SELECT n, s FROM v", &counted(0..3000)).await;
    expect_rows(&client, no_error, &[vec!["NULL".to_owned()]]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_was_made_again_is_an_error_and_none_of_it_is_read() {
    let mut segue = segue();
    let client = segue.connect().await;
    for name in ["online", "offline"] {
        KAFKA.create_topic(name, 1, &[]);
        produce(&KAFKA, name, 0..100);
        client.batch_execute(&numbers_of(name, &topic(&KAFKA, name))).await.expect("created");
        client.batch_execute(&counting(&format!("v_{name}"), name)).await.expect("created");
    }
    let make_again = |name: &str| {
        KAFKA.delete_topic(name);
        KAFKA.create_topic(name, 1, &[]);
        // More than the old one had: a reader that went on at its offset would find something.
        produce(&KAFKA, name, 1000..1500);
    };
    make_again("online");
    stage_error(&client, "online", "topic \"online\" has been replaced").await;
    assert_eq!(rows(&client, "SELECT n, s FROM v_online").await, counted(0..100));

    assert!(segue.stop().success());
    make_again("offline");
    segue.start_again();
    let client = segue.connect().await;
    stage_error(&client, "offline", "topic \"offline\" has been replaced").await;
    stage_error(&client, "online", "topic \"online\" has been replaced").await;
    for name in ["online", "offline"] {
        produce(&KAFKA, name, 1500..1600);
        let phase = format!("SELECT phase FROM segue.stages WHERE source = '{name}'");
        assert_eq!(rows(&client, &phase).await, [["failed"]]);
        assert_eq!(rows(&client, &format!("SELECT n, s FROM v_{name}")).await, counted(0..100));
        let later = counting(&format!("later_{name}"), name);
        let error = database_error(&client.batch_execute(&later).await.expect_err("refused"));
        assert!(error.message().contains("has been replaced"), "{error:?}");
    }
    only_these_are_left(&segue, &client, &["offline", "online", "v_offline", "v_online"]).await;
}

/// Position 0 has gone; how that is said.
const EXPIRED: &str = "position 0 of split 0 of topic";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_that_overtakes_the_start_during_the_history_fails_the_statement() {
    let segue = segue();
    let client = segue.connect().await;
    KAFKA.create_topic("trimmed", 1, &[]);
    produce(&KAFKA, "trimmed", 0..100);
    // While the query is captured.
    let gate = Gate::close(41).await;
    let history = format!(
        "WITH (connector = 'postgres', url = '{}', query = '{}')",
        POSTGRES.url(),
        gate.query(10)
    );
    let captured = numbers_after("captured", &history, &topic(&KAFKA, "trimmed"));
    let creating = Running::start(&segue, &captured).await;
    gate.wait_for_waiting(1).await;
    // A second source, whose history ends in time.
    let slow = numbers_after("slow", SLOW_HISTORY, &topic(&KAFKA, "trimmed"));
    client.batch_execute(&slow).await.expect("nothing is gone yet");
    let viewing = Running::start(&segue, &counting("v", "slow")).await;
    job_is(&client, "v", "catching up").await;
    KAFKA.delete_records("trimmed", 0, 50);
    gate.open().await;
    for statement in [creating, viewing] {
        let error = statement.error().await;
        assert_eq!(error.code().code(), "55000", "{error:?}");
        assert!(error.message().contains(EXPIRED), "{error:?}");
    }
    only_these_are_left(&segue, &client, &["slow"]).await;
    let error = database_error(&client.batch_execute(&captured).await.expect_err("still gone"));
    assert!(error.message().contains(EXPIRED), "{error:?}");
    client.batch_execute("DROP SOURCE slow").await.expect("nothing depends on it");
    only_these_are_left(&segue, &client, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_that_overtakes_a_position_while_the_server_is_down_fails_the_job_or_the_stage() {
    let mut segue = segue();
    let client = segue.connect().await;
    for name in ["ready", "slow_live", "captured_live"] {
        KAFKA.create_topic(name, 1, &[]);
        produce(&KAFKA, name, 0..100);
    }
    client.batch_execute(&numbers_of("ready", &topic(&KAFKA, "ready"))).await.expect("created");
    client.batch_execute(&counting("v_ready", "ready")).await.expect("created");
    let slow = numbers_after("slow", SLOW_HISTORY, &topic(&KAFKA, "slow_live"));
    client.batch_execute(&slow).await.expect("created");
    let gate = Gate::close(42).await;
    let history = format!(
        "WITH (connector = 'postgres', url = '{}', query = '{}')",
        POSTGRES.url(),
        gate.query(10)
    );
    let captured = numbers_after("captured", &history, &topic(&KAFKA, "captured_live"));
    let creating = Running::start(&segue, &captured).await;
    gate.wait_for_waiting(1).await;
    let viewing = Running::start(&segue, &counting("v_slow", "slow")).await;
    job_is(&client, "v_slow", "catching up").await;

    segue.kill();
    drop((creating, viewing));
    produce(&KAFKA, "ready", 100..200);
    KAFKA.delete_records("ready", 0, 150);
    KAFKA.delete_records("slow_live", 0, 50);
    KAFKA.delete_records("captured_live", 0, 50);
    gate.open().await;
    // The second start finds failures that are stored.
    for _ in 0..2 {
        segue.start_again();
        let client = segue.connect().await;
        for job in ["captured", "v_slow"] {
            let (_, error) = failed_job(&client, job).await;
            assert!(error.contains(EXPIRED), "{job}: {error}");
        }
        stage_error(&client, "ready", "position 100 of split 0 of topic \"ready\" has expired")
            .await;
        assert_eq!(rows(&client, "SELECT n, s FROM v_ready").await, counted(0..100));
        let error =
            database_error(&client.batch_execute("WAIT").await.expect_err("jobs have failed"));
        assert!(error.message().contains(EXPIRED), "{error:?}");
        segue.kill();
    }
    segue.start_again();
    let client = segue.connect().await;
    for job in ["captured", "v_slow"] {
        let (id, _) = failed_job(&client, job).await;
        client.batch_execute(&format!("CANCEL JOB {id}")).await.expect("the job is there");
    }
    only_these_are_left(&segue, &client, &["ready", "slow", "v_ready"]).await;
    client.batch_execute("DROP SOURCE ready CASCADE; DROP SOURCE slow").await.expect("dropped");
    only_these_are_left(&segue, &client, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_a_statement_promptly_and_leaves_nothing_of_it() {
    let kafka = KafkaServer::start();
    kafka.create_topic("t", 1, &[]);
    let segue = segue();
    let client = segue.connect().await;

    // While a query is captured: it ends in the database, too.
    let gate = Gate::close(43).await;
    let history = format!(
        "WITH (connector = 'postgres', url = '{}', query = '{}')",
        POSTGRES.url(),
        gate.query(10)
    );
    let source = numbers_after("s", &history, &topic(&kafka, "t"));
    let creating = Running::start(&segue, &source).await;
    gate.wait_for_waiting(1).await;
    creating.expect_canceled_promptly().await;
    gate.wait_for_waiting(0).await;
    only_these_are_left(&segue, &client, &[]).await;

    // The same while rows flow.
    let endless = "WITH (connector = 'postgres', url = '{url}', \
                   query = 'SELECT generate_series(1, 1000000000)::bigint AS x')";
    let endless = endless.replace("{url}", &POSTGRES.url());
    let creating = Running::start(&segue, &numbers_after("s", &endless, &topic(&kafka, "t"))).await;
    wait_for("chunks to be written", DEADLINE, || {
        (!capture_files(&segue).is_empty()).then_some(())
    });
    creating.expect_canceled_promptly().await;
    let running = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%1000000000%' AND pid <> pg_backend_pid()";
    expect_rows(&gate.holder, running, &[]).await;
    only_these_are_left(&segue, &client, &[]).await;

    // While a view catches up; also when its next stage cannot be reached.
    let slow = numbers_after("s", SLOW_HISTORY, &topic(&kafka, "t"));
    client.batch_execute(&slow).await.expect("created");
    for broker in ["up", "down"] {
        let creating = Running::start(&segue, &counting("v", "s")).await;
        job_is(&client, "v", "catching up").await;
        if broker == "down" {
            kafka.stop();
            stage_error(&client, "s", "could not reach Kafka").await;
        }
        creating.expect_canceled_promptly().await;
        only_these_are_left(&segue, &client, &["s"]).await;
    }

    // While the broker is asked, and is down.
    let asked = || (!kafka_threads(&segue).is_empty()).then_some(());
    let statements = [counting("v", "s"), numbers_of("other", &topic(&kafka, "t"))];
    for statement in statements {
        wait_for("the threads of Kafka to end", DEADLINE, || {
            kafka_threads(&segue).is_empty().then_some(())
        });
        let creating = Running::start(&segue, &statement).await;
        wait_for("the broker to be asked", DEADLINE, asked);
        creating.expect_canceled_promptly().await;
        only_these_are_left(&segue, &client, &["s"]).await;
    }
    client.batch_execute("DROP SOURCE s").await.expect("dropped");
    only_these_are_left(&segue, &client, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_select_from_a_source_ends_with_ctrl_c_or_with_the_broker_and_leaves_no_reader() {
    let kafka = KafkaServer::start();
    kafka.create_topic("t", 1, &[]);
    append(&kafka, "t", 0, &["{\"x\":1}"]);
    let segue = segue();
    let client = segue.connect().await;
    let slow = numbers_after("s", SLOW_HISTORY, &topic(&kafka, "t"));
    let live = numbers_of("live", &topic(&kafka, "t"));
    client.batch_execute(&format!("{slow}; {live}")).await.expect("created");
    assert_eq!(rows(&client, "SELECT x FROM live").await.concat(), ["1"]);

    let no_reader = || kafka_threads(&segue).is_empty().then_some(());
    wait_for("the threads of Kafka to end", DEADLINE, no_reader);
    let select = "SELECT sum(x) FROM s";
    let selecting = Running::start(&segue, select).await;
    wait_for("the horizon to be asked", DEADLINE, || no_reader().is_none().then_some(()));
    selecting.expect_canceled_promptly().await;
    wait_for("the threads of Kafka to end", DEADLINE, no_reader);

    kafka.stop();
    let selecting = Running::start(&segue, select).await;
    wait_for("the broker to be asked", DEADLINE, || no_reader().is_none().then_some(()));
    selecting.expect_canceled_promptly().await;
    let impatient = "SET connector_timeout = '2s'; SELECT x FROM live";
    let error = Running::start(&segue, impatient).await.error().await;
    assert_eq!(error.code().code(), "08006", "{error:?}");
    wait_for("the threads of Kafka to end", DEADLINE, no_reader);
    assert_eq!(rows(&client, "SELECT count(*) FROM segue.jobs").await.concat(), ["0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_exits_0_and_loses_nothing_though_the_database_is_gone_for_ever() {
    let postgres = PostgresServer::start();
    KAFKA.create_topic("load", 1, &[]);
    let mut segue = segue();
    let client = segue.connect().await;
    let history = format!(
        "WITH (connector = 'postgres', url = '{}', \
         query = 'SELECT x::bigint AS x FROM generate_series(0, 9999) x')",
        postgres.url()
    );
    let source = numbers_after("s", &history, &topic(&KAFKA, "load"));
    client.batch_execute(&source).await.expect("created");
    drop(postgres);
    client.batch_execute(&counting("v", "s")).await.expect("the capture serves it");
    let mut next = 10_000;
    for _ in 0..3 {
        let (segue_stops, stop) = std::sync::mpsc::channel::<()>();
        let writer = std::thread::spawn(move || {
            while stop.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                produce(&KAFKA, "load", next..next + 500);
                next += 500;
            }
            next
        });
        let client = segue.connect().await;
        let reached = next + 1000;
        wait_for_async("the view to follow", DEADLINE, async || {
            let n: i64 = rows(&client, "SELECT n FROM v").await[0][0].parse().expect("a count");
            (n >= reached).then_some(())
        })
        .await;
        let status = segue.stop();
        drop(segue_stops);
        assert!(status.success(), "{status}");
        next = writer.join().expect("the writer does not panic");
        segue.start_again();
    }
    let client = segue.connect().await;
    expect_rows(&client, "SELECT n, s FROM v", &counted(0..next)).await;

    let second = Command::new(env!("CARGO_BIN_EXE_segue"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(segue.data_dir())
        .output()
        .expect("the binary runs");
    let (said, complained) =
        (String::from_utf8_lossy(&second.stdout), String::from_utf8_lossy(&second.stderr));
    assert!(!second.status.success() && said.is_empty(), "{said}");
    assert_eq!(complained.lines().count(), 1, "{complained}");
    let folder = segue.data_dir().display().to_string();
    assert!(complained.starts_with("segue: ") && complained.contains(&folder), "{complained}");
    assert_eq!(rows(&client, "SELECT n, s FROM v").await, counted(0..next));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_during_a_create_keeps_the_job_for_the_next_start() {
    KAFKA.create_topic("kept", 1, &[]);
    produce(&KAFKA, "kept", 301..401);
    let mut segue = segue();
    let client = segue.connect().await;
    let gate = Gate::close(44).await;
    let history = format!(
        "WITH (connector = 'postgres', url = '{}', query = '{}')",
        POSTGRES.url(),
        gate.query(300)
    );
    let captured = numbers_after("captured", &history, &topic(&KAFKA, "kept"));
    let creating = Running::start(&segue, &captured).await;
    gate.wait_for_waiting(1).await;
    let slow = numbers_after("slow", SLOW_HISTORY, &topic(&KAFKA, "kept"));
    client.batch_execute(&slow).await.expect("created");
    let viewing = Running::start(&segue, &counting("v", "slow")).await;
    job_is(&client, "v", "catching up").await;
    let status = segue.stop();
    assert!(status.success(), "{status}");
    for statement in [creating, viewing] {
        assert_eq!(statement.error().await.code().code(), "57P01");
    }
    gate.wait_for_waiting(0).await;

    segue.start_again();
    let client = segue.connect().await;
    gate.wait_for_waiting(1).await;
    gate.open().await;
    client.batch_execute("WAIT").await.expect("both jobs end");
    assert_eq!(rows(&client, "SELECT n, s FROM v").await, counted(1..401));
    client.batch_execute(&counting("w", "captured")).await.expect("the capture is there");
    assert_eq!(rows(&client, "SELECT n, s FROM w").await, counted(1..401));
    assert_eq!(rows(&client, "SELECT * FROM segue.jobs").await.concat(), [""; 0], "jobs");
}
