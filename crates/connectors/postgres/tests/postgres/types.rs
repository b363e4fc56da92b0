//! Every type with its extremes and NULL, the casts, and the values that are refused by name.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    Date32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use arrow::util::display::array_value_to_string;
use segue_connect::ConnectError;
use segue_types::{SqlState, SqlType, UserError};

use crate::support::{capture, config, run};

fn numeric(precision: u8, scale: i8) -> SqlType {
    SqlType::Numeric { precision, scale }
}

fn array(element: SqlType) -> SqlType {
    SqlType::Array(Box::new(element))
}

/// Reads all expressions as columns of one row, and compares each with what is expected.
async fn check(cases: &[(SqlType, &str, &str)]) {
    let names: Vec<String> = (0..cases.len()).map(|index| format!("c{index}")).collect();
    let expressions: Vec<String> = cases
        .iter()
        .zip(&names)
        .map(|((_, expression, _), name)| format!("{expression} AS {name}"))
        .collect();
    let columns: Vec<(&str, SqlType)> =
        cases.iter().zip(&names).map(|((ty, ..), name)| (name.as_str(), ty.clone())).collect();
    let config = config(&format!("SELECT {}", expressions.join(", ")), &columns);
    let rows = capture(&config).await.expect("every value has its place");
    assert_eq!(rows.num_rows(), 1);
    for (index, (ty, expression, expected)) in cases.iter().enumerate() {
        let column = rows.column(index);
        if *expected == "NULL" {
            assert!(column.is_null(0), "{expression} as {ty}");
        } else {
            let found = array_value_to_string(column, 0).expect("it can be shown");
            assert_eq!(&found, expected, "{expression} as {ty}");
        }
    }
}

#[tokio::test]
async fn numbers_keep_every_digit() {
    check(&[
        (SqlType::Boolean, "true", "true"),
        (SqlType::Boolean, "false", "false"),
        (SqlType::SmallInt, "(-32768)::int2", "-32768"),
        (SqlType::Integer, "32767::int2", "32767"),
        (SqlType::BigInt, "(-1)::int2", "-1"),
        (SqlType::Integer, "(-2147483648)::int4", "-2147483648"),
        (SqlType::BigInt, "2147483647", "2147483647"),
        (SqlType::BigInt, "(-9223372036854775808)::int8", "-9223372036854775808"),
        (SqlType::BigInt, "4294967295::oid", "4294967295"),
        (SqlType::SmallInt, "7::int8", "7"),
        (SqlType::Integer, "2.5::numeric", "3"),
        (SqlType::Real, "1.5::float4", "1.5"),
        (SqlType::Double, "0.1::float4", "0.10000000149011612"),
        (SqlType::Double, "'NaN'::float8", "NaN"),
        (SqlType::Double, "'-Infinity'::float8", "-inf"),
        (SqlType::Double, "'NaN'::numeric", "NaN"),
        (SqlType::Double, "12.25::numeric", "12.25"),
        (SqlType::Real, "0.5::float8", "0.5"),
        (
            numeric(30, 0),
            "123456789012345678901234567890::numeric",
            "123456789012345678901234567890",
        ),
        (
            numeric(38, 8),
            "-123456789012345678901234567890.12345678::numeric(38,8)",
            "-123456789012345678901234567890.12345678",
        ),
        (
            SqlType::NUMERIC,
            "9999999999999999999999999999.9999999999::numeric",
            "9999999999999999999999999999.9999999999",
        ),
        (SqlType::NUMERIC, "avg(4::int)", "4.0000000000"),
        (numeric(12, 2), "(-0.005)::numeric", "-0.01"),
        (numeric(12, 2), "1::numeric / 3", "0.33"),
        (numeric(12, 2), "42", "42.00"),
        (numeric(12, 2), "0.25::float8", "0.25"),
        (numeric(12, 2), "'12.34'::money", "12.34"),
        (numeric(4, 4), "0.12345::numeric", "0.1235"),
    ])
    .await;
}

#[tokio::test]
async fn texts_and_bytes_come_as_they_are_and_the_rest_as_postgresql_prints_it() {
    run("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN code AS varchar(3);").await;
    let uuid = "123e4567-e89b-12d3-a456-426614174000";
    check(&[
        (SqlType::Text, "''", ""),
        (SqlType::Text, "'snö ☃'::varchar(20)", "snö ☃"),
        (SqlType::Text, "'ab'::char(4)", "ab  "),
        (SqlType::Text, "'n'::name", "n"),
        (SqlType::Text, "'x'::\"char\"", "x"),
        (SqlType::Text, "'ok'::mood", "ok"),
        (SqlType::Text, "'abc'::code", "abc"),
        (SqlType::Text, "'{\"a\" :1}'::json", "{\"a\" :1}"),
        (SqlType::Text, "'{\"a\" :1}'::jsonb", "{\"a\": 1}"),
        (SqlType::Jsonb, "'{\"b\":2, \"a\":[1,null]}'::jsonb", "{\"a\": [1, null], \"b\": 2}"),
        (SqlType::Jsonb, "'{\"a\" :1}'::json", "{\"a\": 1}"),
        (SqlType::Text, "'<a>é</a>'::xml", "<a>é</a>"),
        (SqlType::Uuid, &format!("'{uuid}'::uuid"), uuid),
        (SqlType::Text, &format!("'{uuid}'::uuid"), uuid),
        (SqlType::Bytea, "'\\x00ff10'::bytea", "00ff10"),
        (SqlType::Text, "'\\x00ff'::bytea", "\\x00ff"),
        (SqlType::Text, "12", "12"),
        (SqlType::Text, "0.1::float8 + 0.2::float8", "0.30000000000000004"),
        (SqlType::Text, "'NaN'::numeric", "NaN"),
        (SqlType::Text, "'192.168.0.0/16'::cidr", "192.168.0.0/16"),
        (SqlType::Text, "point(1, 2)", "(1,2)"),
        (SqlType::Text, "int4range(1, 5)", "[1,5)"),
        (SqlType::Text, "ROW(1, 'a')", "(1,a)"),
        (SqlType::Text, "ARRAY[[1,2],[3,4]]", "{{1,2},{3,4}}"),
        (SqlType::Text, "'infinity'::timestamptz", "infinity"),
        (SqlType::Text, "'2024-02-29 12:00+02'::timestamptz", "2024-02-29 10:00:00+00"),
        (SqlType::Text, "'1 day -1 hours'::interval", "1 day -01:00:00"),
    ])
    .await;
}

#[tokio::test]
async fn dates_and_times_keep_every_microsecond() {
    check(&[
        (SqlType::Date, "'2024-02-29'::date", "2024-02-29"),
        (SqlType::Date, "'1969-12-31'::date", "1969-12-31"),
        (SqlType::Date, "'2024-02-29 23:59'::timestamp", "2024-02-29"),
        (SqlType::Time, "'23:59:59.999999'::time", "23:59:59.999999"),
        (SqlType::Time, "'12:00'::timetz", "12:00:00"),
        (
            SqlType::Timestamp,
            "'1999-12-31 23:59:59.999999'::timestamp",
            "1999-12-31T23:59:59.999999",
        ),
        (SqlType::Timestamp, "'2024-02-29'::date", "2024-02-29T00:00:00"),
        (
            SqlType::Timestamptz,
            "'2024-02-29 12:34:56.789012+02'::timestamptz",
            "2024-02-29T10:34:56.789012Z",
        ),
        (SqlType::Timestamptz, "'2024-02-29 12:00'::timestamp", "2024-02-29T12:00:00Z"),
    ])
    .await;
    let columns = [
        ("d", SqlType::Date),
        ("t", SqlType::Time),
        ("s", SqlType::Timestamp),
        ("i", SqlType::Interval),
    ];
    let query = "SELECT * FROM (VALUES
        ('4713-01-01 BC'::date, '00:00'::time, '4713-01-01 BC'::timestamp, '-1 mon 2 days -3 us'::interval),
        ('5874897-12-31', '23:59:59.999999', '294246-12-31', '100 years'),
        (NULL, NULL, NULL, NULL)) AS v (d, t, s, i)";
    let rows = capture(&config(query, &columns)).await.expect("extremes have their places");
    let dates = rows.column(0).as_primitive::<Date32Type>();
    assert_eq!((dates.value(0), dates.value(1)), (-2_440_550, 2_145_042_905));
    let times = rows.column(1).as_primitive::<Time64MicrosecondType>();
    assert_eq!((times.value(0), times.value(1)), (0, 86_399_999_999));
    let stamps = rows.column(2).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(stamps.value(0), -2_440_550 * 86_400_000_000);
    assert_eq!(stamps.value(1), 9_223_371_158_400_000_000);
    let intervals = rows.column(3).as_primitive::<IntervalMonthDayNanoType>();
    assert_eq!(intervals.value(0), IntervalMonthDayNano::new(-1, 2, -3000));
    assert_eq!(intervals.value(1), IntervalMonthDayNano::new(1200, 0, 0));
    assert!(rows.columns().iter().all(|column| column.is_null(2)));
}

#[tokio::test]
async fn arrays_and_composites_keep_their_nulls() {
    run("CREATE TYPE pair AS (a int4, b text); CREATE DOMAIN ids AS int8[];").await;
    let pair =
        SqlType::Struct(vec![("a".to_owned(), SqlType::BigInt), ("b".to_owned(), SqlType::Text)]);
    check(&[
        (array(SqlType::BigInt), "ARRAY[1, NULL, 3]", "[1, , 3]"),
        (array(SqlType::BigInt), "'{}'::int4[]", "[]"),
        (array(SqlType::BigInt), "NULL::int4[]", "NULL"),
        (array(SqlType::BigInt), "'{5,6}'::ids", "[5, 6]"),
        (array(SqlType::SmallInt), "'[3:4]={7,8}'::int2[]", "[7, 8]"),
        (array(SqlType::Text), "ARRAY['a', 'é', NULL]", "[a, é, ]"),
        (array(SqlType::Text), "ARRAY[DATE '2024-01-02', NULL]", "[2024-01-02, ]"),
        (array(numeric(8, 2)), "ARRAY[1.005, 2]::numeric[]", "[1.01, 2.00]"),
        (array(numeric(8, 2)), "ARRAY[1, 2]", "[1.00, 2.00]"),
        (array(SqlType::Boolean), "ARRAY[true, NULL]", "[true, ]"),
        (array(SqlType::Double), "ARRAY[0.5::float4]", "[0.5]"),
        (array(SqlType::Bytea), "ARRAY['\\x01'::bytea]", "[01]"),
        (array(SqlType::Jsonb), "ARRAY['[1]'::jsonb]", "[[1]]"),
        (
            array(SqlType::Uuid),
            "ARRAY['123e4567-e89b-12d3-a456-426614174000'::uuid]",
            "[123e4567-e89b-12d3-a456-426614174000]",
        ),
        (
            array(SqlType::Timestamptz),
            "ARRAY['2024-01-02 00:00Z'::timestamptz]",
            "[2024-01-02T00:00:00Z]",
        ),
        (pair.clone(), "ROW(1, NULL)::pair", "{a: 1, b: }"),
        (pair.clone(), "NULL::pair", "NULL"),
        (array(pair), "ARRAY[ROW(1, 'x')::pair, NULL]", "[{a: 1, b: x}, ]"),
    ])
    .await;
}

#[tokio::test]
async fn null_is_null_in_every_type() {
    let types = [
        (SqlType::Boolean, "bool"),
        (SqlType::SmallInt, "int2"),
        (SqlType::Integer, "int4"),
        (SqlType::BigInt, "int8"),
        (SqlType::BigInt, "int2"),
        (SqlType::Real, "float4"),
        (SqlType::Double, "float8"),
        (numeric(12, 2), "numeric"),
        (SqlType::Text, "text"),
        (SqlType::Text, "point"),
        (SqlType::Bytea, "bytea"),
        (SqlType::Date, "date"),
        (SqlType::Time, "time"),
        (SqlType::Timestamp, "timestamp"),
        (SqlType::Timestamptz, "timestamptz"),
        (SqlType::Interval, "interval"),
        (SqlType::Uuid, "uuid"),
        (SqlType::Jsonb, "jsonb"),
        (array(SqlType::Text), "text[]"),
    ];
    let texts: Vec<String> = types.iter().map(|(_, name)| format!("NULL::{name}")).collect();
    let cases: Vec<(SqlType, &str, &str)> = types
        .iter()
        .zip(&texts)
        .map(|((ty, _), text)| (ty.clone(), text.as_str(), "NULL"))
        .collect();
    check(&cases).await;
}

async fn refused(declared: SqlType, expression: &str) -> UserError {
    let config = config(&format!("SELECT {expression} AS c"), &[("c", declared)]);
    match capture(&config).await {
        Err(ConnectError::Value(error)) => error,
        other => panic!("{expression} gave {other:?}"),
    }
}

#[tokio::test]
async fn a_value_without_a_place_is_refused_by_its_name_with_a_remedy() {
    let numeric = |scale| SqlType::Numeric { precision: 12, scale };
    for (declared, expression, state, name) in [
        (numeric(2), "'NaN'::numeric", SqlState::NUMERIC_OUT_OF_RANGE, "NaN"),
        (numeric(2), "'-Infinity'::numeric", SqlState::NUMERIC_OUT_OF_RANGE, "-Infinity"),
        (numeric(2), "10000000000::numeric", SqlState::NUMERIC_OUT_OF_RANGE, "numeric(12,2)"),
        (SqlType::NUMERIC, "1::numeric / 3", SqlState::NUMERIC_OUT_OF_RANGE, "10 digits"),
        (array(numeric(2)), "ARRAY['NaN'::numeric]", SqlState::NUMERIC_OUT_OF_RANGE, "NaN"),
        (SqlType::Date, "'infinity'::date", SqlState::DATETIME_OVERFLOW, "date infinity"),
        (SqlType::Timestamp, "'-infinity'::timestamp", SqlState::DATETIME_OVERFLOW, "-infinity"),
        (SqlType::Timestamptz, "'infinity'::timestamptz", SqlState::DATETIME_OVERFLOW, "infinity"),
        (SqlType::Timestamp, "'294276-12-31'::timestamp", SqlState::DATETIME_OVERFLOW, "range"),
        (SqlType::Time, "'24:00:00'::time", SqlState::DATETIME_OVERFLOW, "24:00:00"),
        (array(SqlType::BigInt), "ARRAY[[1],[2]]", SqlState::FEATURE_NOT_SUPPORTED, "2 dimensions"),
    ] {
        let error = refused(declared, expression).await;
        assert_eq!(error.state, state, "{expression}: {error:?}");
        assert!(error.message.starts_with("column \"c\": "), "{expression}: {error:?}");
        assert!(error.message.contains(name), "{expression}: {error:?}");
        assert!(error.hint.is_some(), "{expression}: {error:?}");
    }
}

#[tokio::test]
async fn floats_come_bit_for_bit() {
    let query = "SELECT x::float8 AS x FROM (VALUES ('1.7976931348623157e308'), ('-5e-324'), ('-0'), \
                 ('0.1')) AS v (x)";
    let rows = capture(&config(query, &[("x", SqlType::Double)])).await.expect("floats");
    let found: Vec<u64> =
        rows.column(0).as_primitive::<Float64Type>().values().iter().map(|x| x.to_bits()).collect();
    assert_eq!(found, [f64::MAX, -5e-324, -0.0, 0.1].map(f64::to_bits));
}
