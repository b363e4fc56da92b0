//! GAP_FILL in FROM: rows at each step between those that are there.
//!
//! `GAP_FILL(t, at, step [, strategy …] [, PARTITION_BY(column, …)])` is `t`, and between each row and the next a row
//! at every step after the first of the two.
//! A strategy says what a column has there: `LOCF(c)`, the value before, which is what columns without one have;
//! `KEEPNULL(c)`; `INTERPOLATE(c)`, on a line from the value before to the next.

use sqlparser::ast::{
    ExcludeSelectItem, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    Query, ReplaceSelectElement, ReplaceSelectItem, SelectItem, SetExpr, WildcardAdditionalOptions,
};

/// What fills a column, and the column.
enum Strategy {
    Carried,
    Null(Ident),
    Interpolated(Ident),
}

/// Names that nobody has.
const END: &str = "\"gap's end\"";
const ROW: &str = "\"gap's row\"";
const STEP: &str = "\"gap's step\"";

/// The query that a call stands for; `None` if the arguments are of another kind.
pub(super) fn query(base: &str, at: &Expr, step_us: i64, more: &[Expr]) -> Option<Box<Query>> {
    let at = super::sessions::column(at)?;
    let mut partition = Vec::new();
    let mut strategies = Vec::new();
    for argument in more {
        let (name, columns) = call(argument)?;
        match (name.as_str(), columns.as_slice()) {
            ("partition_by", columns) => partition.extend(columns.iter().cloned()),
            ("locf", [_]) => strategies.push(Strategy::Carried),
            ("keepnull", [column]) => strategies.push(Strategy::Null(column.clone())),
            ("interpolate", [column]) => strategies.push(Strategy::Interpolated(column.clone())),
            _ => return None,
        }
    }
    let text = text(base, at, step_us, &partition, &strategies);
    let mut query = segue_sql::parse_query(&text).ok()?.tree;
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let wildcard = wildcard(at, step_us, &strategies)?;
    *select.projection.first_mut()? = SelectItem::Wildcard(wildcard);
    Some(query)
}

/// A function's name and its arguments, which are columns.
fn call(argument: &Expr) -> Option<(String, Vec<Ident>)> {
    let Expr::Function(function) = argument else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let column = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => super::sessions::column(expr).cloned(),
        _ => None,
    };
    let columns = list.args.iter().map(column).collect::<Option<Vec<_>>>()?;
    Some((function.name.to_string().to_lowercase(), columns))
}

/// The rows with all that is computed of them, as columns of their own.
fn text(base: &str, at: &Ident, step_us: i64, partition: &[Ident], all: &[Strategy]) -> String {
    let by = partition.iter().map(ToString::to_string).collect::<Vec<_>>();
    let partitioned = |keys: &[String]| match keys {
        [] => String::new(),
        keys => format!("PARTITION BY {} ", keys.join(", ")),
    };
    let over = format!("OVER ({}ORDER BY {at})", partitioned(&by));
    let ahead = interpolated(all)
        .map(|(place, column)| format!(", lead({column}) {over} AS {}", next(place)));
    let rows = format!(
        "SELECT *, lead({at}) {over} AS {END}, row_number() {over} AS {ROW}{} FROM {base} WHERE {at} IS NOT NULL",
        ahead.collect::<String>()
    );
    let micros = |time: &str| {
        format!("arrow_cast(arrow_cast({time}, 'Timestamp(Microsecond, None)'), 'Int64')")
    };
    // Steps after the row that lie before the next one.
    let steps = format!("(({} - {} - 1) / {step_us})", micros(END), micros(&at.to_string()));
    let filled = format!(
        "SELECT * FROM ({rows}) AS \"gap's rows\", generate_series(0, coalesce({steps}, 0)) AS \"gap's steps\"({STEP})"
    );
    let keys = by.iter().cloned().chain([ROW.to_owned()]).collect::<Vec<_>>();
    let over = format!("OVER ({}ORDER BY {STEP})", partitioned(&keys));
    // Step by step, as rounding has it.
    let values = interpolated(all).map(|(place, column)| {
        let step = format!("({} - {column}) / ({steps} + 1)", next(place));
        format!(
            ", sum(CASE WHEN {STEP} = 0 THEN {column} ELSE {step} END) {over} AS {}",
            value(place)
        )
    });
    match values.collect::<String>() {
        values if values.is_empty() => format!("SELECT * FROM ({filled}) AS \"gap filled\""),
        values => format!(
            "SELECT * FROM (SELECT *{values} FROM ({filled}) AS \"gap filled\") AS \"gap valued\""
        ),
    }
}

fn interpolated(all: &[Strategy]) -> impl Iterator<Item = (usize, &Ident)> {
    all.iter().enumerate().filter_map(|(place, strategy)| match strategy {
        Strategy::Interpolated(column) => Some((place, column)),
        _ => None,
    })
}

fn next(place: usize) -> String {
    format!("\"gap's next {place}\"")
}

fn value(place: usize) -> String {
    format!("\"gap's value {place}\"")
}

/// The columns of the relation, filled.
fn wildcard(at: &Ident, step_us: i64, all: &[Strategy]) -> Option<WildcardAdditionalOptions> {
    let mut replaced =
        vec![(at, format!("{at} + arrow_cast({STEP} * {step_us}, 'Duration(Microsecond)')"))];
    let mut helpers = vec![END.to_owned(), ROW.to_owned(), STEP.to_owned()];
    for (place, strategy) in all.iter().enumerate() {
        match strategy {
            Strategy::Carried => {}
            Strategy::Null(column) => {
                replaced.push((column, format!("CASE WHEN {STEP} = 0 THEN {column} END")));
            }
            Strategy::Interpolated(column) => {
                helpers.extend([next(place), value(place)]);
                replaced.push((column, value(place)));
            }
        }
    }
    let items = replaced.into_iter().map(|(column, text)| {
        let expr = *segue_sql::parse_expression(&text).ok()?.tree;
        Some(Box::new(ReplaceSelectElement { expr, column_name: column.clone(), as_keyword: true }))
    });
    let items = items.collect::<Option<Vec<_>>>()?;
    let helper =
        |name: &String| ObjectName::from(vec![Ident::with_quote('"', name.trim_matches('"'))]);
    Some(WildcardAdditionalOptions {
        opt_exclude: Some(ExcludeSelectItem::Multiple(helpers.iter().map(helper).collect())),
        opt_replace: Some(ReplaceSelectItem { items }),
        ..WildcardAdditionalOptions::default()
    })
}
