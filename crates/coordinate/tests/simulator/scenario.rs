//! Draws a world: one to five stages of the kinds that connectors make.
//!
//! Words defined here: *log* (partitions that grow, gaps, a pinned bound), *captured* (one sealed
//! list of chunks), *files* (a manifest, pinned or listed bit by bit), *shards* (splits with
//! parents).

use segue_coordinate::StageStart;
use segue_types::{Boundedness, SplitId};

use crate::rng::Rng;
use crate::world::{EndKind, Item, LAST_TICK, SplitScript, StageScript, World};

const STAGES_MAX: usize = 5;
const ITEMS_MAX: usize = 7;

pub fn draw(rng: &mut Rng) -> World {
    let count = rng.between(1, STAGES_MAX);
    let mut stages: Vec<StageScript> = Vec::new();
    for index in 0..count {
        let is_last = index + 1 == count;
        let boundedness = match is_last && rng.chance(65) {
            true => Boundedness::Continuous,
            false => Boundedness::Bounded,
        };
        let stage = match stages.last() {
            Some(before) if is_log(before) && rng.chance(70) => same_log(rng, before, boundedness),
            before => fresh(rng, boundedness, before.is_some()),
        };
        stages.push(stage);
    }
    World { stages, tick: 0 }
}

fn is_log(stage: &StageScript) -> bool {
    stage.splits.iter().any(|split| split.id.as_str().starts_with("partition"))
}

fn fresh(rng: &mut Rng, boundedness: Boundedness, has_before: bool) -> StageScript {
    let mut stage = match rng.below(5) {
        0 => shards(rng, boundedness),
        1 if boundedness == Boundedness::Bounded => captured(rng),
        2 if boundedness == Boundedness::Bounded => files(rng),
        3 => empty(rng, boundedness),
        _ => log(rng, boundedness),
    };
    // A handoff by query or by columns: the start is what the answer says.
    if has_before && rng.chance(40) {
        stage.start = StageStart::Handoff;
    }
    stage
}

fn stage(boundedness: Boundedness, splits: Vec<SplitScript>, sealed_at: usize) -> StageScript {
    StageScript { boundedness, start: StageStart::Pinned, follows_log: false, splits, sealed_at }
}

fn split(name: &str, index: usize, items: Vec<Item>) -> SplitScript {
    SplitScript {
        id: SplitId::new(format!("{name}-{index}")),
        after: Vec::new(),
        listed_at: 0,
        missing: 0..0,
        expires: false,
        first: 0,
        beginning: 0,
        items,
        growing: false,
        trimmed: (0, 0),
        end: EndKind::Open,
    }
}

/// Rows and gaps; sometimes nothing at all, sometimes nothing visible, sometimes an invisible tail.
fn items(rng: &mut Rng) -> Vec<Item> {
    let markers = [0, 20, 50, 100][rng.below(4)];
    let item = |rng: &mut Rng| if rng.chance(markers) { Item::Marker } else { Item::Row };
    (0..rng.below(ITEMS_MAX + 1)).map(|_| item(rng)).collect()
}

fn end(boundedness: Boundedness) -> EndKind {
    match boundedness {
        Boundedness::Bounded => EndKind::Bound { since: 0 },
        Boundedness::Continuous => EndKind::Open,
    }
}

fn log(rng: &mut Rng, boundedness: Boundedness) -> StageScript {
    let mut splits: Vec<SplitScript> = Vec::new();
    for index in 0..rng.below(4) {
        let mut partition = split("partition", index, items(rng));
        partition.first = rng.below(20);
        partition.end = end(boundedness);
        if boundedness == Boundedness::Continuous && rng.chance(15) {
            partition.listed_at = rng.between(1, LAST_TICK);
            partition.first = 0;
        }
        trim(rng, &mut partition);
        splits.push(partition);
    }
    if boundedness == Boundedness::Continuous {
        move_about(rng, &mut splits);
    }
    stage(boundedness, splits, 0)
}

/// The predecessor's log from its ends on, with partitions that appeared meanwhile.
fn same_log(rng: &mut Rng, before: &StageScript, boundedness: Boundedness) -> StageScript {
    let mut splits = Vec::new();
    for partition in &before.splits {
        let mut rest = SplitScript { items: items(rng), ..partition.clone() };
        rest.first = partition.last();
        rest.end = end(boundedness);
        // It appeared after the pin, and the predecessor read it from its beginning to its bound.
        if boundedness == Boundedness::Continuous && rng.chance(25) {
            rest.listed_at = rng.between(1, LAST_TICK);
        }
        trim(rng, &mut rest);
        splits.push(rest);
    }
    if boundedness == Boundedness::Continuous {
        for index in before.splits.len()..before.splits.len() + rng.below(3) {
            let mut later = split("partition", index, items(rng));
            later.listed_at = rng.between(1, LAST_TICK);
            splits.push(later);
        }
        move_about(rng, &mut splits);
    }
    StageScript { start: StageStart::Handoff, follows_log: true, ..stage(boundedness, splits, 0) }
}

/// Retention: from some tick on a part of the log is gone, in the worst case all of it.
fn trim(rng: &mut Rng, partition: &mut SplitScript) {
    partition.trimmed = match rng.chance(25) {
        true => (rng.between(0, LAST_TICK), partition.first + rng.below(partition.items.len() + 1)),
        false => (0, 0),
    };
}

/// What happens to the partitions of a live log: they grow, appear, flap.
fn move_about(rng: &mut Rng, splits: &mut [SplitScript]) {
    for split in splits {
        split.growing = rng.chance(60);
        if rng.chance(20) {
            let from = rng.between(split.listed_at + 1, LAST_TICK + 1);
            split.missing = from..rng.between(from, LAST_TICK.max(from));
        }
    }
}

fn captured(rng: &mut Rng) -> StageScript {
    let mut chunks = split("chunks", 0, vec![Item::Row; rng.below(ITEMS_MAX + 1)]);
    chunks.end = EndKind::Bound { since: 0 };
    stage(Boundedness::Bounded, vec![chunks], 0)
}

fn files(rng: &mut Rng) -> StageScript {
    let sealed_at = if rng.chance(50) { 0 } else { rng.between(1, LAST_TICK) };
    let mut splits = Vec::new();
    for index in 0..rng.below(5) {
        let mut file = split("file", index, items(rng));
        file.listed_at = rng.between(0, sealed_at);
        file.end = if rng.chance(50) { EndKind::Found } else { end(Boundedness::Bounded) };
        splits.push(file);
    }
    stage(Boundedness::Bounded, splits, sealed_at)
}

fn empty(rng: &mut Rng, boundedness: Boundedness) -> StageScript {
    stage(boundedness, Vec::new(), if rng.chance(50) { 0 } else { rng.between(1, LAST_TICK) })
}

/// Parents that close at some tick, children that wait for all of theirs.
fn shards(rng: &mut Rng, boundedness: Boundedness) -> StageScript {
    let mut splits: Vec<SplitScript> = Vec::new();
    let mut leaves: Vec<usize> = Vec::new();
    for _ in 0..rng.between(1, 2) {
        leaves.push(splits.len());
        splits.push(split("shard", splits.len(), items(rng)));
    }
    let mut tick = 0;
    while tick < LAST_TICK && splits.len() < 6 && rng.chance(70) {
        tick = rng.between(tick, LAST_TICK);
        let parents: Vec<usize> = match leaves.len() {
            1 => vec![leaves.remove(0)],
            _ if rng.chance(40) => vec![leaves.remove(0), leaves.remove(0)],
            count => vec![leaves.remove(rng.below(count))],
        };
        for parent in &parents {
            splits[*parent].end = EndKind::Bound { since: tick };
            splits[*parent].growing = rng.chance(30);
            splits[*parent].expires = rng.chance(30);
        }
        for _ in 0..if parents.len() == 2 { 1 } else { 2 } {
            leaves.push(splits.len());
            let mut child = split("shard", splits.len(), items(rng));
            child.after = parents.clone();
            child.listed_at = tick;
            splits.push(child);
        }
    }
    let sealed_at = if tick == 0 { 0 } else { rng.between(tick, LAST_TICK) };
    for leaf in leaves {
        splits[leaf].growing = rng.chance(50);
        splits[leaf].end = match boundedness {
            Boundedness::Bounded => EndKind::Bound { since: sealed_at },
            Boundedness::Continuous => EndKind::Open,
        };
    }
    stage(boundedness, splits, sealed_at)
}
