//! Views that join a running source: each reads history for itself, meets the one live reading exactly, and shares it.
//!
//! Three shapes of views over the same source want different columns, so that a join also changes what the live
//! reading delivers.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::{wait_for, wait_for_async};
use support::{DEADLINE, Orders, Random, Writer, money, rows, segue};
use tokio_postgres::Client;

const PARTITIONS: i32 = 4;
const HISTORY: i64 = 5_000;

/// A producer that never stops by itself, and the truth about what it wrote.
struct Producer {
    truth: Arc<Mutex<Orders>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Producer {
    /// Changes orders in batches, one after the other, for as long as nobody stops it.
    fn start(kafka: &Arc<KafkaServer>, topic: &str, truth: Orders, mut writer: Writer) -> Producer {
        let truth = Arc::new(Mutex::new(truth));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(&truth), Arc::clone(&stop));
        let (kafka, topic) = (Arc::clone(kafka), topic.to_owned());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let mut truth = shared.lock().expect("no holder panics");
                writer.change(&mut truth, &kafka, &topic, 200);
            }
        });
        Producer { truth, stop, thread: Some(thread) }
    }

    fn stop(mut self) -> Orders {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it is stopped once").join().expect("the producer did not panic");
        self.truth.lock().expect("no holder panics").clone()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A source of three stages over these systems, history and the range included.
async fn source(
    postgres: &PostgresServer,
    kafka: &KafkaServer,
    topic: &str,
) -> (String, Orders, Writer) {
    let mut truth = Orders::history(HISTORY);
    truth.write_to(postgres, topic).await;
    kafka.create_topic(topic, PARTITIONS, &[]);
    let mut writer = Writer::new(11, HISTORY, 4);
    writer.change(&mut truth, kafka, topic, 3_000);
    let (postgres, bootstrap) = (postgres.url(), kafka.bootstrap());
    let broker = format!(
        "connector = 'kafka', properties.bootstrap.server = '{bootstrap}', topic = '{topic}'"
    );
    let statement = format!(
        "CREATE SOURCE orders (order_id BIGINT, customer BIGINT, amount NUMERIC(12,2), \
         PRIMARY KEY (order_id)) WITH STAGES (\
         history WITH (connector = 'postgres', url = '{postgres}', \
         query = 'SELECT order_id, customer, amount FROM {topic}'), \
         range WITH ({broker}) FORMAT UPSERT ENCODE JSON \
         START AT OFFSETS '{{\"0\": 0, \"1\": 0, \"2\": 0, \"3\": 0}}' STOP AT LATEST, \
         live WITH ({broker}) FORMAT UPSERT ENCODE JSON)"
    );
    (statement, truth, writer)
}

/// The `n`th view: its definition, and what it shows when `truth` holds.
fn view(n: usize, truth: &Orders) -> (String, String, Vec<Vec<String>>) {
    let name = format!("v{n}");
    let (body, order, expected) = match n % 3 {
        0 => (
            "SELECT customer, COUNT(*) AS orders, SUM(amount) AS amount FROM orders GROUP BY customer",
            "customer",
            truth.by_customer(),
        ),
        1 => ("SELECT COUNT(*) AS n FROM orders", "n", vec![vec![truth.0.len().to_string()]]),
        _ => {
            let row = |(id, (_, cents)): (&i64, &(i64, i64))| vec![id.to_string(), money(*cents)];
            let rows = truth.0.iter().map(row).collect();
            ("SELECT order_id, amount FROM orders", "order_id", rows)
        }
    };
    let create = format!("CREATE MATERIALIZED VIEW {name} AS {body}");
    (create, format!("SELECT * FROM {name} ORDER BY {order}"), expected)
}

async fn expect_view(client: &Client, n: usize, truth: &Orders) {
    let (_, select, expected) = view(n, truth);
    let mut last = Vec::new();
    let deadline = std::time::Instant::now() + DEADLINE;
    wait_for_async("a view to show the truth", DEADLINE + Duration::from_secs(10), async || {
        last = rows(client, &select).await;
        if std::time::Instant::now() > deadline {
            let differs = expected.iter().zip(&last).find(|(a, b)| a != b);
            let splits = rows(client, "SELECT * FROM segue.splits").await;
            let (has, wants) = (last.len(), expected.len());
            panic!(
                "v{n} has {has} rows of {wants}; first difference {differs:?}; splits {splits:?}"
            );
        }
        (last == expected).then_some(())
    })
    .await;
}

/// Waits until one consumer reads the source for all of its views.
async fn expect_one_reading(client: &Client) {
    wait_for_async("all views to share one reading", DEADLINE, async || {
        let sql = "SELECT DISTINCT consumer FROM segue.stages WHERE source = 'orders'";
        (rows(client, sql).await.len() == 1).then_some(())
    })
    .await;
}

/// Runs a statement; after a death of the server it goes on by itself, and is waited for.
async fn run(segue: &mut Segue, statement: &str) {
    loop {
        if !segue.is_running() {
            segue.kill();
            segue.start_again();
        }
        let Ok(client) = segue.try_connect().await else { continue };
        match client.batch_execute(statement).await {
            Ok(()) => return,
            Err(error) if error.code().is_some_and(|code| code.code() == "42P07") => {
                if client.batch_execute("WAIT").await.is_ok() {
                    return;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_views_that_join_at_random_moments_equal_the_truth_whatever_dies() {
    let (postgres, kafka) = (PostgresServer::start(), Arc::new(KafkaServer::start()));
    let (create, truth, writer) = source(&postgres, &kafka, "joined").await;
    let mut segue = segue();
    run(&mut segue, &create).await;
    let producer = Producer::start(&kafka, "joined", truth, writer);
    let mut random = Random(5);
    for n in 0..10 {
        let side = ["before-commit", "after-commit"][usize::from(random.below(2) == 0)];
        if random.below(3) > 0 {
            segue.kill();
            segue.set_failpoints(&format!("{side}={}*off->1*return", random.below(25)));
            segue.start_again();
            segue.set_failpoints("");
        }
        run(&mut segue, &view(n, &Orders::default()).0).await;
    }
    let truth = producer.stop();
    if !segue.is_running() {
        segue.kill();
        segue.start_again();
    }
    let client = segue.connect().await;
    for n in 0..10 {
        expect_view(&client, n, &truth).await;
    }
    expect_one_reading(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_can_pause_alone_and_the_first_one_can_go_while_the_others_read_on() {
    let (postgres, kafka) = (PostgresServer::start(), Arc::new(KafkaServer::start()));
    let (create, mut truth, mut writer) = source(&postgres, &kafka, "parted").await;
    let mut segue = segue();
    let client = segue.connect().await;
    client.batch_execute(&create).await.expect("the source is new");
    for n in 0..3 {
        client.batch_execute(&view(n, &truth).0).await.expect("the view is new");
    }
    expect_one_reading(&client).await;

    client.batch_execute("ALTER MATERIALIZED VIEW v1 PAUSE").await.expect("it can be paused");
    let before = truth.clone();
    writer.change(&mut truth, &kafka, "parted", 2_000);
    expect_view(&client, 0, &truth).await;
    expect_view(&client, 1, &before).await;
    client.batch_execute("DROP MATERIALIZED VIEW v0").await.expect("nothing reads it");

    // A paused view is paused after a restart too, and what it missed is read again.
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    writer.change(&mut truth, &kafka, "parted", 2_000);
    expect_view(&client, 2, &truth).await;
    expect_view(&client, 1, &before).await;
    client.batch_execute("ALTER MATERIALIZED VIEW v1 RESUME").await.expect("it was paused");
    expect_view(&client, 1, &truth).await;
    expect_one_reading(&client).await;

    client.batch_execute("ALTER SOURCE orders PAUSE").await.expect("it is read");
    writer.change(&mut truth, &kafka, "parted", 100);
    let refused = client.batch_execute("ALTER MATERIALIZED VIEW v2 RESUME").await;
    let refused = refused.expect_err("the whole source is paused");
    assert_eq!(refused.code().map(|code| code.code()), Some("55000"), "{refused:?}");
    client.batch_execute("ALTER SOURCE orders RESUME").await.expect("it was paused");
    expect_view(&client, 1, &truth).await;

    // When the last view goes, so does the reading; the next one begins anew.
    client.batch_execute("DROP MATERIALIZED VIEW v1, v2").await.expect("nothing reads them");
    let consumers =
        "SELECT consumer FROM segue.stages WHERE source = 'orders' AND consumer IS NOT NULL";
    assert_eq!(rows(&client, consumers).await, Vec::<Vec<String>>::new());
    client.batch_execute(&view(0, &truth).0).await.expect("the name is free");
    expect_view(&client, 0, &truth).await;
}
