//! The operators whose output depends on the order of arrival, against what they promise: a changelog adds up to the
//! relation, and pairs what goes and comes under one key; a temporal join gives each row what was there when it came, and
//! takes back the same. With restarts at any step and other workers after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int16Type, Int64Type, Schema, SchemaRef};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use segue_flow::{
    Dataflow, DataflowSpec, Delta, InputKind, InputSpec, JoinKind, JoinSpec, Node, NullKeys,
    OperatorSpec, StepInput,
};
use segue_types::ObjectId;

use crate::oracle::RowCounts;
use crate::stored::Stored;
use crate::{others, workers};

/// By key, the value.
type Rows = BTreeMap<i64, i64>;

#[derive(Clone, Debug)]
struct Step {
    /// Of each of two relations: keys and their new values; none removes the key.
    puts: [Vec<(i64, Option<i64>)>; 2],
    seals: bool,
    restores: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let puts = || prop::collection::vec((0_i64..6, prop::option::weighted(0.7, 0_i64..4)), 0..6);
    let step = ([puts(), puts()], any::<bool>(), any::<bool>());
    let step = step.prop_map(|(puts, seals, restores)| Step { puts, seals, restores });
    prop::collection::vec(step, 1..12)
}

fn schema(names: &[&str]) -> SchemaRef {
    let field = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

fn batch(rows: &[Vec<Option<i64>>], width: usize) -> RecordBatch {
    let names = ["a", "b", "c", "d"];
    let column = |place: usize| {
        Arc::new(rows.iter().map(|row| row[place]).collect::<Int64Array>()) as ArrayRef
    };
    RecordBatch::try_new(schema(&names[..width]), (0..width).map(column).collect())
        .expect("columns of the schema")
}

/// Puts the changes in, and says them as a delta.
fn apply(rows: &mut Rows, puts: &[(i64, Option<i64>)]) -> Delta {
    let before = rows.clone();
    for (key, value) in puts {
        match value {
            Some(value) => rows.insert(*key, *value),
            None => rows.remove(key),
        };
    }
    let gone = before.iter().filter(|(key, value)| rows.get(key) != Some(value));
    let come = rows.iter().filter(|(key, value)| before.get(key) != Some(value));
    let row = |(key, value): (&i64, &i64)| vec![Some(*key), Some(*value)];
    let (gone, come): (Vec<_>, Vec<_>) = (gone.map(row).collect(), come.map(row).collect());
    let weights = vec![1; come.len()].into_iter().chain(vec![-1; gone.len()]);
    let weights = weights.collect::<Vec<i64>>();
    Delta::weighted(batch(&[come, gone].concat(), 2), weights.into())
}

fn input() -> InputSpec {
    InputSpec { schema: schema(&["a", "b"]), kind: InputKind::Changelog }
}

fn spec(inputs: Vec<InputSpec>, operator: OperatorSpec) -> DataflowSpec {
    let output = Node::Operator(0);
    let mut spec = DataflowSpec {
        inputs,
        operators: vec![operator],
        output,
        schema: schema(&[]),
        key: Vec::new(),
        watermarks: Vec::new(),
    };
    spec.schema = spec.schema_of(output);
    spec
}

fn go_on(
    dataflow: &mut Dataflow,
    stored: &mut Stored,
    step: &Step,
    count: &mut usize,
) -> Result<(), TestCaseError> {
    if !step.seals {
        return Ok(());
    }
    stored.keep(&dataflow.seal());
    let before = RowCounts::of_batches(dataflow.version().batches());
    *count = others(*count);
    *dataflow = match step.restores {
        false => dataflow.resharded(workers(*count)).expect("just sealed"),
        true => {
            let (object, spec) = (dataflow.object(), dataflow.spec().clone());
            let mut restored = Dataflow::new(object, spec, workers(*count));
            restored.restore(stored.blobs()).expect("just sealed");
            restored
        }
    };
    prop_assert_eq!(before, RowCounts::of_batches(dataflow.version().batches()));
    Ok(())
}

fn logs(steps: &[Step], key: Vec<usize>, mut count: usize) -> Result<(), TestCaseError> {
    let mut fields = schema(&["a", "b"]).fields().to_vec();
    fields.push(Arc::new(Field::new("op", DataType::Int16, true)));
    let logged = Arc::new(Schema::new(fields));
    let is_keyed = !key.is_empty();
    let operator = OperatorSpec::Changelog { input: Node::Input(0), key, schema: logged };
    let spec = spec(vec![input()], operator);
    let mut dataflow = Dataflow::new(ObjectId(7), spec, workers(count));
    let (mut stored, mut rows, mut sum) = (Stored::default(), Rows::new(), BTreeMap::new());
    for step in steps {
        let delta = apply(&mut rows, &step.puts[0]);
        let output = dataflow.step(vec![(0, StepInput::Delta(delta))]).expect("valid");
        let mut updated: [Vec<i64>; 2] = Default::default();
        for delta in &output {
            prop_assert!(delta.weights().is_none(), "rows of a changelog stay");
            let columns = delta.rows().columns();
            let (keys, values) =
                (columns[0].as_primitive::<Int64Type>(), columns[1].as_primitive::<Int64Type>());
            for (row, op) in columns[2].as_primitive::<Int16Type>().values().iter().enumerate() {
                let weight = if matches!(op, 1 | 3) { 1 } else { -1 };
                *sum.entry((keys.value(row), values.value(row))).or_insert(0) += weight;
                if *op > 2 {
                    updated[usize::from(*op == 3)].push(keys.value(row));
                }
            }
        }
        sum.retain(|_, weight| *weight != 0);
        let expected = rows.iter().map(|(key, value)| ((*key, *value), 1)).collect();
        prop_assert_eq!(&sum, &expected, "what was logged adds up to the relation");
        prop_assert_eq!(updated[0].len(), updated[1].len(), "an update has two rows");
        if is_keyed {
            updated.iter_mut().for_each(|keys| keys.sort_unstable());
            prop_assert_eq!(&updated[0], &updated[1], "of one key");
        }
        go_on(&mut dataflow, &mut stored, step, &mut count)?;
    }
    Ok(())
}

fn meets(steps: &[Step], kind: JoinKind, mut count: usize) -> Result<(), TestCaseError> {
    let join = JoinSpec {
        kind,
        left_key: vec![1],
        right_key: vec![0],
        null_keys: NullKeys::MeetNothing,
        residual: None,
    };
    let operator = OperatorSpec::Lookup {
        left: Node::Input(0),
        right: Node::Input(1),
        join,
        schema: schema(&["a", "b", "c", "d"]),
    };
    let spec = spec(vec![input(), input()], operator);
    let mut dataflow = Dataflow::new(ObjectId(7), spec, workers(count));
    let (mut stored, mut sum) = (Stored::default(), RowCounts::default());
    let (mut left, mut right) = (Rows::new(), Rows::new());
    // What each row of the left side was given.
    let mut given: BTreeMap<(i64, i64), Option<Vec<Option<i64>>>> = BTreeMap::new();
    for step in steps {
        let inputs = [apply(&mut left, &step.puts[0]), apply(&mut right, &step.puts[1])];
        let inputs = inputs.into_iter().enumerate();
        let inputs = inputs.map(|(input, delta)| (input, StepInput::Delta(delta)));
        sum.add(&dataflow.step(inputs.collect()).expect("valid"));
        given.retain(|(key, value), _| left.get(key) == Some(value));
        for (key, value) in &left {
            given.entry((*key, *value)).or_insert_with(|| match right.get(value) {
                Some(met) => Some(vec![Some(*key), Some(*value), Some(*value), Some(*met)]),
                None => {
                    (kind == JoinKind::Left).then(|| vec![Some(*key), Some(*value), None, None])
                }
            });
        }
        let rows = given.values().flatten().cloned().collect::<Vec<_>>();
        let expected = RowCounts::of_batches(std::iter::once(batch(&rows, 4)));
        prop_assert_eq!(&sum, &expected, "each row has what it was given");
        let version = RowCounts::of_batches(dataflow.version().batches());
        prop_assert_eq!(&version, &expected, "the relation");
        go_on(&mut dataflow, &mut stored, step, &mut count)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changelog_adds_up_to_its_relation(steps in steps(), is_keyed: bool, count in 1..4_usize) {
        logs(&steps, if is_keyed { vec![0] } else { Vec::new() }, count)?;
    }

    #[test]
    fn a_temporal_join_takes_back_what_it_gave(steps in steps(), is_left: bool, count in 1..4_usize) {
        meets(&steps, if is_left { JoinKind::Left } else { JoinKind::Inner }, count)?;
    }
}
