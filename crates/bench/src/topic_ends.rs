//! Blocking DDL on topics that end in every way a topic can: how soon after the last row the prompt is back, or, where
//! the broker is down, after the cancel or the end of the statement's patience.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use segue_engine::{Engine, Patience};
use segue_testkit::kafka::{KafkaServer, Record, Transaction};
use tokio_util::sync::CancellationToken;

use crate::instance::{Instance, scratch};
use crate::kafka::source;
use crate::measure::times;
use crate::{Outcome, Run};

const ROWS: u64 = 10_000;
/// Records of one key; few, for all that are left are read back to see that the others went.
const COMPACTED: usize = 200;
const ROUNDS: usize = 10;
const WATCH_INTERVAL: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(1);
const VIEW: &str = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM";

pub(crate) fn bench(run: &Run) -> Outcome {
    let kafka = KafkaServer::start();
    let open = prepare(&kafka);
    let home = scratch()?;
    let instance = run.runtime.block_on(Instance::start(home.path(), &[]))?;
    for (topic, what) in [
        ("idle", "nobody writes: last row read to prompt"),
        ("empty", "empty: the whole statement"),
        ("emptied", "emptied, low = high > 0: the whole statement"),
        ("marker", "a transaction's marker: last row read to prompt"),
        ("aborted", "aborted records: last row read to prompt"),
        ("compacted", "compacted tail: last row read to prompt"),
        ("open", "an open transaction: last row read to prompt"),
    ] {
        run.runtime.block_on(rounds(&instance, &kafka, topic, what))?;
    }
    drop(open);
    run.runtime.block_on(expired(&instance, &kafka))?;
    run.runtime.block_on(broker_down(&instance, &kafka))?;
    run.runtime.block_on(instance.stop());
    Ok(())
}

fn rows(n: u64) -> impl Iterator<Item = String> {
    (0..n).map(|x| format!("{{\"x\":{x}}}"))
}

/// Makes the topics; the transaction stays open as long as it is held.
fn prepare(kafka: &KafkaServer) -> Transaction<'_> {
    for topic in ["idle", "empty", "emptied", "marker", "aborted", "open"] {
        kafka.create_topic(topic, 1, &[]);
        if topic != "empty" {
            kafka.produce_values(topic, 1, rows(ROWS));
        }
    }
    kafka.delete_records("emptied", 0, i64::try_from(ROWS).expect("small"));
    let mut committed = kafka.begin("marker", "marker");
    committed.write([Record::value("{\"x\":1}")]);
    committed.commit();
    let mut aborted = kafka.begin("aborted", "aborted");
    aborted.write((0..100).map(|_| Record::value("{\"x\":1}")));
    aborted.abort();
    kafka.create_topic("compacted", 1, KafkaServer::COMPACTED_SOON);
    kafka.produce_all("compacted", (0..COMPACTED).map(|_| Record::value("{\"x\":1}").key("k")));
    // Compaction leaves the newest segment alone: what is rolled behind it makes it look at the others.
    segue_testkit::wait::wait_for("compaction", Duration::from_secs(60), || {
        kafka.produce("compacted", Record::value("{\"x\":2}").key("other"));
        let visible = kafka.visible_offsets("compacted", 1)[&0].len();
        (visible < COMPACTED / 2).then_some(())
    });
    let mut last = kafka.begin("compacted", "compacted");
    last.write([Record::value("{\"x\":3}").key("k")]);
    last.abort();
    let mut open = kafka.begin("open", "open");
    open.write([Record::value("{\"x\":3}")]);
    open
}

async fn rounds(instance: &Instance, kafka: &KafkaServer, topic: &str, what: &str) -> Outcome {
    instance.run(&source(topic, "x BIGINT", &kafka.bootstrap())).await?;
    let mut samples = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let watch = Watch::start(&instance.engine);
        instance.run(&format!("{VIEW} {topic}")).await?;
        let returned = Instant::now();
        // Where no row comes the whole statement counts.
        let last = watch.stop().await?.unwrap_or(began);
        samples.push(returned.saturating_duration_since(last));
        instance.run("DROP MATERIALIZED VIEW v").await?;
    }
    times(what, &samples);
    instance.run(&format!("DROP SOURCE {topic}")).await
}

/// Looks when rows were read last.
struct Watch {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Option<Instant>>,
}

impl Watch {
    fn start(engine: &Engine) -> Watch {
        let (engine, stop) = (engine.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let (mut seen, mut at) = (0, None);
            while !stopped.load(Ordering::Relaxed) {
                let Ok(status) = engine.status().await else { break };
                let read = status.stages.iter().map(|stage| stage.rows).sum();
                if read > seen {
                    (seen, at) = (read, Some(Instant::now()));
                }
                tokio::time::sleep(WATCH_INTERVAL).await;
            }
            at
        });
        Watch { stop, task }
    }

    async fn stop(self) -> Result<Option<Instant>, tokio::task::JoinError> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await
    }
}

/// Everything expires while a view is held up before its first row.
async fn expired(instance: &Instance, kafka: &KafkaServer) -> Outcome {
    let mut samples = Vec::new();
    let mut succeeded = 0;
    for round in 0..ROUNDS {
        let topic = format!("expired_{round}");
        kafka.create_topic(&topic, 1, &[]);
        kafka.produce_values(&topic, 1, rows(ROWS));
        instance.run(&source(&topic, "x BIGINT", &kafka.bootstrap())).await?;
        instance.run(&format!("ALTER SOURCE {topic} SET source_rate_limit = 0")).await?;
        let joining = Instance { engine: instance.engine.clone() };
        let view = format!("{VIEW} {topic}");
        let created = tokio::spawn(async move { joining.run(&view).await.is_ok() });
        let engine = &instance.engine;
        while !engine.status().await.is_ok_and(|status| !status.splits.is_empty()) {
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
        kafka.delete_records(&topic, 0, i64::try_from(ROWS)?);
        let began = Instant::now();
        instance.run(&format!("ALTER SOURCE {topic} SET source_rate_limit = DEFAULT")).await?;
        let is_there = created.await?;
        samples.push(began.elapsed());
        succeeded += usize::from(is_there);
        instance.run(&format!("DROP SOURCE {topic} CASCADE")).await?;
    }
    times("all expired meanwhile: let go to prompt or error", &samples);
    println!(
        "    {succeeded} of {ROUNDS} had it fetched before; the others are told what has expired"
    );
    Ok(())
}

async fn broker_down(instance: &Instance, kafka: &KafkaServer) -> Outcome {
    instance.run(&source("idle", "x BIGINT", &kafka.bootstrap())).await?;
    kafka.stop();
    let (mut canceled, mut late) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (cancel, raised) = (CancellationToken::new(), CancellationToken::new());
        let began = Instant::now();
        let limit = Patience::Limited(PATIENCE);
        let ended = instance.run_with(&format!("{VIEW} idle"), limit, cancel).await;
        ended.err().ok_or("the broker is down")?;
        late.push(began.elapsed().saturating_sub(PATIENCE));
        let raise = raised.clone();
        let raised_at = tokio::spawn(async move {
            tokio::time::sleep(PATIENCE / 4).await;
            raise.cancel();
            Instant::now()
        });
        let ended = instance.run_with(&format!("{VIEW} idle"), Patience::Endless, raised).await;
        ended.err().ok_or("the broker is down")?;
        canceled.push(raised_at.await?.elapsed());
    }
    times("the broker is down: cancel to prompt", &canceled);
    times("the broker is down: end of patience to error", &late);
    Ok(())
}
