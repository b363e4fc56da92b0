//! What the tests of views that join a running source share: a source of three stages, views of three shapes over it,
//! and what each of them shows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::wait::wait_for_async;
use tokio_postgres::Client;

use super::{DEADLINE, Orders, Writer, money, rows};

const PARTITIONS: i32 = 4;
const HISTORY: i64 = 5_000;

/// A producer that never stops by itself, and the truth about what it wrote.
pub struct Producer {
    truth: Arc<Mutex<Orders>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Producer {
    /// Changes orders in batches, one after the other, for as long as nobody stops it.
    pub fn start(
        kafka: &Arc<KafkaServer>,
        topic: &str,
        truth: Orders,
        mut writer: Writer,
    ) -> Producer {
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

    pub fn stop(mut self) -> Orders {
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
pub async fn source(
    postgres: &PostgresServer,
    kafka: &KafkaServer,
    topic: &str,
) -> (String, Orders, Writer) {
    let mut truth = Orders::history(HISTORY);
    truth.write_to(postgres, topic).await;
    kafka.create_topic(topic, PARTITIONS, &[]);
    let mut writer = Writer::new(11, HISTORY, 4);
    writer.change(&mut truth, kafka, topic, 3_000);
    let postgres = postgres.url();
    (create_source(&postgres, kafka, topic), truth, writer)
}

/// The statement, with the database at this URL.
pub fn create_source(postgres: &str, kafka: &KafkaServer, topic: &str) -> String {
    let bootstrap = kafka.bootstrap();
    let broker = format!(
        "connector = 'kafka', properties.bootstrap.server = '{bootstrap}', topic = '{topic}'"
    );
    format!(
        "CREATE SOURCE orders (order_id BIGINT, customer BIGINT, amount NUMERIC(12,2), \
         PRIMARY KEY (order_id)) WITH STAGES (\
         history WITH (connector = 'postgres', url = '{postgres}', \
         query = 'SELECT order_id, customer, amount FROM {topic}'), \
         range WITH ({broker}) FORMAT UPSERT ENCODE JSON \
         START AT OFFSETS '{{\"0\": 0, \"1\": 0, \"2\": 0, \"3\": 0}}' STOP AT LATEST, \
         live WITH ({broker}) FORMAT UPSERT ENCODE JSON)"
    )
}

/// The `n`th view: its definition, and what it shows when `truth` holds.
pub fn view(n: usize, truth: &Orders) -> (String, String, Vec<Vec<String>>) {
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

pub async fn expect_view(client: &Client, n: usize, truth: &Orders) {
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
pub async fn expect_one_reading(client: &Client) {
    wait_for_async("all views to share one reading", DEADLINE, async || {
        let sql = "SELECT DISTINCT consumer FROM segue.stages WHERE source = 'orders'";
        (rows(client, sql).await.len() == 1).then_some(())
    })
    .await;
}
