//! Framing: rows come out the same wherever chunks end, and broken streams are errors.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use segue_connect::{Format, OnError, Options, ReadConfig, RowFormat, Start};
use segue_types::{SqlState, SqlType};

use super::{Decoder, Refused};
use crate::plan::{Plan, PlannedColumn, Wire};

const COLUMNS: [(&str, Wire, SqlType); 2] =
    [("id", Wire::Int4, SqlType::BigInt), ("note", Wire::Text, SqlType::Text)];

fn decoder(key: Vec<usize>) -> Decoder {
    let fields: Vec<_> = COLUMNS.iter().map(|(name, _, ty)| ty.field(name, true)).collect();
    let config = ReadConfig {
        stage: "history".to_owned(),
        options: Options::default(),
        format: Format {
            rows: RowFormat::Plain,
            encode: String::new(),
            options: Options::default(),
        },
        start: Start::Handoff,
        stop: None,
        schema: Arc::new(Schema::new(fields)),
        declared_columns: COLUMNS.len(),
        key,
        includes: Vec::new(),
        on_error: OnError::Fail,
    };
    let column = |(name, wire, _): &(&str, Wire, SqlType)| PlannedColumn {
        name: (*name).to_owned(),
        source: String::new(),
        cast: None,
        wire: wire.clone(),
    };
    let plan = Plan { columns: COLUMNS.iter().map(column).collect() };
    Decoder::new(&config, &plan).expect("the plan fits the schema")
}

fn header() -> Vec<u8> {
    let mut bytes = b"PGCOPY\n\xff\r\n\0".to_vec();
    bytes.extend([0; 8]);
    bytes
}

fn row(id: Option<i32>, note: &str) -> Vec<u8> {
    let mut bytes = vec![0, 2];
    match id {
        Some(id) => bytes.extend([4_i32.to_be_bytes(), id.to_be_bytes()].concat()),
        None => bytes.extend((-1_i32).to_be_bytes()),
    }
    bytes.extend(i32::try_from(note.len()).expect("short").to_be_bytes());
    bytes.extend(note.as_bytes());
    bytes
}

fn stream() -> Vec<u8> {
    [header(), row(Some(1), "é"), row(None, ""), row(Some(-3), "three"), vec![0xff, 0xff]].concat()
}

fn decoded(chunks: &[&[u8]]) -> Result<RecordBatch, Refused> {
    let mut decoder = decoder(Vec::new());
    for chunk in chunks {
        decoder.feed(chunk)?;
    }
    assert!(decoder.is_complete());
    decoder.take()
}

#[test]
fn rows_are_the_same_wherever_a_chunk_ends() {
    let bytes = stream();
    let whole = decoded(&[&bytes]).expect("well formed");
    assert_eq!((whole.num_rows(), whole.column(0).null_count()), (3, 1));
    for cut in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(cut);
        assert_eq!(decoded(&[head, tail]).expect("well formed"), whole, "cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decoded(&single).expect("well formed"), whole);
}

#[test]
fn a_stream_that_stops_early_is_not_complete() {
    let bytes = stream();
    for cut in 0..bytes.len() {
        let mut decoder = decoder(Vec::new());
        decoder.feed(&bytes[..cut]).expect("well formed so far");
        assert!(!decoder.is_complete(), "cut at {cut}");
    }
}

#[test]
fn what_breaks_the_format_is_refused() {
    let three_columns = [header(), vec![0, 3]].concat();
    let negative_length = [header(), vec![0, 2, 0xff, 0xff, 0xff, 0xfe]].concat();
    let after_trailer = [stream(), vec![0]].concat();
    let not_ours = vec![0; 19];
    for bytes in [three_columns, negative_length, not_ours] {
        let error = decoder(Vec::new()).feed(&bytes).expect_err("broken");
        assert_eq!(error.state, SqlState::PROTOCOL_VIOLATION);
    }
    let mut decoder = decoder(Vec::new());
    let complete = decoder.feed(&after_trailer).is_ok() && decoder.is_complete();
    assert!(!complete, "bytes after the trailer");
}

#[test]
fn a_null_key_and_a_broken_text_name_their_column() {
    let mut keyed = decoder(vec![0]);
    keyed.feed(&stream()).expect("well formed");
    let error = keyed.take().expect_err("a NULL key");
    assert_eq!(error.state, SqlState::NOT_NULL_VIOLATION);
    assert!(error.message.contains("\"id\""), "{error}");

    let mut bytes = [header(), row(Some(1), "ab")].concat();
    *bytes.last_mut().expect("not empty") = 0xff;
    let mut broken = decoder(Vec::new());
    broken.feed(&bytes).expect("framing is fine");
    let error = broken.take().expect_err("not UTF-8");
    assert!(error.message.contains("\"note\""), "{error}");
}
