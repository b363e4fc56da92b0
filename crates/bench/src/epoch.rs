//! What an epoch costs when 100,000 of 1 M groups have changed: the pause of the step loop, and the commit.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::encoded::Feed;
use crate::instance::{Instance, scratch};
use crate::measure::{load, times};
use crate::views::epochs;
use crate::workload::{CUSTOMERS, Q2, one_order_each};
use crate::{Outcome, Run};

const DIRTY: u64 = 100_000;
const ROUNDS: u64 = 40;

pub(crate) const SOURCE: &str = "CREATE SOURCE orders (customer BIGINT, amount DOUBLE PRECISION, \
     quantity INTEGER) WITH (connector = 'encoded', feed = 'orders') FORMAT PLAIN ENCODE JSON";

pub(crate) fn bench(run: &Run) -> Outcome {
    run.runtime.block_on(measure())
}

async fn measure() -> Outcome {
    let steps = CUSTOMERS / DIRTY + ROUNDS;
    let mut lines = Vec::new();
    let mut ends = Vec::new();
    for step in 0..steps {
        lines.extend(one_order_each(step * DIRTY, DIRTY));
        ends.push(lines.len());
    }
    let batch_rows = usize::try_from(DIRTY).expect("small");
    let feed = Feed::log(lines, batch_rows, 0);
    let home = scratch()?;
    let instance = Instance::start(home.path(), &[("orders", &feed)]).await?;
    instance.run(SOURCE).await?;
    instance.run(&format!("CREATE MATERIALIZED VIEW v AS {Q2}")).await?;
    for end in ends {
        let epoch = instance.engine.published().epoch;
        feed.release(end);
        while instance.engine.published().epoch == epoch {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        instance.run("FLUSH").await?;
    }
    let checkpoints = instance.checkpoints().await?;
    let changed: Vec<_> = checkpoints.into_iter().filter(|epoch| epoch.rows > 0).collect();
    let measured = &changed[changed.len().saturating_sub(usize::try_from(ROUNDS)?)..];
    println!("{CUSTOMERS} groups, {DIRTY} of them dirty in each epoch (load {})", load());
    let bytes = measured.iter().map(|epoch| epoch.bytes).max().unwrap_or(0);
    times("speed of light: write as much to a file and sync it", &syncs(home.path(), bytes)?);
    epochs(measured);
    instance.stop().await;
    Ok(())
}

/// How long it takes to write `bytes` and to sync them.
fn syncs(folder: &Path, bytes: u64) -> std::io::Result<Vec<Duration>> {
    let content = vec![7; usize::try_from(bytes).expect("an epoch fits in memory")];
    let mut file = File::create(folder.join("speed-of-light"))?;
    let mut sync = || {
        let began = Instant::now();
        file.write_all(&content)?;
        file.sync_data()?;
        Ok(began.elapsed())
    };
    (0..10).map(|_| sync()).collect()
}
