//! What is sharded: operators by delta, normalisers, and the rows of a relation.

use std::sync::Arc;

use segue_types::Changes;

use super::exchange::Route;
use super::resting::{Home, Resident, RestRound, Rested, Shard};
use super::state::{StateShards, Tally};
use super::{Exchange, Workers, groups_of_shard};
use crate::blob::BlobOwner;
use crate::delta::Delta;
use crate::error::{RestoreError, StepError};
use crate::key::{Column, hash_columns};
use crate::operators::{Normalise, Operator, OperatorState, StateSize, StoredRows};
use crate::rows::Rows;

/// Shards of an operator as one operator.
pub(crate) struct Shards {
    workers: Workers,
    each: Vec<Shard<Box<dyn Operator>>>,
    /// One for each input.
    exchanges: Vec<Exchange>,
    tally: Tally,
}

/// A shard for each part of the vnode groups.
fn shards<T: Resident>(workers: Workers, home: &Arc<Home<T>>) -> Vec<Shard<T>> {
    let count = workers.shards();
    let shard = |number| Shard::new(Arc::clone(home), groups_of_shard(number, count));
    (0..count).map(shard).collect()
}

impl Shards {
    pub(crate) fn new(
        workers: Workers,
        exchanges: Vec<Exchange>,
        home: &Arc<Home<Box<dyn Operator>>>,
    ) -> Shards {
        Shards { workers, each: shards(workers, home), exchanges, tally: Tally::default() }
    }

    /// Lets each shard `work` on what it takes of the inputs; those that take nothing are not asked.
    fn run<R: Send>(
        &mut self,
        inputs: &[&[Delta]],
        work: impl Fn(&mut dyn Operator, &[&[Delta]]) -> Result<R, StepError> + Sync,
    ) -> Result<Vec<R>, StepError> {
        let rows = inputs.iter().copied().flatten().map(Delta::len).sum::<usize>();
        self.tally.add(rows);
        if let [alone] = self.each.as_mut_slice() {
            if rows == 0 {
                return Ok(Vec::new());
            }
            return work(alone.touch()?.as_mut(), inputs).map(|answer| vec![answer]);
        }
        let exchanged = inputs.iter().zip(&self.exchanges);
        let workers = self.workers;
        let routes = exchanged.map(|(deltas, exchange)| exchange.routes(deltas, workers));
        let routes = routes.collect::<Vec<Vec<Route>>>();
        // No thread is started for a shard that has nothing to do.
        let shared = if is_shared(&routes) { rows } else { 0 };
        let answers = workers.each(shared, &mut self.each, |number, shard| {
            let taken = inputs.iter().zip(&routes).map(|(deltas, routes)| {
                let taken = deltas.iter().zip(routes);
                taken.filter_map(|(delta, route)| route.pick(delta, number)).collect::<Vec<_>>()
            });
            let taken = taken.collect::<Vec<_>>();
            if taken.iter().all(Vec::is_empty) {
                return Ok(None);
            }
            let taken = taken.iter().map(Vec::as_slice).collect::<Vec<_>>();
            work(shard.touch()?.as_mut(), &taken).map(Some)
        });
        answers.into_iter().filter_map(Result::transpose).collect()
    }
}

/// Whether more than one shard takes rows.
fn is_shared(routes: &[Vec<Route>]) -> bool {
    let mut taker = None;
    routes.iter().flatten().any(|route| match route {
        Route::Whole(shard) => *taker.get_or_insert(*shard) != *shard,
        Route::Picked(_) | Route::Runs(_) | Route::Everywhere => true,
    })
}

impl Operator for Shards {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let outputs = self.run(inputs, |operator, inputs| operator.step(inputs))?;
        Ok(outputs.into_iter().flatten().collect())
    }

    fn absorb(&mut self, inputs: &[&[Delta]]) -> Result<(), StepError> {
        self.run(inputs, |operator, inputs| operator.absorb(inputs)).map(drop)
    }

    fn expression_errors(&self) -> u64 {
        self.each.iter().map(|shard| shard.counts().expression_errors).sum()
    }

    fn several_rows(&self) -> i64 {
        self.each.iter().map(|shard| shard.resident().several_rows()).sum()
    }

    fn late_rows(&self) -> u64 {
        self.each.iter().map(|shard| shard.counts().late_rows).sum()
    }

    fn due(&self) -> Option<i64> {
        self.each.iter().filter_map(|shard| shard.resident().due()).min()
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        self.each.first_mut()?.has_state().then_some(self)
    }

    fn rest(&mut self, round: &RestRound) -> Rested {
        rest(&mut self.each, round)
    }

    fn wake(&mut self) -> Result<(), RestoreError> {
        self.each.iter_mut().try_for_each(Shard::wake)
    }

    fn resting(&self) -> StateSize {
        self.each.iter().map(Shard::resting).sum()
    }
}

fn rest<T: Resident>(shards: &mut [Shard<T>], round: &RestRound) -> Rested {
    let mut rested = Rested::default();
    shards.iter_mut().for_each(|shard| rested += shard.rest(round));
    rested
}

impl StateShards for Shards {
    fn states(&mut self) -> Vec<&mut dyn OperatorState> {
        self.each.iter_mut().filter_map(Shard::state).collect()
    }

    fn shards(&self) -> usize {
        self.each.len()
    }

    fn sealed(&mut self) {
        self.each.iter_mut().for_each(Shard::sealed);
    }

    fn workers(&self) -> Workers {
        self.workers
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }
}

/// Shards of a normaliser.
pub(crate) struct Normalisers {
    workers: Workers,
    each: Vec<Shard<Normalise>>,
    key: Vec<usize>,
    tally: Tally,
}

impl Normalisers {
    /// Of rows with this key.
    pub(crate) fn new(workers: Workers, key: &[usize], home: &Arc<Home<Normalise>>) -> Normalisers {
        let each = shards(workers, home);
        Normalisers { workers, each, key: key.to_vec(), tally: Tally::default() }
    }

    pub(crate) fn step(&mut self, changes: &[Changes]) -> Result<Vec<Delta>, StepError> {
        let rows = changes.iter().map(|changes| changes.rows.num_rows()).sum();
        self.tally.add(rows);
        if rows == 0 {
            return Ok(Vec::new());
        }
        if let [alone] = self.each.as_mut_slice() {
            return alone.touch()?.step(changes);
        }
        let shards = self.each.len();
        let route = |changes: &Changes| {
            let key = Column::of(&changes.rows, &self.key);
            Route::of_hashes(&hash_columns(&key, changes.rows.num_rows()), shards)
        };
        let routes = changes.iter().map(route).collect::<Vec<_>>();
        let outputs = self.workers.each(rows, &mut self.each, |number, shard| {
            let taken = changes.iter().zip(&routes);
            let taken = taken.filter_map(|(changes, route)| route.pick_changes(changes, number));
            let taken = taken.collect::<Vec<_>>();
            if taken.is_empty() {
                return Ok(Vec::new());
            }
            shard.touch()?.step(&taken)
        });
        let outputs = outputs.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(outputs.into_iter().flatten().collect())
    }

    pub(crate) fn rest(&mut self, round: &RestRound) -> Rested {
        rest(&mut self.each, round)
    }

    pub(crate) fn wake(&mut self) -> Result<(), RestoreError> {
        self.each.iter_mut().try_for_each(Shard::wake)
    }

    pub(crate) fn resting(&self) -> StateSize {
        self.each.iter().map(Shard::resting).sum()
    }
}

impl StateShards for Normalisers {
    fn states(&mut self) -> Vec<&mut dyn OperatorState> {
        self.each.iter_mut().filter_map(Shard::state).collect()
    }

    fn shards(&self) -> usize {
        self.each.len()
    }

    fn sealed(&mut self) {
        self.each.iter_mut().for_each(Shard::sealed);
    }

    fn workers(&self) -> Workers {
        self.workers
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }
}

/// Shards of a relation's own rows.
pub(crate) struct RelationRows {
    workers: Workers,
    each: Vec<StoredRows>,
    exchange: Exchange,
    tally: Tally,
}

impl RelationRows {
    /// Each made by `rows` from its number; `owner` is whose the blobs are.
    pub(crate) fn new(
        workers: Workers,
        exchange: Exchange,
        owner: BlobOwner,
        rows: impl Fn(usize) -> Rows,
    ) -> RelationRows {
        let each = (0..workers.shards()).map(|shard| StoredRows { rows: rows(shard), owner });
        RelationRows { workers, each: each.collect(), exchange, tally: Tally::default() }
    }

    /// Adds and removes the rows of consolidated deltas.
    pub(crate) fn apply(&mut self, deltas: &[Delta], place: &str) -> Result<(), StepError> {
        let rows = deltas.iter().map(Delta::len).sum();
        self.tally.add(rows);
        if let [alone] = self.each.as_mut_slice() {
            return deltas.iter().try_for_each(|delta| alone.rows.apply(delta, place));
        }
        let routes = self.exchange.routes(deltas, self.workers);
        let applied = self.workers.each(rows, &mut self.each, |number, shard| {
            let taken = deltas.iter().zip(&routes);
            let mut taken = taken.filter_map(|(delta, route)| route.pick(delta, number));
            taken.try_for_each(|delta| shard.rows.apply(&delta, place))
        });
        applied.into_iter().collect()
    }
}

impl StateShards for RelationRows {
    fn states(&mut self) -> Vec<&mut dyn OperatorState> {
        self.each.iter_mut().map(|shard| shard as &mut dyn OperatorState).collect()
    }

    fn shards(&self) -> usize {
        self.each.len()
    }

    /// They do not rest: whoever reads the relation reads them.
    fn sealed(&mut self) {}

    fn workers(&self) -> Workers {
        self.workers
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }
}
