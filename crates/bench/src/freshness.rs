//! How soon a row is durable and visible, while rows come at half the rate that the engine can take.
//!
//! A *marker* is an order of a customer of its own behind each [`TICK_ROWS`] orders: when it can be looked up, so can
//! everything that came before it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use segue_engine::Engine;

use crate::encoded::{BATCH_ROWS, Feed};
use crate::instance::{Instance, scratch};
use crate::measure::times;
use crate::workload::{COLUMNS, CUSTOMERS, Orders, Q2};
use crate::{Outcome, Run};

const ROWS_MAX: usize = 2_000_000;
const TICK_ROWS: usize = 1000;
/// How long a marker may take to be seen.
const DEADLINE: Duration = Duration::from_secs(120);
const WATCH_INTERVAL: Duration = Duration::from_micros(200);

pub(crate) fn bench(run: &Run) -> Outcome {
    let ticks = Ticks::of(&Orders::generate(run.rows.min(ROWS_MAX)));
    run.runtime.block_on(measure(ticks))
}

/// The feed's bytes, and where the marker of each tick ends.
struct Ticks {
    lines: Vec<u8>,
    ends: Vec<usize>,
}

impl Ticks {
    fn of(orders: &Orders) -> Ticks {
        let mut ticks = Ticks { lines: Vec::with_capacity(orders.lines.len()), ends: Vec::new() };
        for (place, record) in orders.records().enumerate() {
            ticks.lines.extend_from_slice(record);
            ticks.lines.push(b'\n');
            if (place + 1) % TICK_ROWS == 0 {
                let marker = marker(ticks.ends.len());
                let order = format!("{{\"customer\":{marker},\"amount\":1.5,\"quantity\":1}}\n");
                ticks.lines.extend_from_slice(order.as_bytes());
                ticks.ends.push(ticks.lines.len());
            }
        }
        ticks.lines.truncate(ticks.ends.last().copied().unwrap_or_default());
        ticks
    }
}

/// The customer of the marker of a tick.
fn marker(tick: usize) -> i64 {
    i64::try_from(CUSTOMERS).expect("small") + i64::try_from(tick).expect("small")
}

async fn measure(Ticks { lines, ends }: Ticks) -> Outcome {
    let feed = Feed::log(lines, BATCH_ROWS, 0);
    let home = scratch()?;
    let instance = Instance::start(home.path(), &[("orders", &feed)]).await?;
    let source = format!(
        "CREATE SOURCE orders ({COLUMNS}) WITH (connector = 'encoded', feed = 'orders') \
         FORMAT PLAIN ENCODE JSON"
    );
    instance.run(&source).await?;
    instance.run(&format!("CREATE MATERIALIZED VIEW v AS {Q2}")).await?;
    let first = ends.len() / 2;
    let began = Instant::now();
    feed.release(ends[first - 1]);
    wait_for(&instance.engine, first - 1);
    let full = began.elapsed() / u32::try_from(first)?;
    println!(
        "all at once: {:.2} M rows/s; then {} ticks of {TICK_ROWS} rows at half of that",
        TICK_ROWS as f64 / full.as_secs_f64() / 1e6,
        ends.len() - first,
    );
    let samples = at_half_load(&instance.engine, &feed, &ends, first, full * 2)?;
    times("row arrives to durable and visible", &samples);
    instance.stop().await;
    Ok(())
}

/// Releases a tick after each `pause`, whatever becomes of those before, and says how long each took.
fn at_half_load(
    engine: &Engine,
    feed: &Feed,
    ends: &[usize],
    first: usize,
    pause: Duration,
) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let due = |tick: usize| began + pause * u32::try_from(tick - first).expect("few");
    let (watching, ticks) = (engine.clone(), first..ends.len());
    let watcher = std::thread::spawn(move || {
        ticks.map(|tick| wait_for(&watching, tick)).collect::<Vec<Instant>>()
    });
    for (tick, end) in ends.iter().enumerate().skip(first) {
        wait_until(due(tick));
        feed.release(*end);
    }
    let seen = watcher.join().map_err(|_| "the watching thread panicked")?;
    // From when the tick was due: a late release is a wait too.
    let waited = |(place, seen): (usize, &Instant)| *seen - due(first + place);
    Ok(seen.iter().enumerate().map(waited).collect())
}

/// Waits until the marker of a tick can be looked up.
fn wait_for(engine: &Engine, tick: usize) -> Instant {
    let schema = Schema::new(vec![Field::new("customer", DataType::Int64, true)]);
    let key = Arc::new(Int64Array::from(vec![marker(tick)]));
    let key = RecordBatch::try_new(Arc::new(schema), vec![key]).expect("one column");
    let began = Instant::now();
    loop {
        let published = engine.published();
        let object = published.catalog.by_name("v").expect("the view is there");
        let found = published.relations[&object.id].lookup(&key).expect("the view has this key");
        if found.num_rows() > 0 {
            return Instant::now();
        }
        assert!(began.elapsed() < DEADLINE, "the marker of tick {tick} is not there");
        std::thread::park_timeout(WATCH_INTERVAL);
    }
}

/// The load is one of time: rows come when they are due.
fn wait_until(due: Instant) {
    while let Some(left) = due.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
}
