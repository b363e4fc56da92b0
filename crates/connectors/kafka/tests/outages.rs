//! A broker that goes away: reads go on where they were, and nothing hangs meanwhile.

mod common;

use std::time::{Duration, Instant};

use common::{at, config, in_time, open, pin, rows, split, until, until_error};
use segue_connect::ConnectError;
use segue_testkit::kafka::KafkaServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_on_where_it_was_after_the_broker_was_away() {
    let server = KafkaServer::start();
    server.create_topic("t", 1, &[]);
    server.produce_values("t", 1, rows(0..100));
    let config = config(&server, "t");
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut partition = reader.read(&split(0), &at(0), None).await.unwrap();
    let mut ids = until(&mut partition, |read| read.ids.len() == 100).await.ids;
    for (stop, range) in [(true, 100..200), (false, 200..300)] {
        if stop {
            server.stop()
        } else {
            server.kill()
        }
        server.start_again();
        server.produce_values("t", 1, rows(range));
        // The outage may have lasted long enough to be reported; then the reader asks again.
        let wanted = ids.len() + 100;
        while ids.len() < wanted {
            let next = i64::try_from(ids.len()).unwrap();
            match in_time("a delivery", partition.next()).await {
                Ok(event) => ids.extend(common::ids_of(event)),
                Err(error) => {
                    assert!(error.is_transient(), "{error}");
                    partition = reader.read(&split(0), &at(next), None).await.unwrap();
                }
            }
        }
    }
    assert_eq!(ids, (0..300).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_stays_away_is_reported_and_delays_nobody() {
    let server = KafkaServer::start();
    server.create_topic("t", 2, &[]);
    server.produce_values("t", 2, rows(0..100));
    let config = config(&server, "t");
    let definition = pin(&config).await.unwrap();
    let reader = open(&config, &definition).await;
    let mut partition = reader.read(&split(0), &at(0), None).await.unwrap();
    let mut other = reader.read(&split(1), &at(0), None).await.unwrap();
    until(&mut partition, |read| read.ids.len() == 50).await;
    until(&mut other, |read| read.ids.len() == 50).await;
    server.kill();
    let (_, error) = until_error(&mut partition).await;
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let error = pin(&config).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let start = Instant::now();
    drop((partition, other, reader));
    assert!(start.elapsed() < Duration::from_millis(200), "dropping took {:?}", start.elapsed());
}
