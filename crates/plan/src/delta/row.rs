//! Expressions over one row of a relation that is not there yet: what a generated column holds.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use segue_catalog::{
    Catalog, Mutability, Object, ObjectKind, ObjectState, OnConflict, Settings, TableObject,
};
use segue_types::{ObjectId, SqlType, UserError};

use super::physical::{cast_to, physical};
use super::provider::CatalogProvider;
use super::translate::user;
use super::{errors, logical_plan, optimize, refuse};

/// The expression in `text` over batches of `schema`, as a value of `to`.
pub(crate) fn row_expression(
    schema: &SchemaRef,
    text: &str,
    (to, held): (&SqlType, &DataType),
) -> Result<Arc<dyn PhysicalExpr>, UserError> {
    let catalog = Catalog::default().with(relation(schema))?;
    let query = segue_sql::parse_query(&format!("SELECT CAST(({text}) AS {to}) FROM r"))?;
    let provider = CatalogProvider::new(&catalog);
    let plan = logical_plan(&provider, &query.tree).map_err(without_place)?;
    refuse::plan(&plan).map_err(|_| changing())?;
    let plan = optimize::analyze(plan).map_err(|error| errors::user_error(&error, None))?;
    let of_row = |plan: &LogicalPlan| matches!(plan, LogicalPlan::TableScan(_));
    let LogicalPlan::Projection(projection) = &plan else { return Err(not_of_a_row()) };
    let [expression] = projection.expr.as_slice() else { return Err(not_of_a_row()) };
    if !of_row(&projection.input) {
        return Err(not_of_a_row());
    }
    let planned = physical(expression, projection.input.schema()).map_err(user)?;
    let data_type = planned.data_type(schema).map_err(user)?;
    Ok(cast_to(planned, &data_type, held))
}

fn relation(schema: &SchemaRef) -> Object {
    Object {
        id: ObjectId(1),
        name: "r".to_owned(),
        schema: Arc::clone(schema),
        key: Vec::new(),
        definition: String::new(),
        kind: ObjectKind::Table(TableObject {
            stages: Vec::new(),
            on_conflict: OnConflict::Overwrite,
            mutability: Mutability::Mutable,
            versions: Vec::new(),
        }),
        depends_on: Default::default(),
        state: ObjectState::Ready,
        consumers: Vec::new(),
        settings: Settings::default(),
        failure: None,
        gaps: Vec::new(),
        created_unix_ms: None,
    }
}

/// The place is one in our own text.
fn without_place(error: UserError) -> UserError {
    UserError { offset: None, ..error }
}

fn changing() -> UserError {
    UserError::unsupported("a generated column has the same value for the same row")
        .with_hint("proctime() by itself is the time at which a row came in.")
}

fn not_of_a_row() -> UserError {
    UserError::unsupported("a generated column is computed from the other columns of its row alone")
        .with_hint("Use a view for aggregates, windows and subqueries.")
}
