//! Tables and keyed inputs: puts, removals and inserts by key, their conflicts, their versions and their storage.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, UInt8Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use proptest::prelude::*;
use segue_flow::{
    BlobKind, Changes, Conflict, Dataflow, DataflowSpec, Delta, InputKind, Nulls, Ops,
    RelationVersion, Resolution, SealedBlob, StateBlob, StepError, StepInput, Workers,
};
use segue_types::{ObjectId, Op};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("v", DataType::Utf8, false),
    ]))
}

fn batch(rows: &[(i64, Option<String>)]) -> RecordBatch {
    let keys = rows.iter().map(|(key, _)| *key).collect::<Int64Array>();
    let values = rows.iter().map(|(_, value)| value.as_deref()).collect::<StringArray>();
    let nullable = Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("v", DataType::Utf8, true),
    ]);
    RecordBatch::try_new(Arc::new(nullable), vec![Arc::new(keys) as ArrayRef, Arc::new(values)])
        .expect("columns")
}

fn changes(rows: &[(Op, i64, u8)]) -> StepInput {
    let values = rows.iter().map(|(op, key, value)| {
        // A removal by key has NULLs in place of the rest, also where the column is NOT NULL.
        (*key, (*op != Op::Remove).then(|| format!("value {value}")))
    });
    let ops = rows.iter().map(|(op, ..)| *op as u8).collect::<UInt8Array>();
    StepInput::Changes(Changes { rows: batch(&values.collect::<Vec<_>>()), ops: Ops::Each(ops) })
}

fn table(conflict: Conflict) -> Dataflow {
    let spec = DataflowSpec::table(schema(), vec![0], conflict, InputKind::Changelog);
    Dataflow::new(ObjectId(3), spec, Workers::ONE)
}

fn rows_of(batches: impl Iterator<Item = RecordBatch>) -> BTreeMap<i64, String> {
    let mut rows = BTreeMap::new();
    for batch in batches {
        let (keys, values) =
            (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string::<i32>());
        for row in 0..batch.num_rows() {
            let before = rows.insert(keys.value(row), values.value(row).to_owned());
            assert_eq!(before, None, "one row per key");
        }
    }
    rows
}

fn lookup(version: &RelationVersion, key: i64) -> Option<String> {
    let keys = batch(&[(key, None)]).project(&[0]).expect("the key column");
    let mut found = rows_of(std::iter::once(version.lookup(&keys).expect("a keyed relation")));
    assert!(found.len() <= 1);
    found.remove(&key)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![Just(Op::Insert), Just(Op::Put), Just(Op::Remove), Just(Op::Retract)]
}

/// Each step: changes, whether it is followed by a seal, and whether by a restore.
type Steps = Vec<(Vec<(Op, i64, u8)>, bool, bool)>;

fn steps() -> impl Strategy<Value = Steps> {
    let change = (op(), 0_i64..12, 0_u8..3);
    prop::collection::vec(
        (prop::collection::vec(change, 0..30), any::<bool>(), any::<bool>()),
        1..12,
    )
}

fn model(model: &mut BTreeMap<i64, String>, conflict: &Conflict, changes: &[(Op, i64, u8)]) {
    for (op, key, value) in changes {
        match op {
            Op::Insert if *conflict == Conflict::DoNothing && model.contains_key(key) => {}
            Op::Insert | Op::Put => {
                model.insert(*key, format!("value {value}"));
            }
            Op::Remove | Op::Retract => {
                model.remove(key);
            }
        }
    }
}

fn keep(stored: &mut HashMap<(u64, u8), Vec<StateBlob>>, sealed: &[SealedBlob]) {
    for blob in sealed.iter().map(SealedBlob::encode) {
        let of_group = stored.entry((blob.operator.0, blob.group)).or_default();
        if blob.kind == BlobKind::Base {
            of_group.clear();
        }
        of_group.push(blob);
    }
}

fn check(conflict: &Conflict, steps: &Steps) {
    let mut dataflow = table(conflict.clone());
    let mut expected = BTreeMap::new();
    let mut sum = BTreeMap::new();
    let mut stored = HashMap::new();
    let mut versions = Vec::new();
    for (rows, seals, restores) in steps {
        model(&mut expected, conflict, rows);
        let (first, second) = rows.split_at(rows.len() / 2);
        let inputs = vec![(0, changes(first)), (0, changes(second))];
        for delta in dataflow.step(inputs).expect("valid changes") {
            let (keys, values) = (delta.rows().column(0), delta.rows().column(1));
            for row in 0..delta.len() {
                let entry = (
                    keys.as_primitive::<Int64Type>().value(row),
                    values.as_string::<i32>().value(row).to_owned(),
                );
                *sum.entry(entry).or_insert(0) += delta.weight(row);
            }
        }
        sum.retain(|_, count| *count != 0);
        assert!(sum.values().all(|count| *count == 1), "{sum:?}");
        assert_eq!(sum.keys().cloned().collect::<BTreeMap<_, _>>(), expected);
        if *seals {
            keep(&mut stored, &dataflow.seal());
        }
        if *seals && *restores {
            dataflow = table(conflict.clone());
            dataflow.restore(stored.values().flatten().cloned().collect()).expect("just sealed");
        }
        versions.push((dataflow.version(), expected.clone()));
        for (version, expected) in &versions {
            assert_eq!(rows_of(version.batches()), *expected);
            assert_eq!(version.row_count(), expected.len());
            (0..12).for_each(|key| assert_eq!(lookup(version, key), expected.get(&key).cloned()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_last_change_of_a_key_wins(steps in steps()) {
        check(&Conflict::Overwrite, &steps);
    }

    #[test]
    fn do_nothing_keeps_the_row_that_is_there_and_a_put_still_overwrites(steps in steps()) {
        check(&Conflict::DoNothing, &steps);
    }
}

/// Enough rows for many chunks: chunks die, are compacted and reused, while old versions go on seeing theirs.
#[test]
fn old_versions_outlive_the_compaction_of_their_chunks() {
    let mut dataflow = table(Conflict::Overwrite);
    let rows = |from: i64, value: u8| {
        (from..from + 20_000).map(|key| (Op::Put, key, value)).collect::<Vec<_>>()
    };
    dataflow.step(vec![(0, changes(&rows(0, 1)))]).expect("valid");
    dataflow.step(vec![(0, changes(&rows(20_000, 1)))]).expect("valid");
    let mut stored = HashMap::new();
    keep(&mut stored, &dataflow.seal());
    let first = dataflow.version();
    for round in 2..6 {
        let removed = (0..40_000).filter(|key| key % 10 == round).map(|key| (Op::Remove, key, 0));
        dataflow.step(vec![(0, changes(&removed.collect::<Vec<_>>()))]).expect("valid");
        dataflow.step(vec![(0, changes(&rows(10_000, round as u8)))]).expect("valid");
        let version = dataflow.version();
        assert_eq!(lookup(&version, 15_000), Some(format!("value {round}")));
        keep(&mut stored, &dataflow.seal());
    }
    assert_eq!(first.row_count(), 40_000);
    assert_eq!(rows_of(first.batches()).len(), 40_000);
    assert_eq!(lookup(&first, 15_000).as_deref(), Some("value 1"));
    assert_eq!(lookup(&first, 39_999).as_deref(), Some("value 1"));
    let last = rows_of(dataflow.version().batches());
    assert_eq!(lookup(&dataflow.version(), 2), None);
    let mut restored = table(Conflict::Overwrite);
    restored.restore(stored.into_values().flatten().collect()).expect("just sealed");
    assert_eq!(rows_of(restored.version().batches()), last);
}

#[test]
fn a_version_taken_twice_without_a_change_is_the_same() {
    let mut dataflow = table(Conflict::Overwrite);
    dataflow.step(vec![(0, changes(&[(Op::Put, 1, 1)]))]).expect("valid");
    let (first, second) = (dataflow.version(), dataflow.version());
    assert_eq!(rows_of(first.batches()), rows_of(second.batches()));
    assert!(
        dataflow.seal().len() == 1 && dataflow.seal().is_empty(),
        "nothing changed since the seal"
    );
}

#[test]
fn a_table_without_a_key_counts_equal_rows_and_refuses_to_lose_one_it_never_had() {
    let spec = DataflowSpec::table(schema(), Vec::new(), Conflict::Overwrite, InputKind::Changelog);
    let mut bag = Dataflow::new(ObjectId(4), spec.clone(), Workers::ONE);
    let row = || batch(&[(1, Some("a".to_owned()))]);
    let insert = || StepInput::Changes(Changes { rows: row(), ops: Ops::Insert });
    let retract = || StepInput::Delta(Delta::weighted(row(), vec![-1].into()));
    bag.step((0..3).map(|_| (0, insert())).collect()).expect("valid");
    assert_eq!(bag.version().row_count(), 3);
    let blobs = bag.seal();
    bag.step(vec![(0, retract())]).expect("one of three");
    let deltas = bag.seal();
    let mut restored = Dataflow::new(ObjectId(4), spec, Workers::ONE);
    let mut stored = HashMap::new();
    keep(&mut stored, &blobs);
    keep(&mut stored, &deltas);
    restored.restore(stored.into_values().flatten().collect()).expect("just sealed");
    assert_eq!(restored.version().row_count(), 2);
    assert_eq!(restored.version().batches().map(|batch| batch.num_rows()).sum::<usize>(), 2);
    restored.step(vec![(0, retract()), (0, retract())]).expect("both");
    assert_eq!(restored.version().row_count(), 0);
    let error = restored.step(vec![(0, retract())]).expect_err("there is none");
    assert!(matches!(error, StepError::NegativeMultiplicity { .. }), "{error}");
}

#[test]
fn a_damaged_or_foreign_blob_is_refused() {
    let mut dataflow = table(Conflict::Overwrite);
    dataflow.step(vec![(0, changes(&[(Op::Put, 1, 1), (Op::Put, 2, 1)]))]).expect("valid");
    let blobs = dataflow.seal().iter().map(SealedBlob::encode).collect::<Vec<_>>();
    for at in [0, 4, 5, 6, 8, 16, 24, 32, 45, blobs[0].bytes.len() - 1] {
        let mut damaged = blobs.clone();
        damaged[0].bytes[at] ^= 1;
        assert!(table(Conflict::Overwrite).restore(damaged).is_err(), "byte {at}");
    }
    let mut short = blobs.clone();
    short[0].bytes.truncate(20);
    assert!(table(Conflict::Overwrite).restore(short).is_err());
    let other = DataflowSpec::table(schema(), vec![1], Conflict::Overwrite, InputKind::Changelog);
    assert!(
        Dataflow::new(ObjectId(3), other, Workers::ONE).restore(blobs.clone()).is_err(),
        "another key"
    );
    let other = DataflowSpec::table(schema(), vec![0], Conflict::Overwrite, InputKind::Changelog);
    assert!(
        Dataflow::new(ObjectId(9), other, Workers::ONE).restore(blobs).is_err(),
        "another object"
    );
}

/// Key, a value that may be NULL, a version that may be NULL.
type Versioned = (i64, Option<i64>, Option<i64>);

fn versioned(rows: &[Versioned]) -> RecordBatch {
    let field = |name| Field::new(name, DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![field("k"), field("a"), field("v")]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>()),
    ];
    RecordBatch::try_new(schema, columns).expect("columns of the schema")
}

/// What a row is after another of its key.
fn met(before: Option<&Versioned>, new: &Versioned, resolution: &Resolution) -> Versioned {
    let Some(before) = before else { return *new };
    let wins = resolution.versions.is_empty() || (new.2.is_some() && new.2 >= before.2);
    match (wins, resolution.nulls) {
        (false, _) => *before,
        (true, Nulls::Replace) => *new,
        (true, Nulls::KeepFormer) => (new.0, new.1.or(before.1), new.2.or(before.2)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_of_a_key_that_meet_are_resolved(
        steps in prop::collection::vec(
            prop::collection::vec(
                (0_i64..4, prop::option::of(0_i64..9), prop::option::of(0_i64..4), 0_u8..4),
                0..8,
            ),
            1..8,
        ),
        keeps in any::<bool>(),
        has_versions in any::<bool>(),
    ) {
        let nulls = if keeps { Nulls::KeepFormer } else { Nulls::Replace };
        let versions = if has_versions { vec![2] } else { Vec::new() };
        let resolution = Resolution { nulls, versions };
        let conflict = Conflict::Resolve(resolution.clone());
        let schema = versioned(&[]).schema();
        let spec = DataflowSpec::table(schema, vec![0], conflict, InputKind::Changelog);
        let mut dataflow = Dataflow::new(ObjectId(1), spec, Workers::ONE);
        let mut model = BTreeMap::<i64, Versioned>::new();
        for step in &steps {
            let rows = step.iter().map(|(k, a, v, _)| (*k, *a, *v)).collect::<Vec<_>>();
            let ops = step.iter().map(|(.., op)| match op {
                0 => Op::Remove,
                1 => Op::Insert,
                _ => Op::Put,
            });
            let ops = ops.collect::<Vec<_>>();
            for (row, op) in rows.iter().zip(&ops) {
                match op {
                    Op::Remove => drop(model.remove(&row.0)),
                    _ => {
                        let after = met(model.get(&row.0), row, &resolution);
                        model.insert(row.0, after);
                    }
                }
            }
            let codes = UInt8Array::from(ops.iter().map(|op| *op as u8).collect::<Vec<_>>());
            let changes = Changes { rows: versioned(&rows), ops: Ops::Each(codes) };
            dataflow.step(vec![(0, StepInput::Changes(changes))]).expect("rows of the schema");
            let mut found = BTreeMap::new();
            for batch in dataflow.version().batches() {
                let column = |place: usize| batch.column(place).as_primitive::<Int64Type>().clone();
                let (k, a, v) = (column(0), column(1), column(2));
                for ((k, a), v) in k.iter().zip(a.iter()).zip(v.iter()) {
                    let k = k.expect("a key");
                    prop_assert!(found.insert(k, (k, a, v)).is_none(), "one row of a key");
                }
            }
            prop_assert_eq!(&found, &model);
        }
    }
}
