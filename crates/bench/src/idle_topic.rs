//! Blocking DDL on a topic that nobody writes to: how soon after the last row the prompt is back.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use segue_engine::Engine;
use segue_testkit::kafka::KafkaServer;

use crate::instance::{Instance, scratch};
use crate::kafka::source;
use crate::measure::times;
use crate::{Outcome, Run};

const ROWS: u64 = 10_000;
const ROUNDS: usize = 20;
const WATCH_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) fn bench(run: &Run) -> Outcome {
    let kafka = KafkaServer::start();
    kafka.create_topic("idle", 1, &[]);
    kafka.create_topic("empty", 1, &[]);
    kafka.produce_values("idle", 1, (0..ROWS).map(|x| format!("{{\"x\":{x}}}")));
    run.runtime.block_on(measure(&kafka))
}

async fn measure(kafka: &KafkaServer) -> Outcome {
    let home = scratch()?;
    times("speed of light: write 4 kB and sync it", &syncs(home.path())?);
    let instance = Instance::start(home.path(), &[]).await?;
    for topic in ["idle", "empty"] {
        instance.run(&source(topic, "x BIGINT", &kafka.bootstrap())).await?;
    }
    let (mut after_last, mut whole, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let watching = tokio::spawn(last_row_read(instance.engine.clone()));
        instance.run("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM idle").await?;
        let returned = Instant::now();
        whole.push(returned - began);
        after_last.push(returned.saturating_duration_since(watching.await?));
        instance.run("DROP MATERIALIZED VIEW v").await?;

        let began = Instant::now();
        instance.run("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM empty").await?;
        empty.push(began.elapsed());
        instance.run("DROP MATERIALIZED VIEW v").await?;
    }
    times(&format!("{ROWS} rows: last row read to prompt"), &after_last);
    times(&format!("{ROWS} rows: the whole statement"), &whole);
    times("an empty topic: the whole statement", &empty);
    instance.stop().await;
    Ok(())
}

/// When a step was first seen to have read all rows.
async fn last_row_read(engine: Engine) -> Instant {
    loop {
        let status = engine.status().await.expect("the engine runs");
        if status.stages.iter().any(|stage| stage.rows == ROWS) {
            return Instant::now();
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

fn syncs(folder: &Path) -> std::io::Result<Vec<Duration>> {
    let mut file = File::create(folder.join("speed-of-light"))?;
    let mut sync = || {
        let began = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        Ok(began.elapsed())
    };
    (0..50).map(|_| sync()).collect()
}
