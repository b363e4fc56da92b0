//! Prints how fast the aggregate operator and the keyed normaliser are on one core, beside the speed of light: the same keys
//! hashed and looked up in a bare hash table of sums.
//!
//! `cargo run --release -p segue-flow --example operator_speed [rows] [keys]`

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use segue_flow::{
    AggregateFunction, AggregateSpec, Changes, Conflict, Dataflow, DataflowSpec, Delta, InputKind,
    InputSpec, Node, OperatorSpec, Ops, StepInput,
};
use segue_types::ObjectId;

const STEP_ROWS: usize = 65_536;

fn input_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("customer", DataType::Int64, true),
        Field::new("amount", DataType::Float64, true),
        Field::new("quantity", DataType::Int32, true),
    ]))
}

/// A full-period generator: the same rows on every run.
struct Rows {
    state: u64,
    keys: u64,
}

impl Rows {
    fn next(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }

    fn batch(&mut self, rows: usize) -> RecordBatch {
        let keys = (0..rows).map(|_| (self.next() % self.keys) as i64).collect::<Int64Array>();
        let amounts =
            (0..rows).map(|_| (self.next() % 100_000) as f64 / 100.0).collect::<Float64Array>();
        let quantities = (0..rows).map(|_| (self.next() % 10) as i32).collect::<Int32Array>();
        let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(amounts), Arc::new(quantities)];
        RecordBatch::try_new(input_schema(), columns).expect("columns of the schema")
    }
}

/// COUNT(*), SUM(amount), AVG(quantity) by customer.
fn aggregate(kind: InputKind) -> Dataflow {
    let functions = [
        (AggregateFunction::Count, None),
        (AggregateFunction::Sum, Some(1)),
        (AggregateFunction::Avg, Some(2)),
    ];
    let spec = |(function, argument)| AggregateSpec { function, argument, filter: None };
    let schema = Arc::new(Schema::new(vec![
        Field::new("customer", DataType::Int64, true),
        Field::new("count", DataType::Int64, true),
        Field::new("sum", DataType::Float64, true),
        Field::new("avg", DataType::Decimal128(38, 16), true),
    ]));
    let operator = OperatorSpec::Aggregate {
        input: Node::Input(0),
        keys: vec![0],
        aggregates: functions.map(spec).to_vec(),
        schema: Arc::clone(&schema),
    };
    let spec = DataflowSpec {
        inputs: vec![InputSpec { schema: input_schema(), kind }],
        operators: vec![operator],
        output: Node::Operator(0),
        schema,
        key: vec![0],
    };
    Dataflow::new(ObjectId(1), spec)
}

fn measure(what: &str, rows: usize, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    let seconds = start.elapsed().as_secs_f64();
    println!("{what:<58} {:>8.3} M rows/s", rows as f64 / seconds / 1e6);
}

fn run(mut dataflow: Dataflow, deltas: Vec<StepInput>) -> Dataflow {
    for delta in deltas {
        black_box(dataflow.step(vec![(0, delta)]).expect("valid rows"));
    }
    dataflow
}

fn main() {
    let mut arguments =
        std::env::args().skip(1).map(|text| text.parse::<usize>().expect("a number"));
    let rows = arguments.next().unwrap_or(4_000_000);
    let keys = arguments.next().unwrap_or(1_000_000);
    println!("{rows} rows, {keys} keys, {STEP_ROWS} rows per step, one thread");
    let batches = |seed| {
        let mut source = Rows { state: seed, keys: keys as u64 };
        (0..rows / STEP_ROWS).map(|_| source.batch(STEP_ROWS)).collect::<Vec<_>>()
    };
    let inserts = batches(1);
    let total = inserts.len() * STEP_ROWS;

    measure("speed of light: bare hash table of sums", total, || {
        let mut sums: HashMap<i64, (i64, f64)> = HashMap::with_capacity(keys);
        for batch in &inserts {
            let keys = batch.column(0).as_any().downcast_ref::<Int64Array>().expect("integers");
            let amounts = batch.column(1).as_any().downcast_ref::<Float64Array>().expect("doubles");
            for (key, amount) in keys.values().iter().zip(amounts.values()) {
                let sum = sums.entry(*key).or_default();
                sum.0 += 1;
                sum.1 += amount;
            }
        }
        black_box(sums);
    });

    let deltas = |batches: &[RecordBatch]| {
        batches
            .iter()
            .map(|batch| StepInput::Delta(Delta::inserts(batch.clone())))
            .collect::<Vec<_>>()
    };
    let mut held = None;
    measure("aggregate and its relation, insert only", total, || {
        held = Some(run(aggregate(InputKind::AppendOnly), deltas(&inserts)));
    });
    let mut dataflow = held.take().expect("just run");
    for stats in dataflow.operators() {
        let per_row = stats.state_bytes as f64 / stats.state_rows.max(1) as f64;
        println!(
            "    {:<20} {:>9} rows held, {per_row:>6.1} bytes each",
            stats.name, stats.state_rows
        );
    }
    let start = Instant::now();
    let bytes = dataflow.seal().iter().map(|blob| blob.bytes.len()).sum::<usize>();
    println!(
        "    first seal: {:.1} MB in {:.0} ms",
        bytes as f64 / 1e6,
        start.elapsed().as_secs_f64() * 1e3
    );

    // Every step brings new rows and takes back those of the step before.
    let mut changes = Vec::new();
    for pair in inserts.windows(2) {
        let half = STEP_ROWS / 2;
        let rows = arrow::compute::concat_batches(
            &input_schema(),
            [&pair[1].slice(0, half), &pair[0].slice(0, half)],
        );
        let weights = std::iter::repeat_n(1, half).chain(std::iter::repeat_n(-1, half)).collect();
        changes.push(StepInput::Delta(Delta::weighted(rows.expect("one schema"), weights)));
    }
    let changed = changes.len() * STEP_ROWS;
    measure("aggregate and its relation, half removals", changed, || {
        held = Some(run(dataflow, changes));
    });
    let mut dataflow = held.take().expect("just run");
    let start = Instant::now();
    dataflow.seal();
    println!("    seal after it: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);

    let puts =
        batches(2).into_iter().map(|rows| StepInput::Changes(Changes { rows, ops: Ops::Put }));
    let puts = puts.collect::<Vec<_>>();
    let spec = DataflowSpec::table(input_schema(), vec![0], Conflict::Overwrite, InputKind::ByKey);
    measure("table by key, puts", total, || {
        black_box(run(Dataflow::new(ObjectId(2), spec), puts));
    });
}
