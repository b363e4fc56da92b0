//! Functions that tell of the catalog: definitions by OID, OIDs by name.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int32Array};
use arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarUDF;
use segue_catalog::{Catalog, Object};

use super::simple::{function, integers, text_column, texts};
use crate::catalog::{
    NAMESPACES, class_oid, constraint_definition, index_definition, is_on_search_path,
    object_of_oid, view_definition,
};
use crate::plan::SnapshotCell;

/// All of them.
pub(super) fn functions(cell: &Arc<SnapshotCell>) -> Vec<ScalarUDF> {
    vec![
        of_object("pg_get_viewdef", cell, view_definition),
        of_object("pg_get_indexdef", cell, |object| Some(index_definition(object))),
        of_object("pg_get_constraintdef", cell, |object| Some(constraint_definition(object))),
        by_name("to_regclass", cell, class_oid),
        by_name("to_regnamespace", cell, |_, name| {
            NAMESPACES.iter().find(|(known, _)| *known == name).map(|(_, oid)| *oid)
        }),
        by_name("to_regtype", cell, |_, name| type_oid(name)),
        is_visible(cell),
    ]
}

/// Whether a relation is found without its schema: what users create, and PostgreSQL's own.
fn is_visible(cell: &Arc<SnapshotCell>) -> ScalarUDF {
    let cell = Arc::clone(cell);
    function("pg_table_is_visible", DataType::Boolean, move |columns, _| {
        let catalog = Arc::clone(&cell.get().published.catalog);
        let visible = integers(columns, 0).into_iter().map(|oid| {
            let oid = u32::try_from(oid?).ok()?;
            Some(object_of_oid(&catalog, oid).is_some() || is_on_search_path(oid))
        });
        let array: ArrayRef = Arc::new(visible.collect::<BooleanArray>());
        Ok(array)
    })
}

/// A text for the object of an OID, or for the name of a relation.
fn of_object(
    name: &'static str,
    cell: &Arc<SnapshotCell>,
    text: fn(&Object) -> Option<String>,
) -> ScalarUDF {
    let cell = Arc::clone(cell);
    function(name, DataType::Utf8, move |columns, _| {
        let catalog = Arc::clone(&cell.get().published.catalog);
        let named = texts(columns, 0);
        let numbered = integers(columns, 0);
        let found = named.into_iter().zip(numbered).map(|(name, oid)| {
            let object = match oid.and_then(|oid| u32::try_from(oid).ok()) {
                Some(oid) => object_of_oid(&catalog, oid),
                None => catalog.by_name(&name?),
            };
            text(object?)
        });
        Ok(text_column(found))
    })
}

/// An OID for a name.
fn by_name(
    name: &'static str,
    cell: &Arc<SnapshotCell>,
    oid: fn(&Catalog, &str) -> Option<u32>,
) -> ScalarUDF {
    let cell = Arc::clone(cell);
    function(name, DataType::Int32, move |columns, _| {
        let catalog = Arc::clone(&cell.get().published.catalog);
        let found = texts(columns, 0).into_iter().map(|name| {
            let found = oid(&catalog, &name?)?;
            Some(found.cast_signed())
        });
        let array: ArrayRef = Arc::new(found.collect::<Int32Array>());
        Ok(array)
    })
}

fn type_oid(name: &str) -> Option<u32> {
    let ty = segue_sql::parse_type(name.trim_start_matches("pg_catalog.")).ok()?;
    Some(crate::pg_type::pg_type(&ty).oid())
}
