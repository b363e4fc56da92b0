//! `kill -9` at every named moment of a handoff and at random ones: the result is exact each time.
//!
//! Two sources are read at once: an upsert one, whose deletes and updates show a row that was lost or applied in
//! the wrong order, and an append one over the same systems, whose COUNT and SUM show one that was read twice.

mod support;

use std::time::Duration;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use support::{
    DEADLINE, Orders, Random, Writer, append, expect_sales, pipeline, rows, segue, try_rows,
};

const PARTITIONS: u32 = 4;
const HISTORY: i64 = 20_000;
const EVENTS: i64 = 10_000;

/// The moments, and at which pass through them the process dies.
const CRASH_POINTS: &[&str] = &[
    "mid-capture=1*off->1*return",
    "capture-chunk=1*return",
    "capture-before-publish=1*return",
    "before-commit=3*off->1*return",
    "after-commit=3*off->1*return",
    "mid-bounded-stage=2*off->1*return",
    "after-last-bounded-row=1*return",
    "before-completion-report=1*return",
    "after-completion-report=1*return",
    "before-completion-commit=1*return",
    "after-completion-commit=1*return",
    "after-activation=1*return",
    "before-first-live-row=1*return",
];

struct World {
    postgres: PostgresServer,
    kafka: KafkaServer,
}

impl World {
    fn start() -> World {
        World { postgres: PostgresServer::start(), kafka: KafkaServer::start() }
    }
}

/// One server over fresh tables and topics.
struct Run<'a> {
    world: &'a World,
    segue: Segue,
    truth: Orders,
    writer: Writer,
    /// Events beyond those of history.
    live_events: i64,
    name: String,
}

impl<'a> Run<'a> {
    async fn new(world: &'a World, name: &str) -> Run<'a> {
        let truth = Orders::history(HISTORY);
        truth.write_to(&world.postgres, &format!("orders_{name}")).await;
        let client = world.postgres.connect().await;
        client
            .batch_execute(&format!(
                "CREATE TABLE events_{name} AS SELECT i::bigint AS x FROM generate_series(1, {EVENTS}) i"
            ))
            .await
            .expect("the table is new");
        world.kafka.create_topic(&format!("orders_{name}"), 4, &[]);
        world.kafka.create_topic(&format!("events_{name}"), 1, &[]);
        let writer = Writer::new(7, HISTORY, PARTITIONS.into());
        Run { world, segue: segue(), truth, writer, live_events: 0, name: name.to_owned() }
    }

    fn produce(&mut self, changes: usize, events: i64) {
        let kafka = &self.world.kafka;
        self.writer.change(&mut self.truth, kafka, &format!("orders_{}", self.name), changes);
        let first = EVENTS + self.live_events + 1;
        let values: Vec<String> =
            (first..first + events).map(|x| format!("{{\"x\":{x}}}")).collect();
        append(kafka, &format!("events_{}", self.name), 0, &values);
        self.live_events += events;
    }

    fn statements(&self) -> Vec<String> {
        let (postgres, kafka) = (self.world.postgres.url(), self.world.kafka.bootstrap());
        let name = &self.name;
        let orders = format!("orders_{name}");
        let mut statements = pipeline(&postgres, &kafka, &orders, &orders, PARTITIONS).to_vec();
        statements.push(format!(
            "CREATE SOURCE events (x BIGINT) WITH STAGES (\
             history WITH (connector = 'postgres', url = '{postgres}', query = 'SELECT x FROM events_{name}'), \
             live WITH (connector = 'kafka', properties.bootstrap.server = '{kafka}', topic = 'events_{name}') \
             FORMAT PLAIN ENCODE JSON START AT OFFSETS '{{\"0\": 0}}')"
        ));
        statements.push(
            "CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n, SUM(x) AS s FROM events"
                .to_owned(),
        );
        statements
    }

    /// Runs the statements, starting the server again whenever it has died; what a restart has kept is
    /// waited for and not run again.
    async fn create_all(&mut self) {
        for statement in self.statements() {
            loop {
                if !self.segue.is_running() {
                    self.segue.kill();
                    self.segue.start_again();
                }
                let Ok(client) = self.segue.try_connect().await else { continue };
                match client.batch_execute(&statement).await {
                    Ok(()) => break,
                    // The server had made the object durable before it died; the job goes on by itself.
                    Err(error) if error.code().is_some_and(|code| code.code() == "42P07") => {
                        if client.batch_execute("WAIT").await.is_ok() {
                            break;
                        }
                    }
                    Err(error) if error.is_closed() || error.as_db_error().is_none() => {}
                    Err(error) => panic!("{statement}: {error:?}"),
                }
                self.settle();
            }
        }
    }

    /// A broken connection means that the process is dying: waits until it has, so that the next look is sure.
    fn settle(&mut self) {
        wait_for("the process to die", Duration::from_secs(20), || {
            (!self.segue.is_running()).then_some(())
        });
    }

    async fn expect_truth(&mut self) {
        if !self.segue.is_running() {
            self.segue.kill();
            self.segue.start_again();
        }
        let client = self.segue.connect().await;
        expect_sales(&client, &self.truth).await;
        let n = EVENTS + self.live_events;
        let expected = vec![n.to_string(), (n * (n + 1) / 2).to_string()];
        wait_for_async(&format!("{expected:?} events"), DEADLINE, async || {
            let counted = rows(&client, "SELECT n, s FROM counted").await;
            let n: i64 = counted[0][0].parse().expect("a count");
            assert!(n <= EVENTS + self.live_events, "rows were read twice: {counted:?}");
            (counted[0] == expected).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_every_named_moment_loses_and_repeats_nothing() {
    let world = World::start();
    for (index, point) in CRASH_POINTS.iter().enumerate() {
        let mut run = Run::new(&world, &format!("p{index}")).await;
        run.produce(500, 200);
        run.segue.kill();
        run.segue.set_failpoints(point);
        run.segue.start_again();
        run.segue.set_failpoints("");
        let process = run.segue.pid();
        run.create_all().await;
        run.produce(500, 200);
        // A moment of the live stage comes only with its rows.
        if run.segue.is_running() && run.segue.pid() == process {
            wait_for(&format!("{point} to kill"), DEADLINE, || {
                (!run.segue.is_running()).then_some(())
            });
        }
        run.expect_truth().await;
        assert_ne!(run.segue.pid(), process, "{point} was never passed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_kills_at_random_moments_lose_and_repeat_nothing() {
    let world = World::start();
    let mut run = Run::new(&world, "random").await;
    let mut random = Random(42);
    // While the statements run: at a random pass through a commit, on either side of it.
    for _ in 0..4 {
        let side =
            ["before-commit", "after-commit"][usize::try_from(random.below(2)).expect("two")];
        run.segue.kill();
        run.segue.set_failpoints(&format!("{side}={}*off->1*return", random.below(6)));
        run.segue.start_again();
        let Ok(client) = run.segue.try_connect().await else { continue };
        for statement in run.statements() {
            drop(client.batch_execute(&statement).await);
        }
        run.produce(50, 50);
    }
    run.segue.kill();
    run.segue.set_failpoints("");
    run.create_all().await;
    // In the live stage: by SIGKILL, at any instruction.
    for _ in 0..16 {
        run.produce(200, 100);
        let client = run.segue.connect().await;
        let wait = Duration::from_millis(random.below(300));
        drop(tokio::time::timeout(wait, forever_reading(&client)).await);
        run.segue.kill();
        run.segue.start_again();
    }
    run.expect_truth().await;
}

/// Reads until the server is killed: what it shows is never taken back.
async fn forever_reading(client: &tokio_postgres::Client) {
    let mut last = 0;
    while let Ok(counted) = try_rows(client, "SELECT n FROM counted").await {
        let n: i64 = counted[0][0].parse().expect("a count");
        assert!(n >= last, "a count went from {last} to {n}");
        last = n;
    }
}
