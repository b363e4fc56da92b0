//! From the spec of an operator to the operator.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use segue_types::ObjectId;

use super::relation::{aggregate_with_rows, normaliser_with_rows};
use super::{MAX_PARTS, NodeKind, part_id};
use crate::aggregate::{Aggregate, Windowed};
use crate::arrangement::{Arrangement, Changes};
use crate::blob::{BlobOwner, fingerprint};
use crate::operators::{
    Arrives, Changelog, Constant, DropLate, Filter, Forget, Forgetting, Held, Join, Least, Lookup,
    Normalise, Operator, Project, Recompute, Settled, Temporal, Ticks, TopN, UnionAll, Unnest,
    Watermark, Withhold,
};
use crate::rows::{Identity, Rows, nullable};
use crate::spec::{DataflowSpec, JoinSpec, Node, OperatorSpec};
use crate::workers::{Exchange, Home, Normalisers, Shards, Workers};

/// One operator under construction.
#[derive(Clone)]
struct Place {
    object: ObjectId,
    spec: Arc<DataflowSpec>,
    place: usize,
}

/// The operator at `place`, in shards if its work can be shared, or if it holds what may leave memory.
pub(super) fn build(
    object: ObjectId,
    spec: &Arc<DataflowSpec>,
    place: usize,
    workers: Workers,
) -> NodeKind {
    let at = Place { object, spec: Arc::clone(spec), place };
    if let OperatorSpec::Normalise { key, .. } = &spec.operators[place] {
        let home = at.home(Place::normalise);
        return NodeKind::Changes(Box::new(Normalisers::new(workers, key, &home)));
    }
    let mut operator = at.operator();
    let is_sharded = workers.shards() > 1 || operator.state().is_some();
    NodeKind::Deltas(match exchanges(&spec.operators[place]) {
        Some(exchanges) if is_sharded => {
            Box::new(Shards::new(workers, exchanges, &at.home(Place::operator)))
        }
        _ => operator,
    })
}

/// How many threads share the work of an operator.
pub(super) fn workers_of(operator: &OperatorSpec, workers: Workers) -> usize {
    let is_shared =
        matches!(operator, OperatorSpec::Normalise { .. }) || exchanges(operator).is_some();
    if is_shared { workers.count() } else { 1 }
}

/// How the inputs of an operator are spread over shards; `None` where all rows may meet.
fn exchanges(operator: &OperatorSpec) -> Option<Vec<Exchange>> {
    let by_key = |key: &[usize]| (!key.is_empty()).then(|| Exchange::ByKey(key.to_vec()));
    match operator {
        OperatorSpec::Project { .. }
        | OperatorSpec::Filter { .. }
        | OperatorSpec::Unnest { .. } => Some(vec![Exchange::Deal]),
        OperatorSpec::Aggregate { keys, .. } => Some(vec![by_key(keys)?]),
        OperatorSpec::Changelog { key, .. } => Some(vec![by_key(key)?]),
        OperatorSpec::TopN { top, .. } => Some(vec![by_key(&top.partition)?]),
        OperatorSpec::Join { join, .. } | OperatorSpec::Lookup { join, .. } => {
            Some(vec![by_key(&join.left_key)?, by_key(&join.right_key)?])
        }
        OperatorSpec::Recompute { inputs, .. } => {
            inputs.iter().map(|input| by_key(&input.key)).collect()
        }
        OperatorSpec::WindowedAggregate { keys, .. } => {
            Some(vec![by_key(keys)?, Exchange::Everywhere])
        }
        OperatorSpec::DropLate { .. } => Some(vec![Exchange::Deal, Exchange::Everywhere]),
        OperatorSpec::Forgetting { operator, .. } => {
            Some(exchanges(operator)?.into_iter().chain([Exchange::Everywhere]).collect())
        }
        // Rows that wait are found by their time alone.
        OperatorSpec::Withhold { .. } | OperatorSpec::Temporal { .. } => None,
        OperatorSpec::Watermark { .. } | OperatorSpec::LeastWatermark { .. } => None,
        OperatorSpec::UnionAll { .. }
        | OperatorSpec::Constant { .. }
        | OperatorSpec::Ticks { .. }
        | OperatorSpec::Settled { .. } => None,
        OperatorSpec::Normalise { .. } => unreachable!("it takes changes by key"),
    }
}

impl Place {
    fn home<T>(&self, make: impl Fn(&Place) -> T + Send + Sync + 'static) -> Arc<Home<T>> {
        let place = self.clone();
        let parts = (0..MAX_PARTS).map(|part| part_id(self.object, self.place as u64, part));
        Arc::new(Home { make: Box::new(move || make(&place)), parts: parts.collect() })
    }

    fn kind(&self) -> &OperatorSpec {
        &self.spec.operators[self.place]
    }

    fn name(&self) -> String {
        let kind = self.kind().name();
        format!("operator {} ({kind}) of object {}", self.place, self.object)
    }

    fn owner(&self, part: usize, schema: &SchemaRef, layout: &str) -> BlobOwner {
        BlobOwner {
            operator: part_id(self.object, self.place as u64, part),
            fingerprint: fingerprint(self.kind().name(), schema, layout),
        }
    }

    fn normalise(&self) -> Normalise {
        let OperatorSpec::Normalise { input, key, conflict } = self.kind() else {
            unreachable!("asked for a normaliser alone")
        };
        let own = normaliser_with_rows(&self.spec) == Some(self.place);
        let schema = if own { &self.spec.schema } else { &self.spec.inputs[*input].schema };
        let rows = Rows::new(schema, Identity::Key(key.clone()));
        let owner = self.owner(0, schema, &rows.layout());
        Normalise::new(self.name(), owner, conflict.clone(), rows)
    }

    fn operator(&self) -> Box<dyn Operator> {
        match self.kind() {
            OperatorSpec::Project { expressions, schema, .. } => {
                Box::new(Project::new(self.name(), expressions.clone(), nullable(schema)))
            }
            OperatorSpec::Filter { predicate, .. } => {
                Box::new(Filter::new(self.name(), Arc::clone(predicate)))
            }
            OperatorSpec::UnionAll { schema, .. } => {
                Box::new(UnionAll::new(self.name(), nullable(schema)))
            }
            OperatorSpec::Unnest { lists, schema, .. } => {
                Box::new(Unnest::new(self.name(), lists.clone(), nullable(schema)))
            }
            OperatorSpec::Changelog { key, schema, .. } => {
                Box::new(Changelog::new(self.name(), key.clone(), nullable(schema)))
            }
            OperatorSpec::Constant { rows } => Box::new(Constant::new(rows.clone())),
            OperatorSpec::Aggregate { .. } => Box::new(self.aggregate()),
            OperatorSpec::Join { .. } => Box::new(self.join()),
            OperatorSpec::Lookup { left, right, join, schema } => {
                let inputs = [&self.spec.schema_of(*left), &self.spec.schema_of(*right)];
                let [_, owner] = self.join_owners(inputs, join);
                let lookup = Lookup::new(self.name(), owner, inputs, join, schema);
                if self.spec.is_append_only(*left) {
                    return Box::new(lookup);
                }
                let owners = [
                    self.owner(2, inputs[0], "rows of a temporal join"),
                    self.owner(3, schema, "what a temporal join gave"),
                ];
                Box::new(lookup.remembering(inputs[0], owners))
            }
            OperatorSpec::Recompute { .. } => Box::new(self.recompute()),
            OperatorSpec::TopN { .. } => Box::new(self.top_n()),
            OperatorSpec::Normalise { .. } => unreachable!("it takes changes by key"),
            of_time => self.of_time(of_time),
        }
    }

    fn join(&self) -> Join {
        let OperatorSpec::Join { left, right, join, schema } = self.kind().lasting() else {
            unreachable!("asked for a join alone")
        };
        let schemas = [self.spec.schema_of(*left), self.spec.schema_of(*right)];
        let owners = self.join_owners([&schemas[0], &schemas[1]], join);
        let inputs = [(&schemas[0], self.arrives(*left)), (&schemas[1], self.arrives(*right))];
        Join::new(self.name(), owners, inputs, join, schema)
    }

    fn top_n(&self) -> TopN {
        let OperatorSpec::TopN { input, top, schema } = self.kind().lasting() else {
            unreachable!("asked for a top-n alone")
        };
        let input = self.spec.schema_of(*input);
        let owner = self.owner(0, &input, &format!("by {:?}", top.partition));
        TopN::new(self.name(), owner, &input, top, schema)
    }

    /// An operator of which rows go.
    fn forgetful(&self) -> Box<dyn Forget> {
        match self.kind().lasting() {
            OperatorSpec::Join { .. } => Box::new(self.join().forgetful()),
            OperatorSpec::TopN { .. } => Box::new(self.top_n()),
            OperatorSpec::Recompute { .. } => Box::new(self.recompute()),
            _ => unreachable!("the planner lets no other operator forget"),
        }
    }

    /// The operators that know of time.
    fn of_time(&self, spec: &OperatorSpec) -> Box<dyn Operator> {
        let owner = |input: &Node, column: &usize| {
            let schema = self.spec.schema_of(*input);
            (self.owner(0, &schema, &format!("by time {column}")), schema)
        };
        match spec {
            OperatorSpec::Watermark { schema, .. } => {
                Box::new(Watermark::new(self.name(), self.owner(0, schema, "mark"), schema))
            }
            OperatorSpec::LeastWatermark { schema, .. } => Box::new(Least::new(schema)),
            OperatorSpec::Settled { .. } => Box::new(Settled::new(self.name())),
            OperatorSpec::Ticks { start_us, step_us, schema, .. } => {
                Box::new(Ticks::new(*start_us, *step_us, nullable(schema)))
            }
            OperatorSpec::DropLate { column, .. } => Box::new(DropLate::new(*column)),
            OperatorSpec::Withhold { input, column, .. } => {
                let (owner, schema) = owner(input, column);
                Box::new(Withhold::new(self.name(), owner, &schema, *column))
            }
            OperatorSpec::Temporal { input, column, shown, .. } => {
                let (owner, schema) = owner(input, column);
                Box::new(Temporal::new(self.name(), owner, &schema, *column, *shown))
            }
            OperatorSpec::Forgetting { ends, .. } => {
                Box::new(Forgetting::new(self.forgetful(), ends.clone()))
            }
            OperatorSpec::WindowedAggregate { window, .. } => {
                Box::new(Windowed::new(self.aggregate(), *window))
            }
            _ => unreachable!("the others are built above"),
        }
    }

    fn aggregate(&self) -> Aggregate {
        let (OperatorSpec::Aggregate { input, keys, aggregates, schema }
        | OperatorSpec::WindowedAggregate { input, keys, aggregates, schema, .. }) = self.kind()
        else {
            unreachable!("asked for an aggregate alone")
        };
        let input_schema = self.spec.schema_of(*input);
        let append_only = self.spec.is_append_only(*input);
        let owner = self.owner(0, &input_schema, &format!("{keys:?} {aggregates:?} {append_only}"));
        let mut aggregate = Aggregate::new(
            self.name(),
            owner,
            &input_schema,
            keys.clone(),
            aggregates,
            schema,
            append_only,
        );
        if aggregate_with_rows(&self.spec) == Some(self.place) {
            aggregate.hold_relation(&self.spec.schema);
        }
        aggregate
    }

    fn arrives(&self, node: Node) -> Arrives {
        match (self.spec.is_append_only(node), self.spec.is_consolidated(node)) {
            (true, _) => Arrives::Growing,
            (false, true) => Arrives::Distinct,
            (false, false) => Arrives::Anyhow,
        }
    }

    fn join_owners(&self, inputs: [&SchemaRef; 2], join: &JoinSpec) -> [BlobOwner; 2] {
        let [left, right] = inputs;
        [
            self.owner(0, left, &format!("left by {:?} {:?}", join.left_key, join.null_keys)),
            self.owner(1, right, &format!("right by {:?} {:?}", join.right_key, join.null_keys)),
        ]
    }

    fn recompute(&self) -> Recompute {
        let OperatorSpec::Recompute { inputs, program, key, schema, .. } = self.kind().lasting()
        else {
            unreachable!("asked for a recomputation alone")
        };
        let held = |part: usize, schema: &SchemaRef, key: &[usize]| Held {
            rows: Arrangement::new(schema, key.to_vec(), Changes::ComeAndGo),
            owner: self.owner(part, schema, &format!("part {part} by {key:?}")),
        };
        let output = held(0, schema, key);
        let inputs = inputs
            .iter()
            .enumerate()
            .map(|(input, read)| held(input + 1, &self.spec.schema_of(read.node), &read.key));
        Recompute::new(self.name(), Arc::clone(program), inputs.collect(), output, schema)
    }
}
