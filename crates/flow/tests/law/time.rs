//! The law where time ends: what the watermark has closed is put out once and stays, what it has not is what the batch
//! answer is; what the clock lets in is what it lets in, whenever it is looked at. With restarts at any step.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use segue_flow::{
    AggregateFunction, AggregateSpec, ColumnWatermark, Dataflow, DataflowSpec, Delta, InputKind,
    InputSpec, Mark, Node, OperatorSpec, Shown, StepInput, mark_schema,
};
use segue_types::ObjectId;

use crate::oracle::RowCounts;
use crate::stored::Stored;
use crate::{others, workers};

const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// A window and a value.
type Row = (Option<i64>, i64);

#[derive(Clone, Debug)]
struct Step {
    added: Vec<Row>,
    /// Of the rows that are there, which go; for inputs that take rows back.
    removed: Vec<prop::sample::Index>,
    mark: Option<i64>,
    seals: bool,
    restores: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (prop::option::weighted(0.9, 0_i64..20), 0_i64..4);
    let step = (
        prop::collection::vec(row, 0..8),
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        prop::option::of(0_i64..20),
        any::<bool>(),
        any::<bool>(),
    );
    let step = step.prop_map(|(added, removed, mark, seals, restores)| Step {
        added,
        removed,
        mark,
        seals,
        restores,
    });
    prop::collection::vec(step, 1..12)
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("w", TIME, true), Field::new("v", DataType::Int64, true)]))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let windows: TimestampMicrosecondArray = rows.iter().map(|(window, _)| *window).collect();
    let values: Int64Array = rows.iter().map(|(_, value)| Some(*value)).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(windows), Arc::new(values)];
    RecordBatch::try_new(schema(), columns).expect("columns of the schema")
}

/// Rows at input 0, marks at input 1, what the marks deliver at operator 0.
fn spec(kind: InputKind, operators: Vec<OperatorSpec>, key: &[usize]) -> DataflowSpec {
    let marks = InputSpec { schema: mark_schema(&TIME), kind: InputKind::AppendOnly };
    let watermark = OperatorSpec::Watermark { input: Node::Input(1), schema: mark_schema(&TIME) };
    let output = Node::Operator(operators.len());
    let mut spec = DataflowSpec {
        inputs: vec![InputSpec { schema: schema(), kind }, marks],
        operators: std::iter::once(watermark).chain(operators).collect(),
        output,
        schema: schema(),
        key: key.to_vec(),
        watermarks: vec![ColumnWatermark { column: 0, node: Node::Operator(0) }],
    };
    spec.schema = spec.schema_of(output);
    spec
}

fn windowed() -> OperatorSpec {
    let aggregate = |function| AggregateSpec { function, argument: Some(1), filter: None };
    OperatorSpec::WindowedAggregate {
        input: Node::Input(0),
        watermark: Node::Operator(0),
        window: 0,
        keys: vec![0],
        aggregates: vec![aggregate(AggregateFunction::Count), aggregate(AggregateFunction::Max)],
        schema: Arc::new(Schema::new(vec![
            Field::new("w", TIME, true),
            Field::new("n", DataType::Int64, true),
            Field::new("m", DataType::Int64, true),
        ])),
    }
}

fn withhold(input: Node) -> OperatorSpec {
    OperatorSpec::Withhold { input, watermark: Node::Operator(0), column: 0 }
}

/// What a relation should hold, given the rows that were taken and the mark.
type Answer = fn(&[Row], Option<i64>) -> RowCounts;

fn runs(
    spec: &DataflowSpec,
    steps: &[Step],
    drops_late: bool,
    mut count: usize,
    answer: Answer,
) -> Result<(), TestCaseError> {
    let object = ObjectId(7);
    let mut dataflow = Dataflow::new(object, spec.clone(), workers(count));
    let mut stored = Stored::default();
    let (mut taken, mut mark) = (Vec::<Row>::new(), None::<i64>);
    let mut sum = RowCounts::default();
    for step in steps {
        let mut inputs = Vec::new();
        let mut delta = step.added.iter().map(|row| (*row, 1)).collect::<Vec<_>>();
        if spec.inputs[0].kind == InputKind::Changelog {
            for index in &step.removed {
                // More of them than there are rows is no removal.
                if taken.is_empty() {
                    break;
                }
                delta.push((taken.swap_remove(index.index(taken.len())), -1));
            }
        }
        let is_late = |(window, _): &Row| window.zip(mark).is_some_and(|(w, mark)| w < mark);
        taken.extend(step.added.iter().filter(|row| !drops_late || !is_late(row)));
        if !delta.is_empty() {
            let rows = batch(&delta.iter().map(|(row, _)| *row).collect::<Vec<_>>());
            let weights = delta.iter().map(|(_, weight)| *weight).collect();
            inputs.push((0, StepInput::Delta(Delta::weighted(rows, weights))));
        }
        if let Some(time) = step.mark {
            let rows = Mark::rows(&[Mark::At(time)], &mark_schema(&TIME));
            inputs.push((1, StepInput::Delta(Delta::inserts(rows))));
            mark = mark.max(Some(time));
        }
        sum.add(&dataflow.step(inputs).expect("the inputs are valid"));
        let expected = answer(&taken, mark);
        let version = RowCounts::of_batches(dataflow.version().batches());
        prop_assert_eq!(&sum, &expected, "the sum of the deltas");
        prop_assert_eq!(&version, &expected, "the relation");
        if step.seals {
            stored.keep(&dataflow.seal());
        }
        if step.seals && step.restores {
            count = others(count);
            dataflow = Dataflow::new(object, spec.clone(), workers(count));
            dataflow.restore(stored.blobs()).expect("just sealed");
            let restored = RowCounts::of_batches(dataflow.version().batches());
            prop_assert_eq!(&restored, &expected, "restored");
        } else if step.seals {
            count = others(count);
            dataflow = dataflow.resharded(workers(count)).expect("just sealed");
            dataflow.rest(&stored.round());
        }
        let at = mark.map_or(Mark::Unknown, Mark::At);
        prop_assert_eq!(dataflow.watermark(0), Some(at), "a restart moves no watermark");
    }
    Ok(())
}

fn of_rows(rows: &[Row], is_shown: impl Fn(i64) -> bool) -> RowCounts {
    let shown = rows.iter().filter(|(window, _)| window.is_some_and(&is_shown));
    RowCounts::of_batches(std::iter::once(batch(&shown.copied().collect::<Vec<_>>())))
}

/// The groups of which `is_shown` is true.
fn of_groups(rows: &[Row], is_shown: impl Fn(Option<i64>) -> bool) -> RowCounts {
    let mut groups = BTreeMap::<Option<i64>, (i64, i64)>::new();
    for (window, value) in rows.iter().filter(|(window, _)| is_shown(*window)) {
        let group = groups.entry(*window).or_insert((0, *value));
        *group = (group.0 + 1, group.1.max(*value));
    }
    let windows: TimestampMicrosecondArray = groups.keys().copied().collect();
    let counts: Int64Array = groups.values().map(|(count, _)| Some(*count)).collect();
    let greatest: Int64Array = groups.values().map(|(_, greatest)| Some(*greatest)).collect();
    let fields = vec![
        Field::new("w", TIME, true),
        Field::new("n", DataType::Int64, true),
        Field::new("m", DataType::Int64, true),
    ];
    let columns: Vec<ArrayRef> = vec![Arc::new(windows), Arc::new(counts), Arc::new(greatest)];
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    RowCounts::of_batches(std::iter::once(rows.expect("columns of the schema")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_put_out_once_the_watermark_has_passed_them(steps in steps(), count in 1..4_usize) {
        let spec = spec(InputKind::AppendOnly, vec![withhold(Node::Input(0))], &[]);
        runs(&spec, &steps, true, count, |rows, mark| of_rows(rows, |time| Some(time) < mark))?;
    }

    #[test]
    fn groups_are_put_out_once_the_watermark_has_passed_them(steps in steps(), count in 1..4_usize) {
        let operators = vec![windowed(), withhold(Node::Operator(1))];
        let spec = spec(InputKind::AppendOnly, operators, &[0]);
        runs(&spec, &steps, true, count, |rows, mark| {
            of_groups(rows, |window| window.is_some_and(|time| Some(time) < mark))
        })?;
    }

    #[test]
    fn results_of_closed_groups_stay_and_open_ones_follow_their_rows(steps in steps(), count in 1..4_usize) {
        let spec = spec(InputKind::AppendOnly, vec![windowed()], &[0]);
        runs(&spec, &steps, true, count, |rows, _| of_groups(rows, |_| true))?;
    }

    #[test]
    fn rows_come_in_with_time(steps in steps(), count in 1..4_usize) {
        let (input, clock, column) = (Node::Input(0), Node::Operator(0), 0);
        let operator = OperatorSpec::Temporal { input, clock, column, shown: Shown::From };
        let spec = spec(InputKind::Changelog, vec![operator], &[]);
        runs(&spec, &steps, false, count, |rows, now| of_rows(rows, |time| Some(time) <= now))?;
    }

    #[test]
    fn rows_go_with_time(steps in steps(), count in 1..4_usize) {
        let (input, clock, column) = (Node::Input(0), Node::Operator(0), 0);
        let operator = OperatorSpec::Temporal { input, clock, column, shown: Shown::Until };
        let spec = spec(InputKind::Changelog, vec![operator], &[]);
        runs(&spec, &steps, false, count, |rows, now| of_rows(rows, |time| Some(time) > now))?;
    }
}
