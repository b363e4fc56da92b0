//! The main job: 200,000 orders in PostgreSQL, a topic of 4 partitions that changes them all the while, an upsert
//! source, a grouped view. The result must equal a truth that was kept without Segue.

mod support;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::wait::wait_for_async;
use support::{DEADLINE, Orders, Writer, append, expect_sales, pipeline, rows, segue};

const PARTITIONS: u32 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_then_live_changes_give_the_truth() {
    let (postgres, kafka) = (PostgresServer::start(), KafkaServer::start());
    let mut truth = Orders::history(200_000);
    truth.write_to(&postgres, "orders").await;
    kafka.create_topic("orders", 4, &[]);
    let mut writer = Writer::new(1, 200_000, PARTITIONS.into());
    writer.change(&mut truth, &kafka, "orders", 5_000);

    let segue = segue();
    let client = segue.connect().await;
    let statements = pipeline(&postgres.url(), &kafka.bootstrap(), "orders", "orders", PARTITIONS);
    client.batch_execute(&statements[0]).await.expect("the source is created");
    // The topic changes while the view is filled.
    let create = {
        let client = segue.connect().await;
        let statement = statements[1].clone();
        tokio::spawn(async move { client.batch_execute(&statement).await })
    };
    while !create.is_finished() {
        writer.change(&mut truth, &kafka, "orders", 500);
        tokio::task::yield_now().await;
    }
    create.await.expect("not cancelled").expect("the view is created");
    for _ in 0..20 {
        writer.change(&mut truth, &kafka, "orders", 1_000);
    }
    expect_sales(&client, &truth).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_query_runs_once_and_the_database_may_go() {
    let (mut postgres, kafka) = (PostgresServer::start(), KafkaServer::start());
    let mut truth = Orders::history(20_000);
    truth.write_to(&postgres, "orders").await;
    kafka.create_topic("orders", 4, &[]);
    let mut segue = segue();
    let client = segue.connect().await;
    let statements = pipeline(&postgres.url(), &kafka.bootstrap(), "orders", "orders", PARTITIONS);
    client.batch_execute(&statements[0]).await.expect("the source is created");
    let copies = postgres.statements_matching("COPY (");
    assert_eq!(copies, 1, "one capture, one COPY");
    postgres.stop();

    client.batch_execute(&statements[1]).await.expect("the view reads the capture");
    segue.kill();
    segue.start_again();
    let client = segue.connect().await;
    // A second view, after the restart, without the database.
    client
        .batch_execute("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM orders")
        .await
        .expect("captured chunks serve every later view");
    assert_eq!(rows(&client, "SELECT n FROM n").await, [["20000"]]);
    let mut writer = Writer::new(2, 20_000, PARTITIONS.into());
    writer.change(&mut truth, &kafka, "orders", 2_000);
    expect_sales(&client, &truth).await;
    postgres.start_again();
    assert_eq!(postgres.statements_matching("COPY ("), copies, "the query was run again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_select_after_the_ddl_sees_everything_that_existed_before_it() {
    let kafka = KafkaServer::start();
    let segue = segue();
    let client = segue.connect().await;
    // What the topic holds, and how many of its records a reader may see.
    kafka.create_topic("idle", 2, &[]);
    append(&kafka, "idle", 0, &["{\"x\":1}", "{\"x\":2}"]);
    kafka.create_topic("empty", 2, &[]);
    kafka.create_topic("emptied", 1, &[]);
    append(&kafka, "emptied", 0, &["{\"x\":1}", "{\"x\":2}"]);
    kafka.delete_records("emptied", 0, 2);
    kafka.create_topic("marker", 1, &[]);
    let mut transaction = kafka.begin("marker", "t1");
    transaction.write([segue_testkit::kafka::Record::value("{\"x\":1}")]);
    transaction.commit();
    kafka.create_topic("aborted", 1, &[]);
    let mut transaction = kafka.begin("aborted", "t2");
    transaction.write([segue_testkit::kafka::Record::value("{\"x\":1}")]);
    transaction.abort();
    for (topic, expected) in
        [("idle", 2), ("empty", 0), ("emptied", 0), ("marker", 1), ("aborted", 0)]
    {
        let bootstrap = kafka.bootstrap();
        let source = format!(
            "CREATE SOURCE {topic} (x BIGINT) WITH (connector = 'kafka', \
             properties.bootstrap.server = '{bootstrap}', topic = '{topic}') FORMAT PLAIN ENCODE JSON"
        );
        client.batch_execute(&source).await.unwrap_or_else(|error| panic!("{topic}: {error:?}"));
        let view =
            format!("CREATE MATERIALIZED VIEW {topic}_n AS SELECT COUNT(*) AS n FROM {topic}");
        let created = tokio::time::timeout(DEADLINE, client.batch_execute(&view)).await;
        created.unwrap_or_else(|_| panic!("{topic}: blocked")).expect("the view is created");
        let counted = rows(&client, &format!("SELECT n FROM {topic}_n")).await;
        assert_eq!(counted, [[expected.to_string()]], "{topic}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_then_a_range_then_the_live_topic_count_exactly() {
    let kafka = KafkaServer::start();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let lines: Vec<String> = (0..1000).map(|x| format!("{{\"x\":{x}}}")).collect();
    std::fs::write(folder.path().join("a.ndjson"), lines[..600].join("\n")).expect("writable");
    std::fs::write(folder.path().join("b.ndjson"), lines[600..].join("\n") + "\n")
        .expect("writable");
    kafka.create_topic("log", 2, &[]);
    for partition in 0..2 {
        let values: Vec<String> =
            (0..500).map(|i| format!("{{\"x\":{}}}", 1000 + partition * 500 + i)).collect();
        append(&kafka, "log", partition, &values);
    }
    let mut segue = segue();
    let client = segue.connect().await;
    let (path, bootstrap) = (folder.path().display(), kafka.bootstrap());
    let kafka_options =
        format!("connector = 'kafka', properties.bootstrap.server = '{bootstrap}', topic = 'log'");
    let source = format!(
        "CREATE SOURCE s (x BIGINT) WITH STAGES (\
         old WITH (connector = 'files', path = '{path}', match_pattern = '*.ndjson') FORMAT PLAIN ENCODE JSON, \
         range WITH ({kafka_options}) FORMAT PLAIN ENCODE JSON \
           START AT OFFSETS '{{\"0\": 0, \"1\": 0}}' STOP AT LATEST, \
         live WITH ({kafka_options}) FORMAT PLAIN ENCODE JSON)"
    );
    client.batch_execute(&source).await.expect("the source is created");
    append(&kafka, "log", 1, &["{\"x\":2000}"]);
    client
        .batch_execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(x) AS s FROM s")
        .await
        .expect("the view is created");
    let sum = |last: i64| (0..=last).sum::<i64>().to_string();
    assert_eq!(rows(&client, "SELECT n, s FROM v").await, [["2001".to_owned(), sum(2000)]]);
    let continuity = "SELECT continuity FROM segue.stages ORDER BY position";
    assert_eq!(rows(&client, continuity).await, [["NULL"], ["declared"], ["exact"]]);

    segue.kill();
    append(&kafka, "log", 0, &["{\"x\":2001}"]);
    segue.start_again();
    let client = segue.connect().await;
    wait_for_async("the row of the meantime", DEADLINE, async || {
        let now = rows(&client, "SELECT n, s FROM v").await;
        (now == [["2002".to_owned(), sum(2001)]]).then_some(())
    })
    .await;
}
