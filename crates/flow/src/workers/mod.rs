//! Workers: the threads that share the work of one operator, each with keys of its own.
//!
//! Words: a *shard* is an operator over whole vnode groups and nothing else, so that a stored blob belongs to one shard
//! however many there are; the *exchange* of an input tells which shard takes a row; a *route* is that, for one delta.
//! A step runs the shards side by side and puts their outputs together in the order of the shards.
//! Large state is *spread*: it is dealt out to a shard for each vnode group, however few the threads are, so that parts
//! of it may rest (see [`resting`]).
//! Invariants: rows that meet in an operator go to one shard; results do not depend on which thread runs a shard, or
//! when. So the number of workers may be another one after each restart.

mod exchange;
mod resting;
mod shards;
mod state;

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread::Builder;

use crate::key::{GROUPS, group_of, vnode_of};

pub(crate) use exchange::Exchange;
pub(crate) use resting::Home;
pub use resting::{RestRound, Rested, StateSource};
pub(crate) use shards::{Normalisers, RelationRows, Shards};

/// Fewer rows than this are dealt with faster by one thread than several are started.
const SHARED_ROWS_MIN: usize = 4096;

/// How many threads may work on one operator at a time, and among how many shards they share its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    count: NonZeroUsize,
    shards: NonZeroUsize,
    stack_bytes: usize,
    shared_rows_min: usize,
}

impl Workers {
    /// The thread that steps works alone.
    pub const ONE: Workers = Workers {
        count: NonZeroUsize::MIN,
        shards: NonZeroUsize::MIN,
        stack_bytes: 0,
        shared_rows_min: SHARED_ROWS_MIN,
    };
    /// No vnode group can be shared.
    pub const MAX: usize = GROUPS;

    /// `count` threads, at most [`Workers::MAX`], with stacks of `stack_bytes`: expressions may nest deeply.
    pub fn new(count: NonZeroUsize, stack_bytes: usize) -> Workers {
        let max = NonZeroUsize::new(Workers::MAX).expect("there are groups");
        let count = count.min(max);
        Workers { count, shards: count, stack_bytes, ..Workers::ONE }
    }

    /// As many as another number of them, with the same stacks.
    #[must_use]
    pub fn with_count(self, count: NonZeroUsize) -> Workers {
        Workers { shared_rows_min: self.shared_rows_min, ..Workers::new(count, self.stack_bytes) }
    }

    /// As many, with a shard for each vnode group.
    #[must_use]
    pub fn spread(self) -> Workers {
        let shards = NonZeroUsize::new(GROUPS).expect("there are groups");
        Workers { shards, ..self }
    }

    /// Work is shared from this many rows on.
    #[must_use]
    pub fn with_shared_rows_min(self, rows: usize) -> Workers {
        Workers { shared_rows_min: rows, ..self }
    }

    /// How many.
    pub fn count(self) -> usize {
        self.count.get()
    }

    /// How many shards an operator has whose work can be shared.
    pub(crate) fn shards(self) -> usize {
        self.shards.get()
    }

    /// Whether work over so many rows is shared.
    fn shares(self, rows: usize) -> bool {
        self.count() > 1 && rows >= self.shared_rows_min
    }

    /// Does `work` for each of `shards`, side by side where `rows` make it worth while; the answers in their order.
    fn each<T: Send, R: Send>(
        self,
        rows: usize,
        shards: &mut [T],
        work: impl Fn(usize, &mut T) -> R + Sync,
    ) -> Vec<R> {
        let threads = if self.shares(rows) { self.count().min(shards.len()) } else { 1 };
        let per_thread = shards.len().div_ceil(threads.max(1));
        let run = |(thread, own): (usize, &mut [T])| {
            let own = own.iter_mut().enumerate();
            own.map(|(at, shard)| work(thread * per_thread + at, shard)).collect::<Vec<_>>()
        };
        if threads <= 1 {
            return run((0, shards));
        }
        let mut shares = shards.chunks_mut(per_thread).enumerate();
        let first = shares.next().expect("there are shards to share");
        let run = &run;
        std::thread::scope(|scope| {
            let start = |share: (usize, _)| {
                let thread = Builder::new().name(format!("segue-worker-{}", share.0));
                let started =
                    thread.stack_size(self.stack_bytes).spawn_scoped(scope, || run(share));
                started.expect("the system has threads for as many workers as it was asked for")
            };
            let started = shares.map(start).collect::<Vec<_>>();
            let mut answers = run(first);
            let join = |thread: std::thread::ScopedJoinHandle<'_, Vec<R>>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            answers.extend(started.into_iter().flat_map(join));
            answers
        })
    }
}

/// Which of `shards` holds a vnode group.
pub(crate) fn shard_of_group(group: u8, shards: usize) -> usize {
    usize::from(group) * shards / GROUPS
}

/// Which of `shards` holds the keys of a hash.
pub(crate) fn shard_of_hash(hash: u64, shards: usize) -> usize {
    shard_of_group(group_of(vnode_of(hash)), shards)
}

/// The vnode groups of one of `shards`.
pub(crate) fn groups_of_shard(shard: usize, shards: usize) -> std::ops::Range<u8> {
    let first = |shard: usize| (shard * GROUPS).div_ceil(shards) as u8;
    first(shard)..first(shard + 1)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::{GROUPS, Workers, groups_of_shard, shard_of_group};

    #[test]
    fn each_group_has_one_shard_and_each_shard_a_group() {
        for shards in 1..=Workers::MAX {
            let mut groups = Vec::new();
            for shard in 0..shards {
                let own = groups_of_shard(shard, shards);
                assert!(!own.is_empty(), "shard {shard} of {shards}");
                assert!(own.clone().all(|group| shard_of_group(group, shards) == shard));
                groups.extend(own);
            }
            assert_eq!(groups, (0..GROUPS as u8).collect::<Vec<_>>());
        }
    }

    #[test]
    fn answers_are_in_the_order_of_the_shards_whoever_gives_them() {
        let three = NonZeroUsize::new(3).expect("not zero");
        for shared_rows_min in [0, 1000] {
            let workers = Workers::new(three, 1 << 20).with_shared_rows_min(shared_rows_min);
            let mut shards = [10, 20, 30, 40];
            for count in 0..=shards.len() {
                let answers = workers.each(10, &mut shards[..count], |number, shard| {
                    *shard += 1;
                    (number, *shard)
                });
                let expected = shards[..count].iter().copied().enumerate().collect::<Vec<_>>();
                assert_eq!(answers, expected);
            }
        }
    }
}
