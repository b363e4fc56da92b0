//! What a scraper sees: every line is well formed, and the numbers are those of what the server has done.

mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::ports::free_port;
use segue_testkit::segue::Segue;
use segue_testkit::wait::wait_for;
use support::{DEADLINE, append, rows, segue};

static KAFKA: LazyLock<KafkaServer> = LazyLock::new(KafkaServer::start);

/// A server that is measured, and where.
fn measured() -> (Segue, u16) {
    let port = free_port();
    let mut segue = segue();
    segue.set("SEGUE_METRICS_LISTEN", &format!("127.0.0.1:{port}"));
    segue.stop();
    segue.start_again();
    (segue, port)
}

fn get(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    stream.write_all(request.as_bytes()).expect("the request is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is text");
    answer
}

/// The samples of a page by name and labels.
fn scrape(port: u16) -> BTreeMap<String, f64> {
    let answer = get(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let mut samples = BTreeMap::new();
    let mut families = Vec::new();
    for line in body.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').expect("a kind");
            assert!(["counter", "gauge", "summary"].contains(&kind), "{line}");
            assert!(!families.contains(&name), "{name} is described twice");
            families.push(name);
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').expect("a value");
            let family = families.last().expect("a family comes before its samples");
            assert!(sample.starts_with(family), "{line} is not of {family}");
            let value = value.parse().unwrap_or_else(|_| panic!("{line} has no number"));
            assert!(samples.insert(sample.to_owned(), value).is_none(), "{line} comes twice");
        }
    }
    samples
}

/// The sum of a family's samples whose labels contain all of these.
fn sum(samples: &BTreeMap<String, f64>, family: &str, labels: &[&str]) -> f64 {
    let of_family = samples.iter().filter(|(sample, _)| {
        sample.split('{').next() == Some(family)
            && labels.iter().all(|label| sample.contains(label))
    });
    of_family.map(|(_, value)| value).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scraper_sees_what_sources_epochs_and_clients_do() {
    let (segue, port) = measured();
    let client = segue.connect().await;
    KAFKA.create_topic("measured", 2, &[]);
    append(&KAFKA, "measured", 0, &["{\"x\":1}", "not json", "{\"x\":2}"]);
    let source = format!(
        "CREATE SOURCE s (x int) WITH (connector = 'kafka', properties.bootstrap.server = '{}', \
         topic = 'measured') FORMAT PLAIN ENCODE JSON; \
         CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s",
        KAFKA.bootstrap()
    );
    client.batch_execute(&source).await.expect("created");
    client.batch_execute("SELECT nothing").await.expect_err("there is no such column");

    let of_s = ["source=\"s\"", "connector=\"kafka\""];
    let samples = scrape(port);
    assert!(
        (sum(&samples, "segue_stage_rows_total", &of_s) - 2.0).abs() < f64::EPSILON,
        "{samples:#?}"
    );
    assert!((sum(&samples, "segue_stage_rejected_total", &of_s) - 1.0).abs() < f64::EPSILON);
    assert!(sum(&samples, "segue_stage_lag_rows", &of_s).abs() < f64::EPSILON);
    assert!(sum(&samples, "segue_stage_lag_seconds", &of_s).abs() < f64::EPSILON);
    assert!(sum(&samples, "segue_split_lag_seconds", &of_s).abs() < f64::EPSILON);
    assert!(samples.keys().any(|sample| sample.starts_with("segue_split_lag_seconds{")));
    assert!(
        samples.keys().any(|sample| sample.starts_with("segue_stage_lag_rows{")),
        "{samples:#?}"
    );
    assert!((sum(&samples, "segue_objects", &["materialized view"]) - 1.0).abs() < f64::EPSILON);
    assert!((samples["segue_sessions"] - 1.0).abs() < f64::EPSILON);
    assert!(samples["segue_statement_errors_total"] >= 1.0);
    assert!(samples["segue_statements_total"] >= 3.0);
    assert!(samples["segue_epoch"] >= 1.0);
    assert!(samples["segue_epoch_commit_seconds_count"] >= 1.0);
    assert!(samples["process_resident_memory_bytes"] > 1e6);
    assert!(sum(&samples, "segue_state_rows", &["object=\"v\""]) >= 1.0);

    // Held back by a pause, what comes is a lag; it is gone when the reading goes on.
    client.batch_execute("PAUSE SOURCE s").await.expect("paused");
    append(&KAFKA, "measured", 1, &["{\"x\":3}", "{\"x\":4}", "{\"x\":5}"]);
    client.batch_execute("RESUME SOURCE s").await.expect("resumed");
    wait_for("the rows to be read", DEADLINE, || {
        let samples = scrape(port);
        let read = sum(&samples, "segue_stage_rows_total", &of_s);
        let lag = sum(&samples, "segue_stage_lag_rows", &of_s);
        (read > 4.5 && lag.abs() < f64::EPSILON).then_some(())
    });
    let rate = rows(&client, "SELECT rows_per_second > 0, stalled FROM segue.stages").await;
    assert_eq!(rate, [["t", "NULL"]]);
}

#[test]
fn what_is_not_a_scrape_is_told_so() {
    let (mut segue, port) = measured();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
        ("nonsense\r\n\r\n", "405"),
    ] {
        let answer = get(port, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    assert!(segue.stop().success(), "a scraper does not hold up the end");
}
