//! Parquet files: resumed at any row, projected, brought to the declared types.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::common::{config, drain, open, pin};
use ::parquet::arrow::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use segue_connect::{ConnectError, OnError};
use segue_types::Position;
use tempfile::tempdir;

/// Ids 0.. in row groups of ten; every seventh amount is no number when `broken`.
fn write(path: &Path, rows: i32, broken: bool) {
    let ids: ArrayRef = Arc::new((0..rows).collect::<Int32Array>());
    let amount =
        |id: i32| if broken && id % 7 == 3 { "none".to_owned() } else { format!("{id}.125") };
    let amounts: ArrayRef = Arc::new((0..rows).map(|id| Some(amount(id))).collect::<StringArray>());
    let batch =
        RecordBatch::try_from_iter([("AMOUNT", amounts), ("id", ids)]).expect("two columns");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10)).build();
    let file = File::create(path).expect("a file");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
}

#[tokio::test]
async fn rows_are_read_from_every_row_on_in_the_declared_types() {
    let dir = tempdir().expect("a directory");
    write(&dir.path().join("a.parquet"), 35, false);
    let config = config(dir.path(), "parquet");
    let definition = pin(&config).await;
    assert_eq!(definition.splits[0].bound, Some(Position::new("35")));
    let stage = open(&config, &definition, &[2, 1, 0, 4]).await;
    let expected: Vec<String> = (0..35).map(|id| format!("{id}.13|NULL|{id}|{id}")).collect();
    for from in 0..=35 {
        let rest = drain(&*stage, "a.parquet", &from.to_string(), None).await.expect("read");
        assert_eq!(rest.rows, expected[from..], "from {from}");
        let first = drain(&*stage, "a.parquet", "0", Some(&from.to_string())).await.expect("read");
        assert_eq!(first.rows, expected[..from], "until {from}");
        assert_eq!(first.positions.last(), Some(&Position::new(from.to_string())));
    }
    let counted = open(&config, &definition, &[]).await;
    let mut reader =
        counted.read(&definition.splits[0].id, &Position::new("0"), None).await.expect("opened");
    let mut rows = 0;
    while let segue_connect::ReadEvent::Rows(event) =
        crate::common::next(&mut *reader).await.expect("read")
    {
        rows += event.changes.rows.num_rows();
    }
    assert_eq!(rows, 35);
}

#[tokio::test]
async fn a_value_without_a_place_costs_its_row_or_stops_the_read() {
    let dir = tempdir().expect("a directory");
    write(&dir.path().join("a.parquet"), 12, true);
    let mut config = config(dir.path(), "parquet");
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0, 2]).await;
    let delivered = drain(&*stage, "a.parquet", "0", None).await.expect("read");
    assert_eq!(delivered.rows.len(), 10);
    let places: Vec<&str> = delivered.rejected.iter().map(|r| r.position.as_str()).collect();
    assert_eq!(places, ["3", "10"]);
    let without = open(&config, &definition, &[0]).await;
    let delivered = drain(&*without, "a.parquet", "0", None).await.expect("read");
    assert_eq!(delivered.rows.len(), 12);

    config.on_error = OnError::Fail;
    let stage = open(&config, &definition, &[0, 2]).await;
    let error = drain(&*stage, "a.parquet", "0", None).await.expect_err("a bad value");
    let ConnectError::Malformed { position, .. } = error else { panic!("{error}") };
    assert_eq!(position.as_str(), "3");
}

#[tokio::test]
async fn a_replaced_file_and_one_that_is_no_parquet_are_errors() {
    let dir = tempdir().expect("a directory");
    let path = dir.path().join("a.parquet");
    write(&path, 5, false);
    let config = config(dir.path(), "parquet");
    let definition = pin(&config).await;
    let stage = open(&config, &definition, &[0]).await;
    write(&path, 6, false);
    let error = drain(&*stage, "a.parquet", "0", None).await.expect_err("replaced");
    assert!(matches!(error, ConnectError::Replaced { .. }), "{error}");
    std::fs::write(&path, "id\n1\n").expect("written");
    let error =
        segue_connect::Connector::pin(&segue_connector_files::FilesConnector, &config).await;
    assert!(error.is_err_and(|error| error.to_string().contains("cannot be read as Parquet")));
}
