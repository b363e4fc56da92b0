//! CSV records and their ends.

use std::sync::Arc;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_schema::Schema;
use segue_types::SqlType;

use super::{CsvDecoder, CsvOptions, RecordEnd, record_end};

fn decoder(projection: &[usize], options: CsvOptions) -> CsvDecoder {
    let fields = vec![
        SqlType::BigInt.field("id", false),
        SqlType::Text.field("name", true),
        SqlType::Numeric { precision: 6, scale: 2 }.field("Amount", true),
    ];
    CsvDecoder::new(Arc::new(Schema::new(fields)), projection, options)
}

fn rows(decoder: &mut CsvDecoder) -> Vec<String> {
    let batch = decoder.finish();
    let options = FormatOptions::default().with_null("NULL");
    let columns = batch.columns().iter();
    let columns =
        columns.map(|array| ArrayFormatter::try_new(array, &options).expect("plain types"));
    let columns: Vec<_> = columns.collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>();
    (0..batch.num_rows()).map(|index| row(index).join("|")).collect()
}

#[test]
fn fields_are_unquoted_and_only_an_unquoted_empty_one_is_null() {
    let mut decoder = decoder(&[0, 1, 2], CsvOptions::default());
    for record in ["1,\"a,\"\"b\"\"\",1.005", "2,\"\",", "3,,-2"] {
        decoder.decode(record.as_bytes()).expect("a good record");
    }
    assert_eq!(decoder.bytes(), 27);
    assert_eq!(rows(&mut decoder), ["1|a,\"b\"|1.01", "2||NULL", "3|NULL|-2.00"]);
}

#[test]
fn a_bad_record_costs_only_itself() {
    let mut decoder = decoder(&[2, 0], CsvOptions::default());
    decoder.decode(b"1,a,1").expect("a good record");
    for (record, reason) in [
        (&b"x,a,1"[..], "column \"id\": \"x\" is not a valid bigint"),
        (b",a,1", "column \"id\": null value violates the not-null constraint"),
        (b"1,a,12345", "column \"Amount\": \"12345\" is out of range for numeric(6,2)"),
        (b"1,a", "expected 3 fields, found 2"),
        (b"1,\"a,1", "unterminated quoted field"),
        (b"1,\xff,1", "the record is not valid UTF-8"),
    ] {
        let error = decoder.decode(record).expect_err("a bad record");
        assert_eq!(error.to_string(), reason);
    }
    decoder.decode(b"2,b,2").expect("a good record");
    assert_eq!(rows(&mut decoder), ["1.00|1", "2.00|2"]);
}

#[test]
fn a_header_says_the_order() {
    let mut decoder = decoder(&[0, 1, 2], CsvOptions::default());
    decoder.set_header("\u{feff}amount,other,id".as_bytes()).expect("two known names");
    decoder.decode(b"5,x,1").expect("a good record");
    assert_eq!(rows(&mut decoder), ["1|NULL|5.00"]);
    assert!(decoder.set_header(b"a,b,c").is_err());
    assert!(decoder.set_header(b"id,ID").is_err());
}

#[test]
fn quoted_line_ends_do_not_end_a_record() {
    let options = CsvOptions::default();
    let text = b"1,\"a\r\nb\"\"\n\",2\r\n3";
    assert_eq!(record_end(text, &options), Some(RecordEnd { end: 13, next: 15 }));
    assert_eq!(record_end(&text[15..], &options), None);
    let escaping = CsvOptions { escape: b'\\', ..options };
    let text = b"\"a\\\"\n\",1\n";
    assert_eq!(record_end(text, &escaping), Some(RecordEnd { end: 8, next: 9 }));
}
