//! Accumulators: the state behind one or more aggregates, one entry per group slot.
//!
//! SUM, AVG and COUNT of one column under one filter share an accumulator; so do MIN and MAX where values can
//! be taken back.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, SchemaRef};

use super::counts::Counts;
use super::extremum::{Best, End, Multisets};
use super::groups::grow_to;
use super::ordered::{OrderClass, Ordered, class_of};
use super::sums::{FloatSums, IntegerSums};
use crate::key::Column;
use crate::key::column::Values;
use crate::spec::{AggregateFunction, AggregateSpec};

/// What is accumulated: the aggregates that agree in this share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) class: Class,
    pub(super) argument: Option<usize>,
    pub(super) filter: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Rows, or non-NULL values.
    Count,
    /// Integers and decimals.
    IntegerSum,
    FloatSum,
    Best(End),
    Multiset,
}

impl Subject {
    /// What `spec` needs accumulated.
    pub(super) fn of(spec: &AggregateSpec, schema: &SchemaRef, append_only: bool) -> Subject {
        let argument = spec.argument.map(|column| schema.field(column).data_type());
        let is_float = matches!(argument, Some(DataType::Float32 | DataType::Float64));
        let end = |end| if append_only { Class::Best(end) } else { Class::Multiset };
        let class = match spec.function {
            AggregateFunction::Count => Class::Count,
            AggregateFunction::Sum | AggregateFunction::Avg if is_float => Class::FloatSum,
            AggregateFunction::Sum | AggregateFunction::Avg => Class::IntegerSum,
            AggregateFunction::Min => end(End::Min),
            AggregateFunction::Max => end(End::Max),
        };
        assert!(class == Class::Count || argument.is_some(), "only COUNT(*) has no argument");
        Subject { class, argument: spec.argument, filter: spec.filter }
    }
}

/// One accumulator.
#[derive(Debug)]
pub(super) struct Accumulator {
    pub(super) subject: Subject,
    pub(super) argument_type: DataType,
    pub(super) state: State,
}

/// By slot.
#[derive(Debug)]
pub(super) enum State {
    Count(Counts),
    IntegerSum(IntegerSums, Counts),
    FloatSum(FloatSums, Counts),
    BestWord(Best<i64>),
    BestDecimal(Best<i128>),
    BestBytes(Best<Box<[u8]>>),
    Words(Multisets<i64>),
    Decimals(Multisets<i128>),
    Bytes(Multisets<Box<[u8]>>),
}

/// Evaluates `$body` with `$state` bound to whichever best or multiset it is, and `$other` else.
macro_rules! with_extremum {
    ($value:expr, best($best:ident) => $on_best:expr, multiset($sets:ident) => $on_sets:expr, $($other:tt)*) => {
        match $value {
            State::BestWord($best) => $on_best,
            State::BestDecimal($best) => $on_best,
            State::BestBytes($best) => $on_best,
            State::Words($sets) => $on_sets,
            State::Decimals($sets) => $on_sets,
            State::Bytes($sets) => $on_sets,
            $($other)*
        }
    };
}
pub(super) use with_extremum;

/// The rows of one delta, as the accumulators see them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch<'a> {
    pub(super) rows: &'a RecordBatch,
    pub(super) slots: &'a [u32],
    pub(super) weights: Option<&'a [i64]>,
    /// Of the groups, before these rows.
    pub(super) group_weights: &'a [i64],
}

impl Accumulator {
    pub(super) fn new(subject: Subject, schema: &SchemaRef) -> Accumulator {
        let field_type = |column: usize| schema.field(column).data_type().clone();
        let argument_type = subject.argument.map_or(DataType::Null, field_type);
        let ordered =
            || class_of(&argument_type).expect("the planner asks for MIN and MAX of ordered types");
        let state = match subject.class {
            Class::Count => State::Count(Counts::Weights),
            Class::IntegerSum => State::IntegerSum(IntegerSums::default(), Counts::Weights),
            Class::FloatSum => State::FloatSum(FloatSums::default(), Counts::Weights),
            Class::Best(end) => match ordered() {
                OrderClass::Word => State::BestWord(Best { end, values: Vec::new() }),
                OrderClass::Decimal => State::BestDecimal(Best { end, values: Vec::new() }),
                OrderClass::Bytes => State::BestBytes(Best { end, values: Vec::new() }),
            },
            Class::Multiset => match ordered() {
                OrderClass::Word => State::Words(Multisets::default()),
                OrderClass::Decimal => State::Decimals(Multisets::default()),
                OrderClass::Bytes => State::Bytes(Multisets::default()),
            },
        };
        Accumulator { subject, argument_type, state }
    }

    /// Makes room for `slots` slots.
    pub(super) fn resize(&mut self, slots: usize) {
        match &mut self.state {
            State::Count(counts) => counts.resize(slots),
            State::IntegerSum(sums, counts) => {
                sums.resize(slots);
                counts.resize(slots);
            }
            State::FloatSum(sums, counts) => {
                grow_to(&mut sums.pairs, slots, (0.0, 0.0));
                counts.resize(slots);
            }
            state => with_extremum!(state,
                best(best) => grow_to(&mut best.values, slots, None),
                multiset(sets) => sets.resize(slots),
                _ => unreachable!("the sums are above")),
        }
    }

    /// Back to a group without rows.
    pub(super) fn reset(&mut self, slot: u32) {
        let at = slot as usize;
        match &mut self.state {
            State::Count(counts) => counts.reset(slot),
            State::IntegerSum(sums, counts) => {
                sums.set(at, 0);
                counts.reset(slot);
            }
            State::FloatSum(sums, counts) => {
                sums.reset(slot);
                counts.reset(slot);
            }
            state => with_extremum!(state,
                best(best) => best.values[at] = None,
                multiset(sets) => sets.reset(slot),
                _ => unreachable!("the sums are above")),
        }
    }

    /// Adds the rows of a delta.
    pub(super) fn update(&mut self, touch: Touch<'_>) {
        let column = self.subject.argument.map(|column| Column::new(touch.rows.column(column)));
        let valid = valid_rows(column.as_ref(), self.subject.filter, touch.rows);
        let valid = valid.as_ref();
        match &mut self.state {
            State::Count(counts) => touch.count(valid, counts),
            State::IntegerSum(sums, counts) => {
                let column = column.as_ref().expect("a sum has an argument");
                add_integers(sums, column, touch, valid);
                touch.count(valid, counts);
            }
            State::FloatSum(sums, counts) => {
                let column = column.as_ref().expect("a sum has an argument");
                add_floats(sums, column, touch, valid);
                touch.count(valid, counts);
            }
            state => with_extremum!(state,
                best(best) => {
                    let column = column.as_ref().expect("an extremum has an argument");
                    touch.each(valid, |row, slot, _| best.add(slot as usize, Ordered::read(column, row)));
                },
                multiset(sets) => {
                    let column = column.as_ref().expect("an extremum has an argument");
                    touch.each(valid, |row, slot, weight| sets.add(slot, Ordered::read(column, row), weight));
                },
                _ => unreachable!("the sums are above")),
        }
    }

    /// To be called when a step is complete: a sum without values is an exact zero again. Not earlier, since within
    /// a step a removal may come before its addition, and the count pass through 0 with a sum that still matters.
    /// Of the `slots` of the step those without rows are `emptied`.
    pub(super) fn settle(&mut self, slots: &[u32], emptied: &[u32]) {
        match &mut self.state {
            State::FloatSum(sums, Counts::Weights) => {
                emptied.iter().for_each(|slot| sums.reset(*slot));
            }
            State::FloatSum(sums, Counts::Own(counts)) => {
                let is_zero = |slot: &&u32| counts[**slot as usize] == 0;
                slots.iter().filter(is_zero).for_each(|slot| sums.reset(*slot));
            }
            _ => {}
        }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.state {
            State::Count(counts) => counts.bytes(),
            State::IntegerSum(sums, counts) => sums.bytes() + counts.bytes(),
            State::FloatSum(sums, counts) => sums.pairs.capacity() * 16 + counts.bytes(),
            state => with_extremum!(state,
                best(best) => {
                    let behind = best.values.first().and_then(Option::as_ref).map_or(0, Ordered::bytes);
                    best.values.capacity() * (size_of_val(&best.values[..]) / best.values.len().max(1) + behind)
                },
                multiset(sets) => sets.bytes(),
                _ => unreachable!("the sums are above")),
        }
    }
}

/// Rows that count: the argument is not NULL and the filter is true. `None` when all do.
fn valid_rows(
    argument: Option<&Column>,
    filter: Option<usize>,
    rows: &RecordBatch,
) -> Option<NullBuffer> {
    let nulls = argument.and_then(Column::nulls).filter(|nulls| nulls.null_count() > 0);
    let Some(filter) = filter else { return nulls.cloned() };
    let filter = rows.column(filter).as_boolean();
    let mut passed: BooleanBuffer = filter.values().clone();
    for nulls in [filter.nulls(), nulls].into_iter().flatten() {
        passed = &passed & nulls.inner();
    }
    Some(NullBuffer::new(passed)).filter(|passed| passed.null_count() > 0)
}

impl Touch<'_> {
    /// Adds the rows that count to `counts`.
    fn count(&self, valid: Option<&NullBuffer>, counts: &mut Counts) {
        if valid.is_none() && matches!(counts, Counts::Weights) {
            return;
        }
        let counts = counts.own(self.group_weights);
        self.each(valid, |_, slot, weight| counts[slot as usize] += weight);
    }

    /// Calls `add(row, slot, weight)` for each row that counts.
    fn each(&self, valid: Option<&NullBuffer>, mut add: impl FnMut(usize, u32, i64)) {
        match (valid, self.weights) {
            (None, None) => {
                self.slots.iter().enumerate().for_each(|(row, slot)| add(row, *slot, 1))
            }
            (None, Some(weights)) => {
                let each = self.slots.iter().zip(weights).enumerate();
                each.for_each(|(row, (slot, weight))| add(row, *slot, *weight));
            }
            (Some(valid), weights) => {
                for row in valid.valid_indices() {
                    add(row, self.slots[row], weights.map_or(1, |weights| weights[row]));
                }
            }
        }
    }
}

fn add_integers(
    sums: &mut IntegerSums,
    column: &Column,
    touch: Touch<'_>,
    valid: Option<&NullBuffer>,
) {
    let mut add = |slot: u32, value: i128, weight: i64| sums.add(slot as usize, value, weight);
    match column.values() {
        Values::I16(values) => {
            touch.each(valid, |row, slot, weight| add(slot, values[row].into(), weight))
        }
        Values::I32(values) => {
            touch.each(valid, |row, slot, weight| add(slot, values[row].into(), weight))
        }
        Values::I64(values) => {
            touch.each(valid, |row, slot, weight| add(slot, values[row].into(), weight))
        }
        Values::I128(values) => {
            touch.each(valid, |row, slot, weight| add(slot, values[row], weight))
        }
        _ => unreachable!("only integers and decimals have an integer sum"),
    }
}

fn add_floats(sums: &mut FloatSums, column: &Column, touch: Touch<'_>, valid: Option<&NullBuffer>) {
    match column.values() {
        Values::F32(values) => {
            touch.each(valid, |row, slot, weight| sums.add(slot, values[row].into(), weight))
        }
        Values::F64(values) => {
            touch.each(valid, |row, slot, weight| sums.add(slot, values[row], weight))
        }
        _ => unreachable!("only floats have a float sum"),
    }
}
