//! TUMBLE, HOP, SESSION and GAP_FILL in FROM: subqueries that give each row its windows, or fill the gaps between them.
//!
//! `TUMBLE(t, at, size [, offset])` is `t` with the columns window_start and window_end;
//! `HOP(t, at, step, size [, offset])` has a row for each window that holds the row. Windows begin at multiples of
//! their step since 1970. What is not called so is left as it is, and refused as a function that does not exist.

use std::ops::ControlFlow;

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use segue_sql::Statement;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, TableAlias, TableFactor, Value, VisitMut, VisitorMut,
};

use super::{gap_fill, sessions};

/// More windows than these for one row are a mistake.
const MAX_WINDOWS: i64 = 1000;

/// Rewrites all of them in a statement or query.
pub(super) fn rewrite<T: VisitMut>(tree: &mut T) {
    let _: ControlFlow<()> = tree.visit(&mut Windows);
}

struct Windows;

impl VisitorMut for Windows {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let Some(windowed) = windowed(factor) {
            *factor = windowed;
        }
        ControlFlow::Continue(())
    }
}

/// The subquery that a window function in FROM stands for.
fn windowed(factor: &TableFactor) -> Option<TableFactor> {
    let TableFactor::Table { name, alias, args: Some(arguments), .. } = factor else { return None };
    let arguments = arguments.args.iter().map(plain).collect::<Option<Vec<_>>>()?;
    let base = from(arguments.first()?)?;
    let named = alias.clone().or_else(|| base.name.clone().map(unlisted));
    let derived = |subquery| TableFactor::Derived {
        lateral: false,
        subquery,
        alias: named.clone(),
        sample: None,
    };
    if name.to_string().eq_ignore_ascii_case("session") {
        let gap = micros(arguments.get(2)?)?;
        let by = arguments.get(3..).unwrap_or_default();
        return sessions::query(&base.text, arguments.get(1)?, gap, by).map(derived);
    }
    if name.to_string().eq_ignore_ascii_case("gap_fill") {
        let step = micros(arguments.get(2)?)?;
        let more = arguments.get(3..).unwrap_or_default();
        return gap_fill::query(&base.text, arguments.get(1)?, step, more).map(derived);
    }
    let at = arguments.get(1)?.to_string();
    let text = match name.to_string().to_lowercase().as_str() {
        "tumble" => {
            let size = micros(arguments.get(2)?)?;
            window(&base.text, &at, size, size, 0, offset(arguments.get(3))?)
        }
        "hop" => {
            let (step, size) = (micros(arguments.get(2)?)?, micros(arguments.get(3)?)?);
            let count = size / step;
            if size % step != 0 || count > MAX_WINDOWS {
                return None;
            }
            let offset = offset(arguments.get(4))?;
            let windows =
                (0..count).map(|place| window(&base.text, &at, step, size, place, offset));
            windows.collect::<Vec<_>>().join(" UNION ALL ")
        }
        _ => return None,
    };
    let Some(Statement::Sql(statement)) = segue_sql::parse(&text).ok()?.pop() else { return None };
    let sqlparser::ast::Statement::Query(subquery) = *statement else { return None };
    Some(derived(subquery))
}

/// The rows of `base`, each in the window that begins `place` steps before the step it is in.
fn window(base: &str, at: &str, step: i64, size: i64, place: i64, offset: i64) -> String {
    let interval = |micros: i64| format!("INTERVAL '{micros} microseconds'");
    let moved = match offset {
        0 => at.to_owned(),
        offset => format!("{at} - {}", interval(offset)),
    };
    let binned = format!("date_bin({}, {moved})", interval(step));
    let start = match offset - place * step {
        0 => binned,
        shift => format!("{binned} + {}", interval(shift)),
    };
    format!(
        "SELECT *, {start} AS window_start, {start} + {} AS window_end FROM {base} WHERE {at} IS NOT NULL",
        interval(size)
    )
}

/// What is read, as text, and its name.
struct Base {
    text: String,
    name: Option<Ident>,
}

fn from(argument: &Expr) -> Option<Base> {
    let text = argument.to_string();
    match argument {
        Expr::Identifier(name) => Some(Base { text, name: Some(name.clone()) }),
        Expr::CompoundIdentifier(parts) => Some(Base { text, name: parts.last().cloned() }),
        Expr::Subquery(_) => Some(Base { text: format!("{text} AS windowed"), name: None }),
        _ => None,
    }
}

fn unlisted(name: Ident) -> TableAlias {
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

fn plain(argument: &FunctionArg) -> Option<Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    }
}

/// An interval, also as a text alone.
fn offset(argument: Option<&Expr>) -> Option<i64> {
    match argument {
        None => Some(0),
        Some(Expr::Value(value)) => match &value.value {
            Value::SingleQuotedString(text) => micros_of(text.trim_start().trim_start_matches('+')),
            _ => None,
        },
        Some(interval) => signed_micros(interval),
    }
}

/// The length of an interval literal without months, which must be positive.
fn micros(expr: &Expr) -> Option<i64> {
    signed_micros(expr).filter(|micros| *micros > 0)
}

/// The length of an interval literal without months.
pub(crate) fn signed_micros(expr: &Expr) -> Option<i64> {
    let Expr::Interval(interval) = expr else { return None };
    let Expr::Value(value) = interval.value.as_ref() else { return None };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    let unit = interval.leading_field.as_ref().map(ToString::to_string).unwrap_or_default();
    micros_of(format!("{text} {unit}").trim())
}

fn micros_of(text: &str) -> Option<i64> {
    let parsed = parse_interval_month_day_nano(text).ok()?;
    let days = i64::from(parsed.days).checked_mul(86_400_000_000)?;
    (parsed.months == 0).then(|| days.checked_add(parsed.nanoseconds / 1000))?
}
