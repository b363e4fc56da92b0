//! A view that joins a source whose producer never stops and is as fast as a core lets it be: it reads five million rows
//! for itself, meets the live reading while that goes on, and the views that are there already stay fresh.
//!
//! Told in epochs, not in seconds: the machine may be busy with other tests. Freshness is how many of them pass from a
//! row's being stored in the broker to its being visible; its idle value is that of the same producer before the view
//! joins. `segue-bench joining` prints the seconds.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::wait::wait_for_async;
use support::{DEADLINE, rows, segue};
use tokio_postgres::Client;

const ROWS: u64 = 5_000_000;
const PARTITIONS: i32 = 2;
/// What the producer stores at once.
const BATCH: u64 = 20_000;
/// Rows that a step has taken are visible so many epochs later: one is open, at most two are on their way to the disk.
const EPOCHS_UNTIL_VISIBLE: u64 = 3;
/// While there are live rows, the live view has moved after so many epochs.
const EPOCHS_WITHOUT_NEWS_MAX: u64 = 100;
/// How often freshness is measured before the view joins.
const SAMPLES: usize = 50;
/// Far more than the backfill needs, and far fewer than an hour has.
const EPOCHS_UNTIL_MET_MAX: u64 = 10_000;

/// Rows of one digit each, as compact as a JSON record can be.
fn produce(kafka: &KafkaServer, rows: u64) {
    kafka.produce_values("t", PARTITIONS, (0..rows).map(|_| "{\"x\":1}"));
}

/// A producer at full speed.
struct Producer {
    /// Rows that are stored, the history included.
    stored: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Producer {
    fn start(kafka: &Arc<KafkaServer>) -> Producer {
        let (stored, stop) = (Arc::new(AtomicU64::new(ROWS)), Arc::new(AtomicBool::new(false)));
        let (kafka, count, stopped) = (Arc::clone(kafka), Arc::clone(&stored), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                produce(&kafka, BATCH);
                count.fetch_add(BATCH, Ordering::Relaxed);
            }
        });
        Producer { stored, stop, thread: Some(thread) }
    }

    fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// All that was stored.
    fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it is stopped once").join().expect("the producer did not panic");
        self.stored()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

async fn number(client: &Client, sql: &str) -> u64 {
    let found = rows(client, sql).await;
    found[0][0].parse().unwrap_or_else(|_| panic!("{sql}: {found:?}"))
}

/// How many epochs it takes from a row's being stored in the broker to its being seen in the live view.
#[derive(Default)]
struct Freshness(Vec<u64>);

impl Freshness {
    /// Of what is stored now.
    async fn sample(&mut self, client: &Client, producer: &Producer) {
        let stored = producer.stored();
        let both = "SELECT (SELECT max(epoch) FROM segue.checkpoints), n FROM live";
        let look = async || {
            let found = rows(client, both).await;
            let number = |place: usize| found[0][place].parse::<u64>().expect("a number");
            (number(0), number(1))
        };
        let (first, _) = look().await;
        let last = wait_for_async("what is stored to be visible", DEADLINE, async || {
            let (epoch, visible) = look().await;
            (visible >= stored).then_some(epoch)
        })
        .await;
        self.0.push(last - first);
    }

    fn median(&mut self) -> u64 {
        self.0.sort_unstable();
        self.0[self.0.len() / 2]
    }
}

/// What somebody sees who looks while the view joins.
struct Watch<'a> {
    client: &'a Client,
    producer: &'a Producer,
    /// The epoch at which the live view had moved last, what it showed then, and what was stored by then.
    moved: (u64, u64, u64),
    longest_standstill: u64,
}

impl Watch<'_> {
    async fn epoch(&self) -> u64 {
        number(self.client, "SELECT max(epoch) FROM segue.checkpoints").await
    }

    async fn visible(&self) -> u64 {
        number(self.client, "SELECT n FROM live").await
    }

    /// What the live reading has taken is visible after a few epochs, and it goes on taking.
    async fn look(&mut self) {
        let taken = number(self.client, "SELECT rows FROM segue.stages WHERE reader = 's'").await;
        let since = self.epoch().await;
        let (now, visible) = wait_for_async("some epochs to pass", DEADLINE, async || {
            // The epoch first: what is seen afterwards is of this one or a later one.
            let now = self.epoch().await;
            let visible = self.visible().await;
            (now >= since + EPOCHS_UNTIL_VISIBLE || visible >= taken).then_some((now, visible))
        })
        .await;
        assert!(
            visible >= taken,
            "{taken} rows were taken before {since}, {visible} shown at {now}"
        );
        let (epoch, shown, stored) = self.moved;
        if visible > shown || self.producer.stored() == stored {
            self.moved = (now, visible, self.producer.stored());
            return;
        }
        self.longest_standstill = self.longest_standstill.max(now - epoch);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_of_five_million_rows_meets_a_live_reading_at_full_speed() {
    let kafka = Arc::new(KafkaServer::start());
    kafka.create_topic("t", PARTITIONS, &[]);
    let began = std::time::Instant::now();
    produce(&kafka, ROWS);
    eprintln!("{ROWS} rows stored after {:?}", began.elapsed());
    let segue = segue();
    let client = segue.connect().await;
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH (connector = 'kafka', topic = 't', \
         properties.bootstrap.server = '{}') FORMAT PLAIN ENCODE JSON",
        kafka.bootstrap()
    );
    let view = |name: &str| {
        format!("CREATE MATERIALIZED VIEW {name} AS SELECT count(*) AS n, sum(x) AS s FROM s")
    };
    client.batch_execute(&source).await.expect("the source is new");
    client.batch_execute(&view("live")).await.expect("the view is new");
    assert_eq!(number(&client, "SELECT n FROM live").await, ROWS);
    eprintln!("the first view has them after {:?}", began.elapsed());

    let producer = Producer::start(&kafka);
    let (mut idle, mut joined) = (Freshness::default(), Freshness::default());
    for _ in 0..SAMPLES {
        idle.sample(&client, &producer).await;
    }
    let joining = segue.connect().await;
    let creating = view("late");
    let created = tokio::spawn(async move { joining.batch_execute(&creating).await });
    let mut watch =
        Watch { client: &client, producer: &producer, moved: (0, 0, 0), longest_standstill: 0 };
    let first = watch.epoch().await;
    watch.moved = (first, watch.visible().await, producer.stored());
    while !created.is_finished() {
        watch.look().await;
        joined.sample(&client, &producer).await;
        let epochs = watch.epoch().await - first;
        assert!(epochs < EPOCHS_UNTIL_MET_MAX, "not met after {epochs} epochs");
    }
    created.await.expect("it does not panic").expect("the view is new");
    // It has met although nobody has stopped the producer.
    let (epochs, standstill) = (watch.epoch().await - first, watch.longest_standstill);
    let produced = producer.stored() - ROWS;
    eprintln!(
        "met after {epochs} epochs, {:?}, while {produced} rows were stored; at most {standstill} epochs without news",
        began.elapsed()
    );
    let (idle_median, joined_median) = (idle.median(), joined.median());
    eprintln!("epochs until visible: {:?} without, {:?} with a backfill", idle.0, joined.0);
    assert!(
        joined_median <= 2 * idle_median.max(1),
        "visible after {joined_median} epochs while a view joins, {idle_median} before"
    );
    assert!(produced > 0, "the producer ran");
    assert!(standstill <= EPOCHS_WITHOUT_NEWS_MAX, "{standstill} epochs without news");
    wait_for_async("the two to be one reading", DEADLINE, async || {
        let consumers = "SELECT count(DISTINCT consumer) FROM segue.stages WHERE source = 's'";
        (number(&client, consumers).await == 1).then_some(())
    })
    .await;

    let truth = producer.stop().to_string();
    for view in ["live", "late"] {
        let sql = format!("SELECT n, s FROM {view}");
        wait_for_async(&format!("{view} to show {truth}"), DEADLINE, async || {
            (rows(&client, &sql).await == [[truth.as_str(), truth.as_str()]]).then_some(())
        })
        .await;
    }
    eprintln!("all is exact after {:?}", began.elapsed());
}
