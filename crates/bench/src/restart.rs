//! From the start of the process's engine to the first new row, with 1 M groups to restore.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::encoded::{BATCH_ROWS, Feed};
use crate::epoch::SOURCE;
use crate::instance::{Instance, scratch};
use crate::measure::{millis, times};
use crate::workload::{CUSTOMERS, Q2, one_order_each};
use crate::{Outcome, Run};

const ROUNDS: usize = 5;
/// A customer whom nobody has seen.
const NEW: &str = "{\"customer\":-1,\"amount\":1.5,\"quantity\":1}\n";

pub(crate) fn bench(run: &Run) -> Outcome {
    let home = scratch()?;
    let groups = usize::try_from(CUSTOMERS)?;
    let old = one_order_each(0, CUSTOMERS);
    let end = old.len();
    let mut samples = Vec::new();
    for round in 0..=ROUNDS {
        // One new customer more in each round.
        let mut lines = old.clone();
        for new in 1..=round {
            lines.extend(NEW.replace("-1", &format!("-{new}")).bytes());
        }
        let feed = Feed::log(lines, BATCH_ROWS, if round == 0 { end } else { 0 });
        let began = Instant::now();
        feed.release(feed.len());
        let visible = run.runtime.block_on(async {
            let instance = Instance::start(home.path(), &[("orders", &feed)]).await?;
            if round == 0 {
                instance.run(SOURCE).await?;
                instance.run(&format!("CREATE MATERIALIZED VIEW v AS {Q2}")).await?;
            }
            let visible = instance.wait_for_rows("v", groups + round);
            instance.stop().await;
            Ok::<_, Box<dyn std::error::Error>>(visible)
        })?;
        if round > 0 {
            samples.push(visible - began);
        }
    }
    let (bytes, read) = read_all(home.path())?;
    println!(
        "{CUSTOMERS} groups, after an orderly end; the data folder has {:.1} MB",
        bytes as f64 / 1e6
    );
    println!(
        "{:<58} {:>8.3} ms",
        "speed of light: read the data folder, from the cache",
        millis(read)
    );
    times("start to the first new row durable and visible", &samples);
    Ok(())
}

/// Reads every file under `folder`.
fn read_all(folder: &Path) -> std::io::Result<(usize, Duration)> {
    let began = Instant::now();
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                bytes += std::fs::read(path)?.len();
            }
        }
    }
    Ok((bytes, began.elapsed()))
}
