//! The law where time ends: what the watermark has closed is put out once and stays, what it has not is what the batch
//! answer is; what the clock lets in is what it lets in, whenever it is looked at. With restarts at any step.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::scalar::ScalarValue;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use segue_flow::{
    AggregateFunction, AggregateSpec, ColumnWatermark, Dataflow, DataflowSpec, Delta,
    End as RowsEnd, InputKind, InputSpec, JoinKind, JoinSpec, Mark, Node, NullKeys, OperatorSpec,
    PartitionedInput, Program, RowNumbers, Shown, SortColumn, StepInput, TopNSpec, mark_schema,
    place_of,
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
) -> Result<End, TestCaseError> {
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
            let late = late_rows(&mut dataflow);
            dataflow = Dataflow::new(object, spec.clone(), workers(count));
            dataflow.restore(stored.blobs()).expect("just sealed");
            let restored = RowCounts::of_batches(dataflow.version().batches());
            prop_assert_eq!(&restored, &expected, "restored");
            prop_assert_eq!(late_rows(&mut dataflow), late, "late rows are counted for good");
        } else if step.seals {
            count = others(count);
            dataflow = dataflow.resharded(workers(count)).expect("just sealed");
            dataflow.rest(&stored.round());
        }
        let at = mark.map_or(Mark::Unknown, Mark::At);
        prop_assert_eq!(dataflow.watermark(0), Some(at), "a restart moves no watermark");
    }
    // What a restart has not looked at is looked at in a step.
    dataflow.step(Vec::new()).expect("nothing is valid");
    let held = dataflow.operators();
    let held = held.iter().find(|stats| place_of(stats.operator) == Some(spec.operators.len() - 1));
    let held_rows = held.expect("the last operator").state_rows as usize;
    Ok(End { taken, mark, held_rows })
}

fn late_rows(dataflow: &mut Dataflow) -> u64 {
    dataflow.operators().iter().map(|operator| operator.late_rows).sum()
}

/// How a run ended: the rows that were taken, the mark, and how many rows the last operator holds.
struct End {
    taken: Vec<Row>,
    mark: Option<i64>,
    held_rows: usize,
}

impl End {
    /// How many rows the watermark has not passed by `later`.
    fn open(&self, later: i64) -> usize {
        let is_open =
            |(window, _): &&Row| window.is_none_or(|window| Some(window + later) >= self.mark);
        self.taken.iter().filter(is_open).count()
    }
}

/// An operator behind the rows that are in time, of which it forgets those that the watermark has passed.
fn forgetting(operator: OperatorSpec, ends: &[i64]) -> Vec<OperatorSpec> {
    let (input, watermark) = (Node::Input(0), Node::Operator(0));
    let end = |later_us: &i64| Some(RowsEnd { column: 0, later_us: *later_us });
    let ends = ends.iter().map(end).collect();
    let operator = OperatorSpec::Forgetting { operator: Box::new(operator), watermark, ends };
    vec![OperatorSpec::DropLate { input, watermark, column: 0 }, operator]
}

fn top_two() -> OperatorSpec {
    let order = vec![SortColumn { column: 1, options: Default::default() }];
    let top =
        TopNSpec { partition: vec![0], order, skip: 0, fetch: Some(2), numbers: RowNumbers::None };
    OperatorSpec::TopN { input: Node::Operator(1), top, schema: schema() }
}

/// Gives what it gets.
#[derive(Debug)]
struct Same;

impl Program for Same {
    fn run(&self, inputs: &[RecordBatch]) -> datafusion::error::Result<Vec<RecordBatch>> {
        Ok(inputs.to_vec())
    }
}

fn recomputed() -> OperatorSpec {
    let inputs = vec![PartitionedInput { node: Node::Operator(1), key: vec![0] }];
    let (program, what) = (Arc::new(Same), "the same".to_owned());
    OperatorSpec::Recompute { inputs, program, key: vec![0], schema: schema(), what }
}

fn pairs_schema() -> SchemaRef {
    let field = |name: &str, ty: &DataType| Field::new(name, ty.clone(), true);
    let fields = [field("w", &TIME), field("v", &DataType::Int64)];
    let others = [field("other w", &TIME), field("other v", &DataType::Int64)];
    Arc::new(Schema::new(fields.into_iter().chain(others).collect::<Vec<_>>()))
}

/// The rows with themselves, by time, or where the right time is at most 3 later.
fn joined(kind: JoinKind, by_time: bool) -> OperatorSpec {
    let number = |column: usize| -> Arc<dyn PhysicalExpr> {
        let column = Arc::new(Column::new("w", column));
        Arc::new(CastExpr::new(column, DataType::Int64, None))
    };
    let binary =
        |left, op, right| -> Arc<dyn PhysicalExpr> { Arc::new(BinaryExpr::new(left, op, right)) };
    let three = Arc::new(Literal::new(ScalarValue::Int64(Some(3))));
    let at_most = binary(number(2), Operator::LtEq, binary(number(0), Operator::Plus, three));
    let residual = binary(binary(number(2), Operator::GtEq, number(0)), Operator::And, at_most);
    let key = if by_time { vec![0] } else { Vec::new() };
    OperatorSpec::Join {
        left: Node::Operator(1),
        right: Node::Operator(1),
        join: JoinSpec {
            kind,
            left_key: key.clone(),
            right_key: key,
            null_keys: NullKeys::MeetNothing,
            residual: (!by_time).then_some(residual),
        },
        schema: pairs_schema(),
    }
}

type Pair = (Row, Option<Row>);

fn of_pairs(rows: &[Row], apart: i64, keeps_left: bool) -> RowCounts {
    let meets = |one: &Row, other: &Row| {
        one.0.zip(other.0).is_some_and(|(one, other)| (0..=apart).contains(&(other - one)))
    };
    let mut pairs = Vec::<Pair>::new();
    for row in rows {
        let met = rows.iter().filter(|other| meets(row, other)).map(|other| (*row, Some(*other)));
        let before = pairs.len();
        pairs.extend(met);
        if keeps_left && pairs.len() == before {
            pairs.push((*row, None));
        }
    }
    let times = |of: fn(&Pair) -> Option<i64>| -> ArrayRef {
        Arc::new(pairs.iter().map(of).collect::<TimestampMicrosecondArray>())
    };
    let values = |of: fn(&Pair) -> Option<i64>| -> ArrayRef {
        Arc::new(pairs.iter().map(of).collect::<Int64Array>())
    };
    let columns = vec![
        times(|pair| pair.0.0),
        values(|pair| Some(pair.0.1)),
        times(|pair| pair.1?.0),
        values(|pair| Some(pair.1?.1)),
    ];
    let rows = RecordBatch::try_new(pairs_schema(), columns).expect("columns of the schema");
    RowCounts::of_batches(std::iter::once(rows))
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

/// A full join of rows with themselves by time: those without one stand alone on either side.
fn full(rows: &[Row], _: Option<i64>) -> RowCounts {
    let timed = rows.iter().filter(|row| row.0.is_some()).copied().collect::<Vec<_>>();
    let mut counts = of_pairs(&timed, 0, true);
    let alone = rows.iter().filter(|row| row.0.is_none()).collect::<Vec<_>>();
    let nulls = || -> ArrayRef { arrow::array::new_null_array(&TIME, alone.len()) };
    let none = || -> ArrayRef { arrow::array::new_null_array(&DataType::Int64, alone.len()) };
    let values =
        || -> ArrayRef { Arc::new(alone.iter().map(|row| Some(row.1)).collect::<Int64Array>()) };
    for columns in
        [vec![nulls(), values(), nulls(), none()], vec![nulls(), none(), nulls(), values()]]
    {
        let rows = RecordBatch::try_new(pairs_schema(), columns).expect("columns of the schema");
        counts.add(&[Delta::inserts(rows)]);
    }
    counts
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
    fn the_first_rows_of_closed_windows_stay_and_their_state_goes(steps in steps(), count in 1..4_usize) {
        let spec = spec(InputKind::AppendOnly, forgetting(top_two(), &[0]), &[]);
        let end = runs(&spec, &steps, true, count, |rows, _| {
            let mut windows = BTreeMap::<Option<i64>, Vec<i64>>::new();
            rows.iter().for_each(|(window, value)| windows.entry(*window).or_default().push(*value));
            windows.values_mut().for_each(|values| values.sort_unstable());
            let first = windows.iter().flat_map(|(window, values)| values.iter().take(2).map(|value| (*window, *value)));
            RowCounts::of_batches(std::iter::once(batch(&first.collect::<Vec<_>>())))
        })?;
        prop_assert_eq!(end.held_rows, end.open(0));
    }

    #[test]
    fn what_was_computed_of_closed_partitions_stays_and_their_state_goes(steps in steps(), count in 1..4_usize) {
        let spec = spec(InputKind::AppendOnly, forgetting(recomputed(), &[0]), &[]);
        let end = runs(&spec, &steps, true, count, |rows, _| RowCounts::of_batches(std::iter::once(batch(rows))))?;
        prop_assert_eq!(end.held_rows, 2 * end.open(0), "input and output");
    }

    #[test]
    fn a_join_by_time_forgets_what_was_closed(steps in steps(), left in any::<bool>(), count in 1..4_usize) {
        let kind = if left { JoinKind::Left } else { JoinKind::Full };
        let spec = spec(InputKind::AppendOnly, forgetting(joined(kind, true), &[0, 0]), &[]);
        // Each row meets itself, if it has a time; a row without one is alone on its side, and is not held.
        let answer: Answer = if left { |rows, _| of_pairs(rows, 0, true) } else { full };
        let end = runs(&spec, &steps, true, count, answer)?;
        let timed = End { taken: end.taken.iter().filter(|row| row.0.is_some()).copied().collect(), ..end };
        prop_assert_eq!(timed.held_rows, 2 * timed.open(0));
    }

    #[test]
    fn a_join_of_near_times_forgets_what_meets_nothing_any_more(
        steps in steps(),
        left in any::<bool>(),
        count in 1..4_usize,
    ) {
        let (kind, ends) = if left { (JoinKind::Left, [3, 3]) } else { (JoinKind::Inner, [3, 0]) };
        let spec = spec(InputKind::AppendOnly, forgetting(joined(kind, false), &ends), &[]);
        let answer: Answer = match left {
            true => |rows, _| of_pairs(rows, 3, true),
            false => |rows, _| of_pairs(rows, 3, false),
        };
        let end = runs(&spec, &steps, true, count, answer)?;
        prop_assert_eq!(end.held_rows, end.open(ends[0]) + end.open(ends[1]));
    }

    #[test]
    fn rows_that_are_final_are_what_they_were(steps in steps(), count in 1..4_usize) {
        let settled = OperatorSpec::Settled { input: Node::Operator(1) };
        let spec = spec(InputKind::AppendOnly, vec![withhold(Node::Input(0)), settled], &[]);
        runs(&spec, &steps, true, count, |rows, mark| of_rows(rows, |time| Some(time) < mark))?;
    }

    #[test]
    fn a_time_comes_when_the_clock_has_come_to_it(steps in steps(), count in 1..4_usize) {
        let field = Field::new("at", TIME, true);
        let (clock, schema) = (Node::Operator(0), Arc::new(Schema::new(vec![field])));
        let ticks = OperatorSpec::Ticks { clock, start_us: 2, step_us: 3, schema };
        let spec = spec(InputKind::AppendOnly, vec![ticks], &[]);
        runs(&spec, &steps, false, count, |_, now| {
            let times = (0..).map(|place| 2 + 3 * place);
            let times = times.take_while(|time| Some(*time) <= now).map(Some);
            let times: ArrayRef = Arc::new(times.collect::<TimestampMicrosecondArray>());
            let rows = RecordBatch::try_from_iter_with_nullable([("at", times, true)]);
            RowCounts::of_batches(std::iter::once(rows.expect("one column")))
        })?;
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
