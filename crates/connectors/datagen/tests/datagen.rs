//! Generated rows: the same ones from any position, as many as asked for, no faster than asked for.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{
    Decimal128Type, Float64Type, Int32Type, Int64Type, Schema, TimestampMicrosecondType,
};
use segue_connect::{
    Connector, Format, HasData, Include, IncludeKind, OnError, Options, ReadConfig, ReadEvent,
    RowFormat, StageReader, Start,
};
use segue_connector_datagen::DatagenConnector;
use segue_types::{Boundedness, Position, SplitId, SqlType};

fn config(columns: &[(&str, SqlType)], options: &[(&str, &str)]) -> ReadConfig {
    let mut fields: Vec<_> = columns.iter().map(|(name, ty)| ty.field(name, true)).collect();
    fields.push(SqlType::Text.field("part", true));
    fields.push(SqlType::Text.field("off", true));
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    ReadConfig {
        stage: "s".to_owned(),
        options: Options(options.collect()),
        format: Format {
            rows: RowFormat::Plain,
            encode: "json".to_owned(),
            options: Options(BTreeMap::new()),
        },
        start: Start::Earliest,
        stop: None,
        schema: Arc::new(Schema::new(fields)),
        declared_columns: columns.len(),
        key: Vec::new(),
        includes: vec![
            Include { kind: IncludeKind::Partition, column: "part".to_owned() },
            Include { kind: IncludeKind::Offset, column: "off".to_owned() },
        ],
        on_error: OnError::DeadLetter,
    }
}

async fn open(config: &ReadConfig) -> Box<dyn StageReader> {
    let definition = DatagenConnector.pin(config).await.expect("pinned");
    let every: Vec<usize> = (0..config.schema.fields().len()).collect();
    DatagenConnector.open(config, &definition, &every).await.expect("opened")
}

/// Rows of a split from `from` to its end or `until`, which must come.
async fn read(stage: &dyn StageReader, split: &str, from: u64, until: Option<u64>) -> RecordBatch {
    let position = |number: u64| Position::new(number.to_string());
    let until = until.map(position);
    let reader = stage.read(&SplitId::new(split), &position(from), until.as_ref()).await;
    let mut reader = reader.expect("opened");
    let mut batches = Vec::new();
    loop {
        match reader.next().await.expect("generated") {
            ReadEvent::Rows(rows) => batches.push(rows.changes.rows),
            ReadEvent::Progress { .. } => {}
            ReadEvent::Done { at } => {
                assert!(until.is_none_or(|until| until == at));
                break;
            }
        }
    }
    let schema = batches.first().expect("at least one row").schema();
    concat_batches(&schema, &batches).expect("one schema")
}

fn every_type() -> Vec<(&'static str, SqlType)> {
    vec![
        ("b", SqlType::Boolean),
        ("i2", SqlType::SmallInt),
        ("i4", SqlType::Integer),
        ("i8", SqlType::BigInt),
        ("f4", SqlType::Real),
        ("f8", SqlType::Double),
        ("n", SqlType::Numeric { precision: 8, scale: 2 }),
        ("t", SqlType::Text),
        ("y", SqlType::Bytea),
        ("d", SqlType::Date),
        ("c", SqlType::Time),
        ("ts", SqlType::Timestamp),
        ("tz", SqlType::Timestamptz),
        ("v", SqlType::Interval),
        ("u", SqlType::Uuid),
        ("j", SqlType::Jsonb),
    ]
}

#[tokio::test]
async fn every_row_can_be_made_again_from_any_position() {
    let config = config(&every_type(), &[("rows", "20000"), ("datagen.rows.per.second", "0")]);
    let stage = open(&config).await;
    let whole = read(&*stage, "0", 0, None).await;
    assert_eq!(whole.num_rows(), 20_000);
    for from in [1, 8191, 8192, 12_345, 19_999] {
        let rest = read(&*stage, "0", from, None).await;
        assert_eq!(rest, whole.slice(from as usize, 20_000 - from as usize), "from {from}");
        let first = read(&*stage, "0", 0, Some(from)).await;
        assert_eq!(first, whole.slice(0, from as usize), "until {from}");
    }
    for column in whole.columns() {
        assert_eq!(column.null_count(), 0);
    }
    let different = |index: usize| {
        whole.column(index).as_string::<i32>().iter().flatten().collect::<HashSet<_>>().len()
    };
    assert_eq!((different(7), different(14)), (20_000, 20_000));
}

#[tokio::test]
async fn settings_shape_the_values() {
    let columns = [
        ("id", SqlType::BigInt),
        ("small", SqlType::Integer),
        ("price", SqlType::Numeric { precision: 6, scale: 2 }),
        ("f", SqlType::Double),
        ("name", SqlType::Text),
        ("at", SqlType::Timestamptz),
    ];
    let config = config(
        &columns,
        &[
            ("datagen.rows.per.second", "0"),
            ("fields.id.kind", "sequence"),
            ("fields.id.start", "5"),
            ("fields.id.end", "5004"),
            ("fields.small.min", "-3"),
            ("fields.small.max", "3"),
            ("fields.price.min", "0.5"),
            ("fields.price.max", "0.75"),
            ("fields.price.seed", "7"),
            ("fields.f.min", "-1"),
            ("fields.f.max", "1"),
            ("fields.name.length", "3"),
            ("fields.at.basetime", "2024-01-01T00:00:00Z"),
            ("fields.at.max_past", "1h"),
        ],
    );
    let capabilities = DatagenConnector.describe(&config).expect("good");
    assert_eq!(capabilities.boundedness, Boundedness::Bounded);
    let stage = open(&config).await;
    let rows = read(&*stage, "0", 0, None).await;
    let ids = rows.column(0).as_primitive::<Int64Type>().values();
    assert!(ids.iter().copied().eq(5..=5004));
    let small: HashSet<i32> =
        rows.column(1).as_primitive::<Int32Type>().values().iter().copied().collect();
    assert_eq!(small, (-3..=3).collect());
    let prices: HashSet<i128> =
        rows.column(2).as_primitive::<Decimal128Type>().values().iter().copied().collect();
    assert_eq!(prices, (50..=75).collect());
    let floats = rows.column(3).as_primitive::<Float64Type>().values();
    assert!(floats.iter().all(|f| (-1.0..1.0).contains(f)) && floats.iter().any(|f| *f > 0.9));
    assert!(rows.column(4).as_string::<i32>().iter().flatten().all(|name| name.len() == 3));
    let base = 1_704_067_200_000_000;
    let times = rows.column(5).as_primitive::<TimestampMicrosecondType>().values();
    assert!(times.iter().all(|at| (base - 3_600_000_000..=base).contains(at)));
}

#[tokio::test]
async fn splits_share_the_rows_without_gap_or_overlap() {
    let config = config(
        &[("id", SqlType::BigInt)],
        &[
            ("datagen.rows.per.second", "0"),
            ("datagen.split.num", "3"),
            ("rows", "100"),
            ("fields.id.kind", "sequence"),
        ],
    );
    let stage = open(&config).await;
    let splits = stage.discover().await.expect("known");
    assert!(splits.sealed);
    let bounds: Vec<_> =
        splits.splits.iter().map(|split| split.bound.as_ref().map(Position::as_str)).collect();
    assert_eq!(bounds, [Some("34"), Some("33"), Some("33")]);
    let mut ids = Vec::new();
    for split in ["0", "1", "2"] {
        let rows = read(&*stage, split, 0, None).await;
        ids.extend_from_slice(rows.column(0).as_primitive::<Int64Type>().values());
        let parts = rows.column(1).as_string::<i32>();
        assert!(parts.iter().flatten().all(|part| part == split));
        assert_eq!(rows.column(2).as_string::<i32>().value(7), "7");
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..100));
}

#[tokio::test]
async fn a_paced_read_waits_for_its_rows_and_a_later_one_catches_up() {
    let config = config(&[("id", SqlType::BigInt)], &[("datagen.rows.per.second", "200")]);
    let capabilities = DatagenConnector.describe(&config).expect("good");
    assert!(capabilities.latest && capabilities.boundedness == Boundedness::Continuous);
    let began = Instant::now();
    let stage = open(&config).await;
    let rows = read(&*stage, "0", 0, Some(60)).await;
    assert_eq!(rows.num_rows(), 60);
    assert!(began.elapsed() >= Duration::from_millis(290), "{:?}", began.elapsed());
    let split = SplitId::new("0");
    let latest = stage.latest(&split).await.expect("known").expect("known");
    assert_eq!(stage.has_data(&split, &Position::new("0")).await, Ok(HasData::Yes));
    assert_eq!(stage.has_data(&split, &Position::new("99999999")).await, Ok(HasData::No));
    let latest: u64 = latest.position.as_str().parse().expect("a row number");
    assert!(latest >= 60);
    // All that exists comes in the first delivery.
    let mut reader = stage.read(&split, &Position::new("0"), None).await.expect("opened");
    let ReadEvent::Rows(rows) = reader.next().await.expect("generated") else {
        panic!("rows exist")
    };
    assert!(rows.changes.rows.num_rows() as u64 >= latest);
    // A dropped wait owns no row.
    let mut next = rows.next.as_str().parse::<u64>().expect("a row number");
    for _ in 0..20 {
        if let Ok(event) = tokio::time::timeout(Duration::from_millis(1), reader.next()).await {
            let ReadEvent::Rows(rows) = event.expect("generated") else { panic!("rows exist") };
            next += rows.changes.rows.num_rows() as u64;
            assert_eq!(rows.next.as_str(), next.to_string());
        }
    }
}

#[tokio::test]
async fn wrong_settings_are_refused_by_name() {
    let columns = [("id", SqlType::SmallInt), ("t", SqlType::Text)];
    for (option, value, message) in [
        ("fields.id.knid", "x", "unknown option \"fields.id.knid\" of connector \"datagen\""),
        ("fields.ix.kind", "random", "unknown option \"fields.ix.kind\" of connector \"datagen\""),
        ("fields.id.kind", "none", "invalid value for option \"fields.id.kind\": \"none\""),
        (
            "fields.id.max",
            "40000",
            "generated values of column \"id\" are out of range for type smallint",
        ),
        ("fields.id.max", "-1", "invalid value for option \"fields.id.max\": \"-1\""),
        ("fields.t.kind", "sequence", "column \"t\" of type text cannot be a sequence"),
        (
            "datagen.rows.per.second",
            "-1",
            "invalid value for option \"datagen.rows.per.second\": \"-1\"",
        ),
        ("datagen.split.num", "0", "invalid value for option \"datagen.split.num\": \"0\""),
        ("rows", "many", "invalid value for option \"rows\": \"many\""),
    ] {
        let error = DatagenConnector.describe(&config(&columns, &[(option, value)]));
        assert_eq!(error.expect_err(option).to_string(), message);
    }
}
