//! Materialized views over encoded bytes: decoded, maintained, durable and visible, with epochs on.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray, Float64Array, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use segue_engine::CheckpointStatus;
use segue_formats::{JsonDecoder, JsonOptions};

use crate::encoded::{BATCH_ROWS, Feed};
use crate::instance::{Instance, scratch};
use crate::measure::{Spent, measure, rate, times};
use crate::workload::{
    COLUMNS, CUSTOMER_COLUMNS, CUSTOMERS, Orders, Q1, Q1_COLUMNS, Q2, Q2_COLUMNS, Q3, Q4, REGIONS,
    schema,
};
use crate::{Outcome, Run, decode, workload};

pub(crate) fn bench(run: &Run) -> Outcome {
    let mut orders = Orders::generate(run.rows);
    println!("{} orders", orders.rows);
    let light = measure(|| decode::decode(&orders, Q1_COLUMNS)).1;
    rate("speed of light of Q1: decode 5 of 8", orders.rows, light);
    let light = measure(|| bare_groups(&orders)).1;
    rate("speed of light of Q2: decode 3 of 8, a bare hash table", orders.rows, light);
    for (what, query, rows) in [("Q1", Q1, orders.q1_rows), ("Q2", Q2, orders.q2_rows)] {
        let feed = Feed::bounded(std::mem::take(&mut orders.lines));
        let measured = run.runtime.block_on(in_process(&feed, query, rows))?;
        rate(&format!("{what} ({rows} rows)"), orders.rows, measured.spent);
        epochs(&measured.checkpoints);
        let feed = Arc::into_inner(feed).ok_or("the engine has let go of the feed")?;
        orders.lines = feed.into_lines();
    }
    joins(run, &mut orders)
}

/// Q3 and Q4. What is counted is orders and customers.
fn joins(run: &Run, orders: &mut Orders) -> Outcome {
    for (what, query, rows) in [("Q3", Q3, orders.rows), ("Q4", Q4, REGIONS)] {
        let feed = Feed::bounded(std::mem::take(&mut orders.lines));
        let customers = Feed::bounded(workload::customers());
        let measured = run.runtime.block_on(joined(&feed, &customers, query, rows))?;
        let read = orders.rows + CUSTOMERS as usize;
        rate(&format!("{what} ({rows} rows), orders and customers"), read, measured.spent);
        epochs(&measured.checkpoints);
        let feed = Arc::into_inner(feed).ok_or("the engine has let go of the feed")?;
        orders.lines = feed.into_lines();
    }
    Ok(())
}

async fn joined(
    orders: &Arc<Feed>,
    customers: &Arc<Feed>,
    query: &str,
    rows: usize,
) -> Result<Measured, Box<dyn std::error::Error>> {
    let home = scratch()?;
    let feeds = [("orders", orders), ("customers", customers)];
    let instance = Instance::start(home.path(), &feeds).await?;
    for (name, columns) in [("orders", COLUMNS), ("customers", CUSTOMER_COLUMNS)] {
        instance
            .run(&format!(
                "CREATE SOURCE {name} ({columns}) WITH (connector = 'encoded', feed = '{name}') \
                 FORMAT PLAIN ENCODE JSON"
            ))
            .await?;
    }
    let measured = create_view(&instance, query, rows).await?;
    instance.stop().await;
    Ok(measured)
}

/// What a view took.
pub(crate) struct Measured {
    pub(crate) spent: Spent,
    pub(crate) checkpoints: Vec<CheckpointStatus>,
}

/// Creates the view over the whole feed; checks that it has `rows`.
pub(crate) async fn in_process(
    feed: &Arc<Feed>,
    query: &str,
    rows: usize,
) -> Result<Measured, Box<dyn std::error::Error>> {
    let home = scratch()?;
    let instance = Instance::start(home.path(), &[("orders", feed)]).await?;
    let source = format!(
        "CREATE SOURCE orders ({COLUMNS}) WITH (connector = 'encoded', feed = 'orders') \
         FORMAT PLAIN ENCODE JSON"
    );
    instance.run(&source).await?;
    let measured = create_view(&instance, query, rows).await?;
    instance.stop().await;
    Ok(measured)
}

/// Creates a view and measures until the statement returns; checks that it has `rows`.
pub(crate) async fn create_view(
    instance: &Instance,
    query: &str,
    rows: usize,
) -> Result<Measured, Box<dyn std::error::Error>> {
    let meter = crate::measure::Meter::start();
    instance.run(&format!("CREATE MATERIALIZED VIEW v AS {query}")).await?;
    let spent = meter.stop();
    assert_eq!(instance.visible_rows("v"), rows, "the view is right");
    Ok(Measured { spent, checkpoints: instance.checkpoints().await? })
}

/// What the epochs of a run cost.
pub(crate) fn epochs(checkpoints: &[CheckpointStatus]) {
    let with_rows: Vec<&CheckpointStatus> =
        checkpoints.iter().filter(|checkpoint| checkpoint.rows > 0).collect();
    let bytes: u64 = with_rows.iter().map(|checkpoint| checkpoint.bytes).sum();
    let rows: u64 = with_rows.iter().map(|checkpoint| checkpoint.rows).sum();
    println!(
        "    {} epochs of {} rows and {:.1} MB",
        with_rows.len(),
        rows / with_rows.len().max(1) as u64,
        bytes as f64 / 1e6 / with_rows.len().max(1) as f64,
    );
    let micros = |of: fn(&CheckpointStatus) -> u64| {
        with_rows.iter().map(|checkpoint| Duration::from_micros(of(checkpoint))).collect::<Vec<_>>()
    };
    times("    pause of the step loop", &micros(|checkpoint| checkpoint.pause_us));
    times("    commit", &micros(|checkpoint| checkpoint.commit_us));
}

/// Q2 without an engine: decoded batches into a hash table of sums.
fn bare_groups(orders: &Orders) {
    let mut decoder = JsonDecoder::new(schema(), Q2_COLUMNS, JsonOptions::default());
    let mut sums: HashMap<i64, (i64, f64, i64)> = HashMap::new();
    for record in orders.records() {
        decoder.decode(record).expect("the workload is well formed");
        if decoder.len() == BATCH_ROWS {
            add(&mut sums, &decoder.finish());
        }
    }
    add(&mut sums, &decoder.finish());
    assert_eq!(black_box(sums).len(), orders.q2_rows, "the groups are right");
}

fn add(sums: &mut HashMap<i64, (i64, f64, i64)>, batch: &RecordBatch) {
    let customers = batch.column(0).as_primitive::<Int64Type>().values();
    let amounts: &Float64Array = batch.column(1).as_primitive::<Float64Type>();
    let quantities = batch.column(2).as_primitive::<Int32Type>().values();
    for ((customer, amount), quantity) in customers.iter().zip(amounts.values()).zip(quantities) {
        let sum = sums.entry(*customer).or_default();
        sum.0 += 1;
        sum.1 += amount;
        sum.2 += i64::from(*quantity);
    }
}
