//! Watermarks on their way: from the splits of a reading, or the rows of a table, to the dataflows that wait for them.
//!
//! They travel with the rows of the same step, so that what a seal writes of both belongs together.
//! Invariant: a dataflow is told of a watermark only what its own reading has passed; a dataflow never goes back.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use segue_coordinate::{Event, History, Reached, watermark};
use segue_flow::{Delta, Mark, StepError, StepInput};
use segue_plan::watermark::{HistoryOrder, WatermarkPlan};
use segue_types::{ConsumerId, ObjectId};

use crate::clock::now_us;
use crate::consumer::Consumer;
use crate::relation::{Feed, Inputs, Relation};
use crate::world::World;

/// The watermark of rows by their greatest time in `column`; `None` where none has one.
pub(crate) fn of_rows(rows: &RecordBatch, column: usize, delay_us: i64) -> Option<i64> {
    let times = rows.column(column);
    let DataType::Timestamp(TimeUnit::Microsecond, _) = times.data_type() else {
        unreachable!("the planner asks for timestamps, which are kept in microseconds")
    };
    let greatest = arrow::compute::max(times.as_primitive::<TimestampMicrosecondType>());
    greatest.map(|time| time.saturating_sub(delay_us))
}

impl Consumer {
    /// The watermark of rows that its readers deliver.
    pub(crate) fn watermark_of(&self, rows: &RecordBatch) -> Option<i64> {
        let plan = self.source.watermark?;
        if rows.num_rows() == 0 {
            return None;
        }
        of_rows(rows, self.place_of(plan.column), plan.delay_us)
    }

    /// How far its watermark has come.
    pub(crate) fn mark(&self) -> Mark {
        match watermark(self.state()) {
            Reached::Nothing => Mark::Unknown,
            Reached::Time(time) => Mark::At(time),
            Reached::End => Mark::Ended,
        }
    }
}

/// What the coordinator has to know of a plan.
fn history(plan: &WatermarkPlan) -> History {
    match plan.history {
        HistoryOrder::Unordered => History::Unordered,
        HistoryOrder::Ordered => History::Ordered,
    }
}

impl World {
    /// At the end of a step: the watermarks of readings move, and whoever waits for them is told.
    pub(crate) fn move_watermarks(&mut self, inputs: &mut BTreeMap<ObjectId, Inputs>) {
        let timed = |consumer: &&Consumer| consumer.source.watermark.is_some();
        let timed: Vec<ConsumerId> =
            self.consumers.values().filter(timed).map(|consumer| consumer.id).collect();
        for id in timed {
            let plan = self.consumers[&id].source.watermark.expect("it was just looked at");
            self.tell(id, Event::Stepped { history: history(&plan) });
            let Some(consumer) = self.consumers.get_mut(&id) else { continue };
            let mark = consumer.mark();
            for subscriber in &mut consumer.subscribers {
                let Some(input) = subscriber.mark.filter(|_| subscriber.told < mark) else {
                    continue;
                };
                let relation = self.relations.get(&subscriber.object);
                let Some(relation) = relation.filter(|relation| relation.filling.is_none()) else {
                    continue;
                };
                subscriber.told = mark;
                inputs.entry(subscriber.object).or_default().push(relation.marked(input, mark));
            }
        }
    }

    /// Tells the readers of a relation what its watermarks did in a step.
    pub(crate) fn pass_marks_on(
        &self,
        id: ObjectId,
        before: &[(usize, Mark)],
        inputs: &mut BTreeMap<ObjectId, Inputs>,
    ) {
        let after = self.relations[&id].marks();
        let moved = after.iter().zip(before).filter(|(after, before)| after != before);
        for ((column, mark), _) in moved {
            let readers = self.relations.range(id..).skip(1);
            for (reader, reading) in readers.filter(|(_, reading)| reading.filling.is_none()) {
                let told = reading.marks_from(id, *column);
                let told = told.map(|input| reading.marked(input, *mark));
                inputs.entry(*reader).or_default().extend(told);
            }
        }
        inputs.retain(|_, rows| !rows.is_empty());
    }

    /// Tells a relation that has just been filled the time, and how far the watermarks of those that it reads have
    /// come.
    pub(crate) fn tell_marks(&mut self, id: ObjectId) -> Result<(), StepError> {
        let mut marks = self.marks_for(id);
        let relation = self.relations.get_mut(&id).expect("it was just filled");
        marks.extend(relation.told_time(now_us()));
        if marks.is_empty() { Ok(()) } else { relation.absorb(marks) }
    }

    fn marks_for(&self, id: ObjectId) -> Inputs {
        let relation = &self.relations[&id];
        let mut inputs = Inputs::new();
        for (input, feed) in relation.feeds.iter().enumerate() {
            if let Feed::Watermark { object, column } = feed
                && let Some(mark) = self.relations[object].dataflow.watermark(*column)
            {
                inputs.push(relation.marked(input, mark));
            }
        }
        inputs
    }
}

impl Relation {
    /// A mark as it arrives at an input.
    pub(crate) fn marked(&self, input: usize, mark: Mark) -> (usize, StepInput) {
        let schema = &self.dataflow.spec().inputs[input].schema;
        (input, StepInput::Delta(Delta::inserts(Mark::rows(&[mark], schema))))
    }

    /// How far the watermarks of its columns have come.
    pub(crate) fn marks(&self) -> Vec<(usize, Mark)> {
        let columns = self.dataflow.spec().watermarks.iter().map(|of| of.column);
        let mark = |column| (column, self.dataflow.watermark(column).unwrap_or_default());
        columns.map(mark).collect()
    }

    /// The inputs that take the watermark of a column of `object`.
    fn marks_from(&self, object: ObjectId, column: usize) -> impl Iterator<Item = usize> + '_ {
        let takes = move |feed: &Feed| match feed {
            Feed::Watermark { object: of, column: at } => (*of, *at) == (object, column),
            _ => false,
        };
        let feeds = self.feeds.iter().enumerate();
        feeds.filter(move |(_, feed)| takes(feed)).map(|(input, _)| input)
    }

    /// What rows that a statement writes say of the table's watermark.
    pub(crate) fn mark_of(&self, rows: &RecordBatch) -> Option<(usize, StepInput)> {
        let feed = |(input, feed): (usize, &Feed)| match feed {
            Feed::OwnTimes { column, delay_us } => Some((input, *column, *delay_us)),
            _ => None,
        };
        let (input, column, delay_us) = self.feeds.iter().enumerate().find_map(feed)?;
        let time = of_rows(rows, column, delay_us)?;
        Some(self.marked(input, Mark::At(time)))
    }
}
