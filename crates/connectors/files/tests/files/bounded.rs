//! Bounded reads of real files: every row once, from any position, of the pinned version or not
//! at all.

use std::fs;

use crate::common::{config, drain, next, open, options, pin};
use segue_connect::{ConnectError, Connector, HandoffKind, HasData, OnError, RowFormat, Start};
use segue_connector_files::FilesConnector;
use segue_types::{Position, PositionOrder, RowSemantics, SplitId};
use tempfile::tempdir;

fn json_lines(rows: std::ops::Range<usize>) -> String {
    rows.map(|i| format!("{{\"id\":{i},\"name\":\"n{i}\",\"amount\":{i}.5}}\n")).collect()
}

#[tokio::test]
async fn json_lines_of_all_matching_files_are_read_once() {
    let dir = tempdir().expect("a directory");
    fs::create_dir(dir.path().join("sub")).expect("a directory");
    fs::write(dir.path().join("b.ndjson"), "{\"id\":3}\r\n\n  \n{\"id\":4,\"name\":\"x\"}")
        .expect("written");
    fs::write(dir.path().join("sub/a.ndjson"), "\u{feff}{\"id\":1,\"amount\":\"2.005\"}\n")
        .expect("written");
    fs::write(dir.path().join("empty.ndjson"), "").expect("written");
    fs::write(dir.path().join("_SUCCESS.ndjson"), "no").expect("written");
    fs::write(dir.path().join("other.txt"), "no").expect("written");
    let mut config = config(dir.path(), "json");
    config.options.0.insert("match_pattern".to_owned(), "*.ndjson".to_owned());
    let capabilities = FilesConnector.describe(&config).expect("a good configuration");
    assert_eq!(capabilities.semantics, RowSemantics::Append);
    assert_eq!(capabilities.produces, [HandoffKind::Columns]);
    let definition = pin(&config).await;
    assert!(definition.sealed);
    let ids: Vec<&str> = definition.splits.iter().map(|split| split.id.as_str()).collect();
    assert_eq!(ids, ["b.ndjson", "empty.ndjson", "sub/a.ndjson"]);
    let stage = open(&config, &definition, &[2, 0, 3, 4, 5]).await;
    assert_eq!(stage.discover().await.expect("found").splits, definition.splits);

    let delivered = drain(&*stage, "b.ndjson", "0", None).await.expect("read");
    assert_eq!(delivered.rows, ["NULL|3|b.ndjson|0|history", "NULL|4|b.ndjson|14|history"]);
    assert_eq!(delivered.positions.last().map(Position::as_str), Some("33"));
    let delivered = drain(&*stage, "sub/a.ndjson", "0", None).await.expect("read");
    assert_eq!(delivered.rows, ["2.01|1|sub/a.ndjson|3|history"]);
    let delivered = drain(&*stage, "empty.ndjson", "0", None).await.expect("read");
    assert_eq!((delivered.rows.len(), delivered.positions.len()), (0, 1));
    let split = SplitId::new("b.ndjson");
    assert_eq!(stage.latest(&split).await, Ok(Some(Position::new("33").into())));
    assert_eq!(stage.has_data(&split, &Position::new("32")).await, Ok(HasData::Yes));
    assert_eq!(stage.has_data(&split, &Position::new("33")).await, Ok(HasData::No));
}

#[tokio::test]
async fn reading_goes_on_from_every_position_that_was_delivered() {
    let dir = tempdir().expect("a directory");
    // More rows than a batch and more bytes than a chunk holds.
    fs::write(dir.path().join("a"), json_lines(0..120_000)).expect("written");
    let config = config(dir.path(), "json");
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0]).await;
    let whole = drain(&*stage, "a", "0", None).await.expect("read");
    let expected: Vec<String> = (0..120_000).map(|i| i.to_string()).collect();
    assert_eq!(whole.rows, expected);
    assert!(whole.positions.len() > 12);
    for position in whole.positions.iter().step_by(5) {
        let first = drain(&*stage, "a", "0", Some(position.as_str())).await.expect("read");
        let rest = drain(&*stage, "a", position.as_str(), None).await.expect("read");
        assert_eq!(first.positions.last(), Some(position));
        assert_eq!([first.rows, rest.rows].concat(), expected);
    }
    let error = drain(&*stage, "a", "3", None).await.expect_err("inside a record");
    assert!(matches!(error, ConnectError::Malformed { .. }), "{error}");
    let error = drain(&*stage, "a", "99999999", None).await.expect_err("beyond the end");
    assert!(matches!(error, ConnectError::Truncated { .. }), "{error}");
}

#[tokio::test]
async fn a_changed_or_missing_file_is_a_definite_error() {
    let dir = tempdir().expect("a directory");
    let path = dir.path().join("a");
    fs::write(&path, json_lines(0..100_000)).expect("written");
    let config = config(dir.path(), "json");
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0]).await;
    let split = SplitId::new("a");
    let start = [(split.clone(), Position::new("0"))];
    assert_eq!(FilesConnector.check(&config, &definition, &start).await, Ok(()));

    // While it is read: the next chunk, or the look at the end, meets another version.
    let mut reader = stage.read(&split, &Position::new("0"), None).await.expect("opened");
    next(&mut *reader).await.expect("rows of the first chunk");
    fs::write(&path, json_lines(1..100_001)).expect("written");
    let error = loop {
        match next(&mut *reader).await {
            Ok(event) => assert!(!matches!(event, segue_connect::ReadEvent::Done { .. })),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    // Before it is read.
    let error = drain(&*stage, "a", "0", None).await.expect_err("replaced");
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    let error = FilesConnector.check(&config, &definition, &start).await.expect_err("replaced");
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    fs::remove_file(&path).expect("removed");
    let error = drain(&*stage, "a", "0", None).await.expect_err("missing");
    assert!(matches!(error, ConnectError::Missing { .. }), "{error}");
}

#[tokio::test]
async fn a_malformed_record_is_set_aside_or_stops_the_read_at_itself() {
    let dir = tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "{\"id\":1}\n{\"id\":\"x\"}\n{\"id\":2}\n{\"id\"")
        .expect("written");
    let mut config = config(dir.path(), "json");
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0]).await;
    let delivered = drain(&*stage, "a", "0", None).await.expect("read");
    assert_eq!(delivered.rows, ["1", "2"]);
    let places: Vec<(&str, &[u8])> =
        delivered.rejected.iter().map(|r| (r.position.as_str(), r.payload.as_slice())).collect();
    assert_eq!(places, [("9", &b"{\"id\":\"x\"}"[..]), ("29", b"{\"id\"")]);
    assert_eq!(delivered.rejected[0].reason, "column \"id\": \"x\" is not a valid bigint");

    config.on_error = OnError::Fail;
    let stage = open(&config, &definition, &[0]).await;
    let mut reader =
        stage.read(&SplitId::new("a"), &Position::new("0"), None).await.expect("opened");
    let mut delivered = crate::common::Delivered::default();
    delivered.add(next(&mut *reader).await.expect("what came before"));
    assert_eq!(delivered.rows, ["1"]);
    let error = next(&mut *reader).await.expect_err("the bad record");
    let ConnectError::Malformed { position, .. } = error else { panic!("{error}") };
    assert_eq!(Some(&position), delivered.positions.last());
}

#[tokio::test]
async fn csv_is_mapped_by_its_header_and_resumed_without_it() {
    let dir = tempdir().expect("a directory");
    fs::write(dir.path().join("a.csv"), "Amount;id;x\n1.5;1;\"a\n;b\"\n;2;\n3;3;z")
        .expect("written");
    let mut config = config(dir.path(), "csv");
    config.format.options = options(&[("delimiter", ";"), ("header", "true")]);
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0, 1, 2, 4]).await;
    let whole = drain(&*stage, "a.csv", "0", None).await.expect("read");
    assert_eq!(whole.rows, ["1|NULL|1.50|12", "2|NULL|NULL|25", "3|NULL|3.00|29"]);
    let rest = drain(&*stage, "a.csv", "25", None).await.expect("read");
    assert_eq!(rest.rows, whole.rows[1..]);
}

#[tokio::test]
async fn upsert_puts_rows_by_their_key() {
    let dir = tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "{\"id\":1}\n").expect("written");
    let mut config = config(dir.path(), "json");
    config.format.rows = RowFormat::Upsert;
    let semantics = FilesConnector.describe(&config).expect("a key is there").semantics;
    assert_eq!(semantics, RowSemantics::Upsert);
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0]).await;
    let mut reader =
        stage.read(&SplitId::new("a"), &Position::new("0"), None).await.expect("opened");
    let segue_connect::ReadEvent::Rows(rows) = next(&mut *reader).await.expect("a row") else {
        panic!("rows come first")
    };
    assert!(matches!(rows.changes.ops, segue_connect::Ops::Put));
    config.key.clear();
    assert!(FilesConnector.describe(&config).is_err());
}

#[tokio::test]
async fn one_file_and_globs_can_be_named_by_the_path() {
    let dir = tempdir().expect("a directory");
    for name in ["a.csv", "b.csv", "c.json"] {
        fs::write(dir.path().join(name), "1,x,2\n").expect("written");
    }
    for (path, expected) in
        [("b.csv", vec!["b.csv"]), ("*.csv", vec!["a.csv", "b.csv"]), ("z*", vec![])]
    {
        let definition = pin(&config(&dir.path().join(path), "csv")).await;
        let ids: Vec<&str> = definition.splits.iter().map(|split| split.id.as_str()).collect();
        assert_eq!(ids, expected, "{path}");
        assert!(definition.sealed);
    }
    let error = FilesConnector.pin(&config(&dir.path().join("none"), "csv")).await;
    assert!(matches!(error, Err(ConnectError::Missing { .. })));
    fs::write(dir.path().join("a.csv.xz"), "").expect("written");
    let error = FilesConnector.pin(&config(dir.path(), "csv")).await.expect_err("compressed");
    assert!(error.to_string().contains("a.csv.xz\" is compressed"), "{error}");
}

#[tokio::test]
async fn what_the_connector_cannot_do_is_refused_by_name() {
    let dir = tempdir().expect("a directory");
    let good = config(dir.path(), "json");
    let refused = |config: &segue_connect::ReadConfig| {
        let error = FilesConnector.describe(config).expect_err("refused").to_user_error("s");
        format!("{} {}", error.state, error.message)
    };
    let mut bad = good.clone();
    bad.format.encode = "avro".to_owned();
    assert_eq!(refused(&bad), "22023 stage \"s\": connector \"files\" does not read ENCODE AVRO");
    let mut bad = good.clone();
    bad.start = Start::Handoff;
    assert!(refused(&bad).starts_with("0A000"), "{}", refused(&bad));
    let mut bad = good.clone();
    bad.options = options(&[("path", "s3://bucket/x")]);
    assert_eq!(refused(&bad), "0A000 stage \"s\": path with scheme \"s3\" is not supported");
    let mut bad = good;
    bad.format.options = options(&[("delimeter", ",")]);
    bad.format.encode = "csv".to_owned();
    assert_eq!(refused(&bad), "22023 stage \"s\": unknown option \"delimeter\" of ENCODE CSV");
    let [a, b, c] = ["5", "10", "x"].map(Position::new);
    assert_eq!(FilesConnector.compare(&a, &b), PositionOrder::Less);
    assert_eq!(FilesConnector.compare(&a, &c), PositionOrder::Incomparable);
}
