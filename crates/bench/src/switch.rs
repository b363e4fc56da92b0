//! The change of stages: from the last bounded row durable to the first live row visible.

use std::time::Duration;

use segue_testkit::kafka::KafkaServer;

use crate::encoded::{BATCH_ROWS, Feed};
use crate::instance::{Instance, scratch, wait_for_rows};
use crate::measure::times;
use crate::{Outcome, Run};

const HISTORY: u64 = 200_000;
const LIVE: u64 = 1000;
const ROUNDS: usize = 20;

pub(crate) fn bench(run: &Run) -> Outcome {
    let kafka = KafkaServer::start();
    kafka.create_topic("live", 1, &[]);
    kafka.produce_values("live", 1, lines(HISTORY, LIVE).lines());
    let live = "connector = 'encoded', feed = 'live'";
    let samples = run.runtime.block_on(switches(live))?;
    times("to a live stage within this process", &samples);
    let bootstrap = kafka.bootstrap();
    let live =
        format!("connector = 'kafka', properties.bootstrap.server = '{bootstrap}', topic = 'live'");
    let samples = run.runtime.block_on(switches(&live))?;
    times("to a Kafka topic that has rows", &samples);
    Ok(())
}

async fn switches(live: &str) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let history = Feed::bounded(lines(0, HISTORY).into_bytes());
    let waiting = lines(HISTORY, LIVE).into_bytes();
    let end = waiting.len();
    let log = Feed::log(waiting, BATCH_ROWS, end);
    let home = scratch()?;
    let instance = Instance::start(home.path(), &[("history", &history), ("live", &log)]).await?;
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH STAGES (\
         history WITH (connector = 'encoded', feed = 'history') FORMAT PLAIN ENCODE JSON, \
         live WITH ({live}) FORMAT PLAIN ENCODE JSON START AT OFFSETS '{{\"0\": 0}}')"
    );
    instance.run(&source).await?;
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        let view = format!("v{round}");
        let (engine, watched) = (instance.engine.clone(), view.clone());
        let watching = std::thread::spawn(move || {
            let bounded = usize::try_from(HISTORY).expect("small");
            let last_bounded = wait_for_rows(&engine, &watched, bounded);
            wait_for_rows(&engine, &watched, bounded + 1) - last_bounded
        });
        instance.run(&format!("CREATE MATERIALIZED VIEW {view} AS SELECT x FROM s")).await?;
        samples.push(watching.join().map_err(|_| "the watching thread panicked")?);
        instance.run(&format!("DROP MATERIALIZED VIEW {view}")).await?;
    }
    instance.stop().await;
    Ok(samples)
}

fn lines(first: u64, n: u64) -> String {
    (first..first + n).map(|x| format!("{{\"x\":{x}}}\n")).collect()
}
