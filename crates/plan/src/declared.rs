//! What an object's columns were declared as. The statement is all that is stored of it, and the same statement gives
//! the same plan whenever it is read.

use segue_catalog::Object;
use segue_sql::{Columns, Statement};

/// The columns in the CREATE of a source or table.
pub(crate) fn columns(object: &Object) -> Option<Columns> {
    match segue_sql::parse(&object.definition).ok()?.pop()? {
        Statement::CreateSource(create) => Some(create.columns),
        Statement::CreateTable(create) => Some(create.columns),
        _ => None,
    }
}
