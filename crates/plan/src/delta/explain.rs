//! A plan as text: the operators from the result down, each with what it keeps.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use segue_flow::{
    AggregateSpec, Conflict, End, InputKind, JoinSpec, Node, NullKeys, OperatorSpec,
    PartitionedInput, Shown, TopNSpec,
};

use super::errors::type_name;
use super::{MarkInput, ViewPlan};

/// One line per operator, indented under its reader.
pub fn explain(plan: &ViewPlan) -> String {
    explain_with(plan, &|_| None)
}

/// The same, each line with what `note` says of the operator at that place, or of the relation.
pub fn explain_with(plan: &ViewPlan, note: &dyn Fn(Place) -> Option<String>) -> String {
    let mut text = String::new();
    let key = match plan.key.as_slice() {
        [] if plan.spec.is_append_only(plan.spec.output) => "append-only".to_owned(),
        [] => "no key".to_owned(),
        key => format!("key ({})", names(&plan.schema, key)),
    };
    let columns = plan.schema.fields().iter();
    let columns = columns.map(|field| format!("{} {}", field.name(), type_name(field.data_type())));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let content = format!("Materialize ({columns}) {key}; state: the rows");
    line(&mut text, 0, &noted(content, note(Place::Relation)));
    describe(plan, plan.spec.output, 1, note, &mut text);
    text
}

/// What a line of a plan is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Relation,
    /// By its number in the plan.
    Operator(usize),
}

fn noted(content: String, note: Option<String>) -> String {
    match note {
        Some(note) => format!("{content} ({note})"),
        None => content,
    }
}

fn line(text: &mut String, depth: usize, content: &str) {
    writeln!(text, "{:1$}{content}", "", depth * 2).expect("writing into a string cannot fail");
}

fn names(schema: &SchemaRef, columns: &[usize]) -> String {
    columns
        .iter()
        .map(|column| schema.field(*column).name().as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn describe(
    plan: &ViewPlan,
    node: Node,
    depth: usize,
    note: &dyn Fn(Place) -> Option<String>,
    text: &mut String,
) {
    let place = match node {
        Node::Input(input) => return line(text, depth, &input_text(plan, input)),
        Node::Operator(place) => place,
    };
    let operator = &plan.spec.operators[place];
    let content = if is_of_time(operator) || is_of_watermarks(operator) {
        time_text(plan, operator)
    } else {
        operator_text(plan, operator)
    };
    line(text, depth, &noted(content, note(Place::Operator(place))));
    let mut inputs = operator.inputs();
    if is_of_time(operator) {
        // How its marks come about is said by the columns' names.
        inputs.pop();
    }
    inputs.into_iter().for_each(|input| describe(plan, input, depth + 1, note, text));
}

/// An operator that knows nothing of time.
fn operator_text(plan: &ViewPlan, operator: &OperatorSpec) -> String {
    match operator {
        OperatorSpec::Project { expressions, schema, .. } => project_text(expressions, schema),
        OperatorSpec::Filter { predicate, .. } => format!("Filter {predicate}"),
        OperatorSpec::UnionAll { inputs, .. } if inputs.is_empty() => "Empty".to_owned(),
        OperatorSpec::UnionAll { .. } => "UnionAll".to_owned(),
        OperatorSpec::Normalise { input, key, conflict } => {
            let kept = match conflict {
                Conflict::Overwrite => "newest",
                Conflict::DoNothing => "first",
                Conflict::Resolve(_) => "resolved",
            };
            let key = names(&plan.spec.inputs[*input].schema, key);
            format!("Normalise by ({key}); state: the {kept} row of each key")
        }
        OperatorSpec::Aggregate { input, keys, aggregates, .. } => {
            aggregate_text(plan, *input, keys, aggregates)
        }
        OperatorSpec::Join { left, right, join, .. } => {
            format!("{}; state: both sides", join_text(plan, operator.name(), *left, *right, join))
        }
        OperatorSpec::Lookup { left, right, join, .. } => {
            let text = join_text(plan, operator.name(), *left, *right, join);
            match plan.spec.is_append_only(*left) {
                true => format!("{text}; state: the right side"),
                false => format!("{text}; state: both sides, and what the left one was given"),
            }
        }
        OperatorSpec::Recompute { inputs, what, .. } => recompute_text(plan, inputs, what),
        OperatorSpec::TopN { input, top, .. } => top_text(plan, *input, top),
        OperatorSpec::Constant { rows } => format!("Constant, {} rows", rows.num_rows()),
        OperatorSpec::Changelog { input, key, .. } => match key.as_slice() {
            [] => "Changelog".to_owned(),
            key => format!("Changelog by ({})", names(&plan.spec.schema_of(*input), key)),
        },
        OperatorSpec::Unnest { input, lists, .. } => {
            format!("Unnest {}", names(&plan.spec.schema_of(*input), lists))
        }
        _ => unreachable!("those of time are told apart before"),
    }
}

/// An operator that follows a watermark, or the clock.
fn time_text(plan: &ViewPlan, operator: &OperatorSpec) -> String {
    match operator {
        OperatorSpec::WindowedAggregate { input, keys, aggregates, window, .. } => {
            let name = plan.spec.schema_of(*input).field(keys[*window]).name().clone();
            let text = aggregate_text(plan, *input, keys, aggregates);
            format!("{text} until the watermark passes {name}")
        }
        OperatorSpec::Forgetting { operator, ends, .. } => {
            let ends = operator.inputs().into_iter().zip(ends).filter_map(|(input, end)| {
                let End { column, later_us } = (*end)?;
                let name = plan.spec.schema_of(input).field(column).name().clone();
                let later = Duration::from_micros(later_us.unsigned_abs());
                Some(if later.is_zero() { name } else { format!("{name} + {later:?}") })
            });
            let ends = ends.collect::<Vec<_>>().join(", ");
            format!("{} until the watermark passes {ends}", operator_text(plan, operator))
        }
        OperatorSpec::Settled { .. } => "Settled".to_owned(),
        OperatorSpec::Ticks { step_us, .. } => {
            format!("Ticks every {:?}", Duration::from_micros(step_us.unsigned_abs()))
        }
        OperatorSpec::Watermark { .. } => "Watermark".to_owned(),
        OperatorSpec::LeastWatermark { .. } => "Least watermark".to_owned(),
        OperatorSpec::DropLate { input, column, .. } => {
            format!("DropLate by {}", names(&plan.spec.schema_of(*input), &[*column]))
        }
        OperatorSpec::Withhold { input, column, .. } => {
            let name = names(&plan.spec.schema_of(*input), &[*column]);
            format!("EmitOnWindowClose by {name}; state: rows that the watermark has not passed")
        }
        OperatorSpec::Temporal { input, column, shown, .. } => {
            let name = names(&plan.spec.schema_of(*input), &[*column]);
            match shown {
                Shown::From => format!("Temporal from {name} on; state: rows that will come"),
                Shown::Until => format!("Temporal until {name}; state: rows that will go"),
            }
        }
        _ => unreachable!("only those of time are asked for"),
    }
}

fn project_text(expressions: &[Arc<dyn PhysicalExpr>], schema: &SchemaRef) -> String {
    let items = expressions.iter().zip(schema.fields()).map(|(expression, field)| {
        let expression = expression.to_string();
        let plain = expression.rsplit_once('@').is_some_and(|(name, _)| name == field.name());
        if plain { field.name().clone() } else { format!("{expression} AS {}", field.name()) }
    });
    format!("Project {}", items.collect::<Vec<_>>().join(", "))
}

fn recompute_text(plan: &ViewPlan, inputs: &[PartitionedInput], what: &str) -> String {
    let by = inputs.iter().map(|input| names(&plan.spec.schema_of(input.node), &input.key));
    let by = by.filter(|key| !key.is_empty()).collect::<Vec<_>>();
    match by.join("; ").as_str() {
        "" => format!("Recompute {what}, all of it; state: input and output"),
        by => format!("Recompute {what} by ({by}); state: input and output"),
    }
}

fn is_of_watermarks(operator: &OperatorSpec) -> bool {
    matches!(
        operator,
        OperatorSpec::Watermark { .. }
            | OperatorSpec::LeastWatermark { .. }
            | OperatorSpec::Settled { .. }
            | OperatorSpec::Ticks { .. }
    )
}

fn is_of_time(operator: &OperatorSpec) -> bool {
    matches!(
        operator,
        OperatorSpec::DropLate { .. }
            | OperatorSpec::Withhold { .. }
            | OperatorSpec::WindowedAggregate { .. }
            | OperatorSpec::Forgetting { .. }
            | OperatorSpec::Temporal { .. }
    )
}

fn top_text(plan: &ViewPlan, input: Node, top: &TopNSpec) -> String {
    let schema = plan.spec.schema_of(input);
    let order = top.order.iter().map(|sort| {
        let name = schema.field(sort.column).name();
        if sort.options.descending { format!("{name} DESC") } else { name.clone() }
    });
    let order = order.collect::<Vec<_>>().join(", ");
    let by = match top.partition.as_slice() {
        [] => String::new(),
        partition => format!(" by ({})", names(&schema, partition)),
    };
    let fetch = top.fetch.map_or_else(|| "all".to_owned(), |fetch| fetch.to_string());
    let skip = if top.skip == 0 { String::new() } else { format!(" after {}", top.skip) };
    format!("TopN {fetch}{skip} of ({order}){by}; state: all rows in order")
}

fn join_text(plan: &ViewPlan, name: &str, left: Node, right: Node, join: &JoinSpec) -> String {
    let (left, right) = (plan.spec.schema_of(left), plan.spec.schema_of(right));
    let equals = match join.null_keys {
        NullKeys::MeetNothing => "=",
        NullKeys::MeetNull => "IS NOT DISTINCT FROM",
    };
    let pairs = join
        .left_key
        .iter()
        .zip(&join.right_key)
        .map(|(l, r)| format!("{} {equals} {}", left.field(*l).name(), right.field(*r).name()));
    let residual = join.residual.as_ref().map(|residual| residual.to_string());
    let conditions = pairs.chain(residual).collect::<Vec<_>>();
    let name = name[..1].to_uppercase() + &name[1..];
    match conditions.as_slice() {
        [] => name,
        conditions => format!("{name} on {}", conditions.join(" AND ")),
    }
}

fn input_text(plan: &ViewPlan, input: usize) -> String {
    let spec = &plan.spec.inputs[input];
    let kind = match spec.kind {
        InputKind::AppendOnly => "append-only",
        InputKind::Changelog => "changelog",
        InputKind::ByKey => "by key",
    };
    let all = (0..spec.schema.fields().len()).collect::<Vec<_>>();
    match input.checked_sub(plan.inputs.len()) {
        None => format!("Input {} ({}) {kind}", plan.inputs[input].name, names(&spec.schema, &all)),
        Some(mark) => mark_text(plan, plan.marks[mark]),
    }
}

fn mark_text(plan: &ViewPlan, mark: MarkInput) -> String {
    match mark {
        MarkInput::Clock => "Clock".to_owned(),
        MarkInput::Watermark { object, column } => {
            let read = plan.inputs.iter().position(|read| read.object == object);
            let read = read.expect("a watermark is of what is read");
            let place = plan.inputs[read].projection.iter().position(|other| *other == column);
            let place = place.expect("a watermark is of a column that is read");
            let name = plan.spec.inputs[read].schema.field(place).name().clone();
            format!("Marks of {}.{name}", plan.inputs[read].name)
        }
    }
}

fn aggregate_text(
    plan: &ViewPlan,
    input: Node,
    keys: &[usize],
    aggregates: &[AggregateSpec],
) -> String {
    let schema = plan.spec.schema_of(input);
    if aggregates.is_empty() {
        return format!("Distinct ({}); state: a count per row", names(&schema, keys));
    }
    let call = |aggregate: &AggregateSpec| {
        let argument = aggregate.argument.map_or("*", |column| schema.field(column).name());
        let filter =
            aggregate.filter.map(|column| format!(" FILTER ({})", schema.field(column).name()));
        format!("{}({argument}){}", aggregate.function.name(), filter.unwrap_or_default())
    };
    let calls = aggregates.iter().map(call).collect::<Vec<_>>().join(", ");
    let keeps_values = aggregates.iter().any(|aggregate| aggregate.function.is_extremum())
        && !plan.spec.is_append_only(input);
    let state = match (keys.is_empty(), keeps_values) {
        (true, false) => "one group",
        (true, true) => "one group, all values of min and max",
        (false, false) => "one entry per group",
        (false, true) => "one entry per group, all values of min and max",
    };
    match keys {
        [] => format!("Aggregate {calls}; state: {state}"),
        keys => format!("Aggregate {calls} by ({}); state: {state}", names(&schema, keys)),
    }
}
