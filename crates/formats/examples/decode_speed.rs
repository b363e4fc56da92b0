//! Prints how many JSON records per second one core decodes: 250-byte records of 8 fields, all
//! columns and some.
//!
//! `cargo run --release -p segue-formats --example decode_speed`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_schema::{Schema, SchemaRef};
use segue_formats::{JsonDecoder, JsonOptions};
use segue_types::SqlType;

const RECORDS: usize = 200_000;
const ROUNDS: usize = 5;
const BATCH_ROWS: usize = 8192;

fn main() {
    let records = records();
    let bytes: usize = records.iter().map(Vec::len).sum();
    println!("{RECORDS} records of {} bytes", bytes / RECORDS);
    report("newline scan (speed of light)", bytes, || {
        let lines = records.iter().map(|record| memchr::memchr_iter(b'\n', record).count());
        black_box(lines.sum::<usize>());
    });
    report("UTF-8 validation alone", bytes, || {
        black_box(
            records.iter().filter(|record| simdutf8::basic::from_utf8(record).is_ok()).count(),
        );
    });
    let projections: [(&str, &[usize]); 4] = [
        ("no columns", &[]),
        ("3 of 8 columns (order_id, amount, status)", &[0, 3, 5]),
        ("4 of 8 columns (with updated_at)", &[0, 3, 5, 6]),
        ("all 8 columns", &[0, 1, 2, 3, 4, 5, 6, 7]),
    ];
    for (name, projection) in projections {
        let mut decoder = JsonDecoder::new(schema(), projection, JsonOptions::default());
        report(name, bytes, || {
            for records in records.chunks(BATCH_ROWS) {
                for record in records {
                    decoder.decode(record).expect("the records are well formed");
                }
                black_box(decoder.finish());
            }
        });
    }
}

/// Runs `work` over all records and prints the best round.
fn report(name: &str, bytes: usize, mut work: impl FnMut()) {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    let best = rounds.fold(f64::INFINITY, f64::min);
    let rows_per_s = RECORDS as f64 / best;
    println!("{name:45} {:6.2} M rows/s {:7.0} MB/s", rows_per_s / 1e6, bytes as f64 / best / 1e6);
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        SqlType::BigInt.field("order_id", false),
        SqlType::BigInt.field("customer", true),
        SqlType::BigInt.field("product", true),
        SqlType::Double.field("amount", true),
        SqlType::Integer.field("quantity", true),
        SqlType::Text.field("status", true),
        SqlType::Timestamptz.field("updated_at", true),
        SqlType::Text.field("note", true),
    ]))
}

fn records() -> Vec<Vec<u8>> {
    let mut seed = 42_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let statuses = ["new", "paid", "packed", "shipped", "returned", "cancelled"];
    let record = |order: usize| {
        let note: String = (0..100).map(|_| char::from(b'a' + random(26) as u8)).collect();
        format!(
            "{{\"order_id\":{order},\"customer\":{},\"product\":{},\"amount\":{}.{:02},\"quantity\":{},\
             \"status\":\"{}\",\"updated_at\":\"2024-01-01T{:02}:{:02}:{:02}.{:03}Z\",\"note\":\"{note}\"}}",
            random(1_000_000),
            random(5_000),
            random(1_000),
            random(100),
            1 + random(9),
            statuses[random(6) as usize],
            order / 3_600_000 % 24,
            order / 60_000 % 60,
            order / 1_000 % 60,
            order % 1_000,
        )
        .into_bytes()
    };
    (0..RECORDS).map(record).collect()
}
