//! What the tests of whole pipelines share: orders in PostgreSQL and Kafka, and the truth about them, which is kept
//! apart from everything that Segue does.
#![allow(dead_code, reason = "each test file uses the part that it needs")]

pub mod views;

use std::collections::BTreeMap;
use std::time::Duration;

use segue_testkit::kafka::{KafkaServer, Record};
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::Segue;
use segue_testkit::wait::wait_for_async;
use tokio_postgres::{Client, SimpleQueryMessage};

/// How long a pipeline may take to become right.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// A server of the binary under test.
pub fn segue() -> Segue {
    Segue::start(env!("CARGO_BIN_EXE_segue"))
}

/// The rows of a query as text, NULL as "NULL".
pub async fn rows(client: &Client, sql: &str) -> Vec<Vec<String>> {
    try_rows(client, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

/// The same, with the error.
pub async fn try_rows(
    client: &Client,
    sql: &str,
) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let mut rows = Vec::new();
    for message in client.simple_query(sql).await? {
        if let SimpleQueryMessage::Row(row) = message {
            let cell = |i| row.get(i).unwrap_or("NULL").to_owned();
            rows.push((0..row.len()).map(cell).collect());
        }
    }
    Ok(rows)
}

/// A splitmix64 sequence: the same numbers for the same seed, for ever.
pub struct Random(pub u64);

impl Random {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// One order: customer and amount in cents.
pub type Order = (i64, i64);

/// What the orders are, independently of Segue.
#[derive(Clone, Default)]
pub struct Orders(pub BTreeMap<i64, Order>);

impl Orders {
    /// Orders 1 to `n`.
    pub fn history(n: i64) -> Orders {
        Orders((1..=n).map(|id| (id, (id % 100, id % 500 * 100 + 25))).collect())
    }

    /// Creates the table and fills it.
    pub async fn write_to(&self, postgres: &PostgresServer, table: &str) {
        let client = postgres.connect().await;
        let ddl = format!(
            "CREATE TABLE {table} (order_id bigint PRIMARY KEY, customer bigint, amount numeric(12,2))"
        );
        client.batch_execute(&ddl).await.expect("the table is new");
        for chunk in self.0.iter().collect::<Vec<_>>().chunks(5000) {
            let values: Vec<String> = chunk
                .iter()
                .map(|(id, (customer, cents))| format!("({id},{customer},{cents}/100.0)"))
                .collect();
            let insert = format!("INSERT INTO {table} VALUES {}", values.join(","));
            client.batch_execute(&insert).await.expect("the rows are valid");
        }
    }

    /// Orders, count and sum of each customer, as the view shows them.
    pub fn by_customer(&self) -> Vec<Vec<String>> {
        let mut sums: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (customer, cents) in self.0.values() {
            let sum = sums.entry(*customer).or_default();
            sum.0 += 1;
            sum.1 += cents;
        }
        let row = |(customer, (count, cents)): (i64, (i64, i64))| {
            vec![customer.to_string(), count.to_string(), money(cents)]
        };
        sums.into_iter().map(row).collect()
    }
}

/// Cents as numeric(…,2) prints them.
pub fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A writer of random updates, deletes and new orders.
pub struct Writer {
    random: Random,
    next_id: i64,
    partitions: u64,
}

impl Writer {
    /// New orders will be numbered from `next_id`.
    pub fn new(seed: u64, next_id: i64, partitions: u64) -> Writer {
        Writer { random: Random(seed), next_id, partitions }
    }

    /// Makes `n` changes to the truth and to the topic. A key always goes to the same partition.
    pub fn change(&mut self, orders: &mut Orders, kafka: &KafkaServer, topic: &str, n: usize) {
        let mut lines = Vec::with_capacity(n);
        for _ in 0..n {
            let id = if self.random.below(4) == 0 {
                self.next_id += 1;
                self.next_id
            } else {
                let last = u64::try_from(self.next_id).expect("ids are positive");
                i64::try_from(self.random.below(last)).expect("below an i64") + 1
            };
            let key = format!("{{\"order_id\":{id}}}");
            let value = if self.random.below(5) == 0 {
                orders.0.remove(&id);
                None
            } else {
                let customer = i64::try_from(self.random.below(100)).expect("small");
                let cents = i64::try_from(self.random.below(100_000)).expect("small");
                orders.0.insert(id, (customer, cents));
                Some(format!(
                    "{{\"order_id\":{id},\"customer\":{customer},\"amount\":{}}}",
                    money(cents)
                ))
            };
            let partition = u64::try_from(id).expect("ids are positive") % self.partitions;
            lines.push((i32::try_from(partition).expect("few partitions"), key, value));
        }
        let records = lines.iter().map(|(partition, key, value)| match value {
            Some(value) => Record::value(value).key(key).partition(*partition),
            None => Record::tombstone(key).partition(*partition),
        });
        kafka.produce_all(topic, records);
    }
}

/// The flagship's source and view.
pub fn pipeline(
    postgres: &str,
    kafka: &str,
    table: &str,
    topic: &str,
    partitions: u32,
) -> [String; 2] {
    let offsets: Vec<String> = (0..partitions).map(|p| format!("\"{p}\": 0")).collect();
    let offsets = offsets.join(", ");
    [
        format!(
            "CREATE SOURCE orders (order_id BIGINT, customer BIGINT, amount NUMERIC(12,2), \
             PRIMARY KEY (order_id)) WITH STAGES (\
             history WITH (connector = 'postgres', url = '{postgres}', \
             query = 'SELECT order_id, customer, amount FROM {table}'), \
             live WITH (connector = 'kafka', properties.bootstrap.server = '{kafka}', topic = '{topic}') \
             FORMAT UPSERT ENCODE JSON START AT OFFSETS '{{{offsets}}}')"
        ),
        "CREATE MATERIALIZED VIEW sales AS \
         SELECT customer, COUNT(*) AS orders, SUM(amount) AS amount FROM orders GROUP BY customer"
            .to_owned(),
    ]
}

/// What the view shows.
pub const SALES: &str = "SELECT customer, orders, amount FROM sales ORDER BY customer";

/// Waits until the view shows the truth. A view that goes on to be wrong fails with the difference.
pub async fn expect_sales(client: &Client, truth: &Orders) {
    let expected = truth.by_customer();
    let mut last = Vec::new();
    let deadline = std::time::Instant::now() + DEADLINE;
    wait_for_async("the view to show the truth", DEADLINE + Duration::from_secs(10), async || {
        last = rows(client, SALES).await;
        if last == expected {
            return Some(());
        }
        if std::time::Instant::now() > deadline {
            let differs = expected.iter().zip(&last).find(|(a, b)| a != b);
            let stages = rows(client, "SELECT stage, phase, rows, error FROM segue.stages").await;
            panic!("the view is wrong; first difference {differs:?}; stages {stages:?}");
        }
        None
    })
    .await;
}

/// Appends values to one partition.
pub fn append(kafka: &KafkaServer, topic: &str, partition: i32, values: &[impl AsRef<str>]) {
    let record = |value| Record::value(value).partition(partition);
    kafka.produce_all(topic, values.iter().map(AsRef::as_ref).map(|value: &str| record(value)));
}
