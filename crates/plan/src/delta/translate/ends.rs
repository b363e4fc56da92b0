//! When the rows of a join are of no use any more: what they could meet will not come.
//!
//! A join by a time ends row by row with that time. One with conditions like `b.at BETWEEN a.at AND a.at + INTERVAL …`
//! has *bounds*: a row of the left side meets rows of the right one that are at most `after` later, and at most
//! `before` earlier.
//! Where rows also appear by themselves, what they have met is counted again after a restart, so that a row
//! stays as long as any row that it may have met can still change.

use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::scalar::ScalarValue;
use segue_flow::{ColumnWatermark, End, JoinKind, JoinSpec};

/// The columns of both sides whose times end it, and when the rows of each do.
pub(super) struct Ends {
    pub(super) columns: (usize, usize),
    pub(super) ends: Vec<Option<End>>,
}

/// How far apart the times of two rows that meet may be, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    after: Option<i64>,
    before: Option<i64>,
}

/// `None` where rows stay. The left side has `width` columns, and both have these watermarks.
pub(super) fn of(
    join: &JoinSpec,
    width: usize,
    left: &[ColumnWatermark],
    right: &[ColumnWatermark],
) -> Option<Ends> {
    let has = |times: &[ColumnWatermark], column: usize| times.iter().any(|of| of.column == column);
    let keys = join.left_key.iter().copied().zip(join.right_key.iter().copied());
    let by_time = |(one, other): &(usize, usize)| has(left, *one) && has(right, *other);
    if let Some(columns) = keys.into_iter().find(by_time) {
        let at = |column| Some(End { column, later_us: 0 });
        return Some(Ends { columns, ends: vec![at(columns.0), at(columns.1)] });
    }
    let residual = join.residual.as_ref()?;
    let pairs = left.iter().flat_map(|one| right.iter().map(|other| (one.column, other.column)));
    pairs.into_iter().find_map(|columns| {
        let bounds = bounds(residual, (columns.0, width + columns.1));
        let ends = ends(join.kind, columns, bounds);
        ends.iter().any(Option::is_some).then_some(Ends { columns, ends })
    })
}

fn ends(kind: JoinKind, columns: (usize, usize), bounds: Bounds) -> Vec<Option<End>> {
    let after = bounds.after.map(|after| after.max(0));
    let before = bounds.before.map(|before| before.max(0));
    let both = after.zip(before).map(|(after, before)| after.saturating_add(before));
    let (of_left, of_right) = match kind {
        JoinKind::Inner => (after, before),
        JoinKind::Left | JoinKind::Semi | JoinKind::Anti | JoinKind::Mark => (after, both),
        JoinKind::Full => (both, both),
    };
    let end = |column, later: Option<i64>| later.map(|later_us| End { column, later_us });
    vec![end(columns.0, of_left), end(columns.1, of_right)]
}

/// What a condition says of two columns.
fn bounds(condition: &Arc<dyn PhysicalExpr>, columns: (usize, usize)) -> Bounds {
    let Some(binary) = condition.downcast_ref::<BinaryExpr>() else { return Bounds::default() };
    let op = *binary.op();
    if op == Operator::And {
        let [one, other] = [binary.left(), binary.right()].map(|part| bounds(part, columns));
        let least = |one: Option<i64>, other| one.into_iter().chain(other).min();
        return Bounds {
            after: least(one.after, other.after),
            before: least(one.before, other.before),
        };
    }
    let sides = (moved(binary.left()), moved(binary.right()));
    let (Some((one, one_us)), Some((other, other_us))) = sides else { return Bounds::default() };
    // left + l <= right + r: the left time is at most r - l after the right one.
    let difference = |from: i64, to: i64| to.checked_sub(from);
    let is_at_most = matches!(op, Operator::Lt | Operator::LtEq);
    let is_at_least = matches!(op, Operator::Gt | Operator::GtEq);
    let (before, after) =
        match (one == columns.0 && other == columns.1, one == columns.1 && other == columns.0) {
            (true, _) if is_at_most => (difference(one_us, other_us), None),
            (true, _) if is_at_least => (None, difference(other_us, one_us)),
            (_, true) if is_at_most => (None, difference(one_us, other_us)),
            (_, true) if is_at_least => (difference(other_us, one_us), None),
            _ => (None, None),
        };
    Bounds { after, before }
}

/// A column and how much is added to it.
fn moved(expression: &Arc<dyn PhysicalExpr>) -> Option<(usize, i64)> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        return Some((column.index(), 0));
    }
    if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        return matches!(cast.cast_type(), DataType::Timestamp(..)).then(|| moved(cast.expr()))?;
    }
    let binary = expression.downcast_ref::<BinaryExpr>()?;
    let (column, before_us) = moved(binary.left())?;
    let micros = interval(binary.right().downcast_ref::<Literal>()?.value())?;
    match binary.op() {
        Operator::Plus => Some((column, before_us.checked_add(micros)?)),
        Operator::Minus => Some((column, before_us.checked_sub(micros)?)),
        _ => None,
    }
}

/// The length of an interval in microseconds: nothing of a length that is not fixed, or finer.
fn interval(value: &ScalarValue) -> Option<i64> {
    let ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds })) =
        value
    else {
        return None;
    };
    let is_fixed = *months == 0 && nanoseconds % 1000 == 0;
    let micros = i64::from(*days).checked_mul(86_400_000_000)?.checked_add(nanoseconds / 1000);
    micros.filter(|_| is_fixed)
}
