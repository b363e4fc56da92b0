//! Random changes of the tables `t` and `u`, where any rows come and go, and `k`, which has a key.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Schema, SchemaRef};
use proptest::prelude::*;
use segue_catalog::{Catalog, Object, ObjectKind, ObjectState, OnConflict, Settings, TableObject};
use segue_flow::{Delta, StepInput};
use segue_plan::delta::ViewPlan;
use segue_types::{ObjectId, SqlType};

/// The tables, in the order of their ids from 1.
pub const TABLES: [&str; 3] = ["t", "u", "k"];

type Seed = [u8; 5];

/// What one step does.
#[derive(Clone, Debug)]
pub struct Step {
    /// Table, row, and whether a row goes.
    changes: Vec<(usize, Seed, bool)>,
    /// Removals come before the additions that they take back.
    reversed: bool,
    pub restarts: bool,
}

pub fn step() -> impl Strategy<Value = Step> {
    let change = (0_usize..3, prop::array::uniform5(0_u8..6), prop::bool::weighted(0.4));
    (prop::collection::vec(change, 0..24), any::<bool>(), any::<bool>())
        .prop_map(|(changes, reversed, restarts)| Step { changes, reversed, restarts })
}

/// The rows that are there.
#[derive(Debug, Default)]
pub struct Tables {
    rows: [Vec<Seed>; 3],
}

impl Tables {
    /// Applies a step; returns each table's delta.
    pub fn apply(&mut self, step: &Step) -> Vec<Delta> {
        let mut changes: [Vec<(Seed, i64)>; 3] = Default::default();
        for (table, seed, goes) in &step.changes {
            let live = &mut self.rows[*table];
            if *goes && !live.is_empty() {
                let gone = live.swap_remove(usize::from(seed[0]) % live.len());
                changes[*table].push((gone, -1));
                continue;
            }
            if *table == 2
                && let Some(place) = live.iter().position(|row| row[0] == seed[0])
            {
                changes[2].push((live.swap_remove(place), -1));
            }
            live.push(*seed);
            changes[*table].push((*seed, 1));
        }
        let delta = |(table, mut changes): (usize, Vec<(Seed, i64)>)| {
            if step.reversed {
                changes.reverse();
            }
            let seeds = changes.iter().map(|(seed, _)| *seed).collect::<Vec<_>>();
            let weights = changes.iter().map(|(_, weight)| *weight).collect();
            Delta::weighted(batch(table, &seeds), weights)
        };
        changes.into_iter().enumerate().map(delta).collect()
    }

    pub fn batch(&self, table: usize) -> RecordBatch {
        batch(table, &self.rows[table])
    }
}

/// The deltas as the inputs of a view read them.
pub fn inputs(plan: &ViewPlan, deltas: &[Delta]) -> Vec<(usize, StepInput)> {
    let read = plan.inputs.iter().enumerate().map(|(input, read)| {
        let delta = &deltas[read.object.0 as usize - 1];
        let rows = delta.rows().project(&read.projection).expect("columns of the table");
        (input, StepInput::Delta(delta.with_rows(rows)))
    });
    read.collect()
}

pub fn catalog() -> Catalog {
    let table = |(place, name): (usize, &&str)| Object {
        id: ObjectId(place as u32 + 1),
        name: (*name).to_owned(),
        schema: schema(place),
        key: if place == 2 { vec![0] } else { Vec::new() },
        definition: String::new(),
        kind: ObjectKind::Table(TableObject {
            stages: Vec::new(),
            on_conflict: OnConflict::Overwrite,
            versions: Vec::new(),
            mutability: Default::default(),
        }),
        depends_on: Default::default(),
        state: ObjectState::Ready,
        consumers: Vec::new(),
        settings: Settings::default(),
        created_unix_ms: None,
        failure: None,
        gaps: Vec::new(),
    };
    TABLES
        .iter()
        .enumerate()
        .map(table)
        .fold(Catalog::default(), |catalog, object| catalog.with(object).expect("a new name"))
}

fn schema(table: usize) -> SchemaRef {
    let columns: &[(&str, SqlType)] = match table {
        2 => &[("id", SqlType::Integer), ("a", SqlType::Integer), ("b", SqlType::Text)],
        _ => &[
            ("a", SqlType::Integer),
            ("b", SqlType::Text),
            ("c", SqlType::Double),
            ("d", SqlType::Numeric { precision: 12, scale: 2 }),
            ("at", SqlType::Timestamp),
        ],
    };
    Arc::new(Schema::new(columns.iter().map(|(name, ty)| ty.field(name, true)).collect::<Vec<_>>()))
}

fn batch(table: usize, seeds: &[Seed]) -> RecordBatch {
    let number =
        |at: usize| seeds.iter().map(move |seed| (seed[at] > 0).then_some(i64::from(seed[at]) - 2));
    let integers = |at: usize| -> ArrayRef {
        Arc::new(number(at).map(|value| value.map(|value| value as i32)).collect::<Int32Array>())
    };
    let texts =
        seeds.iter().map(|seed| [None, Some("x"), Some("xy"), Some("")][usize::from(seed[1] % 4)]);
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    if table == 2 {
        let ids = seeds.iter().map(|seed| i32::from(seed[0]) - 1).collect::<Vec<_>>();
        let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(ids)), integers(2), texts];
        return RecordBatch::try_new(schema(table), columns).expect("columns of the schema");
    }
    let decimals = number(3)
        .map(|value| value.map(|value| i128::from(value) * 75))
        .collect::<Decimal128Array>();
    let floats = number(2).map(|value| value.map(|v| if v == 0 { -0.0 } else { v as f64 / 4.0 }));
    let columns: Vec<ArrayRef> = vec![
        integers(0),
        texts,
        Arc::new(floats.collect::<Float64Array>()),
        Arc::new(decimals.with_precision_and_scale(12, 2).expect("twelve digits")),
        Arc::new(
            number(4).map(|v| v.map(|v| v * 25_000_000)).collect::<TimestampMicrosecondArray>(),
        ),
    ];
    RecordBatch::try_new(schema(table), columns).expect("columns of the schema")
}
