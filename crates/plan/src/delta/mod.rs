//! SQL → dataflow: DataFusion parses, types and rewrites a query; what is left becomes a [`DataflowSpec`].
//!
//! A plan never depends on the data of the day: no statistics, no folded now(), no subquery frozen into a
//! constant. What
//! cannot be maintained yet is refused by its name (0A000) with the remedy.
//! Words: an *input* is one object that a view reads, with the columns it needs of it, whatever number of times.

mod arrival;
mod changes;
mod clock;
pub mod errors;
mod explain;
mod fragment;
mod functions;
mod leaf;
mod names;
mod optimize;
mod physical;
mod provider;
mod refuse;
mod row;
mod ticks;
mod translate;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use segue_catalog::{Catalog, Object};
use segue_flow::DataflowSpec;
use segue_sql::Emission;
use segue_types::{ObjectId, SqlState, UserError};
use sqlparser::ast::{Distinct, Query, SetExpr, Statement};

pub use explain::{Place, explain, explain_with};
pub use functions::sum_of_reals;
pub(crate) use physical::held_type;
pub(crate) use row::row_expression;

use provider::CatalogProvider;

/// A materialized view as it will run.
#[derive(Clone, Debug)]
pub struct ViewPlan {
    /// The result's columns, all nullable, with the SQL types that Arrow alone cannot tell.
    pub schema: SchemaRef,
    /// Columns that hold at most one row per value; empty when nothing is promised.
    pub key: Vec<usize>,
    /// What the dataflow's numbered inputs read.
    pub inputs: Vec<ViewInput>,
    /// What the inputs after those are told.
    pub marks: Vec<MarkInput>,
    pub spec: DataflowSpec,
    /// The objects that the query names, and those that they stand for.
    pub depends_on: BTreeSet<ObjectId>,
    /// What the user should know but need not change.
    pub notices: Vec<String>,
}

/// An object that a view reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewInput {
    pub object: ObjectId,
    pub name: String,
    /// The columns that are read, in ascending order.
    pub projection: Vec<usize>,
}

/// An input that takes marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkInput {
    /// How far the watermark of a column of an object has come.
    Watermark { object: ObjectId, column: usize },
    /// The time.
    Clock,
}

/// A query's result, for a view that stores nothing.
#[derive(Clone, Debug)]
pub struct QueryShape {
    pub schema: SchemaRef,
    pub depends_on: BTreeSet<ObjectId>,
}

/// The dataflow that maintains `query` and shows it as it changes.
pub fn plan_view(catalog: &Catalog, query: &Query) -> Result<ViewPlan, UserError> {
    plan_emitting(catalog, (query.clone(), Emission::OnChange))
}

/// The dataflow that maintains a view that is there.
pub fn plan_stored(catalog: &Catalog, view: &Object) -> Result<ViewPlan, UserError> {
    plan_emitting(catalog, provider::view_query(view)?)
}

/// The dataflow that maintains a query.
pub fn plan_emitting(
    catalog: &Catalog,
    (mut query, emission): (Query, Emission),
) -> Result<ViewPlan, UserError> {
    let mut notices = Vec::new();
    let limited = query.limit_clause.is_some() || query.fetch.is_some();
    if !limited && !has_distinct_on(&query) && query.order_by.take().is_some() {
        notices
            .push("ORDER BY of a materialized view is ignored: its rows have no order".to_owned());
    }
    refuse::query(&query)?;
    let provider = CatalogProvider::new(catalog);
    let plan =
        logical_plan(&provider, &query).map_err(|error| named_twice(&query).unwrap_or(error))?;
    let schema = output_schema(&query, &plan);
    let plan = clock::put(plan).map_err(|error| errors::user_error(&error, None))?;
    refuse::plan(&plan)?;
    let plan = optimize::optimize(plan).map_err(|error| errors::user_error(&error, None))?;
    refuse::subqueries(&plan)?;
    clock::only_in_filters(&plan)?;
    let mut depends_on = provider.named();
    let translated = translate::translate(&plan, &schema, &provider, emission)?;
    notices.extend(translated.notices);
    depends_on.extend(translated.inputs.iter().map(|input| input.object));
    Ok(ViewPlan {
        schema: Arc::clone(&translated.spec.schema),
        key: translated.spec.key.clone(),
        inputs: translated.inputs,
        marks: translated.marks,
        spec: translated.spec,
        depends_on,
        notices,
    })
}

/// DISTINCT ON keeps the first row in the order of the query.
fn has_distinct_on(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    matches!(select.distinct, Some(Distinct::On(_)))
}

/// How many columns a query has.
pub fn width_of(catalog: &Catalog, query: &Query) -> Result<usize, UserError> {
    let plan = logical_plan(&CatalogProvider::new(catalog), query)?;
    Ok(plan.schema().fields().len())
}

/// The columns of `query` and what it reads; any query that can be answered will do.
pub fn describe_query(catalog: &Catalog, query: &Query) -> Result<QueryShape, UserError> {
    let provider = CatalogProvider::new(catalog);
    let plan = logical_plan(&provider, query)?;
    if changes::Changelog::is_in(&plan).map_err(|error| errors::user_error(&error, None))? {
        let message = "changes of a relation are read by materialized views and sinks alone";
        return Err(UserError::unsupported(message).with_hint("Make it a materialized view."));
    }
    let plan_schema = output_schema(query, &plan);
    let plan = optimize::analyze(plan).map_err(|error| errors::user_error(&error, None))?;
    let typed = plan.schema().fields().iter().zip(plan_schema.fields());
    let fields = typed.map(|(typed, named)| {
        let data_type = held_type(typed.data_type());
        named.as_ref().clone().with_data_type(data_type).with_nullable(true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(QueryShape { schema, depends_on: provider.named() })
}

impl ViewPlan {
    /// The same plan under the names of `CREATE … VIEW v (names)`; columns beyond them keep theirs.
    pub fn renamed(mut self, names: &[String]) -> Result<ViewPlan, UserError> {
        self.schema = rename(&self.schema, names)?;
        self.spec.schema = Arc::clone(&self.schema);
        Ok(self)
    }
}

/// The columns under new names, checked as a relation's columns must be.
pub fn rename(schema: &SchemaRef, names: &[String]) -> Result<SchemaRef, UserError> {
    let fields = schema.fields();
    if names.len() > fields.len() {
        let message = "CREATE VIEW specifies more column names than columns";
        return Err(UserError::new(SqlState::SYNTAX_ERROR, message));
    }
    let field = |(place, field): (usize, &Arc<Field>)| match names.get(place) {
        Some(name) => field.as_ref().clone().with_name(name),
        None => field.as_ref().clone(),
    };
    let renamed = Schema::new(fields.iter().enumerate().map(field).collect::<Vec<_>>());
    let names = renamed.fields().iter().map(|field| field.name().clone());
    match twice(names) {
        Some(name) => Err(duplicate(&name)),
        None => Ok(Arc::new(renamed)),
    }
}

fn twice(names: impl IntoIterator<Item = String>) -> Option<String> {
    let mut seen = HashSet::new();
    names.into_iter().find(|name| !seen.insert(name.clone()))
}

fn duplicate(name: &str) -> UserError {
    UserError::new(
        SqlState::DUPLICATE_COLUMN,
        format!("column \"{name}\" specified more than once"),
    )
    .with_hint("Give each column of the view a name of its own with AS.")
}

/// DataFusion refuses some queries with two columns of one name in words that are not about that.
fn named_twice(query: &Query) -> Option<UserError> {
    let error = twice(names::written_names(query)).map(|name| duplicate(&name));
    error.filter(|_| query.with.is_none())
}

/// What DataFusion makes of the query, unoptimised.
fn logical_plan(provider: &CatalogProvider<'_>, query: &Query) -> Result<LogicalPlan, UserError> {
    let options = ParserOptions::new()
        .with_collect_spans(true)
        .with_map_string_types_to_utf8view(false)
        .with_parse_float_as_decimal(true);
    let mut query = query.clone();
    arrival::mark(&mut query);
    changes::mark(&mut query);
    let plan = |query: Query| {
        let mut statement = Statement::Query(Box::new(query));
        crate::dialect::rewrite(&mut statement);
        SqlToRel::new_with_options(provider, options)
            .sql_statement_to_plan(statement)
            .map_err(|error| errors::user_error(&error, None))
    };
    match plan(query.clone()) {
        Err(error) if error.state == SqlState::DUPLICATE_COLUMN => {
            crate::dialect::tell_apart(&mut query);
            plan(query)
        }
        planned => planned,
    }
}

/// The columns under the names that PostgreSQL gives them. Their types are final only after analysis.
fn output_schema(query: &Query, plan: &LogicalPlan) -> SchemaRef {
    let fields = plan.schema().fields();
    let names = names::output_names(query, fields);
    let named = fields.iter().zip(names).map(|(field, name)| {
        let metadata = field.metadata().clone();
        Field::new(name, field.data_type().clone(), true).with_metadata(metadata)
    });
    Arc::new(Schema::new(named.collect::<Vec<_>>()))
}
