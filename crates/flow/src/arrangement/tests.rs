//! An arrangement against a plain map: what is found by key, after removals, joins of chunks and a reload.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use proptest::prelude::*;
use segue_types::{BlobKind, OperatorId, StateBlob};

use super::{Arrangement, Changes, Keys};
use crate::blob::{BlobOwner, SealedBlob};
use crate::delta::Delta;

const OWNER: BlobOwner = BlobOwner { operator: OperatorId(3), fingerprint: 9 };

type Row = (i64, u8);
type Model = BTreeMap<Row, i64>;

fn schema() -> SchemaRef {
    let fields = [("k", DataType::Int64), ("v", DataType::Utf8)];
    Arc::new(Schema::new(fields.map(|(name, ty)| Field::new(name, ty, true)).to_vec()))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| format!("v{}", row.1)))),
    ];
    RecordBatch::try_new(schema(), columns).expect("two columns")
}

fn found(arrangement: &Arrangement, key: i64) -> Model {
    let keys = Keys::of(&batch(&[(key, 0)]), &[0]);
    let slots = arrangement.chain(arrangement.heads(&keys)[0]).collect::<Vec<_>>();
    let rows = arrangement.gather(&slots);
    let texts = rows.column(1).as_string::<i32>();
    let row = |(at, slot): (usize, &u32)| {
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(at), key, "another key's row");
        let value = texts.value(at)[1..].parse().expect("a number");
        ((key, value), arrangement.weight(*slot))
    };
    slots.iter().enumerate().map(row).collect()
}

fn keep(stored: &mut BTreeMap<u8, Vec<StateBlob>>, blobs: &[SealedBlob]) {
    for blob in blobs.iter().map(SealedBlob::encode) {
        let group = stored.entry(blob.group).or_default();
        if blob.kind == BlobKind::Base {
            group.clear();
        }
        group.push(blob);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_finds_what_is_there(
        steps in prop::collection::vec(
            (prop::collection::vec((0_i64..6, 0_u8..4, -2_i64..3), 0..12), any::<bool>(), any::<bool>()),
            1..30,
        ),
    ) {
        let mut arrangement = Arrangement::new(&schema(), vec![0], Changes::ComeAndGo);
        let mut model = Model::new();
        let mut stored = BTreeMap::new();
        for (changes, seals, reloads) in steps {
            let mut step = Model::new();
            for (key, value, weight) in changes {
                let there = model.get(&(key, value)).copied().unwrap_or(0);
                let change = step.entry((key, value)).or_insert(0);
                *change = (*change + weight).max(-there);
            }
            step.retain(|_, weight| *weight != 0);
            let rows = step.keys().copied().collect::<Vec<_>>();
            let delta = Delta::weighted(batch(&rows), step.values().copied().collect());
            let located = arrangement.locate(delta.rows());
            arrangement.apply(&delta, &located, "a test").expect("no more goes than was there");
            arrangement.settle();
            for (row, weight) in step {
                *model.entry(row).or_insert(0) += weight;
            }
            model.retain(|_, weight| *weight != 0);
            if seals {
                keep(&mut stored, &arrangement.seal(&OWNER));
            }
            if seals && reloads {
                arrangement = Arrangement::new(&schema(), vec![0], Changes::ComeAndGo);
                let blobs = stored.values().flatten().cloned().collect::<Vec<_>>();
                arrangement.load(&OWNER, &blobs).expect("just sealed");
            }
            for key in 0..6 {
                let expected = model.iter().filter(|(row, _)| row.0 == key).map(|(r, w)| (*r, *w));
                prop_assert_eq!(found(&arrangement, key), expected.collect::<Model>());
            }
            prop_assert_eq!(arrangement.row_count() as i64, model.values().sum::<i64>());
        }
    }
}
