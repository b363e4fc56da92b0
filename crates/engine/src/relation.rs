//! A table or materialized view at run time: its dataflow and where each input's rows come from.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use segue_flow::{Dataflow, DataflowSpec, Delta, RelationVersion, StepError, StepInput, Workers};
use segue_types::{ObjectId, UserError};

/// What feeds an input.
#[derive(Clone, Debug)]
pub(crate) enum Feed {
    /// A reading of a source, which knows where its rows go; DML of a table comes in here too.
    Consumer,
    /// Another table or view, of which these columns are wanted.
    Relation { object: ObjectId, projection: Arc<[usize]> },
    /// DML alone.
    Statements,
}

/// A relation that is maintained.
pub(crate) struct Relation {
    pub(crate) dataflow: Dataflow,
    pub(crate) feeds: Vec<Feed>,
    /// Set when a step failed or memory was short: nobody can read the relation, and it takes nothing more.
    pub(crate) failed: Option<UserError>,
    /// Whether anything changed since the last seal.
    pub(crate) dirty: bool,
    /// What the state took at the last seal.
    pub(crate) bytes: u64,
    /// How many are to maintain it from the next seal on.
    pub(crate) workers: Workers,
}

/// What a step brings to one relation: (input, rows), in order.
pub(crate) type Inputs = Vec<(usize, StepInput)>;

impl Relation {
    pub(crate) fn new(
        object: ObjectId,
        spec: DataflowSpec,
        feeds: Vec<Feed>,
        workers: Workers,
    ) -> Relation {
        assert_eq!(spec.inputs.len(), feeds.len(), "every input has a feed");
        let dataflow = Dataflow::new(object, spec, workers).with_clock(since_start);
        Relation { dataflow, feeds, failed: None, dirty: true, bytes: 0, workers }
    }

    /// Runs the dataflow once.
    pub(crate) fn step(&mut self, inputs: Inputs) -> Result<Vec<Delta>, StepError> {
        assert!(self.failed.is_none(), "a failed relation takes nothing more");
        self.dirty = true;
        self.dataflow.step(inputs)
    }

    /// Right after a seal: gives the state to another number of workers, where that is asked for.
    pub(crate) fn reshard(&mut self) {
        if self.workers == self.dataflow.workers() {
            return;
        }
        match self.dataflow.resharded(self.workers) {
            Ok(dataflow) => self.dataflow = dataflow,
            Err(error) => {
                let object = self.dataflow.object();
                tracing::error!(%object, %error, "the number of workers stays as it was");
                self.workers = self.dataflow.workers();
            }
        }
    }

    /// Looks at how much the state takes.
    pub(crate) fn weigh(&mut self) {
        self.bytes = self.dataflow.operators().iter().map(|operator| operator.state_bytes).sum();
    }

    /// The same, without the rows that only versions saw which nobody holds any more.
    pub(crate) fn weigh_again(&mut self) {
        drop(self.dataflow.version());
        self.weigh();
    }

    /// Forgets the state of a relation that is not maintained any more.
    pub(crate) fn give_back(&mut self) {
        assert!(self.failed.is_some(), "what is maintained keeps its state");
        self.dataflow = self.dataflow.emptied();
        self.bytes = 0;
    }

    /// Runs the dataflow once, when nobody reads what changes.
    pub(crate) fn absorb(&mut self, inputs: Inputs) -> Result<(), StepError> {
        assert!(self.failed.is_none(), "a failed relation takes nothing more");
        self.dirty = true;
        self.dataflow.absorb(inputs)
    }

    /// Whether `object` feeds an input.
    pub(crate) fn reads(&self, object: ObjectId) -> bool {
        let reads =
            |feed: &Feed| matches!(feed, Feed::Relation { object: of, .. } if *of == object);
        self.feeds.iter().any(reads)
    }

    /// The inputs that `object` feeds.
    pub(crate) fn inputs_from(&self, object: ObjectId) -> Vec<(usize, Arc<[usize]>)> {
        let from = |(input, feed): (usize, &Feed)| match feed {
            Feed::Relation { object: of, projection } if *of == object => {
                Some((input, Arc::clone(projection)))
            }
            _ => None,
        };
        self.feeds.iter().enumerate().filter_map(from).collect()
    }
}

/// By which operators are measured.
fn since_start() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// Everything that `version` holds, as a first delta of a relation that reads it.
pub(crate) fn whole(version: &RelationVersion, projection: &[usize]) -> Vec<StepInput> {
    let columns = |batch: RecordBatch| batch.project(projection).expect("planned on this schema");
    version.batches().map(|batch| StepInput::Delta(Delta::inserts(columns(batch)))).collect()
}

/// The columns of a delta that a reader wants.
pub(crate) fn project(delta: &Delta, projection: &[usize]) -> Delta {
    delta.with_rows(delta.rows().project(projection).expect("planned on this schema"))
}
