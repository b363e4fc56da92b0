//! CREATE SINK: a query whose changes go on into a table, or nowhere.
//!
//! Invariant: what a sink delivers has the columns and types of its table, so that the table takes it as it takes what
//! stages deliver; and a table that cannot give rows back gets none that are taken back.

use std::collections::BTreeSet;

use segue_catalog::{
    Catalog, Mutability, Object, ObjectKind, ObjectState, RelationKind, Removals, Verb,
};
use segue_sql::{CreateSink, CreateTable, Name, SinkTable, Statement, WithOption};
use segue_types::{ObjectId, SqlState, UserError, sql_type_of};
use sqlparser::ast::Query;

use crate::delta::{ViewPlan, plan_emitting, width_of};

/// A sink as it will run.
#[derive(Clone, Debug)]
pub struct SinkPlan {
    pub view: ViewPlan,
    pub into: Option<ObjectId>,
    pub removals: Removals,
}

/// The connector that throws away what it gets.
const NOWHERE: &str = "blackhole";
/// The options of sinks. Those that only say how much a connector asks for at once have nothing to say here.
const OPTIONS: [&str; 7] = [
    "connector",
    "type",
    "force_append_only",
    "primary_key",
    "snapshot",
    "sink_rate_limit",
    "backfill_rate_limit",
];

/// Plans a sink.
pub fn plan_sink(catalog: &Catalog, create: &CreateSink) -> Result<SinkPlan, UserError> {
    check_options(create)?;
    let removals = match option(create, "force_append_only") {
        Some("true") => Removals::LeftOut,
        _ => Removals::PassedOn,
    };
    let Some(table) = &create.into else {
        let query = (*create.query.tree).clone();
        let view = plan_emitting(catalog, (query, create.emission))?.renamed(&[])?;
        check_growth(create, &view, removals)?;
        return Ok(SinkPlan { view, into: None, removals });
    };
    let target = target(catalog, table)?;
    let query = for_table(catalog, create, table, target)?;
    let mut view = plan_emitting(catalog, (query, create.emission))?.renamed(&[])?;
    refuse_cycle(catalog, &view.depends_on, target, create)?;
    check_types(&view, target)?;
    check_growth(create, &view, removals)?;
    refuse_removals(create, &view, target, removals)?;
    view.depends_on.insert(target.id);
    Ok(SinkPlan { view, into: Some(target.id), removals })
}

fn option<'a>(create: &'a CreateSink, name: &str) -> Option<&'a str> {
    let found = create.options.iter().find(|option| option.name == name);
    found.map(|option| option.value.as_str())
}

fn check_options(create: &CreateSink) -> Result<(), UserError> {
    let connector = option(create, "connector");
    if let Some(other) = connector.filter(|connector| *connector != NOWHERE) {
        let message = format!("CREATE SINK to connector \"{other}\" is not supported");
        return Err(UserError::unsupported(message)
            .with_hint(format!("A sink goes INTO a table, or nowhere: connector = '{NOWHERE}'."))
            .at(create.offset.0));
    }
    if connector.is_some() == create.into.is_some() {
        let message = match connector {
            Some(_) => "a sink INTO a table has no connector",
            None => "a sink needs INTO table, or a connector",
        };
        return Err(UserError::new(SqlState::SYNTAX_ERROR, message).at(create.offset.0));
    }
    let unknown = |option: &&WithOption| !OPTIONS.contains(&option.name.as_str());
    match create.options.iter().find(unknown) {
        None => Ok(()),
        Some(WithOption { name, offset, .. }) => {
            let message = format!("option \"{name}\" of a sink does not exist");
            let error = UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).at(offset.0);
            Err(match segue_types::nearest(name, OPTIONS) {
                Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
                None => error,
            })
        }
    }
}

/// `type = 'append-only'` is a promise.
fn check_growth(create: &CreateSink, view: &ViewPlan, removals: Removals) -> Result<(), UserError> {
    let grows = view.spec.is_append_only(view.spec.output) || removals == Removals::LeftOut;
    if grows || option(create, "type") != Some("append-only") {
        return Ok(());
    }
    let message = "the sink cannot be append-only: its query takes rows back";
    Err(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        .with_hint("Add force_append_only = 'true' to leave out what is taken back.")
        .at(create.offset.0))
}

fn target<'a>(catalog: &'a Catalog, table: &SinkTable) -> Result<&'a Object, UserError> {
    let name = table.name.as_str();
    let object = catalog.resolve_kind(name, RelationKind::Table, Verb::Alter)?;
    if object.state != ObjectState::Ready {
        let message = format!("table \"{name}\" is {}", object.state);
        let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        return Err(UserError::new(state, message).at(table.offset.0));
    }
    if !object.stages().is_empty() {
        let message = format!("a sink into \"{name}\", which stages feed, is not supported");
        return Err(UserError::unsupported(message)
            .with_hint("Create a table without stages, and a view of both.")
            .at(table.offset.0));
    }
    Ok(object)
}

/// The query of the sink with the columns of its table.
fn for_table(
    catalog: &Catalog,
    create: &CreateSink,
    table: &SinkTable,
    target: &Object,
) -> Result<Query, UserError> {
    let given = width_of(catalog, &create.query.tree)?;
    let definition = segue_sql::parse(&target.definition)?.pop();
    let Some(Statement::CreateTable(definition)) = definition else {
        return Err(UserError::internal("a table is defined by its CREATE"));
    };
    let places = places(table, target, given)?;
    let mut columns = Vec::with_capacity(places.len());
    let mut conditions = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let field = target.schema.field(at);
        let sql_type = sql_type_of(field)
            .ok_or_else(|| UserError::internal("a table's columns have SQL types"))?;
        let source = match place {
            Some(place) => sunk(*place),
            None => default(&definition, field.name())?,
        };
        let value = format!("CAST({source} AS {sql_type})");
        if !field.is_nullable() {
            conditions.push(format!("{value} IS NOT NULL"));
        }
        columns.push(format!("{value} AS {}", Name::new(field.name().as_str())));
    }
    let names = (0..given).map(sunk).collect::<Vec<_>>().join(", ");
    let mut text =
        format!("SELECT {} FROM ({}) AS sunk ({names})", columns.join(", "), create.query.text);
    if !conditions.is_empty() {
        text += &format!(" WHERE {}", conditions.join(" AND "));
    }
    Ok(*segue_sql::parse_query(&text)?.tree)
}

/// The name of a column of the sink's query.
fn sunk(place: usize) -> String {
    format!("\"sink column {place}\"")
}

/// By column of the table: the column of the query that goes there.
fn places(
    table: &SinkTable,
    target: &Object,
    given: usize,
) -> Result<Vec<Option<usize>>, UserError> {
    let fields = target.schema.fields();
    let invalid =
        |message: String| Err(UserError::new(SqlState::SYNTAX_ERROR, message).at(table.offset.0));
    if table.columns.is_empty() {
        if given > fields.len() {
            return invalid(format!(
                "the sink has {given} columns, and table \"{}\" only {}",
                target.name,
                fields.len()
            ));
        }
        return Ok((0..fields.len()).map(|at| (at < given).then_some(at)).collect());
    }
    if table.columns.len() != given {
        let named = table.columns.len();
        return invalid(format!("the sink has {given} columns, and INTO names {named}"));
    }
    let mut seen = BTreeSet::new();
    for column in &table.columns {
        let name = column.as_str();
        if target.schema.index_of(name).is_err() {
            let message =
                format!("column \"{name}\" of relation \"{}\" does not exist", target.name);
            let state = SqlState::UNDEFINED_COLUMN;
            return Err(UserError::new(state, message).at(table.offset.0));
        }
        if !seen.insert(name) {
            return invalid(format!("column \"{name}\" specified more than once"));
        }
    }
    let place = |name: &str| table.columns.iter().position(|column| column.as_str() == name);
    Ok(fields.iter().map(|field| place(field.name())).collect())
}

/// What a column gets that the sink does not give.
fn default(definition: &CreateTable, name: &str) -> Result<String, UserError> {
    let columns = &definition.columns.columns;
    let column = columns.iter().find(|column| column.name.as_str() == name);
    if column.is_some_and(|column| column.generated.is_some()) {
        let message =
            format!("a sink into a table with the generated column \"{name}\" is not supported");
        return Err(
            UserError::unsupported(message).with_hint("Compute the column in the sink's query.")
        );
    }
    let default = column.and_then(|column| column.default.as_ref());
    Ok(default.map_or_else(|| "NULL".to_owned(), |default| format!("({})", default.text)))
}

/// What a table gets must not follow from what it holds.
fn refuse_cycle(
    catalog: &Catalog,
    read: &BTreeSet<ObjectId>,
    target: &Object,
    create: &CreateSink,
) -> Result<(), UserError> {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<ObjectId> = read.iter().copied().collect();
    while let Some(id) = waiting.pop() {
        if id == target.id {
            let message = "creating such a sink will result in circular dependency";
            return Err(UserError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
                .with_detail(format!("Its query reads table \"{}\", which it feeds.", target.name))
                .at(create.offset.0));
        }
        if !seen.insert(id) {
            continue;
        }
        let Some(object) = catalog.get(id) else { continue };
        waiting.extend(&object.depends_on);
        for fed_by in catalog.iter() {
            if matches!(fed_by.kind, ObjectKind::Sink(sink) if sink.into == Some(id)) {
                waiting.extend(fed_by.depends_on.iter().filter(|read| **read != id));
            }
        }
    }
    Ok(())
}

fn check_types(view: &ViewPlan, target: &Object) -> Result<(), UserError> {
    let pairs = view.schema.fields().iter().zip(target.schema.fields());
    for (from, to) in pairs {
        if from.data_type() != to.data_type() {
            let message = format!("column \"{}\" cannot be fed by this query", to.name());
            let detail = format!(
                "Its type is {}, and that of the query {}.",
                to.data_type(),
                from.data_type()
            );
            return Err(UserError::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail));
        }
    }
    Ok(())
}

/// A table without a key does not know which row is meant, and one that is APPEND ONLY keeps all.
fn refuse_removals(
    create: &CreateSink,
    view: &ViewPlan,
    target: &Object,
    removals: Removals,
) -> Result<(), UserError> {
    let grows = view.spec.is_append_only(view.spec.output) || removals == Removals::LeftOut;
    let ObjectKind::Table(table) = &target.kind else { return Ok(()) };
    let keeps_all = table.mutability == Mutability::AppendOnly;
    if grows || !(keeps_all || target.key.is_empty()) {
        return Ok(());
    }
    let what = if keeps_all { "an APPEND ONLY table" } else { "a table without a PRIMARY KEY" };
    let message = format!("only append-only sinks can feed {what}");
    Err(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        .with_detail("The query of the sink takes rows back.")
        .with_hint(
            "Give the table a PRIMARY KEY, or add WITH (force_append_only = 'true') to leave out what is taken back.",
        )
        .at(create.offset.0))
}
