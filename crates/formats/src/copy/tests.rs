//! COPY data in both formats and in any pieces.

use arrow::array::AsArray;
use arrow::datatypes::Int32Type;
use arrow_schema::Schema;
use segue_types::SqlType;

use super::{CopyDecoder, CopyTextOptions};
use crate::CsvOptions;

fn schema() -> Schema {
    Schema::new(vec![
        SqlType::Text.field("unused", true),
        SqlType::Integer.field("a", false),
        SqlType::Text.field("b", true),
    ])
}

/// All rows, fed in pieces of `piece` bytes.
fn decode(
    mut decoder: CopyDecoder,
    data: &[u8],
    piece: usize,
) -> Result<Vec<(i32, Option<String>)>, String> {
    for piece in data.chunks(piece) {
        decoder.push(piece).map_err(|error| error.to_string())?;
    }
    decoder.end().map_err(|error| error.to_string())?;
    let batch = decoder.finish();
    let numbers = batch.column(0).as_primitive::<Int32Type>().values().iter().copied();
    let texts = batch.column(1).as_string::<i32>().iter().map(|text| text.map(str::to_owned));
    Ok(numbers.zip(texts).collect())
}

#[test]
fn text_lines_are_unescaped_whatever_the_pieces() {
    let data = b"1\tplain\r\n2\t\\N\n3\ta\\tb\\\\c\\n\\x41\\101\\q\n4\tx\\\ny\n5\t\n\\.\nignored";
    let expected = vec![
        (1, Some("plain".to_owned())),
        (2, None),
        (3, Some("a\tb\\c\nAAq".to_owned())),
        (4, Some("x\ny".to_owned())),
        (5, Some(String::new())),
    ];
    for piece in 1..data.len() {
        let decoder = CopyDecoder::text(&schema(), &[1, 2], CopyTextOptions::default());
        assert_eq!(decode(decoder, data, piece).as_ref(), Ok(&expected), "pieces of {piece}");
    }
}

#[test]
fn csv_records_may_hold_line_ends() {
    let data = b"a,b\n1,\"x\ny\"\n2,\n3,\"\"";
    let options = CsvOptions { header: crate::csv::Header::Present, ..CsvOptions::default() };
    let expected = vec![(1, Some("x\ny".to_owned())), (2, None), (3, Some(String::new()))];
    for piece in 1..data.len() {
        let decoder = CopyDecoder::csv(&schema(), &[1, 2], options.clone());
        assert_eq!(decode(decoder, data, piece).as_ref(), Ok(&expected), "pieces of {piece}");
    }
}

#[test]
fn the_first_bad_line_ends_the_copy_and_is_named() {
    for (data, message) in [
        (&b"1\ta\nx\tb\n"[..], "line 2, column \"a\": \"x\" is not a valid integer"),
        (b"1\ta\n\n2\tb\n", "line 2, column \"a\": \"\" is not a valid integer"),
        (b"1\ta\n2\n", "line 2, missing data for column \"b\""),
        (b"1\ta\tb\n", "line 1, extra data after last expected column"),
        (b"\\N\tb\n", "line 1, column \"a\": null value violates the not-null constraint"),
        (b"1\t\\xff\n", "line 1, the record is not valid UTF-8"),
    ] {
        let decoder = CopyDecoder::text(&schema(), &[1, 2], CopyTextOptions::default());
        assert_eq!(decode(decoder, data, 64), Err(message.to_owned()));
    }
}
