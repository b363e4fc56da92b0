//! The exchange: which shard takes which rows of an input.

use std::ops::Range;

use arrow::array::UInt32Array;
use segue_types::{Changes, Ops};

use super::{Workers, shard_of_hash};
use crate::delta::Delta;
use crate::key::hash_rows;

/// What is dealt out costs little a row, so that more of them are needed to pay for the threads.
const DEALT_ROWS_FACTOR: usize = 8;

/// How the rows of an input are spread over shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// Rows that agree in these columns go to one shard.
    ByKey(Vec<usize>),
    /// Any shard will do: each takes a run of rows, in their order.
    Deal,
    /// Every shard takes all of them.
    Everywhere,
}

/// Which rows of one batch each shard takes.
#[derive(Debug)]
pub(super) enum Route {
    /// All go to this one.
    Whole(usize),
    /// All go to each.
    Everywhere,
    /// By shard.
    Picked(Vec<UInt32Array>),
    /// By shard.
    Runs(Vec<Range<usize>>),
}

impl Exchange {
    /// The routes of the deltas of one step.
    pub(super) fn routes(&self, deltas: &[Delta], workers: Workers) -> Vec<Route> {
        match self {
            Exchange::ByKey(key) => {
                let route = |delta: &Delta| {
                    Route::of_hashes(&hash_rows(delta.rows(), key), workers.shards())
                };
                deltas.iter().map(route).collect()
            }
            Exchange::Deal => deal(deltas, workers),
            Exchange::Everywhere => deltas.iter().map(|_| Route::Everywhere).collect(),
        }
    }
}

/// Even runs over all the deltas; where there are not many rows, they stay together.
fn deal(deltas: &[Delta], workers: Workers) -> Vec<Route> {
    let total = deltas.iter().map(Delta::len).sum::<usize>();
    if !workers.shares(total / DEALT_ROWS_FACTOR) {
        return deltas.iter().map(|_| Route::Whole(0)).collect();
    }
    let shards = workers.shards();
    let mut before = 0;
    let mut routes = Vec::with_capacity(deltas.len());
    for delta in deltas {
        let within = |at: usize| at.clamp(before, before + delta.len()) - before;
        let end = |shard: usize| total * shard / shards;
        let runs = (0..shards).map(|shard| within(end(shard))..within(end(shard + 1)));
        routes.push(Route::Runs(runs.collect()));
        before += delta.len();
    }
    routes
}

impl Route {
    /// By the shards of the rows' hashes.
    pub(super) fn of_hashes(hashes: &[u64], shards: usize) -> Route {
        let first = hashes.first().map_or(0, |hash| shard_of_hash(*hash, shards));
        if hashes.iter().all(|hash| shard_of_hash(*hash, shards) == first) {
            return Route::Whole(first);
        }
        let mut picked = vec![Vec::with_capacity(hashes.len() / shards + 1); shards];
        for (row, hash) in hashes.iter().enumerate() {
            picked[shard_of_hash(*hash, shards)].push(row as u32);
        }
        Route::Picked(picked.into_iter().map(UInt32Array::from).collect())
    }

    /// What `shard` takes of a delta; `None` if that is nothing.
    pub(super) fn pick(&self, delta: &Delta, shard: usize) -> Option<Delta> {
        let picked = match self {
            Route::Whole(to) => (*to == shard).then(|| delta.clone()),
            Route::Everywhere => Some(delta.clone()),
            Route::Picked(rows) => (!rows[shard].is_empty()).then(|| delta.take(&rows[shard])),
            Route::Runs(runs) => (!runs[shard].is_empty()).then(|| delta.slice(&runs[shard])),
        };
        picked.filter(|delta| !delta.is_empty())
    }

    /// The same for changes by key, which keep their order.
    pub(super) fn pick_changes(&self, changes: &Changes, shard: usize) -> Option<Changes> {
        let rows = match self {
            Route::Whole(to) => return (*to == shard).then(|| changes.clone()),
            Route::Picked(rows) => &rows[shard],
            Route::Runs(_) | Route::Everywhere => unreachable!("changes go by their keys"),
        };
        if rows.is_empty() {
            return None;
        }
        let batch = arrow::compute::take_record_batch(&changes.rows, rows);
        let ops = match &changes.ops {
            Ops::Insert => Ops::Insert,
            Ops::Put => Ops::Put,
            Ops::Each(codes) => {
                let codes = rows.values().iter().map(|row| codes.value(*row as usize));
                Ops::Each(codes.collect::<Vec<_>>().into())
            }
        };
        Some(Changes { rows: batch.expect("rows of the batch"), ops })
    }
}
