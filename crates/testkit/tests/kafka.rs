//! The broker of the testkit: it keeps its data over a stop and a kill, and its helpers do what they say.

use std::time::Duration;

use segue_testkit::kafka::{Isolation, KafkaServer, Record};
use segue_testkit::wait::wait_for;

#[test]
fn a_broker_keeps_its_data_over_a_stop_and_a_kill() {
    let server = KafkaServer::start();
    server.create_topic("t", 2, &[]);
    server.produce_values("t", 2, (0..10_000).map(|n| n.to_string()));
    server.stop();
    server.start_again();
    assert_eq!(server.watermarks("t", 1, Isolation::ReadCommitted), (0, 5_000));
    server.produce("t", Record::value("x").key("k").at(5).headers(&[("h", b"v")]));
    server.kill();
    server.start_again();
    assert_eq!(server.watermarks("t", 0, Isolation::ReadCommitted), (0, 5_001));
}

#[test]
fn transactions_deletions_and_compaction_leave_what_the_helpers_promise() {
    let server = KafkaServer::start();
    server.create_topic("t", 1, &[]);
    let mut open = server.begin("t", "a");
    open.write([Record::value("1"), Record::value("2")]);
    assert_eq!(server.watermarks("t", 0, Isolation::ReadUncommitted), (0, 2));
    assert_eq!(server.watermarks("t", 0, Isolation::ReadCommitted), (0, 0));
    open.commit();
    let mut open = server.begin("t", "a");
    open.write([Record::value("3")]);
    open.abort();
    assert_eq!(server.watermarks("t", 0, Isolation::ReadCommitted), (0, 5));
    assert_eq!(server.visible_offsets("t", 1)[&0], [0, 1]);
    server.delete_records("t", 0, 1);
    assert_eq!(server.visible_offsets("t", 1)[&0], [1]);
    server.add_partitions("t", 3);
    assert_eq!(server.watermarks("t", 2, Isolation::ReadCommitted), (0, 0));
    server.delete_topic("t");
    server.create_topic("t", 1, &[]);
    assert_eq!(server.watermarks("t", 0, Isolation::ReadCommitted), (0, 0));

    server.create_topic("c", 1, KafkaServer::COMPACTED_SOON);
    server.produce_all("c", (0..20).map(|_| Record::value("v").key("k")));
    wait_for("compaction", Duration::from_secs(30), || {
        server.produce("c", Record::value("v").key("other"));
        (server.visible_offsets("c", 1)[&0].iter().all(|offset| *offset >= 19)).then_some(())
    });
}
