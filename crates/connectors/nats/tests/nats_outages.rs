//! A server that goes away: reads go on where they were, and nothing hangs meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{Stream, at, config_at, in_time, open, pin, split, until, until_error};
use segue_connect::{ConnectError, ReadConfig, SplitReader, StageReader};
use segue_testkit::nats::NatsServer;
use segue_testkit::proxy::Proxy;
use serde_json::json;

async fn stream(server: &NatsServer) -> Stream {
    let client = server.client().await;
    client.create_stream("S", &["S.>"], json!({})).await;
    Stream { name: "S".to_owned(), client }
}

/// Reads until `wanted` ids are there, as the engine would: asks again after an error that may pass.
async fn read_on(
    reader: &dyn StageReader,
    reading: &mut Box<dyn SplitReader>,
    ids: &mut Vec<i64>,
    wanted: usize,
) {
    let mut next = u64::try_from(ids.len()).unwrap() + 1;
    while ids.len() < wanted {
        match in_time("a delivery", reading.next()).await {
            Ok(event) => {
                let mut collected = common::Collected::default();
                collected.add(event);
                ids.extend(collected.ids);
                next = collected.next.unwrap_or(next);
            }
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                *reading = reader.read(&split(), &at(next), None).await.unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_on_where_it_was_after_the_server_was_away() {
    let server = NatsServer::start();
    let stream = stream(&server).await;
    stream.publish(0..100).await;
    let config = config_at(&server.url(), &stream);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
    let mut ids = until(&mut reading, |read| read.ids.len() == 100).await.ids;
    for from in [100, 200] {
        server.kill();
        server.start_again();
        let client = server.client().await;
        Stream { name: "S".to_owned(), client }.publish(from..from + 100).await;
        let wanted = ids.len() + 100;
        read_on(reader.as_ref(), &mut reading, &mut ids, wanted).await;
    }
    assert_eq!(ids, (0..300).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_a_cut_connection_swallowed_are_read_again() {
    let server = NatsServer::start();
    let stream = stream(&server).await;
    stream.publish(0..20_000).await;
    let proxy = Proxy::start(server.port()).await;
    let url = format!("nats://127.0.0.1:{}", proxy.port());
    let config: ReadConfig = config_at(&url, &stream);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
    let mut ids = Vec::new();
    for wanted in [2_000, 9_000, 15_000, 20_000] {
        proxy.sever();
        read_on(reader.as_ref(), &mut reading, &mut ids, wanted).await;
    }
    assert_eq!(ids, (0..20_000).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_reported_and_delays_nobody() {
    let server = NatsServer::start();
    let stream = stream(&server).await;
    stream.publish(0..50).await;
    let config = config_at(&server.url(), &stream);
    let reader = open(&config, &pin(&config).await.unwrap()).await;
    let mut reading = reader.read(&split(), &at(1), None).await.unwrap();
    until(&mut reading, |read| read.ids.len() == 50).await;
    server.kill();
    let (_, error) = until_error(&mut reading).await;
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let error = pin(&config).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let start = Instant::now();
    drop((reading, reader));
    assert!(start.elapsed() < Duration::from_millis(200), "dropping took {:?}", start.elapsed());
}
