//! JSON records to Arrow, alone: all columns, and those that the views read.

use std::hint::black_box;

use segue_formats::{JsonDecoder, JsonOptions};

use crate::encoded::BATCH_ROWS;
use crate::measure::{Spent, measure, rate};
use crate::workload::{Orders, Q1_COLUMNS, Q2_COLUMNS, schema};
use crate::{Outcome, Run};

/// More would only show the cache's weather.
const ROWS_MAX: usize = 1_000_000;
const ROUNDS: usize = 3;

pub(crate) fn bench(run: &Run) -> Outcome {
    let orders = Orders::generate(run.rows.min(ROWS_MAX));
    println!(
        "{} orders of {} bytes, the best of {ROUNDS} rounds",
        orders.rows,
        orders.lines.len() / orders.rows
    );
    let scan = best(|| {
        black_box(memchr::memchr_iter(b'\n', &orders.lines).count());
    });
    rate("speed of light: find the newlines", orders.rows, scan);
    let all: Vec<usize> = (0..8).collect();
    let projections: [(&str, &[usize]); 4] = [
        ("decode all 8 columns", &all),
        ("decode 5 of 8 (Q1)", Q1_COLUMNS),
        ("decode 4 of 8", &[0, 1, 3, 5]),
        ("decode 3 of 8 (Q2)", Q2_COLUMNS),
    ];
    for (what, projection) in projections {
        rate(what, orders.rows, best(|| decode(&orders, projection)));
    }
    Ok(())
}

/// Decodes every order, as a reader does.
pub(crate) fn decode(orders: &Orders, projection: &[usize]) {
    let mut decoder = JsonDecoder::new(schema(), projection, JsonOptions::default());
    for record in orders.records() {
        decoder.decode(record).expect("the workload is well formed");
        if decoder.len() == BATCH_ROWS {
            black_box(decoder.finish());
        }
    }
    black_box(decoder.finish());
}

fn best(mut work: impl FnMut()) -> Spent {
    let rounds = (0..ROUNDS).map(|_| measure(&mut work).1);
    rounds.min_by_key(|spent| spent.cpu).expect("there is a round")
}
