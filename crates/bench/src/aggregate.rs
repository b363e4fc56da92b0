//! The aggregate operator alone, with the relation that it fills: insert-only, and with half removals.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use segue_flow::{
    AggregateFunction, AggregateSpec, Dataflow, DataflowSpec, Delta, InputKind, InputSpec, Node,
    OperatorSpec, StepInput, Workers,
};
use segue_types::ObjectId;

use crate::measure::{measure, millis, rate, resident_bytes};
use crate::{Outcome, Run};

const STEP_ROWS: usize = 65_536;
const KEYS: u64 = 1_000_000;
const ROWS_MAX: usize = 4_000_000;
/// As many rows as come in 150 ms at a million in a second.
const STEPS_OF_AN_EPOCH: usize = 2;

pub(crate) fn bench(run: &Run) -> Outcome {
    let steps = run.rows.min(ROWS_MAX) / STEP_ROWS;
    let mut random = 1;
    let batches: Vec<RecordBatch> = (0..steps).map(|_| batch(&mut random)).collect();
    let rows = steps * STEP_ROWS;
    println!("{rows} rows, {KEYS} keys, {STEP_ROWS} rows a step, COUNT, SUM and AVG");
    rate("speed of light: a bare hash table of sums", rows, measure(|| bare_sums(&batches)).1);

    let inserts: Vec<Delta> = batches.iter().map(|batch| Delta::inserts(batch.clone())).collect();
    let removals = half_removals(&batches);
    for (how, run) in [("changes put out", step as Step), ("nobody reads the changes", absorb)] {
        let before = resident_bytes();
        let mut dataflow = aggregate(InputKind::AppendOnly);
        let what = format!("insert-only, {how}");
        rate(&what, rows, measure(|| steps_of(&mut dataflow, &inserts, run)).1);
        memory(&mut dataflow, resident_bytes().saturating_sub(before));
        seals(&mut dataflow, &inserts);
        drop(dataflow);

        let mut dataflow = aggregate(InputKind::Changelog);
        steps_of(&mut dataflow, &inserts, run);
        let what = format!("half of the rows removals, {how}");
        let changes = removals.len() * STEP_ROWS;
        rate(&what, changes, measure(|| steps_of(&mut dataflow, &removals, run)).1);
    }
    Ok(())
}

type Step = fn(&mut Dataflow, Delta);

fn step(dataflow: &mut Dataflow, delta: Delta) {
    black_box(dataflow.step(vec![(0, StepInput::Delta(delta))]).expect("valid rows"));
}

fn absorb(dataflow: &mut Dataflow, delta: Delta) {
    dataflow.absorb(vec![(0, StepInput::Delta(delta))]).expect("valid rows");
}

/// Steps, and a version of the relation as often as an epoch would take one, held until the next.
fn steps_of(dataflow: &mut Dataflow, deltas: &[Delta], step: Step) {
    let mut version = dataflow.version();
    for epoch in deltas.chunks(STEPS_OF_AN_EPOCH) {
        epoch.iter().for_each(|delta| step(dataflow, delta.clone()));
        version = dataflow.version();
    }
    black_box(version.row_count());
}

/// What of an epoch is done between two steps, when every group is new, and when few are dirty.
fn seals(dataflow: &mut Dataflow, inserts: &[Delta]) {
    let mut seal = |what: &str| {
        let (blobs, sealed) = measure(|| dataflow.seal());
        let (version, published) = measure(|| dataflow.version());
        let encode = || blobs.iter().map(|blob| blob.encode().bytes.len()).sum::<usize>();
        let (bytes, encoded) = measure(encode);
        println!(
            "    {what}: gathered in {:.1} ms, published in {:.1} ms, {:.1} MB encoded in {:.1} ms",
            millis(sealed.cpu),
            millis(published.cpu),
            bytes as f64 / 1e6,
            millis(encoded.cpu),
        );
        drop(version);
    };
    seal("first epoch (CPU)");
    let mut versions = Vec::new();
    for (number, delta) in inserts.iter().take(6).enumerate() {
        step(dataflow, delta.clone());
        let (blobs, sealed) = measure(|| dataflow.seal());
        let (version, published) = measure(|| dataflow.version());
        versions = vec![(blobs, version)];
        println!(
            "    epoch {} of {} rows: gathered in {:.1} ms, published in {:.1} ms",
            number + 2,
            delta.len(),
            millis(sealed.cpu),
            millis(published.cpu),
        );
    }
    drop(versions);
}

fn memory(dataflow: &mut Dataflow, resident: usize) {
    let operators = dataflow.operators();
    let groups = operators.iter().map(|operator| operator.state_rows).max().unwrap_or(0);
    for operator in &operators {
        println!(
            "    {:<20} {:>9} rows held, {:>6.1} bytes each by its own count",
            operator.name,
            operator.state_rows,
            operator.state_bytes as f64 / operator.state_rows.max(1) as f64,
        );
    }
    println!(
        "    resident memory grew by {:.1} bytes a group, relation included",
        resident as f64 / groups as f64
    );
}

/// Every step brings new rows and takes back those of the step before.
fn half_removals(batches: &[RecordBatch]) -> Vec<Delta> {
    let half = STEP_ROWS / 2;
    let change = |pair: &[RecordBatch]| {
        let rows = [&pair[1].slice(0, half), &pair[0].slice(0, half)];
        let rows = arrow::compute::concat_batches(&input_schema(), rows).expect("one schema");
        let weights = std::iter::repeat_n(1, half).chain(std::iter::repeat_n(-1, half)).collect();
        Delta::weighted(rows, weights)
    };
    batches.windows(2).map(change).collect()
}

fn bare_sums(batches: &[RecordBatch]) {
    let mut sums: HashMap<i64, (i64, f64)> = HashMap::new();
    for batch in batches {
        let keys = batch.column(0).as_primitive::<Int64Type>().values();
        let amounts = batch.column(1).as_primitive::<Float64Type>().values();
        for (key, amount) in keys.iter().zip(amounts) {
            let sum = sums.entry(*key).or_default();
            sum.0 += 1;
            sum.1 += amount;
        }
    }
    black_box(sums);
}

fn batch(random: &mut u64) -> RecordBatch {
    let mut next = || {
        *random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *random >> 33
    };
    let keys = (0..STEP_ROWS).map(|_| (next() % KEYS) as i64).collect::<Int64Array>();
    let amounts =
        (0..STEP_ROWS).map(|_| (next() % 100_000) as f64 / 100.0).collect::<Float64Array>();
    let quantities = (0..STEP_ROWS).map(|_| (next() % 10) as i32).collect::<Int32Array>();
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(amounts), Arc::new(quantities)];
    RecordBatch::try_new(input_schema(), columns).expect("columns of the schema")
}

fn input_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("customer", DataType::Int64, true),
        Field::new("amount", DataType::Float64, true),
        Field::new("quantity", DataType::Int32, true),
    ]))
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
        watermarks: Vec::new(),
    };
    Dataflow::new(ObjectId(1), spec, Workers::ONE)
}
