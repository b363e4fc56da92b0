//! JSON records into every type, one bad record among good ones, and serde_json as the judge.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{Schema, SchemaRef};
use proptest::prelude::*;
use segue_types::SqlType;
use serde_json::{Value, json};

use super::{JsonDecoder, JsonOptions};

fn schema(columns: &[(&str, SqlType)]) -> SchemaRef {
    let fields = columns.iter().map(|(name, ty)| ty.field(name, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn shown(batch: &RecordBatch, row: usize) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns = batch.columns().iter();
    let text = |array| ArrayFormatter::try_new(array, &options).expect("a plain type");
    columns.map(|array| text(array.as_ref()).value(row).to_string()).collect()
}

/// The value that one JSON value becomes, or the reason why it does not.
fn one(ty: &SqlType, json: &str) -> Result<String, String> {
    let mut decoder = JsonDecoder::new(schema(&[("c", ty.clone())]), &[0], JsonOptions::default());
    let decoded = decoder.decode(format!("{{\"c\": {json} }}").as_bytes());
    decoded.map_err(|error| error.to_string())?;
    Ok(shown(&decoder.finish(), 0).remove(0))
}

#[test]
fn every_type_takes_its_json_spellings() {
    let numeric = SqlType::Numeric { precision: 6, scale: 2 };
    let ints = SqlType::Array(Box::new(SqlType::Integer));
    let point = SqlType::Struct(vec![
        ("x".to_owned(), SqlType::Integer),
        ("Names".to_owned(), SqlType::Array(Box::new(SqlType::Text))),
    ]);
    let cases = [
        (SqlType::Boolean, "true", "true"),
        (SqlType::Boolean, "\"no\"", "false"),
        (SqlType::SmallInt, "-32768", "-32768"),
        (SqlType::Integer, "\"12\"", "12"),
        (SqlType::Integer, "1.2e1", "12"),
        (SqlType::BigInt, "9223372036854775807", "9223372036854775807"),
        (SqlType::BigInt, "-9223372036854775808", "-9223372036854775808"),
        (SqlType::Real, "0.5", "0.5"),
        (SqlType::Double, "1e3", "1000.0"),
        (SqlType::Double, "\"NaN\"", "NaN"),
        (SqlType::Double, "\"-Infinity\"", "-inf"),
        (numeric.clone(), "0.005", "0.01"),
        (numeric, "\"-12.3\"", "-12.30"),
        (SqlType::NUMERIC, "0.1", "0.1000000000"),
        (SqlType::Text, r#""a\u00e9\n😀""#, "aé\n😀"),
        (SqlType::Text, "1.50", "1.50"),
        (SqlType::Text, "true", "true"),
        (SqlType::Text, r#"{"a" :[1]}"#, r#"{"a" :[1]}"#),
        (SqlType::Bytea, r#""\\x00ff""#, "00ff"),
        (SqlType::Bytea, r#""aGk=""#, "6869"),
        (SqlType::Date, "\"2024-02-29\"", "2024-02-29"),
        (SqlType::Date, "1", "1970-01-02"),
        (SqlType::Time, "\"01:02:03.000004\"", "01:02:03.000004"),
        (SqlType::Timestamp, "\"2024-02-29T01:02:03\"", "2024-02-29T01:02:03"),
        (SqlType::Timestamptz, "\"2024-02-29 01:02:03+01\"", "2024-02-29T00:02:03Z"),
        (SqlType::Timestamptz, "1500", "1970-01-01T00:00:01.500Z"),
        (SqlType::Timestamptz, "1500.25", "1970-01-01T00:00:01.500250Z"),
        (
            SqlType::Uuid,
            r#""{A0EEBC999C0B4EF8BB6D6BB9BD380A11}""#,
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        (SqlType::Jsonb, r#"{"b":1,"a":[ ]}"#, r#"{"a": [], "b": 1}"#),
        (SqlType::Jsonb, "\"x\"", "\"x\""),
        (ints.clone(), "[1, null,\"3\"]", "[1, NULL, 3]"),
        (ints.clone(), "[]", "[]"),
        (ints.clone(), "\"{1,2}\"", "[1, 2]"),
        (point.clone(), r#"{"names": ["a"], "y": {}, "x": 1}"#, "{x: 1, Names: [a]}"),
        (point.clone(), "{}", "{x: NULL, Names: NULL}"),
    ];
    for (ty, json, expected) in cases {
        assert_eq!(one(&ty, json).as_deref(), Ok(expected), "{json} as {ty}");
    }
    for ty in [SqlType::Text, SqlType::Jsonb, SqlType::BigInt, ints, point] {
        assert_eq!(one(&ty, "null").as_deref(), Ok("NULL"), "{ty}");
    }
}

#[test]
fn values_without_a_place_are_refused_with_column_and_reason() {
    let numeric = SqlType::Numeric { precision: 6, scale: 2 };
    let cases = [
        (SqlType::SmallInt, "40000", "\"40000\" is out of range for smallint"),
        (SqlType::BigInt, "1e30", "\"1e30\" is out of range for bigint"),
        (SqlType::BigInt, "1.5", "\"1.5\" is not a valid bigint"),
        (SqlType::Double, "1e400", "\"1e400\" is out of range for double precision"),
        (numeric, "12345", "\"12345\" is out of range for numeric(6,2)"),
        (SqlType::NUMERIC, "\"abc\"", "\"abc\" is not a valid numeric"),
        (SqlType::Integer, "true", "\"true\" is not a valid integer"),
        (SqlType::Integer, "{\"a\":1}", "\"{\"a\":1}\" is not a valid integer"),
        (SqlType::Bytea, "1234", "\"1234\" is not a valid bytea"),
        (SqlType::Array(Box::new(SqlType::Integer)), "[1,\"x\"]", "\"x\" is not a valid integer"),
    ];
    for (ty, json, reason) in cases {
        let expected = Err(format!("column \"c\": {reason}"));
        assert_eq!(one(&ty, json), expected, "{json} as {ty}");
    }
}

fn three_columns() -> SchemaRef {
    schema(&[
        ("id", SqlType::BigInt),
        ("name", SqlType::Text),
        ("tags", SqlType::Array(Box::new(SqlType::Text))),
    ])
}

fn decode(projection: &[usize], records: &[&str]) -> Vec<Vec<String>> {
    let mut decoder = JsonDecoder::new(three_columns(), projection, JsonOptions::default());
    for record in records {
        decoder.decode(record.as_bytes()).expect("a good record");
    }
    let batch = decoder.finish();
    (0..batch.num_rows()).map(|row| shown(&batch, row)).collect()
}

#[test]
fn fields_come_in_any_order_and_only_the_wanted_ones_are_kept() {
    let rows = decode(
        &[1, 0],
        &[
            r#"{"id":1,"name":"a","more":{"x":[1]},"tags":["t"]}"#,
            r#"{"name":"b","id":2}"#,
            r#"{"tags":["t"],"id":3}"#,
            r#"{"n\u0061me":"d","id":4}"#,
            r#"{"id":4,"id":5,"name":"e","name":null}"#,
            r#"{"NAME":"f","ID":6}"#,
            r#"{"name":"g","NAME":"no","id":7}"#,
            r#"{"NAME":"no","name":"h","id":8}"#,
            "{}",
        ],
    );
    let expected = [
        ["a", "1"],
        ["b", "2"],
        ["NULL", "3"],
        ["d", "4"],
        ["NULL", "5"],
        ["f", "6"],
        ["g", "7"],
        ["h", "8"],
        ["NULL", "NULL"],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_projection_without_columns_still_counts_rows() {
    let mut decoder = JsonDecoder::new(three_columns(), &[], JsonOptions::default());
    decoder.decode(b"{\"id\":1}").expect("a good record");
    assert!(decoder.decode(b"{\"id\":1").is_err());
    assert_eq!((decoder.len(), decoder.bytes()), (1, 8));
    assert_eq!(decoder.finish().num_rows(), 1);
    assert!(decoder.is_empty());
}

#[test]
fn a_record_is_one_object_and_nothing_more() {
    let mut decoder = JsonDecoder::new(three_columns(), &[0], JsonOptions::default());
    for record in [
        "",
        " ",
        "1",
        "[]",
        "null",
        "{\"id\":1}{\"id\":2}",
        "{\"id\":1},",
        "{\"id\":1",
        "{\"id\":1,}",
        "{\"id\":1,\"x\":tru}",
        "{\"id\":1,\"x\":\"\\q\"}",
        "{id:1}",
        "{\"id\" 1}",
        "{\"id\":01}",
    ] {
        assert!(decoder.decode(record.as_bytes()).is_err(), "{record}");
    }
    assert!(decoder.decode(b"{\"id\":1,\"x\":\"\xff\"}").is_err());
    assert_eq!(decoder.len(), 0);
    decoder.decode(b" {\"id\" : 1 } \r\n").expect("white space is free");
}

#[test]
fn a_record_without_a_value_keeps_its_key_alone() {
    let fields = vec![
        SqlType::BigInt.field("id", false),
        SqlType::Text.field("must", false),
        SqlType::Text.field("may", true),
    ];
    let mut decoder =
        JsonDecoder::new(Arc::new(Schema::new(fields)), &[2, 0, 1], JsonOptions::default());
    decoder.append_key_only(b"{\"id\":7}", &[1]).expect("an object");
    decoder.append_key_only(b"8", &[1]).expect("a bare value");
    decoder.append_key_only(b"\"9\"", &[1]).expect("a JSON string");
    for key in [&b"x"[..], b"", b"{}", b"{\"id\":null}", b"null", b"\xff"] {
        assert!(decoder.append_key_only(key, &[1]).is_err());
    }
    let batch = decoder.finish();
    assert_eq!(batch.column(1).as_primitive::<Int64Type>().values(), &[7, 8, 9]);
    assert_eq!(batch.column(0).null_count(), 3);
}

#[test]
fn a_text_key_need_not_be_json() {
    let mut decoder = JsonDecoder::new(three_columns(), &[0, 1], JsonOptions::default());
    decoder.append_key_only(b"plain text", &[1]).expect("a text");
    decoder.append_key_only(b"\"json\"", &[1]).expect("a text");
    let batch = decoder.finish();
    assert_eq!(shown(&batch, 0), ["NULL", "plain text"]);
    assert_eq!(shown(&batch, 1), ["NULL", "json"]);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|quarters| json!(f64::from(quarters) / 4.0)),
        "\\PC{0,40}".prop_map(Value::from),
        "[\"\\\\\n\t\u{1}a]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]{0,2}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn mixed_columns() -> SchemaRef {
    schema(&[
        ("i", SqlType::BigInt),
        ("f", SqlType::Double),
        ("t", SqlType::Text),
        ("j", SqlType::Jsonb),
        ("a", SqlType::Array(Box::new(SqlType::Array(Box::new(SqlType::Text))))),
        (
            "s",
            SqlType::Struct(vec![
                ("x".to_owned(), SqlType::Text),
                ("y".to_owned(), SqlType::BigInt),
            ]),
        ),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_serde_json_reads_is_read_alike(
        i in any::<i64>(), f in any::<f64>().prop_filter("JSON has no others", |f| f.is_finite()),
        t in "\\PC{0,50}|[\"\\\\\n\t\u{1}é]{0,20}", j in json_value(), pretty in any::<bool>(),
    ) {
        let record = json!({ "extra": j, "t": t, "j": j, "f": f, "more": [j], "i": i });
        let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
        let text = write(&record);
        let text = text.expect("a value can be written");
        let mut decoder = JsonDecoder::new(mixed_columns(), &[0, 1, 2, 3], JsonOptions::default());
        decoder.decode(text.as_bytes()).expect("serde_json wrote it");
        let batch = decoder.finish();
        prop_assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), i);
        let float = batch.column(1).as_primitive::<arrow::datatypes::Float64Type>().value(0);
        prop_assert_eq!(float.to_bits(), f.to_bits());
        prop_assert_eq!(batch.column(2).as_string::<i32>().value(0), t);
        if j.is_null() {
            prop_assert!(batch.column(3).is_null(0));
        } else {
            let written = batch.column(3).as_string::<i32>().value(0);
            let back: Value = serde_json::from_str(written).expect("JSON");
            prop_assert_eq!(loose(&back), loose(&j));
        }
    }

    #[test]
    fn every_damaged_record_is_judged_as_serde_json_does(
        j in json_value(), at in any::<prop::sample::Index>(),
        with in prop::sample::select(&b"{}[]\",:0-e.tn\\u \n\x01\xff"[..]), mode in 0..3_u8,
    ) {
        let mut bytes = serde_json::to_vec(&json!({ "extra": j, "i": 1 })).expect("a value can be written");
        let at = at.index(bytes.len());
        match mode {
            0 => bytes[at] = with,
            1 => bytes.insert(at, with),
            _ => { bytes.remove(at); }
        }
        let mut decoder = JsonDecoder::new(mixed_columns(), &[], JsonOptions::default());
        let judged = serde_json::from_slice::<Value>(&bytes);
        // serde_json refuses floats beyond f64, which is no matter of form.
        prop_assume!(!judged.as_ref().is_err_and(|error| error.to_string().contains("out of range")));
        let well_formed = judged.is_ok_and(|value| value.is_object());
        prop_assert_eq!(decoder.decode(&bytes).is_ok(), well_formed, "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn bad_records_leave_no_trace(
        values in prop::collection::vec((json_value(), any::<bool>(), any::<prop::sample::Index>()), 1..20),
    ) {
        let every: Vec<usize> = (0..6).collect();
        let mut mixed = JsonDecoder::new(mixed_columns(), &every, JsonOptions::default());
        let mut alone = JsonDecoder::new(mixed_columns(), &every, JsonOptions::default());
        for (value, bad, cut) in values {
            let good = serde_json::to_vec(&json!({
                "i": 1, "f": 0.5, "t": value, "j": value, "a": [["x"], null, []], "s": { "x": value, "y": 2 },
            })).expect("a value can be written");
            if bad {
                let cut = cut.index(good.len());
                prop_assert!(mixed.decode(&good[..cut]).is_err());
                let wrong = String::from_utf8_lossy(&good).replace("\"y\":2", "\"y\":{}");
                prop_assert!(mixed.decode(wrong.as_bytes()).is_err());
            }
            mixed.decode(&good).expect("a good record");
            alone.decode(&good).expect("a good record");
        }
        prop_assert_eq!(mixed.bytes(), alone.bytes());
        prop_assert_eq!(mixed.finish(), alone.finish());
    }
}

/// Numbers by value: jsonb keeps `1.0` and writes `1e15` out.
fn loose(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(loose).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), loose(value))).collect())
        }
        other => other.clone(),
    }
}
