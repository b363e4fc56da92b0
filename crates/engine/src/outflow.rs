//! Sinks: what a maintained query puts out goes on into a table, in the same step.
//!
//! Words: an *outflow* is where it goes.
//! Invariant: a table gets nothing of a sink that is not filled, and then all that it holds at once, in the epoch in
//! which the sink is ready: a sink that is filled anew after a crash has given nothing before.

use std::collections::BTreeMap;

use arrow::array::UInt32Array;
use segue_catalog::{Object, ObjectKind, Removals};
use segue_flow::{Delta, StepInput};
use segue_types::ObjectId;

use crate::relation::Inputs;
use crate::world::World;

/// Where the changes of a relation go, besides to those that read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outflow {
    pub(crate) table: ObjectId,
    removals: Removals,
}

impl Outflow {
    pub(crate) fn of(object: &Object) -> Option<Outflow> {
        let ObjectKind::Sink(sink) = object.kind else { return None };
        Some(Outflow { table: sink.into?, removals: sink.removals })
    }

    fn passes(self, delta: &Delta) -> Delta {
        match self.removals {
            Removals::PassedOn => delta.clone(),
            Removals::LeftOut => {
                let added = (0..delta.len()).filter(|row| delta.weight(*row) > 0);
                let added = added.map(|row| u32::try_from(row).expect("a batch is shorter"));
                delta.take(&UInt32Array::from_iter_values(added))
            }
        }
    }
}

impl World {
    /// Hands changes of a sink to its table.
    pub(crate) fn flow_out(
        &self,
        outflow: Outflow,
        deltas: &[Delta],
        inputs: &mut BTreeMap<ObjectId, Inputs>,
    ) {
        let Some(table) = self.relations.get(&outflow.table) else { return };
        for delta in deltas {
            let delta = outflow.passes(delta);
            if delta.is_empty() {
                continue;
            }
            let taken = inputs.entry(outflow.table).or_default();
            taken.extend(table.mark_of(delta.rows()));
            taken.push((0, StepInput::Delta(delta)));
        }
    }

    /// Gives the table of a sink that is filled all that the sink holds.
    pub(crate) fn pour_out(&mut self, id: ObjectId) {
        let Some(relation) = self.relations.get_mut(&id) else { return };
        let Some(outflow) = relation.outflow else { return };
        let version = relation.dataflow.version();
        let held = version.batches().map(Delta::inserts).collect::<Vec<_>>();
        let mut inputs = BTreeMap::new();
        self.flow_out(outflow, &held, &mut inputs);
        self.run(inputs);
    }
}
