//! The law of the engine, by properties: after every step the sum of the output deltas, and the relation, are what DataFusion
//! answers over the sum of the inputs. With duplicates, removals before their additions, NULL, −0.0, NaN, empty steps,
//! keys that die and return, seals and restores at any step, state that leaves memory and comes back, versions read long after they were taken, and one to
//! three workers, of whom there are others after each seal.

mod arrival;
mod oracle;
mod pipelines;
mod rows;
mod stored;
mod time;

use std::num::NonZeroUsize;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use segue_flow::{Dataflow, Delta, InputKind, RelationVersion, StepInput, Workers};
use segue_types::ObjectId;

use oracle::{Oracle, RowCounts};
use pipelines::{PIPELINES, Pipeline};
use rows::{Live, StepPlan};
use stored::Stored;

const OBJECT: ObjectId = ObjectId(7);

fn steps(removals: bool) -> impl Strategy<Value = Vec<StepPlan>> {
    prop::collection::vec(rows::step_plan(removals), 1..8)
}

/// One, two with a shard for each vnode group, or three that share even the least work.
fn workers(count: usize) -> Workers {
    let workers = Workers::new(NonZeroUsize::new(count).expect("not zero"), 1 << 20);
    match count {
        2 => workers.spread(),
        3 => workers.with_shared_rows_min(0),
        _ => workers,
    }
}

/// Another number of workers.
fn others(count: usize) -> usize {
    count % 3 + 1
}

/// Runs the steps and compares after each.
fn check(
    pipeline: &Pipeline,
    kind: InputKind,
    steps: &[StepPlan],
    mut count: usize,
) -> Result<(), TestCaseError> {
    let oracle = Oracle::new();
    let spec = (pipeline.spec)(kind);
    let key = spec.key.clone();
    let mut dataflow = Dataflow::new(OBJECT, spec.clone(), workers(count));
    let mut live = Live::default();
    // What the relation held when it was made is a delta too.
    let mut sum = RowCounts::of_batches(dataflow.version().batches());
    let mut stored = Stored::default();
    let mut versions: Vec<(RelationVersion, RowCounts)> = Vec::new();
    for step in steps {
        let inputs = live.apply(step).into_iter().map(|delta| (0, StepInput::Delta(delta)));
        let output = dataflow.step(inputs.collect()).expect("the inputs are valid");
        sum.add(&output);
        let version = dataflow.version();
        let expected = oracle.answer(pipeline.sql, &live);
        prop_assert_eq!(&sum, &expected, "sum of deltas of {}", pipeline.sql);
        prop_assert_eq!(
            &RowCounts::of_batches(version.batches()),
            &expected,
            "relation of {}",
            pipeline.sql
        );
        prop_assert_eq!(version.row_count(), expected.total());
        if step.seals {
            stored.keep(&dataflow.seal());
        }
        if step.seals && step.restores {
            count = others(count);
            dataflow = Dataflow::new(OBJECT, spec.clone(), workers(count));
            dataflow.restore(stored.blobs()).expect("just sealed");
            let restored = RowCounts::of_batches(dataflow.version().batches());
            prop_assert_eq!(&restored, &expected, "restored {}", pipeline.sql);
        } else if step.seals {
            count = others(count);
            dataflow = dataflow.resharded(workers(count)).expect("just sealed");
            let resharded = RowCounts::of_batches(dataflow.version().batches());
            prop_assert_eq!(&resharded, &expected, "resharded {}", pipeline.sql);
        }
        if step.seals && step.forgets {
            dataflow.rest(&stored.round());
            let at_rest = RowCounts::of_batches(dataflow.version().batches());
            prop_assert_eq!(&at_rest, &expected, "at rest {}", pipeline.sql);
        }
        versions.push((version, expected));
        for (version, expected) in &versions {
            prop_assert_eq!(&RowCounts::of_batches(version.batches()), expected, "an old version");
            check_lookup(version, &key, expected)?;
        }
        if step.forgets {
            versions.remove(0);
        }
    }
    Ok(())
}

/// Each row of a keyed version is found by its key, alone.
fn check_lookup(
    version: &RelationVersion,
    key: &[usize],
    expected: &RowCounts,
) -> Result<(), TestCaseError> {
    if key.is_empty() {
        return Ok(());
    }
    let mut found = RowCounts::default();
    let mut with_null = 0;
    for batch in version.batches() {
        for row in 0..batch.num_rows() {
            let keys = batch.slice(row, 1).project(key).expect("the key is within the schema");
            with_null += usize::from(keys.columns().iter().any(|column| column.null_count() > 0));
            let rows = version.lookup(&keys).expect("the relation has this key");
            found.add(&[Delta::inserts(rows)]);
        }
    }
    prop_assert_eq!(found.total() + with_null, expected.total(), "rows found by key");
    prop_assert!(found.is_within(expected), "lookup found another row");
    Ok(())
}

/// As [`check`], but nobody reads the changes, and a version is taken only where a step seals.
fn check_absorbed(
    pipeline: &Pipeline,
    kind: InputKind,
    steps: &[StepPlan],
    mut count: usize,
) -> Result<(), TestCaseError> {
    let oracle = Oracle::new();
    let spec = (pipeline.spec)(kind);
    let key = spec.key.clone();
    let mut dataflow = Dataflow::new(OBJECT, spec.clone(), workers(count));
    let mut live = Live::default();
    let mut stored = Stored::default();
    let mut versions: Vec<(RelationVersion, RowCounts)> = Vec::new();
    for step in steps {
        let inputs = live.apply(step).into_iter().map(|delta| (0, StepInput::Delta(delta)));
        dataflow.absorb(inputs.collect()).expect("the inputs are valid");
        if !step.seals {
            continue;
        }
        stored.keep(&dataflow.seal());
        if step.restores {
            count = others(count);
            dataflow = Dataflow::new(OBJECT, spec.clone(), workers(count));
            dataflow.restore(stored.blobs()).expect("just sealed");
        }
        let expected = oracle.answer(pipeline.sql, &live);
        versions.push((dataflow.version(), expected));
        for (version, expected) in &versions {
            prop_assert_eq!(&RowCounts::of_batches(version.batches()), expected, "absorbed");
            prop_assert_eq!(version.row_count(), expected.total());
            check_lookup(version, &key, expected)?;
        }
        if step.forgets {
            versions.remove(0);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_pipeline_agrees_with_the_batch_engine_under_removals(
        pipeline in 0..PIPELINES.len(),
        steps in steps(true),
        count in 1..4_usize,
    ) {
        check(&PIPELINES[pipeline], InputKind::Changelog, &steps, count)?;
    }

    #[test]
    fn every_relation_agrees_with_the_batch_engine_where_nobody_reads_the_changes(
        pipeline in 0..PIPELINES.len(),
        steps in steps(true),
        count in 1..4_usize,
    ) {
        check_absorbed(&PIPELINES[pipeline], InputKind::Changelog, &steps, count)?;
    }

    #[test]
    fn every_pipeline_agrees_with_the_batch_engine_over_an_append_only_input(
        pipeline in 0..PIPELINES.len(),
        steps in steps(false),
        count in 1..4_usize,
    ) {
        check(&PIPELINES[pipeline], InputKind::AppendOnly, &steps, count)?;
    }
}

/// The inner of two aggregates is no relation's, so that its groups may leave memory.
#[test]
fn state_leaves_memory_and_what_a_row_touches_comes_back() {
    let pipeline = PIPELINES.iter().find(|pipeline| pipeline.sql.starts_with("SELECT c, count(*)"));
    let spec = (pipeline.expect("two aggregates").spec)(InputKind::Changelog);
    let mut dataflow = Dataflow::new(OBJECT, spec, workers(2));
    let mut live = Live::default();
    let mut step = |dataflow: &mut Dataflow, keys: std::ops::Range<u8>| {
        let plan = StepPlan::adding(keys.map(|key| [key, 0, 0, 0, 0, 0, 0]));
        let inputs = live.apply(&plan).into_iter().map(|delta| (0, StepInput::Delta(delta)));
        dataflow.step(inputs.collect()).expect("the inputs are valid");
    };
    let inner = |dataflow: &mut Dataflow| {
        let stats = dataflow.operators();
        let stats = stats.iter().find(|stats| stats.name == "aggregate").expect("the inner one");
        (stats.state_rows, stats.state_bytes, stats.resting_bytes)
    };
    let mut stored = Stored::default();
    step(&mut dataflow, 0..7);
    assert_eq!(dataflow.rest(&stored.round()), segue_flow::Rested::default(), "nothing is sealed");
    stored.keep(&dataflow.seal());
    let (groups, awake, _) = inner(&mut dataflow);
    let rested = dataflow.rest(&stored.round());
    let (held, left, resting) = inner(&mut dataflow);
    assert!(rested.bytes > 0 && left < awake && resting > 0, "{rested:?} {left} {awake}");
    assert_eq!(held, groups, "what is at rest is held");
    step(&mut dataflow, 2..3);
    let (held, _, still) = inner(&mut dataflow);
    assert!(0 < still && still < resting, "one vnode group came back: {still} of {resting} rest");
    assert_eq!(held, groups);
}
