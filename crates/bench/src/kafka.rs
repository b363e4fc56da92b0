//! The same views through a Kafka broker on the same machine: what this process pays more for a row.

use segue_testkit::kafka::KafkaServer;

use crate::encoded::Feed;
use crate::instance::{Instance, scratch};
use crate::measure::{Spent, rate};
use crate::workload::{COLUMNS, Orders, Q1, Q2};
use crate::{Outcome, Run, views};

pub(crate) fn bench(run: &Run) -> Outcome {
    let orders = Orders::generate(run.external_rows);
    let kafka = KafkaServer::start();
    kafka.create_topic("orders", 1, &[]);
    kafka.produce_values("orders", 1, orders.records());
    println!("{} orders, one partition", orders.rows);
    let (rows, q1_rows, q2_rows) = (orders.rows, orders.q1_rows, orders.q2_rows);
    let feed = Feed::bounded(orders.lines);
    for (what, query, found) in [("Q1", Q1, q1_rows), ("Q2", Q2, q2_rows)] {
        let alone = run.runtime.block_on(views::in_process(&feed, query, found))?.spent;
        rate(&format!("speed of light: {what} from bytes of this process"), rows, alone);
        let through = run.runtime.block_on(through_kafka(&kafka, query, found))?;
        rate(&format!("{what} through Kafka"), rows, through);
        let more = through.cpu.as_secs_f64() / alone.cpu.as_secs_f64() - 1.0;
        println!("    {:.0} % more CPU a row", more * 100.0);
    }
    Ok(())
}

async fn through_kafka(
    kafka: &KafkaServer,
    query: &str,
    rows: usize,
) -> Result<Spent, Box<dyn std::error::Error>> {
    let home = scratch()?;
    let instance = Instance::start(home.path(), &[]).await?;
    instance.run(&source("orders", COLUMNS, &kafka.bootstrap())).await?;
    let spent = views::create_view(&instance, query, rows).await?.spent;
    instance.stop().await;
    Ok(spent)
}

/// A source over the whole topic that bears the source's name.
pub(crate) fn source(name: &str, columns: &str, bootstrap: &str) -> String {
    format!(
        "CREATE SOURCE {name} ({columns}) WITH (connector = 'kafka', \
         properties.bootstrap.server = '{bootstrap}', topic = '{name}') FORMAT PLAIN ENCODE JSON"
    )
}
