//! Where the rows of a dataflow's relation are: its own, or those of the operator that the dataflow ends in.

use segue_types::ObjectId;

use super::{RELATION, operator_id};
use crate::blob::{BlobOwner, fingerprint};
use crate::rows::{Identity, Rows};
use crate::spec::{DataflowSpec, Node, OperatorSpec, Shown};
use crate::workers::{Exchange, RelationRows, Workers, groups_of_shard};

pub(super) enum Relation {
    /// Rows of its own, stored.
    Stored(RelationRows),
    /// Rows of its own, which follow from the state of the first operator through the others.
    Derived { rows: RelationRows, path: Vec<usize> },
    /// The rows of this operator.
    OfOperator(usize),
}

impl Relation {
    pub(super) fn build(object: ObjectId, spec: &DataflowSpec, workers: Workers) -> Relation {
        if let Some(place) = normaliser_with_rows(spec).or_else(|| aggregate_with_rows(spec)) {
            return Relation::OfOperator(place);
        }
        let owner = BlobOwner {
            operator: operator_id(object, RELATION),
            fingerprint: fingerprint("materialize", &spec.schema, &shard(spec, 0, 1).layout()),
        };
        let exchange = match identity(spec, 0, 1) {
            Identity::Key(key) => Exchange::ByKey(key),
            Identity::Row => Exchange::ByKey((0..spec.schema.fields().len()).collect()),
            Identity::None(_) => Exchange::Deal,
        };
        let rows = |number: usize| shard(spec, number, workers.shards());
        let rows = RelationRows::new(workers, exchange, owner, rows);
        match path_from_state(spec) {
            Some(path) => Relation::Derived { rows, path },
            None => Relation::Stored(rows),
        }
    }
}

fn shard(spec: &DataflowSpec, number: usize, shards: usize) -> Rows {
    Rows::new(&spec.schema, identity(spec, number, shards))
}

fn identity(spec: &DataflowSpec, number: usize, shards: usize) -> Identity {
    match spec.key.as_slice() {
        [] if spec.is_append_only(spec.output) => Identity::None(groups_of_shard(number, shards)),
        [] => Identity::Row,
        key => Identity::Key(key.to_vec()),
    }
}

/// The normaliser whose rows are the relation.
pub(super) fn normaliser_with_rows(spec: &DataflowSpec) -> Option<usize> {
    let Node::Operator(place) = spec.output else { return None };
    match &spec.operators[place] {
        OperatorSpec::Normalise { key, .. } if *key == spec.key => Some(place),
        _ => None,
    }
}

/// The aggregate whose rows are the relation.
pub(super) fn aggregate_with_rows(spec: &DataflowSpec) -> Option<usize> {
    let Node::Operator(place) = spec.output else { return None };
    match &spec.operators[place] {
        OperatorSpec::Aggregate { keys, .. } if !keys.is_empty() => {
            spec.key.iter().copied().eq(0..keys.len()).then_some(place)
        }
        _ => None,
    }
}

/// A stateful operator and the projections and filters from it to the output, if that is all there is.
fn path_from_state(spec: &DataflowSpec) -> Option<Vec<usize>> {
    let mut path = Vec::new();
    let mut node = spec.output;
    loop {
        let Node::Operator(place) = node else { return None };
        path.push(place);
        match &spec.operators[place] {
            OperatorSpec::Project { input, .. } | OperatorSpec::Filter { input, .. } => {
                node = *input
            }
            OperatorSpec::UnionAll { .. }
            | OperatorSpec::Unnest { .. }
            | OperatorSpec::Changelog { .. }
            | OperatorSpec::Join { .. }
            | OperatorSpec::Lookup { .. }
            | OperatorSpec::Watermark { .. }
            | OperatorSpec::LeastWatermark { .. }
            | OperatorSpec::DropLate { .. }
            | OperatorSpec::Settled { .. }
            | OperatorSpec::Ticks { .. }
            | OperatorSpec::Withhold { .. }
            | OperatorSpec::WindowedAggregate { .. }
            | OperatorSpec::Forgetting { .. }
            | OperatorSpec::Temporal { shown: Shown::From, .. } => return None,
            OperatorSpec::Normalise { .. }
            | OperatorSpec::Aggregate { .. }
            | OperatorSpec::Recompute { .. }
            | OperatorSpec::TopN { .. }
            | OperatorSpec::Temporal { shown: Shown::Until, .. }
            | OperatorSpec::Constant { .. } => break,
        }
    }
    path.reverse();
    Some(path)
}
