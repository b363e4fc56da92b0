//! Nothing stays behind in a broker when a source is dropped, or never came to be: subscriptions of Pulsar, what a group
//! has committed in Kafka, consumers of NATS; also when the broker is down at that moment, and across `kill -9`.

mod support;

use std::time::Duration;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::nats::{NatsServer, Publish};
use segue_testkit::pulsar::{Batching, PulsarServer};
use segue_testkit::wait::{wait_for, wait_for_async};
use serde_json::{Value, json};
use support::{DEADLINE, append, rows, segue};
use tokio_postgres::Client;

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

async fn expect_count(client: &Client, n: u64) {
    wait_for_async(&format!("{n} rows"), DEADLINE, async || {
        (rows(client, "SELECT n FROM v").await == [[n.to_string()]]).then_some(())
    })
    .await;
}

fn subscriptions(pulsar: &PulsarServer, topic: &str) -> Option<Vec<String>> {
    let path = format!("persistent/public/default/{topic}/subscriptions");
    let answer = pulsar.admin_if_ready("GET", &path, &Value::Null)?;
    let names: Value = serde_json::from_str(&answer).expect("JSON");
    let names = names.as_array().expect("a list").iter().filter_map(Value::as_str);
    // Readers without a durable subscription come and go.
    Some(names.filter(|name| !name.starts_with("segue-")).map(str::to_owned).collect())
}

fn expect_subscriptions(pulsar: &PulsarServer, topic: &str, expected: &[&str]) {
    wait_for(&format!("subscriptions {expected:?} of {topic}"), DEADLINE, || {
        (subscriptions(pulsar, topic)? == expected).then_some(())
    });
}

const VIEW: &str = "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_goes_with_its_source_even_if_the_broker_is_down_then() {
    let pulsar = PulsarServer::start();
    pulsar.create_topic("t", 2);
    let partitions = ["t-partition-0", "t-partition-1"];
    let produce = |n: i64| {
        let values = (0..n).map(|x| format!("{{\"x\":{x}}}"));
        pulsar.produce(partitions[0], values, Batching::Single);
    };
    produce(3);
    let mut segue = segue();
    let client = segue.connect().await;
    let source = |name: &str, rest: &str| {
        format!(
            "CREATE SOURCE {name} (x BIGINT) WITH (connector = 'pulsar', service.url = '{}', topic = 't', \
             subscription.name = 'mine') FORMAT PLAIN ENCODE JSON {rest}",
            pulsar.url()
        )
    };
    run(&client, &source("s", "")).await;
    run(&client, VIEW).await;
    expect_count(&client, 3).await;
    for partition in partitions {
        expect_subscriptions(&pulsar, partition, &["mine"]);
    }
    run(&client, "DROP SOURCE s CASCADE").await;
    for partition in partitions {
        expect_subscriptions(&pulsar, partition, &[]);
    }

    // What it has for itself, no other source may have, not even for a moment.
    run(&client, &source("s", "")).await;
    let shared = client.batch_execute(&source("other", "")).await.expect_err("it is taken");
    let shared = shared.as_db_error().expect("the server says so");
    assert_eq!(shared.code().code(), "55006");
    assert!(shared.message().contains("belongs to source \"s\""), "{shared:?}");
    run(&client, "DROP SOURCE s").await;

    // The server dies when the subscription is there and the source is not: its next start removes it.
    segue.kill();
    segue.set_failpoints("after-pin=1*return");
    segue.start_again();
    segue.set_failpoints("");
    let client = segue.connect().await;
    client.batch_execute(&source("s", "")).await.expect_err("the server dies");
    segue.wait_for_crash();
    for partition in partitions {
        expect_subscriptions(&pulsar, partition, &["mine"]);
    }
    segue.start_again();
    let client = segue.connect().await;
    assert_eq!(rows(&client, "SHOW SOURCES").await.len(), 0);
    for partition in partitions {
        expect_subscriptions(&pulsar, partition, &[]);
    }

    // Made again at once: the removal does not take what is new.
    for _ in 0..5 {
        run(&client, &source("s", "")).await;
        run(&client, "DROP SOURCE s").await;
    }
    run(&client, &source("s", "")).await;
    run(&client, VIEW).await;
    expect_count(&client, 3).await;
    produce(2);
    expect_count(&client, 5).await;
    expect_subscriptions(&pulsar, partitions[0], &["mine"]);

    // A source that does not come to be leaves nothing: its other stage is not there.
    pulsar.create_topic("u", 0);
    let failing = format!(
        "CREATE SOURCE f (x BIGINT) WITH STAGES (\
         history WITH (connector = 'postgres', url = 'postgres://app@127.0.0.1:1/db', query = 'SELECT 1 AS x'), \
         live WITH (connector = 'pulsar', service.url = '{}', topic = 'u', subscription.name = 'mine') \
         FORMAT PLAIN ENCODE JSON START AT EARLIEST ALLOW OVERLAP)",
        pulsar.url()
    );
    client.batch_execute(&failing).await.expect_err("there is no such database");
    expect_subscriptions(&pulsar, "u", &[]);

    // Dropped while the broker is down, and the server dies before the broker is back.
    pulsar.kill();
    run(&client, "DROP SOURCE s CASCADE").await;
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    assert_eq!(rows(&client, "SHOW SOURCES").await.len(), 0);
    pulsar.start_again();
    for partition in partitions {
        expect_subscriptions(&pulsar, partition, &[]);
    }
    // What was to be removed is forgotten, durably: the same name is somebody else's from here on.
    let path = format!("persistent/public/default/{}/subscription/mine", partitions[0]);
    pulsar.admin("PUT", &path, &Value::Null);
    segue.stop();
    segue.start_again();
    let client = segue.connect().await;
    run(&client, "FLUSH").await;
    expect_subscriptions(&pulsar, partitions[0], &["mine"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_group_has_committed_goes_with_its_source_and_nothing_of_other_topics() {
    let kafka = KafkaServer::start();
    for topic in ["a", "b"] {
        kafka.create_topic(topic, 1, &[]);
        append(&kafka, topic, 0, &["{\"x\":1}", "{\"x\":2}"]);
    }
    let segue = segue();
    let client = segue.connect().await;
    for topic in ["a", "b"] {
        let source = format!(
            "CREATE SOURCE {topic} (x BIGINT) WITH (connector = 'kafka', topic = '{topic}', \
             properties.bootstrap.server = '{}', properties.group.id = 'mine') FORMAT PLAIN ENCODE JSON",
            kafka.bootstrap()
        );
        run(&client, &source).await;
        run(
            &client,
            &format!("CREATE MATERIALIZED VIEW {topic}_n AS SELECT count(*) FROM {topic}"),
        )
        .await;
    }
    let committed = |topic: &str, expected: Option<i64>| {
        wait_for(&format!("{expected:?} of {topic}"), Duration::from_secs(60), || {
            (kafka.committed_offset("mine", topic, 0) == expected).then_some(())
        });
    };
    committed("a", Some(2));
    committed("b", Some(2));
    run(&client, "DROP SOURCE a CASCADE").await;
    committed("a", None);
    committed("b", Some(2));
    run(&client, "DROP SOURCE b CASCADE").await;
    committed("b", None);
    wait_for("the group to go", DEADLINE, || {
        (!kafka.groups().contains(&"mine".to_owned())).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_nats_has_no_consumer_when_its_source_is_dropped() {
    let nats = NatsServer::start();
    let streams = nats.client().await;
    streams.create_stream("t", &["t"], json!({})).await;
    let payload = "{\"x\":1}".to_owned();
    streams.publish_all([Publish { subject: "t", payload, headers: &[] }]).await;
    let segue = segue();
    let client = segue.connect().await;
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH (connector = 'nats', server_url = '{}', subject = 't') \
         FORMAT PLAIN ENCODE JSON",
        nats.url()
    );
    run(&client, &source).await;
    run(&client, VIEW).await;
    expect_count(&client, 1).await;
    assert_ne!(streams.consumers("t").await, 0);
    run(&client, "DROP SOURCE s CASCADE").await;
    wait_for_async("its consumers to go", Duration::from_secs(20), async || {
        (streams.consumers("t").await == 0).then_some(())
    })
    .await;
}
