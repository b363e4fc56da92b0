//! The relation of an aggregate over many groups: chunks that are patched, computed anew and grown, while versions of
//! every age go on seeing what they saw, by scan and by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Decimal128Type, Field, Int64Type, Schema, SchemaRef};
use segue_flow::{
    AggregateFunction, AggregateSpec, Dataflow, DataflowSpec, Delta, InputKind, InputSpec, Node,
    OperatorSpec, RelationVersion, SealedBlob, StepInput, Workers,
};
use segue_types::ObjectId;

/// Group → (rows, sum).
type Groups = BTreeMap<i64, (i64, i128)>;

fn schema(names: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, data_type): &(&str, DataType)| Field::new(*name, data_type.clone(), true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

fn input() -> SchemaRef {
    schema(&[("k", DataType::Int64), ("v", DataType::Int64)])
}

/// COUNT(*) and SUM(v) by k.
fn dataflow() -> Dataflow {
    let output = schema(&[
        ("k", DataType::Int64),
        ("n", DataType::Int64),
        ("v", DataType::Decimal128(38, 0)),
    ]);
    let functions = [(AggregateFunction::Count, None), (AggregateFunction::Sum, Some(1))];
    let spec = |(function, argument)| AggregateSpec { function, argument, filter: None };
    let aggregate = OperatorSpec::Aggregate {
        input: Node::Input(0),
        keys: vec![0],
        aggregates: functions.map(spec).to_vec(),
        schema: Arc::clone(&output),
    };
    let spec = DataflowSpec {
        inputs: vec![InputSpec { schema: input(), kind: InputKind::Changelog }],
        operators: vec![aggregate],
        output: Node::Operator(0),
        schema: output,
        key: vec![0],
        watermarks: Vec::new(),
    };
    Dataflow::new(ObjectId(5), spec, Workers::ONE)
}

/// Adds rows, or takes them back, in the dataflow and in the model.
fn absorb(dataflow: &mut Dataflow, model: &mut Groups, rows: &[(i64, i64, i64)]) {
    let keys = rows.iter().map(|(key, _, _)| *key).collect::<Int64Array>();
    let values = rows.iter().map(|(_, value, _)| *value).collect::<Int64Array>();
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(values)];
    let batch = RecordBatch::try_new(input(), columns).expect("columns of the schema");
    let weights = rows.iter().map(|(_, _, weight)| *weight).collect();
    let delta = Delta::weighted(batch, weights);
    dataflow.absorb(vec![(0, StepInput::Delta(delta))]).expect("valid rows");
    for (key, value, weight) in rows {
        let group = model.entry(*key).or_default();
        group.0 += weight;
        group.1 += i128::from(*value) * i128::from(*weight);
    }
    model.retain(|_, (rows, _)| *rows != 0);
}

fn groups_of(batches: impl Iterator<Item = RecordBatch>) -> Groups {
    let mut groups = Groups::new();
    for batch in batches {
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().clone();
        let (keys, counts) = (column(0), column(1));
        let sums = batch.column(2).as_primitive::<Decimal128Type>();
        for row in 0..batch.num_rows() {
            let group = (counts[row], sums.value(row));
            assert_eq!(groups.insert(keys[row], group), None, "one row a group");
        }
    }
    groups
}

fn check(version: &RelationVersion, expected: &Groups) {
    assert_eq!(groups_of(version.batches()), *expected);
    assert_eq!(version.row_count(), expected.len());
    let wanted = expected.keys().copied().step_by(97).chain([-1]).collect::<Int64Array>();
    let found = wanted.values().iter().filter(|key| expected.contains_key(key)).count();
    let keys = schema(&[("k", DataType::Int64)]);
    let keys = RecordBatch::try_new(keys, vec![Arc::new(wanted)]).expect("one column");
    let rows = groups_of(std::iter::once(version.lookup(&keys).expect("a keyed relation")));
    assert_eq!(rows.len(), found);
    assert!(rows.iter().all(|(key, group)| expected.get(key) == Some(group)));
}

#[test]
fn versions_of_every_age_see_their_own_rows() {
    let (mut dataflow, mut model) = (dataflow(), Groups::new());
    let mut versions = Vec::new();
    absorb(&mut dataflow, &mut model, &(0..30_000).map(|k| (k, k, 1)).collect::<Vec<_>>());
    versions.push((dataflow.version(), model.clone()));
    // Few rows often: patches pile up and are made into one; then many at once, and new groups behind the others.
    for round in 0..12 {
        let few = (0..40).map(|i| (i * 700 + round, round, 1)).collect::<Vec<_>>();
        absorb(&mut dataflow, &mut model, &few);
        versions.push((dataflow.version(), model.clone()));
    }
    for round in 0..6 {
        let many = (0..4_000).map(|i| (i * 7 + round, 1, 1)).collect::<Vec<_>>();
        absorb(&mut dataflow, &mut model, &many);
        let new = (0..500).map(|i| (40_000 + round * 500 + i, i, 2)).collect::<Vec<_>>();
        absorb(&mut dataflow, &mut model, &new);
        versions.push((dataflow.version(), model.clone()));
    }
    versions.iter().for_each(|(version, expected)| check(version, expected));
}

#[test]
fn a_group_that_dies_and_one_that_takes_its_place_are_told_apart() {
    let (mut dataflow, mut model) = (dataflow(), Groups::new());
    absorb(&mut dataflow, &mut model, &(0..100).map(|k| (k, k, 1)).collect::<Vec<_>>());
    let mut versions = vec![(dataflow.version(), model.clone())];
    // Dies, and another key takes its slot, before anybody looked.
    absorb(&mut dataflow, &mut model, &[(7, 7, -1), (8, 8, -1)]);
    absorb(&mut dataflow, &mut model, &[(1_007, 1, 1)]);
    versions.push((dataflow.version(), model.clone()));
    // Returns, elsewhere, while its old row is still seen; and dies again.
    absorb(&mut dataflow, &mut model, &[(8, 5, 1), (7, 6, 1)]);
    versions.push((dataflow.version(), model.clone()));
    absorb(&mut dataflow, &mut model, &[(8, 5, -1), (1_007, 1, -1)]);
    versions.push((dataflow.version(), model.clone()));
    versions.iter().for_each(|(version, expected)| check(version, expected));
    versions.drain(..3);
    absorb(&mut dataflow, &mut model, &[(8, 9, 1)]);
    versions.push((dataflow.version(), model.clone()));
    versions.iter().for_each(|(version, expected)| check(version, expected));
}

#[test]
fn what_was_sealed_at_any_time_comes_back() {
    let (mut dataflow, mut model) = (dataflow(), Groups::new());
    let mut stored: BTreeMap<u8, Vec<SealedBlob>> = BTreeMap::new();
    let wide = i64::MAX / 2;
    let steps = [
        (0..20_000).map(|k| (k, k, 1)).collect::<Vec<_>>(),
        (0..3_000).map(|k| (k * 3, 1, 1)).collect(),
        // A sum that needs more than 64 bits, in a delta only.
        vec![(5, wide, 1), (5, wide, 1), (5, wide, 1)],
        (0..5_000).map(|k| (k * 2 + 1, k * 2 + 1, -1)).collect(),
        (9_000..21_000).map(|k| (k, 2, 1)).collect(),
    ];
    for rows in steps {
        let is_there =
            |row: &(i64, i64, i64), model: &Groups| row.2 > 0 || model.contains_key(&row.0);
        let rows = rows.into_iter().filter(|row| is_there(row, &model)).collect::<Vec<_>>();
        absorb(&mut dataflow, &mut model, &rows);
        for blob in dataflow.seal() {
            let encoded = blob.encode();
            let group = stored.entry(encoded.group).or_default();
            if encoded.kind == segue_flow::BlobKind::Base {
                group.clear();
            }
            group.push(blob);
        }
        let mut restored = self::dataflow();
        let blobs = stored.values().flatten().map(SealedBlob::encode).collect();
        restored.restore(blobs).expect("just sealed");
        check(&restored.version(), &model);
        check(&dataflow.version(), &model);
        assert!(restored.seal().is_empty(), "nothing changed since it was stored");
    }
}

#[test]
fn losing_a_row_that_never_came_is_an_error_at_once() {
    let (mut dataflow, mut model) = (dataflow(), Groups::new());
    absorb(&mut dataflow, &mut model, &[(1, 1, 1)]);
    let keys: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![1])), Arc::new(Int64Array::from(vec![1]))];
    let batch = RecordBatch::try_new(input(), keys).expect("columns of the schema");
    let delta = Delta::weighted(batch, vec![-2].into());
    let error = dataflow.absorb(vec![(0, StepInput::Delta(delta))]).expect_err("there is one");
    assert!(matches!(error, segue_flow::StepError::NegativeMultiplicity { .. }), "{error}");
}
