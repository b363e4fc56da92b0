//! Nexmark end to end: people, auctions and bids as JSON in memory, to views that are durable and visible. Beside each
//! figure stand those that others have published of other machines.

mod events;
mod truth;

use std::sync::Arc;

use segue_testkit::nexmark::QUERIES;

use crate::encoded::Feed;
use crate::instance::{Instance, scratch};
use crate::measure::{Meter, Spent, rate};
use crate::{Outcome, Run};
use events::{Events, STREAMS};

/// How many events there are at most.
const EVENTS_MAX: usize = 2_000_000;

/// Thousands of events a second and core: RisingWave's nightly run of March 2023 (Kafka in, 8 virtual cores), Flink
/// 1.13 (the Nexmark page), Feldera's SQL (its benchmark page, 16 workers). Generated in the process by the latter
/// two, without any decoding; all count the events of the three streams together.
const PUBLISHED: &[(&str, [&str; 3])] = &[
    ("q0", ["118", "155", "436"]),
    ("q1", ["", "", ""]),
    ("q2", ["127", "175", "422"]),
    ("q3", ["97", "152", "413"]),
    ("q4", ["13.9", "34", "265"]),
    ("q5", ["", "", ""]),
    ("q7", ["", "", ""]),
    ("q8", ["", "", ""]),
    ("q9", ["8.2", "14", "57"]),
    ("q17", ["17.3", "117", "242"]),
    ("q18", ["9.8", "54", "85"]),
    ("q20", ["12.7", "19", "85"]),
];

pub(crate) fn bench(run: &Run) -> Outcome {
    let events = Events::generate(run.rows.min(EVENTS_MAX));
    println!("{} events, of which each query reads its streams", events.count());
    println!(
        "published beside it, other machines: RisingWave / Flink / Feldera, thousands a core-second"
    );
    for (name, published) in PUBLISHED {
        let found = QUERIES.iter().find(|(known, _)| known == name);
        let (_, query) = found.ok_or_else(|| format!("there is no {name}"))?;
        let streams = STREAMS.iter().filter(|stream| reads(query, stream.name));
        let streams = streams.collect::<Vec<_>>();
        let rows = streams.iter().map(|stream| events.rows(stream.name)).sum();
        let expected = truth::rows(name, &events);
        let spent = run.runtime.block_on(view(&events, &streams, query, expected))?;
        let shown = published.map(|figure| if figure.is_empty() { "-" } else { figure });
        rate(&format!("{name} ({expected} rows), published {}", shown.join(" / ")), rows, spent);
    }
    Ok(())
}

fn reads(query: &str, stream: &str) -> bool {
    query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == stream)
}

/// Creates the view over all events; checks that it has as many rows as expected.
async fn view(
    events: &Events,
    streams: &[&events::Stream],
    query: &str,
    expected: usize,
) -> Result<Spent, Box<dyn std::error::Error>> {
    let home = scratch()?;
    let feeds =
        streams.iter().map(|stream| (stream.name, Feed::bounded(events.lines(stream.name))));
    let feeds = feeds.collect::<Vec<_>>();
    let named = feeds.iter().map(|(name, feed)| (*name, feed)).collect::<Vec<(_, &Arc<Feed>)>>();
    let instance = Instance::start(home.path(), &named).await?;
    for stream in streams {
        let (name, columns) = (stream.name, stream.columns);
        let create = format!(
            "CREATE SOURCE {name} ({columns}) WITH (connector = 'encoded', feed = '{name}') \
             FORMAT PLAIN ENCODE JSON"
        );
        instance.run(&create).await?;
    }
    let meter = Meter::start();
    instance.run(&format!("CREATE MATERIALIZED VIEW v AS {query}")).await?;
    let spent = meter.stop();
    assert_eq!(instance.visible_rows("v"), expected, "the view is right: {query}");
    instance.stop().await;
    Ok(spent)
}
