//! PostgreSQL history, then a stream of NATS, by `START AT QUERY`, across `kill -9`: two sources are read at once, an
//! append one, whose COUNT and SUM show what was lost or read twice, and an upsert one with deletes by subject.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use segue_testkit::nats::{NatsClient, NatsServer, Publish};
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use serde_json::json;
use support::{DEADLINE, Random, rows, segue};

/// Events and items that the database has already copied out of the streams.
const HISTORY: i64 = 5_000;

/// The moments, and at which pass through them the process dies.
const CRASH_POINTS: &[&str] = &[
    "before-commit=3*off->1*return",
    "after-last-bounded-row=1*return",
    "after-completion-commit=1*return",
    "after-activation=1*return",
    "before-first-live-row=1*return",
];

struct World {
    postgres: PostgresServer,
    nats: NatsServer,
    client: NatsClient,
}

/// What was written, kept apart from everything that Segue does.
struct Truth {
    name: String,
    /// Event `x` is message `x` of its stream.
    events: i64,
    items: BTreeMap<i64, i64>,
    random: Random,
}

impl Truth {
    /// Streams that begin long before the history ends, and the database's copy of their beginning.
    async fn new(world: &World, name: &str) -> Truth {
        for kind in ["events", "items"] {
            let stream = format!("{kind}_{name}");
            world.client.create_stream(&stream, &[&format!("{stream}.>")], json!({})).await;
        }
        let random = Random(11);
        let mut truth = Truth { name: name.to_owned(), events: 0, items: BTreeMap::new(), random };
        truth.write(world, HISTORY, 3_000).await;
        let values: Vec<String> =
            truth.items.iter().map(|(id, amount)| format!("({id},{amount})")).collect();
        let sql = format!(
            "CREATE TABLE events_{name} AS SELECT i::bigint AS x FROM generate_series(1, {HISTORY}) i; \
             CREATE TABLE items_{name} (id bigint PRIMARY KEY, amount bigint); \
             INSERT INTO items_{name} VALUES {}; \
             CREATE TABLE copied_{name} AS SELECT 'items' AS stream, 3000::bigint AS sequence",
            values.join(",")
        );
        world.postgres.connect().await.batch_execute(&sql).await.expect("the tables are new");
        truth
    }

    async fn write(&mut self, world: &World, events: i64, changes: usize) {
        let subject = format!("events_{}.e", self.name);
        let first = self.events + 1;
        self.events += events;
        let event =
            |x: i64| Publish { subject: &subject, payload: format!("{{\"x\":{x}}}"), headers: &[] };
        world.client.publish_all((first..=self.events).map(event)).await;
        let mut messages = Vec::with_capacity(changes);
        for _ in 0..changes {
            let id = i64::try_from(self.random.below(1_000)).expect("small");
            let payload = if self.random.below(4) == 0 {
                self.items.remove(&id);
                String::new()
            } else {
                let amount = i64::try_from(self.random.below(1_000_000)).expect("small");
                self.items.insert(id, amount);
                format!("{{\"amount\":{amount}}}")
            };
            messages.push((format!("items_{}.{id}", self.name), payload));
        }
        let items = messages.iter().map(|(subject, payload)| Publish {
            subject,
            payload: payload.clone(),
            headers: &[],
        });
        world.client.publish_all(items).await;
    }

    fn statements(&self, world: &World) -> [String; 4] {
        let (postgres, nats, name) = (world.postgres.url(), world.nats.url(), &self.name);
        [
            format!(
                "CREATE SOURCE events (x BIGINT) WITH STAGES (\
                 history WITH (connector = 'postgres', url = '{postgres}', \
                   query = 'SELECT x FROM events_{name}'), \
                 live WITH (connector = 'nats', server_url = '{nats}', subject = 'events_{name}.>') \
                   FORMAT PLAIN ENCODE JSON \
                   START AT QUERY 'SELECT ''0'', max(x) + 1 FROM events_{name}')"
            ),
            format!(
                "CREATE SOURCE items (id BIGINT, amount BIGINT, PRIMARY KEY (id)) WITH STAGES (\
                 history WITH (connector = 'postgres', url = '{postgres}', \
                   query = 'SELECT id, amount FROM items_{name}'), \
                 live WITH (connector = 'nats', server_url = '{nats}', stream = 'items_{name}', \
                   subject = 'items_{name}.*') FORMAT UPSERT ENCODE JSON \
                   START AT QUERY 'SELECT ''0'', sequence + 1 FROM copied_{name}')"
            ),
            "CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n, SUM(x) AS s FROM events"
                .to_owned(),
            "CREATE MATERIALIZED VIEW stock AS \
             SELECT id % 10 AS shelf, COUNT(*) AS n, SUM(amount) AS s FROM items GROUP BY id % 10"
                .to_owned(),
        ]
    }

    fn counted(&self) -> Vec<Vec<String>> {
        let n = self.events;
        vec![vec![n.to_string(), (n * (n + 1) / 2).to_string()]]
    }

    fn stock(&self) -> Vec<Vec<String>> {
        let mut shelves: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (id, amount) in &self.items {
            let shelf = shelves.entry(id % 10).or_default();
            *shelf = (shelf.0 + 1, shelf.1 + amount);
        }
        let row = |(shelf, (n, s)): (i64, (i64, i64))| {
            vec![shelf.to_string(), n.to_string(), s.to_string()]
        };
        shelves.into_iter().map(row).collect()
    }

    async fn expect(&self, segue: &Segue) {
        let client = segue.connect().await;
        let (counted, stock) = (self.counted(), self.stock());
        let mut last = (Vec::new(), Vec::new());
        let right = wait_for_async("both views to show the truth", DEADLINE, async || {
            last = (
                rows(&client, "SELECT n, s FROM counted").await,
                rows(&client, "SELECT shelf, n, s FROM stock ORDER BY shelf").await,
            );
            let n: i64 = last.0[0][0].parse().expect("a count");
            assert!(n <= self.events, "events were read twice: {last:?}");
            (last.0 == counted && last.1 == stock).then_some(())
        });
        right.await;
    }
}

async fn world() -> World {
    let (postgres, nats) = (PostgresServer::start(), NatsServer::start());
    let client = nats.client().await;
    World { postgres, nats, client }
}

/// Runs the statements, starting the server again whenever it has died; what a restart has kept is waited for.
async fn create_all(segue: &mut Segue, statements: &[String]) {
    for statement in statements {
        loop {
            if !segue.is_running() {
                segue.kill();
                segue.start_again();
            }
            let Ok(client) = segue.try_connect().await else { continue };
            match client.batch_execute(statement).await {
                Ok(()) => break,
                Err(error) if error.code().is_some_and(|code| code.code() == "42P07") => {
                    if client.batch_execute("WAIT").await.is_ok() {
                        break;
                    }
                }
                Err(error) if error.is_closed() || error.as_db_error().is_none() => {}
                Err(error) => panic!("{statement}: {error:?}"),
            }
            wait_for("the process to die", Duration::from_secs(20), || {
                (!segue.is_running()).then_some(())
            });
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_then_a_stream_of_nats_is_exact_across_kills() {
    let world = world().await;
    for (index, point) in CRASH_POINTS.iter().enumerate() {
        let mut truth = Truth::new(&world, &format!("p{index}")).await;
        truth.write(&world, 700, 500).await;
        let mut segue = segue();
        segue.kill();
        segue.set_failpoints(point);
        segue.start_again();
        segue.set_failpoints("");
        let process = segue.pid();
        create_all(&mut segue, &truth.statements(&world)).await;
        truth.write(&world, 300, 200).await;
        if segue.is_running() && segue.pid() == process {
            wait_for(&format!("{point} to kill"), DEADLINE, || (!segue.is_running()).then_some(()));
        }
        if !segue.is_running() {
            segue.kill();
            segue.start_again();
        }
        truth.expect(&segue).await;
        assert_ne!(segue.pid(), process, "{point} was never passed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_stream_of_nats_survives_kills_of_either_server() {
    let world = world().await;
    let mut truth = Truth::new(&world, "live").await;
    let mut segue = segue();
    create_all(&mut segue, &truth.statements(&world)).await;
    for round in 0..6 {
        truth.write(&world, 400, 300).await;
        if round % 2 == 0 {
            segue.kill();
            truth.write(&world, 100, 100).await;
            segue.start_again();
        } else {
            world.nats.kill();
            world.nats.start_again();
            truth.write(&world, 100, 100).await;
        }
    }
    truth.expect(&segue).await;
    // A view that is created now reads history and the stream for itself.
    let client = segue.connect().await;
    let late = "CREATE MATERIALIZED VIEW late AS SELECT COUNT(*) AS n, SUM(x) AS s FROM events";
    client.batch_execute(late).await.expect("the view is created");
    assert_eq!(rows(&client, "SELECT n, s FROM late").await, truth.counted());
    // A stream that was made again is an error that says so.
    world.client.delete_stream("events_live").await;
    world.client.create_stream("events_live", &["events_live.>"], json!({})).await;
    let deadline = std::time::Instant::now() + DEADLINE;
    wait_for_async("the error", DEADLINE * 2, async || {
        let stages = rows(&client, "SELECT stage, reader, phase, error FROM segue.stages").await;
        assert!(std::time::Instant::now() < deadline, "no error: {stages:?}\n{}", segue.log());
        stages.iter().flatten().any(|text| text.contains("has been replaced")).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_select_after_the_ddl_sees_everything_that_existed_before_it() {
    let world = world().await;
    let segue = segue();
    let client = segue.connect().await;
    let publish = async |stream: &str, n: i64| {
        let subject = format!("{stream}.e");
        let message =
            |x: i64| Publish { subject: &subject, payload: format!("{{\"x\":{x}}}"), headers: &[] };
        world.client.publish_all((0..n).map(message)).await;
    };
    // What the stream holds, and how many of its messages a reader may see.
    for (stream, published) in
        [("idle", 3), ("empty", 0), ("emptied", 3), ("tail", 3), ("others", 3)]
    {
        world.client.create_stream(stream, &[&format!("{stream}.>")], json!({})).await;
        publish(stream, published).await;
    }
    world.client.purge("emptied", json!({})).await;
    world.client.delete_message("tail", 3).await;
    for (stream, subject, expected) in [
        ("idle", "idle.>", 3),
        ("empty", "empty.>", 0),
        ("emptied", "emptied.>", 0),
        ("tail", "tail.>", 2),
        ("others", "others.another", 0),
    ] {
        let nats = world.nats.url();
        let source = format!(
            "CREATE SOURCE {stream} (x BIGINT) WITH (connector = 'nats', server_url = '{nats}', \
             stream = '{stream}', subject = '{subject}') FORMAT PLAIN ENCODE JSON"
        );
        client.batch_execute(&source).await.unwrap_or_else(|error| panic!("{stream}: {error:?}"));
        let view =
            format!("CREATE MATERIALIZED VIEW {stream}_n AS SELECT COUNT(*) AS n FROM {stream}");
        let created = tokio::time::timeout(DEADLINE, client.batch_execute(&view)).await;
        created.unwrap_or_else(|_| panic!("{stream}: blocked")).expect("the view is created");
        let counted = rows(&client, &format!("SELECT n FROM {stream}_n")).await;
        assert_eq!(counted, [[expected.to_string()]], "{stream}");
    }
}
