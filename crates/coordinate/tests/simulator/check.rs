//! What must be true after a run, compared with the script alone.

use std::collections::BTreeMap;

use segue_coordinate::{
    Mode, StagePhase, Watermark, bounded_stages_complete, is_complete, mode, reached, stage_status,
    watermark_status,
};
use segue_types::{Boundedness, Position, PositionOrder, SplitId};

use crate::engine::{Checked, Engine};
use crate::work::stage_index;
use crate::world::{Row, World, offset, position};

/// Each row at most once, in its split's order, after the predecessors of its split and of its stage.
pub fn check_order(world: &World, rows: &[Row]) -> Checked {
    let mut counts: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    let is_whole =
        |counts: &BTreeMap<(usize, usize), (usize, usize)>, stage: usize, split: usize| {
            let count = counts.get(&(stage, split)).map_or(0, |(count, _)| *count);
            count == world.stages[stage].splits[split].rows()
        };
    for row in rows {
        let (stage, split) = (row.stage, row.split);
        if !counts.contains_key(&(stage, split)) {
            let parents = &world.stages[stage].splits[split].after;
            let before = (0..stage)
                .flat_map(|s| (0..world.stages[s].splits.len()).map(move |split| (s, split)))
                .chain(parents.iter().map(|parent| (stage, *parent)));
            for (s, p) in before {
                if !is_whole(&counts, s, p) {
                    return Err(format!("{row:?} came before the end of split {p} of stage {s}"));
                }
            }
        }
        let (count, last) = counts.entry((stage, split)).or_insert((0, 0));
        if *count > 0 && row.offset <= *last {
            return Err(format!("{row:?} came after offset {last}"));
        }
        (*count, *last) = (*count + 1, row.offset);
    }
    Ok(())
}

pub fn is_delivered(world: &World, rows: usize) -> bool {
    let splits = world.stages.iter().flat_map(|stage| &stage.splits);
    rows == splits.map(|split| split.rows()).sum::<usize>()
}

/// What must be true after every single action.
pub fn check_always(world: &World, engine: &Engine) -> Checked {
    let is_finished = watermark_status(engine.state()).consumer == Watermark::Finished;
    if is_finished && !is_delivered(world, engine.applied.len()) {
        return Err("the watermark is raised to the end of time before the last row".to_owned());
    }
    if is_complete(engine.state()) && !is_delivered(world, engine.store.rows) {
        return Err("the consumer is called complete before the last row is durable".to_owned());
    }
    Ok(())
}

/// Whether the run is over: everything is durable, and the coordinator says so.
pub fn is_over(world: &World, engine: &Engine) -> bool {
    let last = world.stages.last().expect("a world has a stage");
    let is_ended = match last.boundedness {
        Boundedness::Bounded => is_complete(engine.state()) && engine.is_completed,
        Boundedness::Continuous => bounded_stages_complete(engine.state()),
    };
    is_ended
        && engine.is_running()
        && engine.effects.is_empty()
        && is_delivered(world, engine.store.rows)
        && (0..world.stages.len()).all(|stage| has_reached_end(world, engine, stage))
}

/// What a statement that waits would ask.
fn has_reached_end(world: &World, engine: &Engine, stage: usize) -> bool {
    let compare = |a: &Position, b: &Position| PositionOrder::from(offset(a).cmp(&offset(b)));
    let splits = &world.stages[stage].splits;
    let targets: Vec<(SplitId, Position)> =
        splits.iter().map(|split| (split.id.clone(), position(split.last()))).collect();
    reached(engine.state(), None, stage_index(stage), &targets, compare)
}

/// What the state tells others about a run that is over.
pub fn check_end(world: &World, engine: &Engine) -> Checked {
    check_order(world, &engine.applied)?;
    if engine.released != engine.store.positions {
        let (released, durable) = (&engine.released, &engine.store.positions);
        return Err(format!("released upstream is {released:?}, durable is {durable:?}"));
    }
    let state = engine.state();
    let statuses = stage_status(state);
    let (last, before) = statuses.split_last().expect("a world has a stage");
    if let Some(stage) = before.iter().find(|stage| stage.phase != StagePhase::Activated) {
        return Err(format!("stage {} is {} at the end", stage.stage, stage.phase));
    }
    let watermark = watermark_status(state).consumer;
    let (phase, wanted) = match last.boundedness {
        Boundedness::Bounded => (StagePhase::Committed, watermark == Watermark::Finished),
        Boundedness::Continuous => (StagePhase::Reading, watermark != Watermark::Finished),
    };
    match last.phase == phase && wanted && *mode(state) == Mode::Running {
        true => Ok(()),
        false => Err(format!("the last stage is {}, watermark {watermark:?}", last.phase)),
    }
}

/// A cancelled consumer holds nothing.
pub fn check_cancelled(world: &World, engine: &Engine) -> Checked {
    check_order(world, &engine.applied)?;
    let is_released = engine.readers.is_empty() && engine.discoveries.is_empty();
    match is_released && *mode(engine.state()) == Mode::Cancelled {
        true => Ok(()),
        false => Err("a cancelled consumer still holds work".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_order, is_delivered};
    use crate::rng::Rng;
    use crate::scenario;
    use crate::world::{Item, Row, World};

    /// A world of at least two stages with rows, and its rows in a right order.
    fn world() -> (World, Vec<Row>) {
        let draw = |seed| {
            let world = scenario::draw(&mut Rng::new(seed));
            let mut rows = Vec::new();
            for (stage, script) in world.stages.iter().enumerate() {
                for (split, script) in script.splits.iter().enumerate() {
                    let offsets = script.first..script.last();
                    let rows_of = offsets.filter(|offset| script.item(*offset) == Item::Row);
                    rows.extend(rows_of.map(|offset| Row { stage, split, offset }));
                }
            }
            (world, rows)
        };
        let has_two = |rows: &[Row]| rows.last().is_some_and(|last| last.stage > rows[0].stage);
        (0..)
            .map(draw)
            .find(|(_, rows)| has_two(rows))
            .expect("some world has two stages with rows")
    }

    #[test]
    fn a_log_with_a_repeated_a_lost_or_an_early_row_is_refused() {
        let (world, rows) = world();
        check_order(&world, &rows).expect("the order of the script is right");
        assert!(is_delivered(&world, rows.len()));
        assert!(!is_delivered(&world, rows.len() - 1), "a lost row at the end");
        check_order(&world, &rows[1..]).expect_err("a lost row before another stage");
        let mut repeated = rows.clone();
        repeated.push(rows[rows.len() - 1]);
        check_order(&world, &repeated).expect_err("a repeated row");
        let mut early = rows;
        early.rotate_right(1);
        check_order(&world, &early).expect_err("a row before its stage");
    }
}
