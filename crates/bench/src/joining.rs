//! A view joins a source whose producer is as fast as it can be: how long it takes to meet the live reading, and how
//! fresh a view stays that is there already.
//!
//! A *marker* is a record of a number of its own; the view `seen` has a row for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use segue_testkit::kafka::{KafkaServer, Record};

use crate::instance::{Instance, scratch, wait_for_rows};
use crate::kafka::source;
use crate::measure::times;
use crate::{Outcome, Run};

const PARTITIONS: i32 = 2;
const BATCH: u64 = 20_000;
const FIRST_MARKER: u64 = 1_000_000_000;
/// How many markers say how fresh a view is while nothing joins.
const MARKERS: u64 = 100;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) fn bench(run: &Run) -> Outcome {
    let kafka = Arc::new(KafkaServer::start());
    kafka.create_topic("t", PARTITIONS, &[]);
    produce(&kafka, run.rows as u64);
    run.runtime.block_on(measure(&kafka, run.rows as u64))
}

fn produce(kafka: &KafkaServer, rows: u64) {
    kafka.produce_values("t", PARTITIONS, (0..rows).map(|_| "{\"x\":1}"));
}

async fn measure(kafka: &Arc<KafkaServer>, rows: u64) -> Outcome {
    let home = scratch()?;
    let instance = Instance::start(home.path(), &[]).await?;
    instance.run(&source("t", "x BIGINT", &kafka.bootstrap())).await?;
    let seen = format!(
        "CREATE MATERIALIZED VIEW seen AS SELECT x, COUNT(*) AS n FROM t WHERE x >= {FIRST_MARKER} GROUP BY x"
    );
    let began = Instant::now();
    instance.run(&seen).await?;
    println!("{rows} rows; a first view reads them in {:.2} s", began.elapsed().as_secs_f64());

    let mut markers = Markers { kafka, instance: &instance, next: 0 };
    times("nobody writes: marker stored to visible", &markers.until(|n| n == MARKERS)?);
    let (stop, stored) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = write(kafka, &stop, &stored);
    let idle = markers.until(|n| n == MARKERS)?;
    times("full speed, nothing joins: marker stored to visible", &idle);

    let (began, before) = (Instant::now(), stored.load(Ordering::Relaxed));
    let engine = instance.engine.clone();
    let joined = tokio::spawn(async move {
        let joining = Instance { engine };
        let view = "CREATE MATERIALIZED VIEW late AS SELECT COUNT(*) AS n, SUM(x) AS s FROM t";
        joining.run(view).await.map_err(|error| error.to_string())
    });
    let busy = markers.until(|_| joined.is_finished())?;
    joined.await??;
    let (took, meanwhile) = (began.elapsed(), stored.load(Ordering::Relaxed) - before);
    times("full speed, a view joins: marker stored to visible", &busy);
    println!(
        "it joined in {:.2} s, while {meanwhile} rows were stored; freshness is {:.1} times that of before",
        took.as_secs_f64(),
        median(busy) / median(idle),
    );
    stop.store(true, Ordering::Relaxed);
    writer.join().map_err(|_| "the writer panicked")?;
    instance.stop().await;
    Ok(())
}

fn write(
    kafka: &Arc<KafkaServer>,
    stop: &Arc<AtomicBool>,
    stored: &Arc<AtomicU64>,
) -> std::thread::JoinHandle<()> {
    let (kafka, stop, stored) = (Arc::clone(kafka), Arc::clone(stop), Arc::clone(stored));
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            produce(&kafka, BATCH);
            stored.fetch_add(BATCH, Ordering::Relaxed);
        }
    })
}

/// Markers, one after the other.
struct Markers<'a> {
    kafka: &'a KafkaServer,
    instance: &'a Instance,
    next: u64,
}

impl Markers<'_> {
    /// How long each took to be visible from when the broker had it, until `enough` have been.
    fn until(
        &mut self,
        enough: impl Fn(u64) -> bool,
    ) -> Result<Vec<Duration>, std::num::TryFromIntError> {
        let client = segue_testkit::kafka::KafkaClient::new(&self.kafka.bootstrap());
        let mut samples = Vec::new();
        while samples.is_empty() || !enough(samples.len() as u64) {
            let value = format!("{{\"x\":{}}}", FIRST_MARKER + self.next);
            client.produce("t", Record::value(&value));
            self.next += 1;
            let began = Instant::now();
            let seen = wait_for_rows(&self.instance.engine, "seen", usize::try_from(self.next)?);
            samples.push(seen.duration_since(began));
            std::thread::park_timeout(PAUSE);
        }
        Ok(samples)
    }
}

fn median(mut samples: Vec<Duration>) -> f64 {
    samples.sort_unstable();
    samples[samples.len() / 2].as_secs_f64()
}
