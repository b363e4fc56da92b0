//! Values in both formats, against what PostgreSQL 15 prints and sends.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray,
    NullArray, RecordBatch, StringArray, StringViewArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int32Type, IntervalMonthDayNano, Schema, TimeUnit};
use bytes::BytesMut;
use segue_types::SqlType;

use super::{Column, Format, Forms, Rows, Style, Zone, to_text};

#[expect(clippy::needless_pass_by_value, reason = "each test makes its array in the call")]
fn text(field: &Field, array: ArrayRef) -> Vec<String> {
    text_in(Zone::Utc, field, &array)
}

fn text_in(zone: Zone, field: &Field, array: &ArrayRef) -> Vec<String> {
    let column = Column::new(field, array).expect("it can be shown");
    let style = Style { zone, ..Style::default() };
    (0..array.len())
        .map(|row| to_text(&column, row, &style).unwrap_or_else(|| "NULL".to_owned()))
        .collect()
}

fn of(ty: &SqlType, array: ArrayRef) -> Vec<String> {
    text(&ty.field("c", true), array)
}

fn binary(field: &Field, array: ArrayRef) -> Vec<u8> {
    let schema = Arc::new(Schema::new(vec![field.clone()]));
    let batch = RecordBatch::try_new(schema, vec![array]).expect("one column");
    let rows = Rows::new(&batch, &[Format::Binary]).expect("it can be shown");
    let mut out = BytesMut::new();
    rows.write(0, &Style::default(), &mut out);
    // 'D', length, number of fields, length of the field.
    out[11..].to_vec()
}

#[test]
fn numbers_are_printed_as_postgres_prints_them() {
    assert_eq!(of(&SqlType::Boolean, Arc::new(BooleanArray::from(vec![true, false]))), ["t", "f"]);
    assert_eq!(of(&SqlType::SmallInt, Arc::new(Int16Array::from(vec![-7]))), ["-7"]);
    assert_eq!(
        of(&SqlType::BigInt, Arc::new(Int64Array::from(vec![i64::MIN]))),
        [i64::MIN.to_string()]
    );
    let doubles = [
        (0.1, "0.1"),
        (-0.0, "-0"),
        (1e15, "1e+15"),
        (123_456_789_012_345.0, "123456789012345"),
        (1e-5, "1e-05"),
        (0.000_123, "0.000123"),
        (1.5e300, "1.5e+300"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
        (100.0, "100"),
    ];
    for (value, expected) in doubles {
        assert_eq!(of(&SqlType::Double, Arc::new(Float64Array::from(vec![value]))), [expected]);
    }
    for (value, expected) in [(1e6_f32, "1e+06"), (123_456.0, "123456"), (0.1, "0.1")] {
        assert_eq!(of(&SqlType::Real, Arc::new(Float32Array::from(vec![value]))), [expected]);
    }
}

#[test]
fn numerics_keep_all_38_digits_and_their_scale() {
    let numeric = |value: i128, precision: u8, scale: i8| {
        let array = Decimal128Array::from(vec![value])
            .with_precision_and_scale(precision, scale)
            .expect("it fits");
        of(&SqlType::Numeric { precision, scale }, Arc::new(array)).remove(0)
    };
    assert_eq!(numeric(1_250, 12, 2), "12.50");
    assert_eq!(numeric(-5, 12, 2), "-0.05");
    assert_eq!(numeric(0, 12, 2), "0.00");
    let nines = 99_999_999_999_999_999_999_999_999_999_999_999_999_i128;
    assert_eq!(numeric(nines, 38, 0), nines.to_string());
    assert_eq!(numeric(-nines, 38, 38), format!("-0.{}", nines));
    // Without precision and scale, as many digits as the value has.
    assert_eq!(numeric(15_000_000_000, 38, 10), "1.5");
    let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
    assert_eq!(text(&Field::new("c", DataType::UInt64, true), unsigned), [u64::MAX.to_string()]);
}

#[test]
fn a_binary_numeric_is_groups_of_four_digits() {
    let encode = |value: i128, scale: i8| {
        let array = Decimal128Array::from(vec![value])
            .with_precision_and_scale(38, scale)
            .expect("it fits");
        binary(&Field::new("c", DataType::Decimal128(38, scale), true), Arc::new(array))
    };
    // 12345.678: groups 1, 2345, 6780; weight 1; positive; scale 3.
    assert_eq!(encode(12_345_678, 3), [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 9, 41, 26, 124]);
    // -0.0001: one group of weight -1.
    assert_eq!(encode(-1, 4), [0, 1, 255, 255, 64, 0, 0, 4, 0, 1]);
    // Zero has no group.
    assert_eq!(encode(0, 2), [0, 0, 0, 0, 0, 0, 0, 2]);
    // 10000: the empty last group is left out.
    assert_eq!(encode(10_000, 0), [0, 1, 0, 1, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn times_are_printed_in_iso_style_and_in_the_zone_of_the_session() {
    let day: ArrayRef = Arc::new(Date32Array::from(vec![0, -719_163, 19_782]));
    assert_eq!(of(&SqlType::Date, day), ["1970-01-01", "0001-12-31 BC", "2024-02-29"]);
    let time: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![3_723_000_000, 1]));
    assert_eq!(of(&SqlType::Time, time), ["01:02:03", "00:00:00.000001"]);
    let moments = vec![-1, 1_709_164_800_500_000];
    let timestamp: ArrayRef = Arc::new(TimestampMicrosecondArray::from(moments.clone()));
    assert_eq!(
        of(&SqlType::Timestamp, timestamp),
        ["1969-12-31 23:59:59.999999", "2024-02-29 00:00:00.5"]
    );
    let zoned: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from(moments).with_timezone("+00:00"));
    let field = SqlType::Timestamptz.field("c", true);
    assert_eq!(text(&field, Arc::clone(&zoned))[1], "2024-02-29 00:00:00.5+00");
    let kolkata = Zone::parse("Asia/Kolkata").expect("a zone");
    assert_eq!(text_in(kolkata, &field, &zoned)[1], "2024-02-29 05:30:00.5+05:30");
}

#[test]
fn a_session_may_have_risingwaves_forms() {
    let style = Style { forms: Forms::RisingWave, ..Style::default() };
    let shown = |ty: &SqlType, array: ArrayRef| {
        let column = Column::new(&ty.field("c", true), &array).expect("it can be shown");
        to_text(&column, 0, &style).expect("it is not NULL")
    };
    let numeric = Decimal128Array::from(vec![71_025_i128 * 10_i128.pow(14)]);
    let numeric = numeric.with_data_type(DataType::Decimal128(38, 16));
    let ty = SqlType::Numeric { precision: 38, scale: 16 };
    assert_eq!(shown(&ty, Arc::new(numeric)), "710.25");
    let written = Decimal128Array::from(vec![1_500]).with_data_type(DataType::Decimal128(4, 3));
    let ty = SqlType::Numeric { precision: 4, scale: 3 };
    assert_eq!(shown(&ty, Arc::new(written)), "1.500");
    let moment = TimestampMicrosecondArray::from(vec![0]).with_timezone("+00:00");
    assert_eq!(shown(&SqlType::Timestamptz, Arc::new(moment)), "1970-01-01 00:00:00+00:00");
}

#[test]
fn intervals_are_printed_in_postgres_style() {
    let cases = [
        ((14, 3, 14_706_700_000_000), "1 year 2 mons 3 days 04:05:06.7"),
        ((0, 0, 0), "00:00:00"),
        ((-1, 2, 0), "-1 mons +2 days"),
        ((0, 1, -3_600_000_000_000), "1 day -01:00:00"),
        ((0, 0, 90_000_000_000_000), "25:00:00"),
    ];
    for ((months, days, ns), expected) in cases {
        let value = IntervalMonthDayNano::new(months, days, ns);
        let array: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![value]));
        assert_eq!(of(&SqlType::Interval, array), [expected]);
    }
}

#[test]
fn lists_and_records_are_quoted_where_their_text_would_be_misread() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None, Some(3)]),
        Some(vec![]),
        None,
    ]);
    let ty = SqlType::Array(Box::new(SqlType::Integer));
    assert_eq!(of(&ty, Arc::new(list)), ["{1,NULL,3}", "{}", "NULL"]);

    let members = StructArray::from(vec![
        (
            Arc::new(Field::new("a", DataType::Utf8, true)),
            Arc::new(StringArray::from(vec![Some("x, \"y\""), None])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("b", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef,
        ),
    ]);
    let field = Field::new("c", members.data_type().clone(), true);
    assert_eq!(text(&field, Arc::new(members)), ["(\"x, \"\"y\"\"\",1)", "(,2)"]);

    let mut texts = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
    texts.append_value([Some("a b"), Some(""), Some("null"), Some("q\"")]);
    let texts: ArrayRef = Arc::new(texts.finish());
    let field = Field::new("c", texts.data_type().clone(), true);
    assert_eq!(text(&field, texts), ["{\"a b\",\"\",\"null\",\"q\\\"\"}"]);
}

#[test]
fn a_binary_list_carries_its_element_type_and_bounds() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(5), None])]);
    let field = SqlType::Array(Box::new(SqlType::Integer)).field("c", true);
    let expected = [
        0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5, 255,
        255, 255, 255,
    ];
    assert_eq!(binary(&field, Arc::new(list)), expected);
}

#[test]
fn a_binary_list_of_lists_has_two_dimensions() {
    let nested = |rows: Vec<Vec<i32>>| {
        let lengths = rows.iter().map(Vec::len).collect::<Vec<_>>();
        let items: ArrayRef = Arc::new(Int32Array::from(rows.concat()));
        let inner = Arc::new(Field::new("item", DataType::Int32, true));
        let outer = Arc::new(Field::new("item", DataType::List(Arc::clone(&inner)), true));
        let lists = ListArray::new(inner, OffsetBuffer::from_lengths(lengths.clone()), items, None);
        let all = OffsetBuffer::from_lengths([lengths.len()]);
        let array = ListArray::new(outer, all, Arc::new(lists), None);
        let ty = SqlType::Array(Box::new(SqlType::Array(Box::new(SqlType::Integer))));
        binary(&ty.field("c", true), Arc::new(array))
    };
    let header = |bytes: &[u8]| bytes.chunks(4).take(8).map(|word| word[3]).collect::<Vec<_>>();
    // Dimensions, NULLs, int4, two lengths with lower bounds, the first element's length.
    assert_eq!(header(&nested(vec![vec![1, 2, 3], vec![4, 5, 6]])), [2, 0, 23, 2, 1, 3, 1, 4]);
    assert_eq!(header(&nested(vec![vec![1, 2], vec![3]]))[..5], [1, 0, 23, 3, 1]);
}

#[test]
fn uuid_jsonb_bytea_and_timestamps_have_their_binary_forms() {
    let uuid: ArrayRef = Arc::new(StringArray::from(vec!["00112233-4455-6677-8899-aabbccddeeff"]));
    let expected: Vec<u8> = (0..16).map(|i| i * 17).collect();
    assert_eq!(binary(&SqlType::Uuid.field("c", true), uuid), expected);
    let json: ArrayRef = Arc::new(StringArray::from(vec!["{}"]));
    assert_eq!(binary(&SqlType::Jsonb.field("c", true), json), b"\x01{}");
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\x00\xff"[..]]));
    assert_eq!(binary(&SqlType::Bytea.field("c", true), Arc::clone(&bytes)), b"\x00\xff");
    assert_eq!(of(&SqlType::Bytea, bytes), ["\\x00ff"]);
    let epoch: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![946_684_800_000_001]));
    assert_eq!(binary(&SqlType::Timestamp.field("c", true), epoch), [0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn what_a_query_computes_in_other_arrow_types_is_shown_all_the_same() {
    let view: ArrayRef = Arc::new(StringViewArray::from(vec!["a"]));
    assert_eq!(text(&Field::new("c", DataType::Utf8View, true), view), ["a"]);
    let nothing: ArrayRef = Arc::new(NullArray::new(2));
    assert_eq!(text(&Field::new("c", DataType::Null, true), nothing), ["NULL", "NULL"]);
    let nanos: ArrayRef =
        Arc::new(arrow::array::TimestampNanosecondArray::from(vec![1_500_000_000]));
    let field = Field::new("c", DataType::Timestamp(TimeUnit::Nanosecond, None), true);
    assert_eq!(text(&field, nanos), ["1970-01-01 00:00:01.5"]);
}
