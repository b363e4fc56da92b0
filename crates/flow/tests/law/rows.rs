//! Random rows of the one input table, and the multiset of those that are there.
//!
//! Floats are multiples of a quarter, so that their sums are exact in every order; `f` has −0.0, `g` has NaN and infinities.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use proptest::prelude::*;
use segue_flow::Delta;

/// Choices for the columns of one row.
pub type RowSeed = [u8; 7];

/// What one step does, and what happens after it.
#[derive(Clone, Debug)]
pub struct StepPlan {
    changes: Vec<Change>,
    /// Removals come before the additions that they take back.
    reversed: bool,
    /// In how many deltas the step arrives.
    pieces: usize,
    pub seals: bool,
    pub restores: bool,
    pub forgets: bool,
}

impl StepPlan {
    /// Adds rows, and nothing else.
    pub fn adding(seeds: impl IntoIterator<Item = RowSeed>) -> StepPlan {
        StepPlan {
            changes: seeds.into_iter().map(|seed| Change::Add(seed, 1)).collect(),
            reversed: false,
            pieces: 1,
            seals: false,
            restores: false,
            forgets: false,
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Add(RowSeed, u8),
    Remove(prop::sample::Index),
}

/// Steps with additions, and removals if asked for.
pub fn step_plan(removals: bool) -> impl Strategy<Value = StepPlan> {
    let add = (prop::array::uniform7(0_u8..8), 1_u8..3)
        .prop_map(|(seed, count)| Change::Add(seed, count));
    let remove = any::<prop::sample::Index>().prop_map(Change::Remove);
    let change = if removals { prop_oneof![add, remove].boxed() } else { add.boxed() };
    (
        prop::collection::vec(change, 0..24),
        any::<bool>(),
        1_usize..4,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(changes, reversed, pieces, seals, restores, forgets)| StepPlan {
            changes,
            reversed,
            pieces,
            seals,
            restores,
            forgets,
        })
}

/// The rows that are there.
#[derive(Debug, Default)]
pub struct Live {
    rows: Vec<RowSeed>,
}

impl Live {
    /// Applies a step and returns it as deltas.
    pub fn apply(&mut self, step: &StepPlan) -> Vec<Delta> {
        let mut changes: Vec<(RowSeed, i64)> = Vec::new();
        for change in &step.changes {
            match change {
                Change::Add(seed, count) => {
                    changes.push((*seed, i64::from(*count)));
                    self.rows.extend(std::iter::repeat_n(*seed, usize::from(*count)));
                }
                Change::Remove(index) if !self.rows.is_empty() => {
                    let row = self.rows.swap_remove(index.index(self.rows.len()));
                    changes.push((row, -1));
                }
                Change::Remove(_) => {}
            }
        }
        if step.reversed {
            changes.reverse();
        }
        let size = changes.len().div_ceil(step.pieces).max(1);
        let delta = |piece: &[(RowSeed, i64)]| {
            let seeds = piece.iter().map(|(seed, _)| *seed).collect::<Vec<_>>();
            Delta::weighted(batch(&seeds), piece.iter().map(|(_, weight)| *weight).collect())
        };
        changes.chunks(size).map(delta).collect()
    }

    /// All rows, as a batch.
    pub fn batch(&self) -> RecordBatch {
        batch(&self.rows)
    }
}

/// The input's columns.
pub fn schema() -> SchemaRef {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("k", DataType::Int64),
        field("s", DataType::Utf8),
        field("f", DataType::Float64),
        field("g", DataType::Float64),
        field("n", DataType::Int32),
        field("d", DataType::Decimal128(12, 2)),
        field("b", DataType::Boolean),
        field("t", DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))),
    ]))
}

fn batch(seeds: &[RowSeed]) -> RecordBatch {
    fn column<T: Clone>(seeds: &[RowSeed], at: usize, choices: &[Option<T>; 8]) -> Vec<Option<T>> {
        seeds.iter().map(|seed| choices[usize::from(seed[at])].clone()).collect()
    }
    let k = column(
        seeds,
        0,
        &[None, Some(0), Some(1), Some(2), Some(3), Some(-1), Some(i64::MAX), Some(1)],
    );
    let s = column(
        seeds,
        1,
        &[None, Some(""), Some("a"), Some("b"), Some("ä"), Some("a"), None, Some("longer text")],
    );
    let f = column(
        seeds,
        2,
        &[None, Some(0.0), Some(-0.0), Some(1.5), Some(-2.25), Some(0.25), Some(-0.0), Some(8.0)],
    );
    let special = &[
        None,
        Some(f64::NAN),
        Some(f64::INFINITY),
        Some(f64::NEG_INFINITY),
        Some(0.5),
        Some(1e6),
        Some(-0.25),
        None,
    ];
    let g = column(seeds, 3, special);
    let n = column(
        seeds,
        4,
        &[None, Some(0), Some(1), Some(2), Some(i32::MAX), Some(i32::MIN), Some(-7), Some(3)],
    );
    let d = column(
        seeds,
        5,
        &[
            None,
            Some(0_i128),
            Some(125),
            Some(-999),
            Some(999_999_999_999),
            Some(1),
            Some(-1),
            Some(50),
        ],
    );
    let b = column(
        seeds,
        6,
        &[None, Some(true), Some(false), Some(true), None, Some(false), Some(true), Some(false)],
    );
    let t = seeds.iter().map(|seed| (seed[6] > 1).then_some(i64::from(seed[5]) * 1_000_000));
    let decimals = Decimal128Array::from(d).with_precision_and_scale(12, 2).expect("twelve digits");
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(k)),
        Arc::new(StringArray::from(s)),
        Arc::new(Float64Array::from(f)),
        Arc::new(Float64Array::from(g)),
        Arc::new(Int32Array::from(n)),
        Arc::new(decimals),
        Arc::new(BooleanArray::from(b)),
        Arc::new(t.collect::<TimestampMicrosecondArray>().with_timezone("+00:00")),
    ];
    RecordBatch::try_new(schema(), columns).expect("columns of the schema")
}
