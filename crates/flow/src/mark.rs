//! Watermarks as rows, so that they go through a dataflow like everything else.
//!
//! Words: a *mark* is how far a watermark has come: nothing is known, no row before a time is still to come, or no row
//! at all is. A node that delivers a watermark puts out two rows in each step, the mark before the step and the one
//! after it: a time (NULL when it is not known) and whether it has ended.
//! The times of a clock are marks too. Times are microseconds since 1970, whatever the column's zone.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
};

use crate::delta::Delta;

/// How far a watermark has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    #[default]
    Unknown,
    /// Rows of this time and later ones may come.
    At(i64),
    /// None comes.
    Ended,
}

/// The columns of a watermark whose times are of this type.
pub fn mark_schema(time: &DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("time", time.clone(), true),
        Field::new("ended", DataType::Boolean, true),
    ]))
}

impl Mark {
    /// Marks as rows of such a schema.
    ///
    /// # Panics
    /// If the schema is not one of a watermark.
    pub fn rows(marks: &[Mark], schema: &SchemaRef) -> RecordBatch {
        let time = |mark: &Mark| match mark {
            Mark::At(time) => Some(*time),
            Mark::Unknown | Mark::Ended => None,
        };
        let times: TimestampMicrosecondArray = marks.iter().map(time).collect();
        let times = cast(&times, schema.field(0).data_type()).expect("a time of another unit");
        let ended = marks.iter().map(|mark| Some(*mark == Mark::Ended)).collect::<BooleanArray>();
        RecordBatch::try_new(Arc::clone(schema), vec![times, Arc::new(ended)])
            .expect("a time, and whether it has ended")
    }

    /// The marks in rows of a watermark.
    pub(crate) fn of(rows: &RecordBatch) -> Vec<Mark> {
        let times = micros(rows.column(0));
        let ended = rows.column(1).as_boolean();
        let mark = |row: usize| {
            if ended.is_valid(row) && ended.value(row) {
                Mark::Ended
            } else if times.is_null(row) {
                Mark::Unknown
            } else {
                Mark::At(times.value(row))
            }
        };
        (0..rows.num_rows()).map(mark).collect()
    }

    /// Whether no row of this time comes any more.
    pub(crate) fn has_passed(self, time: i64) -> bool {
        match self {
            Mark::Unknown => false,
            Mark::At(mark) => time < mark,
            Mark::Ended => true,
        }
    }
}

/// What a watermark did in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) before: Mark,
    pub(crate) after: Mark,
}

impl Moved {
    /// What the node of a watermark delivered.
    pub(crate) fn of(deltas: &[Delta]) -> Moved {
        let marks = deltas.iter().flat_map(|delta| Mark::of(delta.rows())).collect::<Vec<_>>();
        let [before, after] = marks[..] else {
            unreachable!("a watermark puts out two marks in each step, not {}", marks.len())
        };
        Moved { before, after }
    }

    pub(crate) fn delta(self, schema: &SchemaRef) -> Delta {
        Delta::inserts(Mark::rows(&[self.before, self.after], schema))
    }
}

/// How many rows there are, and between which times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) rows: usize,
    pub(crate) range: Option<(i64, i64)>,
}

impl Times {
    /// Rows of these times come.
    pub(crate) fn add(&mut self, times: &Int64Array) {
        self.rows += times.len();
        let (first, last) = (arrow::compute::min(times), arrow::compute::max(times));
        let bounds = self.range.into_iter().chain(first.zip(last));
        self.range = bounds.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    }
}

/// Times in microseconds.
pub(crate) fn micros(column: &ArrayRef) -> Int64Array {
    let DataType::Timestamp(_, zone) = column.data_type() else {
        unreachable!("the planner knows of watermarks of timestamps alone")
    };
    let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
    let micros = micros.expect("a time of another unit");
    micros.as_primitive::<TimestampMicrosecondType>().reinterpret_cast::<Int64Type>()
}
