//! What the operators of a dataflow did and hold.

use super::{Dataflow, RELATION, Relation, build, operator_id};
use crate::operators::OperatorState;
use crate::stats::OperatorStats;

impl Dataflow {
    /// What each operator did and holds, the relation last.
    pub fn operators(&mut self) -> Vec<OperatorStats> {
        let object = self.object;
        let each = self.nodes.iter_mut().zip(&self.spec.operators).enumerate();
        let mut stats = each
            .map(|(place, (running, spec))| {
                let resting = running.node.resting();
                let state = running.node.state();
                let (size, published) = state
                    .map_or_else(Default::default, |state| (state.size(), state.rows_published()));
                OperatorStats {
                    operator: operator_id(object, place as u64),
                    name: spec.name(),
                    rows_in: running.rows_in,
                    rows_out: running.rows_out + published,
                    busy: running.busy,
                    workers: build::workers_of(spec, self.workers),
                    state_rows: (size.rows + resting.rows) as u64,
                    state_bytes: size.bytes as u64,
                    resting_bytes: resting.bytes as u64,
                    expression_errors: running.expression_errors(),
                    late_rows: running.late_rows(),
                }
            })
            .collect::<Vec<_>>();
        let size = match &mut self.relation {
            Relation::Stored(rows) | Relation::Derived { rows, .. } => Some(rows.size()),
            Relation::OfOperator(place) => {
                self.nodes[*place].node.state().and_then(OperatorState::relation_size)
            }
        };
        if let Some(size) = size {
            stats.push(OperatorStats {
                operator: operator_id(object, RELATION),
                name: "materialize",
                rows_in: stats.last().map_or(size.rows as u64, |last| last.rows_out),
                rows_out: 0,
                busy: self.applying,
                workers: self.workers.count(),
                state_rows: size.rows as u64,
                state_bytes: size.bytes as u64,
                resting_bytes: 0,
                expression_errors: 0,
                late_rows: 0,
            });
        }
        stats
    }
}
