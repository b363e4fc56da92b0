//! A running dataflow: the operators of one object and the relation they end in.
//!
//! One step takes what arrived at each input, runs every operator once in topological order, and applies the
//! output to the
//! relation. Between steps nothing is in flight, so what `seal` returns after any step is a consistent state.
//! Stored twice is only what cannot be had from elsewhere: a relation whose rows follow from an operator's
//! state alone, through
//! projections and filters, is rebuilt from that state; the relation of a keyed table IS its normaliser's, and that of
//! a plain GROUP BY its aggregate's.

mod build;
mod late;
mod relation;
mod report;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use segue_types::{Changes, ObjectId, Op, OperatorId, Ops, StateBlob};

use crate::blob::SealedBlob;
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::mark::{Mark, Moved};
use crate::operators::{Operator, OperatorState, StateSize};
use crate::rows::{CHUNK_ROWS, RelationVersion, nullable};
use crate::spec::{DataflowSpec, InputKind, Node, OperatorSpec};
use crate::stats::Clock;
use crate::workers::{Normalisers, RestRound, Rested, Workers};
use late::{LATE, LateCounts};
use relation::Relation;

/// The place of the relation among the operators of its object.
const RELATION: u64 = 0xffff;
/// The bits of an operator's place; those above number the parts of its state, of which most have one.
const PLACES: u64 = 0x0fff;
/// How many parts the state of an operator may have.
const MAX_PARTS: usize = 15;

/// What arrives at an input.
#[derive(Clone, Debug)]
pub enum StepInput {
    /// From a reader or a statement.
    Changes(Changes),
    /// From another relation.
    Delta(Delta),
}

impl StepInput {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        match self {
            StepInput::Changes(changes) => changes.rows.num_rows(),
            StepInput::Delta(delta) => delta.len(),
        }
    }
}

/// The running dataflow of one object.
pub struct Dataflow {
    object: ObjectId,
    spec: Arc<DataflowSpec>,
    workers: Workers,
    clock: Clock,
    nodes: Vec<Running>,
    relation: Relation,
    late: LateCounts,
    /// How long the relation took what the operators put out.
    applying: Duration,
    /// Relation's schema without NOT NULL.
    schema: SchemaRef,
    /// Of the spec's watermarks, in their order.
    marks: Vec<Mark>,
}

struct Running {
    node: NodeKind,
    rows_in: u64,
    rows_out: u64,
    busy: Duration,
    /// Expressions that failed before the operator was put into other shards.
    former_errors: u64,
    /// Rows that were late before that.
    former_late: u64,
    /// Rows for which a subquery had several before that.
    former_several: i64,
}

enum NodeKind {
    /// By delta.
    Deltas(Box<dyn Operator>),
    /// By key.
    Changes(Box<Normalisers>),
}

/// What one step carries from node to node.
struct StepData {
    changes: Vec<Vec<Changes>>,
    inputs: Vec<Vec<Delta>>,
    operators: Vec<Vec<Delta>>,
}

impl StepData {
    fn of(&self, node: Node) -> &[Delta] {
        match node {
            Node::Input(input) => &self.inputs[input],
            Node::Operator(operator) => &self.operators[operator],
        }
    }
}

impl Dataflow {
    /// A dataflow over empty inputs. Its relation is right for those at once: COUNT(*) without keys is a row
    /// that says 0.
    ///
    /// # Panics
    /// If the spec is not one that the planner may make (see [`DataflowSpec`]).
    pub fn new(object: ObjectId, spec: DataflowSpec, workers: Workers) -> Dataflow {
        Dataflow::started(object, Arc::new(spec), workers)
    }

    fn started(object: ObjectId, spec: Arc<DataflowSpec>, workers: Workers) -> Dataflow {
        let mut dataflow = Dataflow::unstarted(object, spec, workers);
        dataflow.step(Vec::new()).expect("a step over nothing finds no bad row");
        dataflow
    }

    fn unstarted(object: ObjectId, spec: Arc<DataflowSpec>, workers: Workers) -> Dataflow {
        check(&spec);
        let nodes = (0..spec.operators.len()).map(|place| Running {
            node: build::build(object, &spec, place, workers),
            rows_in: 0,
            rows_out: 0,
            busy: Duration::ZERO,
            former_errors: 0,
            former_late: 0,
            former_several: 0,
        });
        Dataflow {
            object,
            nodes: nodes.collect(),
            relation: Relation::build(object, &spec, workers),
            late: LateCounts::new(object, spec.operators.len()),
            applying: Duration::ZERO,
            schema: nullable(&spec.schema),
            marks: vec![Mark::Unknown; spec.watermarks.len()],
            spec,
            workers,
            clock: || Duration::ZERO,
        }
    }

    /// The same, measuring how long its operators take.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Dataflow {
        Dataflow { clock, ..self }
    }

    /// Whose dataflow it is.
    pub fn object(&self) -> ObjectId {
        self.object
    }

    /// What it was made from.
    pub fn spec(&self) -> &DataflowSpec {
        &self.spec
    }

    /// How many threads share its work.
    pub fn workers(&self) -> Workers {
        self.workers
    }

    /// One step: takes what arrived at the numbered inputs, in order, and returns what changed in the relation,
    /// consolidated. After an error the dataflow must be dropped.
    pub fn step(&mut self, inputs: Vec<(usize, StepInput)>) -> Result<Vec<Delta>, StepError> {
        self.run_all(inputs, None)
    }

    /// One step whose changes nobody reads: where the relation is an aggregate's own rows, they are not even made.
    pub fn absorb(&mut self, inputs: Vec<(usize, StepInput)>) -> Result<(), StepError> {
        let last = match self.relation {
            Relation::OfOperator(place) if place + 1 == self.nodes.len() => Some(place),
            _ => None,
        };
        self.run_all(inputs, last).map(drop)
    }

    /// Runs every operator once; `absorbing` is the one whose output is not wanted.
    fn run_all(
        &mut self,
        inputs: Vec<(usize, StepInput)>,
        absorbing: Option<usize>,
    ) -> Result<Vec<Delta>, StepError> {
        let mut data = self.accept(inputs)?;
        for place in 0..self.nodes.len() {
            let output = self.run(place, &data, absorbing == Some(place))?;
            data.operators.push(output);
        }
        let began = (self.clock)();
        let output = self.output(data.of(self.spec.output))?;
        let marks = self.spec.watermarks.iter().map(|of| Moved::of(data.of(of.node)).after);
        self.marks = marks.collect();
        let place = format!("relation of object {}", self.object);
        match &mut self.relation {
            Relation::Stored(rows) | Relation::Derived { rows, .. } => {
                rows.apply(&output, &place)?;
            }
            Relation::OfOperator(_) => {}
        }
        self.applying += (self.clock)().saturating_sub(began);
        Ok(output)
    }

    fn accept(&self, inputs: Vec<(usize, StepInput)>) -> Result<StepData, StepError> {
        let count = self.spec.inputs.len();
        let mut data = StepData {
            changes: vec![Vec::new(); count],
            inputs: vec![Vec::new(); count],
            operators: Vec::with_capacity(self.nodes.len()),
        };
        for (input, arrived) in inputs {
            let spec = &self.spec.inputs[input];
            let place = || format!("input {input} of object {}", self.object);
            if spec.kind == InputKind::ByKey {
                let mut changes = match arrived {
                    StepInput::Changes(changes) => changes,
                    StepInput::Delta(delta) => changes_of(&delta),
                };
                changes.rows = with_schema(&changes.rows, &spec.schema, place)?;
                data.changes[input].push(changes);
                continue;
            }
            let delta = match arrived {
                StepInput::Changes(changes) => delta_of(&changes, place)?,
                StepInput::Delta(delta) => delta,
            };
            let removes =
                delta.weights().is_some_and(|weights| weights.iter().any(|weight| *weight < 0));
            if removes && spec.kind == InputKind::AppendOnly {
                return Err(StepError::NotAppendOnly { place: place() });
            }
            if !delta.is_empty() {
                let rows = with_schema(delta.rows(), &spec.schema, place)?;
                data.inputs[input].push(delta.with_rows(rows));
            }
        }
        Ok(data)
    }

    fn run(
        &mut self,
        place: usize,
        data: &StepData,
        absorbs: bool,
    ) -> Result<Vec<Delta>, StepError> {
        let spec = &self.spec.operators[place];
        let running = &mut self.nodes[place];
        let began = (self.clock)();
        let (rows_in, output): (usize, _) = match (&mut running.node, spec) {
            (NodeKind::Changes(normalise), OperatorSpec::Normalise { input, .. }) => {
                let changes = &data.changes[*input];
                (
                    changes.iter().map(|change| change.rows.num_rows()).sum(),
                    normalise.step(changes)?,
                )
            }
            (NodeKind::Deltas(operator), spec) => {
                let inputs =
                    spec.inputs().into_iter().map(|node| data.of(node)).collect::<Vec<_>>();
                let output = match absorbs {
                    true => operator.absorb(&inputs).map(|()| Vec::new()),
                    false => operator.step(&inputs),
                };
                (inputs.iter().copied().map(total_len).sum(), output?)
            }
            (NodeKind::Changes(_), _) => unreachable!("a normaliser is built from its spec"),
        };
        running.busy += (self.clock)().saturating_sub(began);
        running.rows_in += rows_in as u64;
        running.rows_out += total_len(&output) as u64;
        Ok(output)
    }

    /// Deltas of the output node under the relation's names, consolidated.
    fn output(&self, deltas: &[Delta]) -> Result<Vec<Delta>, StepError> {
        let place = || format!("relation of object {}", self.object);
        let named = deltas.iter().filter(|delta| !delta.is_empty()).map(|delta| {
            with_schema(delta.rows(), &self.schema, place).map(|rows| delta.with_rows(rows))
        });
        let named = named.collect::<Result<Vec<_>, _>>()?;
        if self.spec.is_consolidated(self.spec.output) {
            // Each delta is appended by copying the last chunk, which many small ones would make dear.
            let small = named.len() > 1 && total_len(&named) < named.len() * CHUNK_ROWS / 2;
            return Ok(if small { Delta::sum(&named).into_iter().collect() } else { named });
        }
        let Some(sum) = Delta::sum(&named) else { return Ok(Vec::new()) };
        // Two equal additions under a key are an error that applying them finds.
        let distinct = sum.weights().is_none() && !self.spec.key.is_empty();
        let output = if distinct { sum } else { sum.consolidated() };
        Ok(if output.is_empty() { Vec::new() } else { vec![output] })
    }

    /// What changed in every operator and in the relation since the last seal.
    pub fn seal(&mut self) -> Vec<SealedBlob> {
        let mut blobs = Vec::new();
        for running in &mut self.nodes {
            if let Some(state) = running.node.state() {
                blobs.extend(state.seal());
            }
        }
        if let Relation::Stored(rows) = &mut self.relation {
            blobs.extend(rows.seal());
        }
        blobs.extend(self.late.seal(self.nodes.iter().map(Running::late_rows)));
        blobs
    }

    /// Lets state leave memory that nothing has come to for some rounds. Whoever calls this has made durable all that
    /// was ever sealed. The relation stays, for it is read.
    pub fn rest(&mut self, round: &RestRound) -> Rested {
        let mut rested = Rested::default();
        for (place, running) in self.nodes.iter_mut().enumerate() {
            if !matches!(self.relation, Relation::OfOperator(own) if own == place) {
                rested += running.node.rest(round);
            }
        }
        rested
    }

    /// The same dataflow with all that it holds, which must just have been sealed, for another number of workers.
    pub fn resharded(&mut self, workers: Workers) -> Result<Dataflow, RestoreError> {
        self.nodes.iter_mut().try_for_each(|running| running.node.wake())?;
        let states = self.nodes.iter_mut().filter_map(|running| running.node.state());
        let mut bases = states.flat_map(OperatorState::bases).collect::<Vec<_>>();
        if let Relation::Stored(rows) = &mut self.relation {
            bases.extend(rows.bases());
        }
        bases.extend(self.late.bases());
        let resharded = Dataflow::started(self.object, Arc::clone(&self.spec), workers);
        let mut resharded = resharded.with_clock(self.clock);
        resharded.restore(bases.iter().map(SealedBlob::encode).collect())?;
        for (to, from) in resharded.nodes.iter_mut().zip(&self.nodes) {
            to.rows_in = from.rows_in;
            to.rows_out = from.rows_out;
            to.busy = from.busy;
            to.former_errors = from.expression_errors();
            to.former_late = from.late_rows();
            to.former_several = from.several_rows();
        }
        resharded.applying = self.applying;
        Ok(resharded)
    }

    /// Goes back to a sealed state: all stored blobs, of each (operator, group) its base and then its deltas in their
    /// order. Without any blob it stays as new. After an error the dataflow must be dropped.
    pub fn restore(&mut self, blobs: Vec<StateBlob>) -> Result<(), RestoreError> {
        if blobs.is_empty() {
            return Ok(());
        }
        *self = Dataflow::unstarted(self.object, Arc::clone(&self.spec), self.workers)
            .with_clock(self.clock);
        let mut of_operator = vec![Vec::new(); self.nodes.len()];
        let (mut of_relation, mut late) = (Vec::new(), Vec::new());
        for blob in blobs {
            let place = blob.operator.0.checked_sub(operator_id(self.object, 0).0);
            let of_operator_itself = |place| !matches!(place, RELATION | LATE);
            match place.map(|place| if of_operator_itself(place) { place & PLACES } else { place })
            {
                Some(RELATION) => of_relation.push(blob),
                Some(LATE) => late.push(blob),
                Some(place) if place < self.nodes.len() as u64 => {
                    of_operator[place as usize].push(blob)
                }
                _ => return Err(foreign(&blob, "there is no such operator in this object")),
            }
        }
        for (running, blobs) in self.nodes.iter_mut().zip(&of_operator) {
            match (running.node.state(), blobs.as_slice()) {
                (Some(state), blobs) => state.load(blobs)?,
                (None, []) => {}
                (None, [first, ..]) => return Err(foreign(first, "the operator has no state")),
            }
        }
        for (running, late) in self.nodes.iter_mut().zip(self.late.load(&late)?) {
            running.former_late = *late;
        }
        self.restore_relation(&of_relation)?;
        if !self.marks.is_empty() {
            // Over nothing: it only finds how far the watermarks had come.
            let step = self.step(Vec::new());
            step.map_err(|error| RestoreError::Rebuild { reason: error.to_string() })?;
        }
        Ok(())
    }

    /// How far the watermark of a column of the relation has come; `None` where it has none.
    pub fn watermark(&self, column: usize) -> Option<Mark> {
        let place = self.spec.watermarks.iter().position(|of| of.column == column)?;
        Some(self.marks[place])
    }

    /// The time at which the clock will change something, if nothing else does before.
    pub fn due(&self) -> Option<i64> {
        self.nodes.iter().filter_map(|running| running.node.due()).min()
    }

    fn restore_relation(&mut self, blobs: &[StateBlob]) -> Result<(), RestoreError> {
        match (&mut self.relation, blobs) {
            (Relation::Stored(rows), blobs) => return rows.load(blobs),
            (_, [first, ..]) => {
                return Err(foreign(first, "the relation follows from an operator"));
            }
            (Relation::OfOperator(_), []) => return Ok(()),
            (Relation::Derived { .. }, []) => {}
        }
        let failed = |error: StepError| RestoreError::Rebuild { reason: error.to_string() };
        let output = self.derived_contents().map_err(failed)?;
        let output = self.output(&output).map_err(failed)?;
        let Relation::Derived { rows, .. } = &mut self.relation else {
            unreachable!("checked above")
        };
        rows.apply(&output, "a rebuilt relation").map_err(failed)
    }

    fn derived_contents(&mut self) -> Result<Vec<Delta>, StepError> {
        let Relation::Derived { path, .. } = &self.relation else {
            unreachable!("only for derived ones")
        };
        let mut deltas = Vec::new();
        for (hop, place) in path.iter().enumerate() {
            deltas = match (hop, &mut self.nodes[*place].node) {
                (0, node) => node.state().expect("a path begins at a state").contents(),
                (_, NodeKind::Deltas(operator)) => operator.step(&[&deltas])?,
                (_, NodeKind::Changes(_)) => unreachable!("a normaliser reads an input"),
            };
        }
        Ok(deltas)
    }

    /// Whether a subquery that stands for one value has several rows now, for some row that needs it. Of a dataflow
    /// that was restored it is not known.
    pub fn has_several_rows(&self) -> bool {
        self.nodes.iter().any(|running| running.several_rows() > 0)
    }

    /// The same dataflow, with nothing in it.
    pub fn emptied(&self) -> Dataflow {
        let emptied = Dataflow::started(self.object, Arc::clone(&self.spec), self.workers);
        emptied.with_clock(self.clock)
    }

    /// What the relation holds now.
    pub fn version(&mut self) -> RelationVersion {
        let version = match &mut self.relation {
            Relation::Stored(rows) | Relation::Derived { rows, .. } => rows.relation(),
            Relation::OfOperator(place) => {
                self.nodes[*place].node.state().and_then(OperatorState::relation)
            }
        };
        version.expect("the relation is somebody's rows")
    }
}

impl Running {
    fn expression_errors(&self) -> u64 {
        let since = match &self.node {
            NodeKind::Deltas(operator) => operator.expression_errors(),
            NodeKind::Changes(_) => 0,
        };
        self.former_errors + since
    }

    fn several_rows(&self) -> i64 {
        let since = match &self.node {
            NodeKind::Deltas(operator) => operator.several_rows(),
            NodeKind::Changes(_) => 0,
        };
        self.former_several + since
    }

    fn late_rows(&self) -> u64 {
        self.former_late + self.node.late_rows()
    }
}

impl NodeKind {
    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        match self {
            NodeKind::Deltas(operator) => operator.state(),
            NodeKind::Changes(normalise) => Some(normalise.as_mut()),
        }
    }

    fn rest(&mut self, round: &RestRound) -> Rested {
        match self {
            NodeKind::Deltas(operator) => operator.rest(round),
            NodeKind::Changes(normalise) => normalise.rest(round),
        }
    }

    fn wake(&mut self) -> Result<(), RestoreError> {
        match self {
            NodeKind::Deltas(operator) => operator.wake(),
            NodeKind::Changes(normalise) => normalise.wake(),
        }
    }

    fn resting(&self) -> StateSize {
        match self {
            NodeKind::Deltas(operator) => operator.resting(),
            NodeKind::Changes(normalise) => normalise.resting(),
        }
    }

    fn late_rows(&self) -> u64 {
        match self {
            NodeKind::Deltas(operator) => operator.late_rows(),
            NodeKind::Changes(_) => 0,
        }
    }

    fn due(&self) -> Option<i64> {
        match self {
            NodeKind::Deltas(operator) => operator.due(),
            NodeKind::Changes(_) => None,
        }
    }
}

fn total_len(deltas: &[Delta]) -> usize {
    deltas.iter().map(Delta::len).sum()
}

fn operator_id(object: ObjectId, place: u64) -> OperatorId {
    OperatorId(u64::from(object.0) << 16 | place)
}

/// The place of an operator in the spec of its object; `None` for the relation.
pub fn place_of(operator: OperatorId) -> Option<usize> {
    let place = operator.0 & 0xffff;
    (place != RELATION).then_some((place & PLACES) as usize)
}

/// The id under which a part of an operator's state is stored.
fn part_id(object: ObjectId, place: u64, part: usize) -> OperatorId {
    assert!(part < MAX_PARTS, "an operator's state has at most {MAX_PARTS} parts");
    operator_id(object, place | (part as u64) << PLACES.count_ones())
}

fn foreign(blob: &StateBlob, reason: &str) -> RestoreError {
    RestoreError::Blob { operator: blob.operator.0, group: blob.group, reason: reason.to_owned() }
}

/// What the planner promises.
fn check(spec: &DataflowSpec) {
    assert!(spec.operators.len() <= PLACES as usize, "an object has at most 4,095 operators");
    for (place, operator) in spec.operators.iter().enumerate() {
        for node in operator.inputs() {
            match node {
                Node::Input(input) => {
                    let by_key = spec.inputs[input].kind == InputKind::ByKey;
                    let normalises = matches!(operator, OperatorSpec::Normalise { .. });
                    assert_eq!(
                        by_key, normalises,
                        "inputs by key feed normalisers, and nothing else does"
                    );
                }
                Node::Operator(before) => {
                    assert!(before < place, "operators are in topological order")
                }
            }
        }
    }
    let output = spec.schema_of(spec.output);
    assert_eq!(
        output.fields().len(),
        spec.schema.fields().len(),
        "the relation has the output's columns"
    );
    for (from, to) in output.fields().iter().zip(spec.schema.fields()) {
        assert_eq!(
            from.data_type(),
            to.data_type(),
            "the relation has the output's types: {}",
            to.name()
        );
    }
}

/// The same columns under the names and nullability that this dataflow has for them.
fn with_schema(
    rows: &RecordBatch,
    schema: &SchemaRef,
    place: impl Fn() -> String,
) -> Result<RecordBatch, StepError> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(nullable(schema), rows.columns().to_vec(), &options)
        .map_err(|error| StepError::Schema { place: place(), reason: error.to_string() })
}

/// Whole rows that come and go, as changes by key.
fn changes_of(delta: &Delta) -> Changes {
    let Some(weights) = delta.weights() else {
        return Changes { rows: delta.rows().clone(), ops: Ops::Put };
    };
    // The old row of a key must go before its new one comes, whatever the order in the delta.
    let mut order = (0..delta.len() as u32).collect::<Vec<_>>();
    order.sort_by_key(|row| weights[*row as usize] > 0);
    let code =
        |row: &u32| if weights[*row as usize] > 0 { Op::Put as u8 } else { Op::Retract as u8 };
    let ops = Ops::Each(order.iter().map(code).collect::<Vec<_>>().into());
    Changes { rows: delta.take(&order.into()).rows().clone(), ops }
}

/// Whole rows that are added and taken back, as a delta.
fn delta_of(changes: &Changes, place: impl Fn() -> String) -> Result<Delta, StepError> {
    let codes = match &changes.ops {
        Ops::Insert => return Ok(Delta::inserts(changes.rows.clone())),
        Ops::Put => return Err(StepError::NotKeyed { place: place() }),
        Ops::Each(codes) => codes,
    };
    let weight = |code: u8| match Op::from_code(code) {
        Some(Op::Insert) => Ok(1),
        Some(Op::Retract) => Ok(-1),
        _ => Err(StepError::NotKeyed { place: place() }),
    };
    let weights =
        codes.values().iter().map(|code| weight(*code)).collect::<Result<Vec<i64>, _>>()?;
    Ok(Delta::weighted(changes.rows.clone(), weights.into()))
}
