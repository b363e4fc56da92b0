//! Watched directories: files that appear, grow, change and go.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Delivered, config, drain, next, open, options, pin, watched};
use segue_connect::{
    ConnectError, Connector, HasData, SplitReader, SplitStart, StageReader, Start,
};
use segue_connector_files::FilesConnector;
use segue_types::{Boundedness, Position, SplitId};
use tempfile::tempdir;

const FAST: &str = "0.05";
/// Longer than a test: what must not wait for it does not.
const SLOW: &str = "3600";

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).expect("the file is there");
    file.write_all(text.as_bytes()).expect("written");
}

async fn read(stage: &dyn StageReader, split: &str, from: &str) -> Box<dyn SplitReader> {
    stage.read(&SplitId::new(split), &Position::new(from), None).await.expect("opened")
}

/// Takes events until there are `rows` rows.
async fn rows(reader: &mut dyn SplitReader, rows: usize) -> Vec<String> {
    let mut delivered = Delivered::default();
    while delivered.rows.len() < rows {
        delivered.add(next(reader).await.expect("rows"));
    }
    delivered.rows
}

#[tokio::test]
async fn a_file_that_grows_is_read_on() {
    let dir = tempdir().expect("a directory");
    let path = dir.path().join("a");
    fs::write(&path, "{\"id\":1}\n{\"id\":2}\n").expect("written");
    let config = watched(config(dir.path(), "json"), FAST);
    let capabilities = FilesConnector.describe(&config).expect("a good configuration");
    assert_eq!(capabilities.boundedness, Boundedness::Continuous);
    let definition = pin(&config).await;
    assert!(!definition.sealed && definition.splits[0].bound.is_none());
    let stage = open(&config, &definition, &[0]).await;
    let mut reader = read(&*stage, "a", "0").await;
    assert_eq!(rows(&mut *reader, 2).await, ["1", "2"]);
    // A record may arrive in pieces; what is cut inside a record is waited for.
    append(&path, "{\"id\":3}\n{\"i");
    assert_eq!(rows(&mut *reader, 1).await, ["3"]);
    append(&path, "d\":4}\n");
    assert_eq!(rows(&mut *reader, 1).await, ["4"]);
    // A dropped wait owns no row.
    for _ in 0..3 {
        let waited = tokio::time::timeout(Duration::from_millis(20), reader.next()).await;
        assert!(waited.is_err(), "{waited:?}");
    }
    append(&path, "{\"id\":5}\n");
    assert_eq!(rows(&mut *reader, 1).await, ["5"]);
    let mut resumed = read(&*stage, "a", "27").await;
    assert_eq!(rows(&mut *resumed, 2).await, ["4", "5"]);
    let bounded =
        drain(&*stage, "a", "0", Some("18")).await.expect("a target inside a growing file");
    assert_eq!(bounded.rows, ["1", "2"]);
}

#[tokio::test]
async fn a_whole_object_without_a_line_end_is_seen_at_once() {
    let dir = tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "{\"id\":1}\n{\"id\":2}").expect("written");
    fs::write(dir.path().join("b"), "{\"id\":1}\n{\"id\":2").expect("written");
    let config = watched(config(dir.path(), "json"), SLOW);
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0]).await;
    for (split, ids, end) in [("a", vec!["1", "2"], "17"), ("b", vec!["1"], "9")] {
        let latest = stage.latest(&SplitId::new(split)).await.expect("known").expect("known");
        let latest = latest.position;
        assert_eq!(latest.as_str(), end);
        let mut reader = read(&*stage, split, "0").await;
        let mut delivered = Delivered::default();
        while delivered.positions.last() != Some(&latest) {
            delivered.add(next(&mut *reader).await.expect("rows"));
        }
        assert_eq!(delivered.rows, ids);
        let more = stage.has_data(&SplitId::new(split), &latest).await;
        assert_eq!(more, Ok(HasData::No));
    }
    append(&dir.path().join("a"), "\n{\"id\":3}\n");
    let mut reader = read(&*stage, "a", "17").await;
    assert_eq!(rows(&mut *reader, 1).await, ["3"]);
}

#[tokio::test]
async fn a_csv_row_without_a_line_end_counts_once_the_file_has_settled() {
    let dir = tempdir().expect("a directory");
    fs::write(dir.path().join("a.csv"), "id,name\n1,x\n2,y").expect("written");
    let mut slow = watched(config(dir.path(), "csv"), SLOW);
    slow.format.options = options(&[("header", "true")]);
    let definition = pin(&slow).await;
    let stage = open(&slow, &definition, &[0, 1]).await;
    let split = SplitId::new("a.csv");
    assert_eq!(stage.latest(&split).await, Ok(Some(Position::new("12").into())));
    let mut fast = watched(config(dir.path(), "csv"), FAST);
    fast.format.options = options(&[("header", "true")]);
    let stage = open(&fast, &definition, &[0, 1]).await;
    let mut reader = read(&*stage, "a.csv", "0").await;
    assert_eq!(rows(&mut *reader, 2).await, ["1|x", "2|y"]);
    assert_eq!(stage.latest(&split).await, Ok(Some(Position::new("15").into())));
    append(&dir.path().join("a.csv"), "ellow\n3,z\n");
    let error = next(&mut *reader).await.expect_err("the row went on after all");
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
}

#[tokio::test]
async fn new_files_start_at_their_beginning_whatever_the_start_was() {
    let dir = tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "{\"id\":1}\n").expect("written");
    let mut config = watched(config(dir.path(), "json"), FAST);
    config.start = Start::Latest;
    let definition = pin(&config).await;
    assert_eq!(definition.splits[0].start, SplitStart::At(Position::new("9")));
    let stage = open(&config, &definition, &[0]).await;
    assert_eq!(stage.discover().await.expect("listed").splits, definition.splits);
    fs::write(dir.path().join("b"), "{\"id\":2}\n").expect("written");
    fs::remove_file(dir.path().join("a")).expect("removed");
    let gone = SplitId::new("a");
    assert_eq!(stage.latest(&gone).await, Ok(None));
    assert_eq!(stage.has_data(&gone, &Position::new("0")).await, Ok(HasData::No));
    let start = [(gone, Position::new("9"))];
    assert_eq!(FilesConnector.check(&config, &definition, &start).await, Ok(()));
    let deadline = Instant::now() + Duration::from_secs(20);
    let found = loop {
        let found = stage.discover().await.expect("listed").splits;
        if found.iter().any(|split| split.id.as_str() == "b") {
            break found;
        }
        assert!(Instant::now() < deadline, "the new file was not found");
        tokio::task::yield_now().await;
    };
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].start, SplitStart::At(Position::new("0")));
    let mut reader = read(&*stage, "b", "0").await;
    assert_eq!(rows(&mut *reader, 1).await, ["2"]);
}

#[tokio::test]
async fn a_file_that_shrinks_or_begins_otherwise_is_an_error() {
    let dir = tempdir().expect("a directory");
    let path = dir.path().join("a");
    let config = watched(config(dir.path(), "json"), FAST);
    for replacement in ["{\"id\":1}\n", "{\"id\":7}\n{\"id\":8}\n{\"id\":9}\n"] {
        fs::write(&path, "{\"id\":1}\n{\"id\":2}\n").expect("written");
        let definition = pin(&config).await;
        let stage = open(&config, &definition, &[0]).await;
        let mut reader = read(&*stage, "a", "0").await;
        assert_eq!(rows(&mut *reader, 2).await, ["1", "2"]);
        fs::write(&path, replacement).expect("written");
        let error = next(&mut *reader).await.expect_err("another file");
        assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
        let mut resumed = read(&*stage, "a", "18").await;
        let error = next(&mut *resumed).await.expect_err("another file, also after a restart");
        assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    }
}

/// How many files below `dir` this process has open.
fn open_below(dir: &Path) -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").expect("Linux tells");
    let below = |entry: std::io::Result<fs::DirEntry>| {
        fs::read_link(entry.ok()?.path()).ok().filter(|target| target.starts_with(dir))
    };
    descriptors.filter_map(below).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn few_of_many_watched_files_are_open_at_a_time() {
    let dir = tempdir().expect("a directory");
    let line = format!("{{\"id\":1,\"name\":\"{}\"}}\n", "x".repeat(2000));
    for file in 0..400 {
        fs::write(dir.path().join(format!("f{file}")), line.repeat(100)).expect("written");
    }
    let config = watched(config(dir.path(), "json"), FAST);
    let definition = pin(&config).await;
    let stage: std::sync::Arc<dyn StageReader> = open(&config, &definition, &[0]).await.into();
    let readers = definition.splits.into_iter().map(|split| {
        let stage = std::sync::Arc::clone(&stage);
        tokio::spawn(async move {
            let mut reader = read(&*stage, split.id.as_str(), "0").await;
            rows(&mut *reader, 100).await.len()
        })
    });
    let readers: Vec<_> = readers.collect();
    let (mut most, mut looks) = (0, 0);
    while readers.iter().any(|reader| !reader.is_finished()) {
        most = most.max(open_below(dir.path()));
        looks += 1;
        tokio::task::yield_now().await;
    }
    for reader in readers {
        assert_eq!(reader.await.expect("it reads"), 100);
    }
    assert!((1..=16).contains(&most), "{most} files were open at a time in {looks} looks");
}
