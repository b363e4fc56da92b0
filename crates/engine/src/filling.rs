//! Filling: a new view takes what the relations that it reads hold, piece by piece between the steps, while they go on
//! changing.
//!
//! Words: the *snapshot* is what the relations held when filling began; what changed since waits *behind* it and is
//! taken once the snapshot is in, in its order. A view is filled when nothing is left of both.
//! Invariants: nobody reads a view that is not filled, and its readings of sources have not begun: what is stored of it
//! after a crash is thrown away, and it is filled anew. What waits counts as the view's state, so that sources pause
//! before it outgrows memory; a piece takes more than came meanwhile, so that filling ends; watermarks and the time are
//! told when all is in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use segue_flow::{Delta, StepInput};
use segue_store::crash_point;
use segue_types::ObjectId;

use crate::relation::{Feed, Inputs, Relation};
use crate::world::World;

/// How long the views that are being filled hold up a round of the step loop, about.
const ROUND_TIME_MAX: Duration = Duration::from_millis(5);
/// How many rows one piece has, at least where there are so many.
const PIECE_ROWS: usize = 16 * 1024;

/// What is done once a view is filled, in the same epoch.
pub(crate) type WhenFilled = Box<dyn FnOnce(&mut World) + Send>;

/// The state of a view that is not filled.
pub(crate) enum Filling {
    /// It has not begun: what changes is part of the snapshot to come.
    Awaited,
    UnderWay(Box<UnderWay>),
}

pub(crate) struct UnderWay {
    /// By input.
    snapshot: VecDeque<(usize, Box<dyn Iterator<Item = RecordBatch> + Send>)>,
    behind: VecDeque<(usize, Delta)>,
    behind_bytes: u64,
    /// Rows that came behind since the last piece.
    arrived: usize,
    taken: usize,
    snapshot_rows: usize,
    pieces: Pieces,
    then: WhenFilled,
}

/// How large pieces are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pieces {
    Even,
    /// Each as large as all before: where an operator computes whole partitions again, even pieces would make it do so
    /// once for each.
    Doubling,
}

impl Filling {
    /// Something that the view reads has changed.
    pub(crate) fn fall_behind(&mut self, input: usize, delta: Delta) {
        let Filling::UnderWay(filling) = self else { return };
        filling.arrived += delta.len();
        filling.behind_bytes += bytes_of(&delta);
        filling.behind.push_back((input, delta));
    }

    /// What waits in memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Filling::Awaited => 0,
            Filling::UnderWay(filling) => filling.behind_bytes,
        }
    }

    /// Rows taken, and how many there will be.
    pub(crate) fn progress(&self) -> (u64, u64) {
        match self {
            Filling::Awaited => (0, 0),
            Filling::UnderWay(filling) => {
                let waiting = filling.behind.iter().map(|(_, delta)| delta.len()).sum::<usize>();
                let whole = filling.snapshot_rows.max(filling.taken + waiting);
                (filling.taken as u64, whole as u64)
            }
        }
    }
}

fn bytes_of(delta: &Delta) -> u64 {
    let weights = delta.weights().map_or(0, |weights| weights.len() * 8);
    (delta.rows().get_array_memory_size() + weights) as u64
}

impl UnderWay {
    /// The rows of the next piece; `None` when nothing is left.
    fn next_piece(&mut self) -> Option<Inputs> {
        let least = match self.pieces {
            Pieces::Even => PIECE_ROWS,
            Pieces::Doubling => PIECE_ROWS.max(self.taken),
        };
        let enough = least.max(2 * std::mem::take(&mut self.arrived));
        let mut piece = Inputs::new();
        let mut rows = 0;
        while rows < enough {
            let Some((input, delta)) = self.next_delta() else { break };
            rows += delta.len();
            piece.push((input, StepInput::Delta(delta)));
        }
        self.taken += rows;
        (!piece.is_empty()).then_some(piece)
    }

    fn next_delta(&mut self) -> Option<(usize, Delta)> {
        while let Some((input, batches)) = self.snapshot.front_mut() {
            match batches.next() {
                Some(batch) => return Some((*input, Delta::inserts(batch))),
                None => self.snapshot.pop_front(),
            };
        }
        let (input, delta) = self.behind.pop_front()?;
        self.behind_bytes -= bytes_of(&delta);
        Some((input, delta))
    }
}

impl World {
    /// Begins to fill a relation with everything that the relations it reads hold. What is little is taken at once.
    pub(crate) fn begin_fill(
        &mut self,
        id: ObjectId,
        then: impl FnOnce(&mut World) + Send + 'static,
    ) {
        let relation = &self.relations[&id];
        let order = relation.dataflow.spec().fill_order();
        let pieces = match relation.dataflow.spec().recomputes() {
            true => Pieces::Doubling,
            false => Pieces::Even,
        };
        let feeds = relation.feeds.clone();
        let mut snapshot = VecDeque::new();
        let mut snapshot_rows = 0;
        for input in order {
            let Feed::Relation { object, projection } = &feeds[input] else { continue };
            let read = self.relations.get_mut(object).expect("the planner found it");
            let version = read.dataflow.version();
            snapshot_rows += version.row_count();
            let projection = Arc::clone(projection);
            let batches = version.batches().map(move |batch| {
                batch.project(&projection).expect("the view was planned on this schema")
            });
            snapshot.push_back((input, Box::new(batches) as Box<_>));
        }
        let filling = UnderWay {
            snapshot,
            behind: VecDeque::new(),
            behind_bytes: 0,
            arrived: 0,
            taken: 0,
            snapshot_rows,
            pieces,
            then: Box::new(then),
        };
        let relation = self.relations.get_mut(&id).expect("just looked up");
        relation.filling = Some(Filling::UnderWay(Box::new(filling)));
        self.fill_on(id);
    }

    /// Whether some view has pieces to take.
    pub(crate) fn is_filling(&self) -> bool {
        let is_under_way =
            |relation: &Relation| matches!(relation.filling, Some(Filling::UnderWay(_)));
        self.relations.values().any(is_under_way)
    }

    /// Every view that is being filled takes some more.
    pub(crate) fn fill_some(&mut self) {
        let ids = self.relations.iter().filter(|(_, relation)| relation.filling.is_some());
        let ids = ids.map(|(id, _)| *id).collect::<Vec<_>>();
        ids.into_iter().for_each(|id| self.fill_on(id));
    }

    fn fill_on(&mut self, id: ObjectId) {
        let began = Instant::now();
        let Some(relation) = self.relations.get_mut(&id) else { return };
        let mut filling = match relation.filling.take() {
            Some(Filling::UnderWay(filling)) if relation.failed.is_none() => filling,
            other => {
                relation.filling = other.filter(|_| relation.failed.is_none());
                return;
            }
        };
        loop {
            let Some(piece) = filling.next_piece() else { break };
            crash_point!("mid-filling");
            if let Err(error) = relation.absorb(piece) {
                return self.relation_failed(id, &error.to_string());
            }
            if began.elapsed() >= ROUND_TIME_MAX {
                relation.filling = Some(Filling::UnderWay(filling));
                return;
            }
        }
        // Only now: a row of the snapshot is not late because others came before it.
        if let Err(error) = self.tell_marks(id) {
            return self.relation_failed(id, &error.to_string());
        }
        (filling.then)(self);
    }
}
