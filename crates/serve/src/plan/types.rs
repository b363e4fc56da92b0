//! What type names mean in a query: the same as in CREATE TABLE, so that a cast gives what a column holds.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion_pg_catalog::pg_catalog::oid_type_planner::PgOidTypePlanner;
use sqlparser::ast::DataType;

/// Oid-like types first, then ours, then DataFusion's.
#[derive(Debug)]
pub(super) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, ty: &DataType) -> Result<Option<FieldRef>> {
        if let Some(field) = PgOidTypePlanner.plan_type_field(ty)? {
            return Ok(Some(field));
        }
        let text = ty.to_string();
        let name = text.strip_prefix("pg_catalog.").unwrap_or(&text);
        // Without metadata: DataFusion's casts keep the source's, and the two would disagree.
        Ok(segue_sql::parse_type(name)
            .ok()
            .map(|ty| Arc::new(Field::new("", ty.arrow_type(), true))))
    }
}
