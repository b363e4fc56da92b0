//! A broker that goes away: reads go on where they were, and nothing hangs meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{at, config_of, in_time, open, pin, rows, split, starts, until, until_error};
use segue_connect::ConnectError;
use segue_testkit::pulsar::{Batching, PulsarServer};

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_on_where_it_was_after_the_broker_was_away_and_an_outage_is_reported() {
    let server = PulsarServer::start();
    server.create_topic("t", 0);
    server.produce("t", rows(0..100), Batching::Of(7));
    let config = config_of(&server, "t");
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    let start = at(&starts(&definition)[0]);
    let mut reading = reader.read(&split(0), &start, None).await.unwrap();
    let read = until(&mut reading, |read| read.ids.len() == 100).await;
    let (mut ids, mut next) = (read.ids, read.next.unwrap());
    server.kill();
    let (_, error) = until_error(&mut reading).await;
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let error = pin(&config).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    server.start_again();
    server.produce("t", rows(100..200), Batching::Of(7));
    while ids.len() < 200 {
        let opened = reader.read(&split(0), &at(&next), None).await;
        let mut reading = match opened {
            Ok(reading) => reading,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                continue;
            }
        };
        loop {
            match in_time("a delivery", reading.next()).await {
                Ok(event) => {
                    let mut collected = common::Collected::default();
                    collected.add(event);
                    ids.extend(collected.ids);
                    next = collected.next.unwrap_or(next);
                    if ids.len() >= 200 {
                        break;
                    }
                }
                Err(error) => {
                    assert!(error.is_transient(), "{error}");
                    break;
                }
            }
        }
    }
    assert_eq!(ids, (0..200).collect::<Vec<i64>>());
    let reading = reader.read(&split(0), &at(&next), None).await.unwrap();
    let start = Instant::now();
    drop((reading, reader));
    assert!(start.elapsed() < Duration::from_millis(200), "dropping took {:?}", start.elapsed());
}
