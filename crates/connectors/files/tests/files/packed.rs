//! Compressed files: their content is read as that of plain ones, from any position, of the pinned version only.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use segue_connect::{ConnectError, Connector, HasData};
use segue_connector_files::FilesConnector;
use segue_types::{Position, SplitId};
use tempfile::tempdir;

use crate::common::{config, drain, open, pin, watched};

fn gzip(content: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content.as_bytes()).expect("into memory");
    encoder.finish().expect("into memory")
}

fn zstd(content: &str) -> Vec<u8> {
    zstd::encode_all(content.as_bytes(), 1).expect("into memory")
}

fn json_lines(rows: std::ops::Range<usize>) -> String {
    rows.map(|i| format!("{{\"id\":{i},\"name\":\"n{i}\",\"amount\":{i}.5}}\n")).collect()
}

fn write(dir: &Path, name: &str, bytes: &[u8]) {
    fs::write(dir.join(name), bytes).expect("written");
}

#[tokio::test]
async fn what_is_inside_is_read_from_every_position_that_was_delivered() {
    let dir = tempdir().expect("a directory");
    let content = json_lines(0..20_000);
    write(dir.path(), "plain.json", content.as_bytes());
    write(dir.path(), "gzip.json.gz", &gzip(&content));
    // Two archives behind one another are one file.
    let (first, second) = content.split_at(content.len() / 2);
    write(dir.path(), "joined.json.gz", &[gzip(first), gzip(second)].concat());
    write(dir.path(), "zstd.json.zst", &zstd(&content));
    write(dir.path(), "empty.json.gz", &gzip(""));
    let config = config(dir.path(), "json");
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0]).await;
    let plain = drain(&*stage, "plain.json", "0", None).await.expect("read");
    assert_eq!(plain.rows.len(), 20_000);
    for name in ["gzip.json.gz", "joined.json.gz", "zstd.json.zst"] {
        let read = drain(&*stage, name, "0", None).await.expect("read");
        assert_eq!((read.rows, read.positions), (plain.rows.clone(), plain.positions.clone()));
        let split = SplitId::new(name);
        let end = Position::new(content.len().to_string());
        assert_eq!(stage.latest(&split).await, Ok(Some(end.clone().into())));
        assert_eq!(stage.has_data(&split, &end).await, Ok(HasData::No));
        let middle = plain.positions[0].as_str();
        let rest = drain(&*stage, name, middle, None).await.expect("read");
        assert_eq!(rest.rows, plain.rows[plain.rows.len() - rest.rows.len()..]);
        assert!(!rest.rows.is_empty() && rest.rows.len() < plain.rows.len());
        let short = drain(&*stage, name, "0", Some(middle)).await.expect("read");
        assert_eq!(short.rows.len() + rest.rows.len(), plain.rows.len());
    }
    let empty = drain(&*stage, "empty.json.gz", "0", None).await.expect("read");
    assert_eq!((empty.rows.len(), empty.positions), (0, vec![Position::new("0")]));
}

#[tokio::test]
async fn a_header_inside_of_an_archive_names_the_columns() {
    let dir = tempdir().expect("a directory");
    write(dir.path(), "a.csv.gz", &gzip("amount,id\n1.5,7\n"));
    let mut config = config(dir.path(), "csv");
    config.format.options.0.insert("header".to_owned(), "true".to_owned());
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0, 2]).await;
    let read = drain(&*stage, "a.csv.gz", "0", None).await.expect("read");
    assert_eq!(read.rows, ["7|1.50"]);
}

#[tokio::test]
async fn an_archive_that_is_broken_or_another_one_is_an_error() {
    let dir = tempdir().expect("a directory");
    let whole = gzip(&json_lines(0..1000));
    write(dir.path(), "a.json.gz", &whole[..whole.len() / 2]);
    let config = config(dir.path(), "json");
    let error = FilesConnector.pin(&config).await.expect_err("half an archive");
    assert!(matches!(error, ConnectError::Malformed { .. }), "{error}");
    write(dir.path(), "a.json.gz", &whole);
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0]).await;
    write(dir.path(), "a.json.gz", &gzip(&json_lines(5..1000)));
    let error = drain(&*stage, "a.json.gz", "0", None).await.expect_err("another archive");
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
}

#[tokio::test]
async fn archives_are_refused_where_they_cannot_be_read() {
    let dir = tempdir().expect("a directory");
    write(dir.path(), "a.json.gz", &gzip("{\"id\":1}\n"));
    let watching = watched(config(dir.path(), "json"), "1");
    let error = FilesConnector.pin(&watching).await.expect_err("watched");
    assert!(error.to_string().contains("not supported in a watched directory"), "{error}");
    let error = FilesConnector.pin(&config(dir.path(), "parquet")).await.expect_err("Parquet");
    assert!(error.to_string().contains("around Parquet"), "{error}");
}
