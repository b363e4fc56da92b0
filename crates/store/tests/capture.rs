//! Captures: published whole, read from any row, refused when damaged, gone with their object.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Int64Type, Schema, SchemaRef};
use segue_store::capture::{CaptureError, CapturePosition, CaptureReader, Captures, Manifest};
use segue_store::{Commit, CommitError, Store};
use segue_types::{Epoch, ObjectId, Position, SqlState, SqlType, StageIndex, UserError};
use tempfile::TempDir;

const OBJECT: ObjectId = ObjectId(3);
const STAGE: StageIndex = StageIndex(0);

fn directory() -> TempDir {
    tempfile::tempdir().expect("the temporary directory is writable")
}

fn open(dir: &Path) -> Store {
    Store::open(dir).expect("the data directory is sound")
}

fn schema() -> SchemaRef {
    let fields = vec![SqlType::BigInt.field("id", false), SqlType::Text.field("note", true)];
    Arc::new(Schema::new(fields))
}

fn batch(ids: std::ops::Range<i64>, note_bytes: usize) -> RecordBatch {
    let notes = ids.clone().map(|id| (id % 3 != 0).then(|| "n".repeat(note_bytes)));
    let notes: ArrayRef = Arc::new(notes.collect::<StringArray>());
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    RecordBatch::try_new(schema(), vec![ids, notes]).expect("the columns fit the schema")
}

/// Captures `rows` rows, given in batches of `batch_rows`.
fn capture(captures: &Captures, rows: i64, batch_rows: i64, note_bytes: usize) -> Manifest {
    let mut writer = captures.begin(OBJECT, STAGE, schema()).expect("begins");
    let mut start = 0;
    while start < rows {
        let end = rows.min(start + batch_rows);
        writer.write(&batch(start..end, note_bytes)).expect("writes");
        start = end;
    }
    assert_eq!(writer.rows(), rows as u64);
    writer.finish(Some(serde_json::json!({ "0": "100" }))).expect("finishes")
}

fn publish(store: &Store, epoch: u64, manifest: &Manifest) -> Result<(), CommitError> {
    let mut commit = Commit::new(Epoch(epoch));
    commit.put_object(OBJECT, vec![1]);
    commit.publish_capture(manifest.clone());
    store.commit(&commit)
}

fn reader(store: &Store, projection: &[usize]) -> CaptureReader {
    let manifest = store.load().expect("loads").captures.remove(0);
    store.captures().open(Arc::new(manifest), &schema(), projection).expect("opens")
}

/// All ids from the reader's position on. The id is the first column.
fn ids(reader: &mut CaptureReader) -> Result<Vec<i64>, CaptureError> {
    let mut ids = Vec::new();
    while let Some((batch, _)) = reader.next_batch()? {
        assert!(batch.num_rows() > 0);
        ids.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
    }
    Ok(ids)
}

#[test]
fn a_capture_is_read_back_from_every_row_after_a_restart() {
    let dir = directory();
    let store = open(dir.path());
    let manifest = capture(store.captures(), 150_000, 20_000, 5);
    let rows: Vec<u64> = manifest.chunks.iter().map(|chunk| chunk.rows).collect();
    assert_eq!(rows, [65_536, 65_536, 18_928]);
    publish(&store, 1, &manifest).expect("publishes");
    store.close().expect("closes");

    let store = open(dir.path());
    assert_eq!(store.load().expect("loads").captures, std::slice::from_ref(&manifest));
    let mut all = reader(&store, &[0, 1]);
    assert!(ids(&mut all).expect("reads").into_iter().eq(0..150_000));
    assert_eq!(all.position(), manifest.end());

    let mut stepping = reader(&store, &[0]);
    let mut seen = 0;
    while let Some((batch, next)) = stepping.next_batch().expect("reads") {
        seen += batch.num_rows() as u64;
        assert_eq!(manifest.rows_before(next), seen);
        let mut resumed = reader(&store, &[0]);
        resumed.seek(&next.to_position()).expect("it was just delivered");
        let first = resumed.next_batch().expect("reads");
        let first = first.map(|(batch, _)| batch.column(0).as_primitive::<Int64Type>().value(0));
        assert_eq!(first, (seen < 150_000).then_some(seen as i64));
    }
    for (chunk, row, id) in [(0, 1, 1), (0, 8191, 8191), (1, 40_000, 105_536), (2, 18_927, 149_999)]
    {
        let mut reader = reader(&store, &[0]);
        reader.seek(&CapturePosition { chunk, row }.to_position()).expect("a row of the capture");
        assert!(ids(&mut reader).expect("reads").into_iter().eq(id..150_000));
    }
}

#[test]
fn a_projection_reads_its_columns_and_no_columns_still_count_rows() {
    let dir = directory();
    let store = open(dir.path());
    publish(&store, 1, &capture(store.captures(), 1_000, 300, 5)).expect("publishes");
    let (batch, _) = reader(&store, &[1]).next_batch().expect("reads").expect("has rows");
    assert_eq!(batch.num_columns(), 1);
    let notes = batch.column(0).as_string::<i32>();
    assert!(notes.is_null(0) && notes.value(1) == "nnnnn");
    let mut counting = reader(&store, &[]);
    let mut rows = 0;
    while let Some((batch, _)) = counting.next_batch().expect("reads") {
        rows += batch.num_rows();
    }
    assert_eq!(rows, 1_000);
}

#[test]
fn an_empty_result_is_a_capture_without_chunks() {
    let dir = directory();
    let store = open(dir.path());
    let manifest = capture(store.captures(), 0, 10, 0);
    assert_eq!((manifest.chunks.len(), manifest.rows, manifest.bytes()), (0, 0, 0));
    assert_eq!(manifest.end(), CapturePosition::START);
    publish(&store, 1, &manifest).expect("publishes");
    let mut reader = reader(&store, &[0]);
    reader.seek(&Position::new("0:0")).expect("the start is the end");
    assert!(reader.next_batch().expect("reads").is_none());
}

#[test]
fn wide_rows_close_a_chunk_by_its_size() {
    let dir = directory();
    let store = open(dir.path());
    let manifest = capture(store.captures(), 3_000, 3_000, 20_000);
    assert!(manifest.chunks.len() >= 2, "{} chunks", manifest.chunks.len());
    for chunk in &manifest.chunks {
        assert!(chunk.bytes < 20 * 1024 * 1024, "{} bytes", chunk.bytes);
    }
    publish(&store, 1, &manifest).expect("publishes");
    assert!(ids(&mut reader(&store, &[0])).expect("reads").into_iter().eq(0..3_000));
}

#[test]
fn a_damaged_missing_or_shortened_chunk_is_named() {
    let check = |damage: fn(&Path), expected: &str, state: SqlState| {
        let dir = directory();
        let store = open(dir.path());
        publish(&store, 1, &capture(store.captures(), 100, 100, 5)).expect("publishes");
        let chunk = dir.path().join("captures/3/0/1/0.arrow");
        damage(&chunk);
        let error = ids(&mut reader(&store, &[0])).expect_err("the chunk is damaged");
        let file = format!("capture file \"{}\"", chunk.display());
        assert!(error.to_string().contains(&file), "{error}");
        assert!(error.to_string().ends_with(expected), "{error}");
        assert_eq!(UserError::from(&error).state, state);
    };
    let flip = |chunk: &Path| {
        let mut bytes = fs::read(chunk).expect("reads");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(chunk, bytes).expect("writes");
    };
    let shorten = |chunk: &Path| {
        let bytes = fs::read(chunk).expect("reads");
        fs::write(chunk, &bytes[..100]).expect("writes");
    };
    check(flip, "the checksum does not match", SqlState::DATA_CORRUPTED);
    let length = "100 bytes instead of 2490";
    check(shorten, length, SqlState::DATA_CORRUPTED);
    let missing = "No such file or directory (os error 2)";
    check(|chunk| fs::remove_file(chunk).expect("removes"), missing, SqlState::IO_ERROR);
}

#[test]
fn positions_outside_of_the_capture_and_other_columns_are_refused() {
    let dir = directory();
    let store = open(dir.path());
    publish(&store, 1, &capture(store.captures(), 100, 100, 5)).expect("publishes");
    let mut reader = reader(&store, &[0]);
    for text in ["0:100", "1:1", "2:0", "x"] {
        let error = reader.seek(&Position::new(text)).expect_err("no row of the capture");
        assert_eq!(error.to_string(), format!("\"{text}\" is not a position of the capture"));
    }
    let manifest = Arc::new(store.load().expect("loads").captures.remove(0));
    let other = Arc::new(Schema::new(vec![SqlType::BigInt.field("id", false)]));
    let error = store.captures().open(manifest, &other, &[0]).err().expect("other columns");
    assert!(matches!(error, CaptureError::Schema { object: OBJECT, stage: STAGE }));
    let mut writer = store.captures().begin(OBJECT, StageIndex(1), other).expect("begins");
    let error = writer.write(&batch(0..1, 1)).expect_err("two columns instead of one");
    assert_eq!(
        error.to_string(),
        "captured rows have other columns than the stage: (Int64, Utf8) instead of (Int64)"
    );
}

fn attempts(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir.join("captures/3/0")) else { return Vec::new() };
    entries.map(|entry| entry.expect("reads").path()).collect()
}

#[test]
fn an_attempt_that_is_given_up_leaves_no_files_and_the_next_has_another_number() {
    let dir = directory();
    let store = open(dir.path());
    let mut first = store.captures().begin(OBJECT, STAGE, schema()).expect("begins");
    first.write(&batch(0..100_000, 5)).expect("writes");
    let second = store.captures().begin(OBJECT, STAGE, schema()).expect("begins");
    assert_eq!((first.attempt(), second.attempt()), (1, 2));
    drop(first);
    assert_eq!(attempts(dir.path()), [dir.path().join("captures/3/0/2")]);
}

#[test]
fn what_no_manifest_names_is_deleted_at_open_and_what_one_names_is_kept() {
    let dir = directory();
    let store = open(dir.path());
    let unpublished = capture(store.captures(), 10, 10, 1);
    let published = capture(store.captures(), 20, 10, 1);
    assert_eq!((unpublished.attempt, published.attempt), (1, 2));
    publish(&store, 1, &published).expect("publishes");
    fs::create_dir_all(dir.path().join("captures/9/0/1")).expect("creates");
    fs::write(dir.path().join("captures/README"), "the user's").expect("writes");
    drop(store);
    let store = open(dir.path());
    assert_eq!(attempts(dir.path()), [dir.path().join("captures/3/0/2")]);
    assert!(!dir.path().join("captures/9").exists());
    assert!(dir.path().join("captures/README").exists());
    assert_eq!(ids(&mut reader(&store, &[0])).expect("reads").len(), 20);

    let mut commit = Commit::new(Epoch(2));
    commit.drop_object(OBJECT);
    store.commit(&commit).expect("drops");
    assert!(!dir.path().join("captures/3").exists());
    assert_eq!(store.load().expect("loads").captures, []);
}

#[test]
fn a_stage_has_one_published_capture() {
    let dir = directory();
    let store = open(dir.path());
    publish(&store, 1, &capture(store.captures(), 10, 10, 1)).expect("publishes");
    let error = publish(&store, 2, &capture(store.captures(), 10, 10, 1)).expect_err("the second");
    assert_eq!(
        error.to_string(),
        "could not write epoch 2: stage 0 of object 3 has a published capture already"
    );
}
