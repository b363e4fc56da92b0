//! The join operator alone: a million customers, and orders that meet one each; insert-only, and with half removals.

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use segue_flow::{
    Dataflow, DataflowSpec, Delta, InputKind, InputSpec, JoinKind, JoinSpec, Node, NullKeys,
    OperatorSpec, StepInput, Workers,
};
use segue_types::ObjectId;

use crate::measure::{measure, rate, resident_bytes};
use crate::{Outcome, Run};

const STEP_ROWS: usize = 65_536;
const CUSTOMERS: usize = 1 << 20;
const ROWS_MAX: usize = 1 << 21;

pub(crate) fn bench(run: &Run) -> Outcome {
    let steps = run.rows.min(ROWS_MAX) / STEP_ROWS;
    let mut random = 1;
    let orders = (0..steps).map(|step| orders(step, &mut random)).collect::<Vec<_>>();
    let customers = (0..CUSTOMERS / STEP_ROWS).map(customers).collect::<Vec<_>>();
    let rows = steps * STEP_ROWS;
    println!("{rows} orders, {CUSTOMERS} customers, {STEP_ROWS} rows a step");
    for (what, kind) in
        [("append-only", InputKind::AppendOnly), ("changelog", InputKind::Changelog)]
    {
        let before = resident_bytes();
        let mut dataflow = join(kind);
        let fill =
            measure(|| steps_of(&mut dataflow, 1, customers.iter().cloned().map(Delta::inserts)));
        rate(&format!("{what}: customers come"), CUSTOMERS, fill.1);
        let (found, time) =
            measure(|| steps_of(&mut dataflow, 0, orders.iter().cloned().map(Delta::inserts)));
        assert_eq!(found, rows, "each order meets its customer");
        rate(&format!("{what}: orders come"), rows, time);
        let held = resident_bytes().saturating_sub(before);
        println!("    {} bytes a row held, with the relation", held / (rows + CUSTOMERS));
    }
    let mut dataflow = join(InputKind::Changelog);
    steps_of(&mut dataflow, 1, customers.into_iter().map(Delta::inserts));
    steps_of(&mut dataflow, 0, orders.iter().cloned().map(Delta::inserts));
    let gone = orders.iter().step_by(2).map(|rows| {
        Delta::weighted(rows.clone(), std::iter::repeat_n(-1, rows.num_rows()).collect())
    });
    let back = orders.iter().step_by(2).cloned().map(Delta::inserts);
    let changes = gone.zip(back).flat_map(|(gone, back)| [gone, back]).collect::<Vec<_>>();
    let rows = changes.len() * STEP_ROWS;
    rate("half of the rows removals", rows, measure(|| steps_of(&mut dataflow, 0, changes)).1);
    Ok(())
}

/// Runs the steps; returns how many rows were put out.
fn steps_of(
    dataflow: &mut Dataflow,
    input: usize,
    deltas: impl IntoIterator<Item = Delta>,
) -> usize {
    let step = |delta: Delta| {
        let output = dataflow.step(vec![(input, StepInput::Delta(delta))]).expect("valid rows");
        black_box(output).iter().map(Delta::len).sum::<usize>()
    };
    deltas.into_iter().map(step).sum()
}

fn join(kind: InputKind) -> Dataflow {
    let (left, right) = (order_schema(), customer_schema());
    let fields = left.fields().iter().chain(right.fields()).cloned().collect::<Vec<_>>();
    let schema = Arc::new(Schema::new(fields));
    let join = JoinSpec {
        kind: JoinKind::Inner,
        left_key: vec![1],
        right_key: vec![0],
        null_keys: NullKeys::MeetNothing,
        residual: None,
    };
    let spec = DataflowSpec {
        inputs: vec![InputSpec { schema: left, kind }, InputSpec { schema: right, kind }],
        operators: vec![OperatorSpec::Join {
            left: Node::Input(0),
            right: Node::Input(1),
            join,
            schema: Arc::clone(&schema),
        }],
        output: Node::Operator(0),
        schema,
        key: if kind == InputKind::AppendOnly { Vec::new() } else { vec![0] },
        watermarks: Vec::new(),
    };
    Dataflow::new(ObjectId(1), spec, Workers::ONE)
}

fn order_schema() -> SchemaRef {
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    Arc::new(Schema::new(vec![field("order_id"), field("customer"), field("amount")]))
}

fn customer_schema() -> SchemaRef {
    let id = Field::new("id", DataType::Int64, true);
    Arc::new(Schema::new(vec![id, Field::new("name", DataType::Utf8, true)]))
}

fn orders(step: usize, random: &mut u64) -> RecordBatch {
    let first = (step * STEP_ROWS) as i64;
    let mut customer = || {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*random >> 33) as i64 % CUSTOMERS as i64
    };
    let customers = (0..STEP_ROWS).map(|_| customer()).collect::<Vec<_>>();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(first..first + STEP_ROWS as i64)),
        Arc::new(Int64Array::from(customers)),
        Arc::new(Int64Array::from_iter_values((0..STEP_ROWS as i64).map(|row| row % 1000))),
    ];
    RecordBatch::try_new(order_schema(), columns).expect("three columns")
}

fn customers(step: usize) -> RecordBatch {
    let first = (step * STEP_ROWS) as i64;
    let ids = first..first + STEP_ROWS as i64;
    let names = ids.clone().map(|id| format!("customer {id}"));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(ids)),
        Arc::new(StringArray::from_iter_values(names)),
    ];
    RecordBatch::try_new(customer_schema(), columns).expect("two columns")
}
