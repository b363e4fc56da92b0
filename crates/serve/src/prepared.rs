//! Prepared statements and portals: Parse, Bind and Describe of the extended protocol.
//!
//! Words: *prepared statement* (a text, its parameters' types, its columns), *portal* (one run of it
//! with values).
//! Invariant: a cached plan is used only with the catalog that it was made for.

use std::sync::Arc;

use arrow::datatypes::Fields;
use bytes::Bytes;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use segue_sql::Statement;
use segue_types::{SqlState, SqlType, UserError};

use crate::encode::Format;
use crate::outcome::RowStream;
use crate::pg_type::{pg_type, sql_type_of_oid};
use crate::values::{null_of, scalar_of_binary, scalar_of_text};

/// A parameter's type as client and planner agree on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    /// What the client is told.
    pub(crate) oid: u32,
    pub(crate) ty: SqlType,
}

impl Parameter {
    /// The client's own type wins over what the planner found; neither means text.
    pub(crate) fn agree(client_oid: u32, inferred: Option<SqlType>) -> Parameter {
        if client_oid != 0 {
            let ty = sql_type_of_oid(client_oid).or(inferred).unwrap_or(SqlType::Text);
            return Parameter { oid: client_oid, ty };
        }
        let ty = inferred.unwrap_or(SqlType::Text);
        Parameter { oid: pg_type(&ty).oid(), ty }
    }
}

/// A statement, parsed once.
pub(crate) struct Prepared {
    pub(crate) text: Arc<str>,
    /// `None` for an empty text.
    pub(crate) statement: Option<Arc<Statement>>,
    pub(crate) parameters: Vec<Parameter>,
    /// `None` when it gives no rows.
    pub(crate) fields: Option<Fields>,
    pub(crate) plan: Arc<PlanCache>,
}

/// The plan of a query, and the version of the catalog that it was made for.
#[derive(Default)]
pub(crate) struct PlanCache(Mutex<Option<(u64, Arc<LogicalPlan>)>>);

impl PlanCache {
    pub(crate) fn get(&self, catalog_version: u64) -> Option<Arc<LogicalPlan>> {
        match &*self.0.lock() {
            Some((version, plan)) if *version == catalog_version => Some(Arc::clone(plan)),
            _ => None,
        }
    }

    pub(crate) fn put(&self, catalog_version: u64, plan: Arc<LogicalPlan>) {
        *self.0.lock() = Some((catalog_version, plan));
    }
}

/// The values of a run.
pub(crate) type Parameters = Arc<Vec<ScalarValue>>;

/// A run of a prepared statement.
pub(crate) struct Portal {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) parameters: Parameters,
    pub(crate) formats: Vec<Format>,
    pub(crate) state: PortalState,
}

/// How far a portal is.
pub(crate) enum PortalState {
    Bound,
    /// Some rows have been fetched, more may follow.
    Suspended(RowStream),
    Complete,
}

/// The values of a Bind message.
pub(crate) fn bind_values(
    prepared: &Prepared,
    formats: &[i16],
    values: &[Option<Bytes>],
) -> Result<Parameters, UserError> {
    if values.len() != prepared.parameters.len() {
        return Err(UserError::new(
            SqlState::PROTOCOL_VIOLATION,
            format!(
                "bind message supplies {} parameters, but prepared statement requires {}",
                values.len(),
                prepared.parameters.len()
            ),
        ));
    }
    let formats: Vec<Format> = formats.iter().map(|code| Format::from_code(*code)).collect();
    let bind = |(index, value): (usize, &Option<Bytes>)| {
        let ty = &prepared.parameters[index].ty;
        let Some(bytes) = value else { return Ok(null_of(ty)) };
        match Format::of_column(&formats, index) {
            Format::Binary => scalar_of_binary(ty, bytes),
            Format::Text => {
                let text = std::str::from_utf8(bytes).map_err(|_| {
                    UserError::new(
                        SqlState::try_from("22021".to_owned()).expect("five ASCII characters"),
                        "invalid byte sequence for encoding \"UTF8\"",
                    )
                })?;
                scalar_of_text(ty, text)
            }
        }
    };
    values.iter().enumerate().map(bind).collect::<Result<Vec<_>, _>>().map(Arc::new)
}
