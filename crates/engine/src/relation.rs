//! A table or materialized view at run time: its dataflow and where each input's rows come from.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use segue_flow::{
    Dataflow, DataflowSpec, Delta, RestRound, Rested, RestoreError, StateBlob, StepError,
    StepInput, Workers,
};
use segue_types::{ObjectId, UserError};

use crate::filling::Filling;
use crate::outflow::Outflow;

/// What feeds an input.
#[derive(Clone, Debug)]
pub(crate) enum Feed {
    /// A reading of a source, which knows where its rows go; DML of a table comes in here too.
    Consumer,
    /// Another table or view, of which these columns are wanted.
    Relation { object: ObjectId, projection: Arc<[usize]> },
    /// DML alone.
    Statements,
    /// The watermark of a column of another table or view.
    Watermark { object: ObjectId, column: usize },
    /// The time of the step.
    Clock,
    /// The greatest time that DML wrote to this column, and what the watermark stays behind it.
    OwnTimes { column: usize, delay_us: i64 },
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
    /// While it is a new view that has not taken all that is there.
    pub(crate) filling: Option<Filling>,
    /// Of a sink.
    pub(crate) outflow: Option<Outflow>,
    parallelism: Parallelism,
    /// Rows taken since the last seal.
    unsealed_rows: usize,
}

/// How many workers maintain a relation. Large state is spread, so that parts of it may leave memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parallelism {
    /// So many, whatever it takes.
    Fixed(Workers),
    /// One while little comes, since then the others would only have to be told so; so many once much has come.
    Adaptive(Workers),
}

/// From so many rows between two epochs on they are shared by more than one worker.
const SHARED_ROWS_MIN: usize = 32 * 1024;
/// More state than this is not dealt out anew without being asked for: everybody would wait for it.
const RESHARDED_BYTES_MAX: u64 = 64 << 20;
/// From so many stored bytes on they are restored for more than one worker.
const SHARED_BYTES_MIN: usize = 4 << 20;
/// More state than this is spread.
const SPREAD_BYTES_MIN: u64 = 16 << 20;

impl Parallelism {
    /// Of a relation that holds nothing yet.
    fn at_first(self) -> Workers {
        match self {
            Parallelism::Fixed(workers) => workers,
            Parallelism::Adaptive(_) => Workers::ONE,
        }
    }

    /// Of one that has `now`, holds so many bytes, and took so many rows since the last seal.
    fn after(self, now: Workers, bytes: u64, rows: usize) -> Workers {
        let may_be_dealt_out = bytes <= RESHARDED_BYTES_MAX;
        let workers = match self {
            Parallelism::Fixed(workers) => workers,
            Parallelism::Adaptive(workers) if rows >= SHARED_ROWS_MIN && may_be_dealt_out => {
                workers
            }
            Parallelism::Adaptive(_) => now,
        };
        let is_the_same = workers.count() == now.count();
        match bytes > SPREAD_BYTES_MIN {
            true if may_be_dealt_out || !is_the_same => workers.spread(),
            _ if is_the_same => now,
            _ => workers,
        }
    }

    /// Of one that is restored from so many bytes.
    fn restored(self, bytes: usize) -> Workers {
        let workers = match self {
            Parallelism::Fixed(workers) => workers,
            Parallelism::Adaptive(workers) if bytes >= SHARED_BYTES_MIN => workers,
            Parallelism::Adaptive(_) => Workers::ONE,
        };
        if bytes as u64 > SPREAD_BYTES_MIN { workers.spread() } else { workers }
    }
}

/// What a step brings to one relation: (input, rows), in order.
pub(crate) type Inputs = Vec<(usize, StepInput)>;

impl Relation {
    pub(crate) fn new(
        object: ObjectId,
        spec: DataflowSpec,
        feeds: Vec<Feed>,
        parallelism: Parallelism,
    ) -> Relation {
        assert_eq!(spec.inputs.len(), feeds.len(), "every input has a feed");
        let dataflow = Dataflow::new(object, spec, parallelism.at_first()).with_clock(since_start);
        Relation {
            dataflow,
            feeds,
            failed: None,
            dirty: true,
            bytes: 0,
            filling: None,
            outflow: None,
            parallelism,
            unsealed_rows: 0,
        }
    }

    /// Runs the dataflow once.
    pub(crate) fn step(&mut self, inputs: Inputs) -> Result<Vec<Delta>, StepError> {
        assert!(self.failed.is_none(), "a failed relation takes nothing more");
        self.take_note(&inputs);
        self.dataflow.step(inputs)
    }

    /// Right after a seal: gives the state to another number of workers, where that is asked for.
    pub(crate) fn reshard(&mut self) {
        let now = self.dataflow.workers();
        let rows = std::mem::take(&mut self.unsealed_rows);
        let workers = self.parallelism.after(now, self.bytes, rows);
        if workers == now {
            return;
        }
        match self.dataflow.resharded(workers) {
            Ok(dataflow) => self.dataflow = dataflow,
            Err(error) => {
                let object = self.dataflow.object();
                tracing::error!(%object, %error, "the number of workers stays as it was");
                self.parallelism = Parallelism::Fixed(now);
            }
        }
    }

    /// Takes over what is stored.
    pub(crate) fn restore(&mut self, blobs: Vec<StateBlob>) -> Result<(), RestoreError> {
        let bytes = blobs.iter().map(|blob| blob.bytes.len()).sum();
        let workers = self.parallelism.restored(bytes);
        if workers != self.dataflow.workers() {
            let (object, spec) = (self.dataflow.object(), self.dataflow.spec().clone());
            self.dataflow = Dataflow::new(object, spec, workers).with_clock(since_start);
        }
        self.dataflow.restore(blobs)
    }

    /// Obeys another parallelism from the next seal on.
    pub(crate) fn set_parallelism(&mut self, parallelism: Parallelism) {
        self.dirty |= self.parallelism != parallelism;
        self.parallelism = parallelism;
    }

    /// Takes part in a round of rest.
    pub(crate) fn rest(&mut self, round: &RestRound) -> Rested {
        if self.failed.is_some() || self.filling.is_some() {
            return Rested::default();
        }
        let rested = self.dataflow.rest(round);
        if rested.bytes > 0 {
            self.weigh();
        }
        rested
    }

    /// Looks at how much the state takes.
    pub(crate) fn weigh(&mut self) {
        let operators = self.dataflow.operators();
        let waiting = self.filling.as_ref().map_or(0, Filling::bytes);
        self.bytes = waiting + operators.iter().map(|operator| operator.state_bytes).sum::<u64>();
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
        self.take_note(&inputs);
        self.dataflow.absorb(inputs)
    }

    fn take_note(&mut self, inputs: &Inputs) {
        self.dirty = true;
        self.unsealed_rows += inputs.iter().map(|(_, input)| input.rows()).sum::<usize>();
    }

    /// The relations that feed its inputs.
    pub(crate) fn reads(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.feeds.iter().filter_map(|feed| match feed {
            Feed::Relation { object, .. } => Some(*object),
            Feed::Consumer
            | Feed::Statements
            | Feed::Watermark { .. }
            | Feed::Clock
            | Feed::OwnTimes { .. } => None,
        })
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

/// The columns of a delta that a reader wants.
pub(crate) fn project(delta: &Delta, projection: &[usize]) -> Delta {
    delta.with_rows(delta.rows().project(projection).expect("planned on this schema"))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use segue_flow::Workers;

    use super::{
        Parallelism, RESHARDED_BYTES_MAX, SHARED_BYTES_MIN, SHARED_ROWS_MIN, SPREAD_BYTES_MIN,
    };

    #[test]
    fn more_workers_come_when_much_does_and_there_is_little_to_deal_out() {
        let one = Workers::ONE;
        let four = Workers::new(NonZeroUsize::new(4).expect("not zero"), 1 << 20);
        let adaptive = Parallelism::Adaptive(four);
        let spread = four.spread();
        assert_eq!(adaptive.at_first(), one);
        assert_eq!(adaptive.after(one, 0, SHARED_ROWS_MIN - 1), one);
        assert_eq!(adaptive.after(one, SPREAD_BYTES_MIN, SHARED_ROWS_MIN), four);
        assert_eq!(adaptive.after(one, RESHARDED_BYTES_MAX, SHARED_ROWS_MIN), spread);
        assert_eq!(adaptive.after(one, SPREAD_BYTES_MIN + 1, 0), one.spread(), "parts may rest");
        assert_eq!(adaptive.after(one, RESHARDED_BYTES_MAX + 1, SHARED_ROWS_MIN), one);
        assert_eq!(adaptive.after(four, 0, 0), four, "those that are there stay");
        assert_eq!(adaptive.restored(SHARED_BYTES_MIN - 1), one);
        assert_eq!(adaptive.restored(SHARED_BYTES_MIN), four);
        let fixed = Parallelism::Fixed(four);
        assert_eq!([fixed.at_first(), fixed.restored(0)], [four, four]);
        assert_eq!(fixed.after(one, RESHARDED_BYTES_MAX + 1, 0), spread, "it was asked for");
        assert_eq!(fixed.after(four, RESHARDED_BYTES_MAX + 1, 0), four, "and is as asked");
        assert_eq!(fixed.after(spread, 0, 0), spread, "what is spread stays so");
    }
}
