//! How each declared column is obtained from the query: by name, as it is, or through a cast in the SELECT.
//!
//! A cast is made where PostgreSQL would make it by itself when the value is assigned to a column of the
//! declared type (as in INSERT … SELECT), and nowhere else: what INSERT refuses is refused here, at CREATE.
//! Invariant: the plan is a function of the query's columns and the declared ones, so that a capture can
//! tell a changed table from the pinned one.

use segue_connect::{ConnectError, ReadConfig};
use segue_types::{SqlState, SqlType, UserError, nearest, sql_type_of};
use serde::{Deserialize, Serialize};
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Column, Statement};

use crate::error::Asked;
use crate::query::{as_relation, quoted};
use crate::session::Session;

/// What COPY BINARY sends for a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wire {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Text,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Jsonb,
    Array(Box<Wire>),
    Composite(Vec<Wire>),
}

/// One declared column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedColumn {
    pub(crate) name: String,
    /// The query's type, for messages and for telling a changed table.
    pub(crate) source: String,
    /// The type that the SELECT casts to.
    pub(crate) cast: Option<String>,
    pub(crate) wire: Wire,
}

/// The declared columns, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) columns: Vec<PlannedColumn>,
}

impl Plan {
    /// Plans `query` as it is at the server now.
    pub(crate) async fn of(
        session: &mut Session,
        query: &str,
        config: &ReadConfig,
    ) -> Result<Plan, ConnectError> {
        let found = prepared(session, query, Asked::Query).await?;
        let mut columns = Vec::with_capacity(config.declared_columns);
        for field in &config.schema.fields()[..config.declared_columns] {
            let declared = sql_type_of(field).ok_or_else(|| {
                let text = format!("column \"{}\" has type {}", field.name(), field.data_type());
                ConnectError::Config(UserError::internal(text))
            })?;
            let source = by_name(found.columns(), field.name()).map_err(ConnectError::Config)?;
            columns.push(plan_column(session, source, &declared).await?);
        }
        let plan = Plan { columns };
        let select = plan.select(query);
        if let Err(error) = prepared(session, &select, Asked::Query).await {
            return Err(not_a_relation(error));
        }
        Ok(plan)
    }

    /// The SELECT whose columns are the declared ones.
    pub(crate) fn select(&self, query: &str) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let name = quoted(&column.name);
                column.cast.as_ref().map_or(format!("q.{name}"), |to| format!("(q.{name})::{to}"))
            })
            .collect();
        format!("SELECT {} FROM {} AS q", columns.join(", "), as_relation(query))
    }
}

/// `sql`, prepared; it must return rows and take no parameters.
pub(crate) async fn prepared(
    session: &mut Session,
    sql: &str,
    asked: Asked,
) -> Result<Statement, ConnectError> {
    let statement = match session.client().prepare(sql).await {
        Ok(statement) => statement,
        Err(error) => return Err(session.error(error, asked).await),
    };
    if !statement.params().is_empty() {
        let error = UserError::new(SqlState::UNDEFINED_PARAMETER, "the query has parameters")
            .with_hint("Write the values into the query.");
        return Err(ConnectError::Config(error));
    }
    if statement.columns().is_empty() {
        let error =
            UserError::new(SqlState::INVALID_PARAMETER_VALUE, "the query returns no columns")
                .with_hint("Give a SELECT, VALUES or TABLE.");
        return Err(ConnectError::Config(error));
    }
    Ok(statement)
}

/// By itself the query was fine, but not as a part of ours: EXPLAIN, SHOW, a DELETE in WITH.
fn not_a_relation(error: ConnectError) -> ConnectError {
    match error {
        ConnectError::Config(error) if error.hint.is_none() => {
            ConnectError::Config(error.with_hint(
                "Give a SELECT, VALUES or TABLE that only reads: it is run as a sub-select.",
            ))
        }
        other => other,
    }
}

fn by_name<'a>(found: &'a [Column], name: &str) -> Result<&'a Column, UserError> {
    let mut same = found.iter().filter(|column| column.name() == name);
    match (same.next(), same.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => {
            let text = format!("the query returns more than one column \"{name}\"");
            Err(UserError::new(SqlState::AMBIGUOUS_COLUMN, text)
                .with_hint("Name the columns apart with AS."))
        }
        (None, _) => {
            let names: Vec<&str> = found.iter().map(Column::name).collect();
            let listed: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            let hint = match nearest(name, names) {
                Some(near) => format!("Did you mean \"{near}\"? Columns are matched by name."),
                None => {
                    format!("Columns are matched by name: give one of them AS {}.", quoted(name))
                }
            };
            let text = format!("the query returns no column \"{name}\"");
            Err(UserError::new(SqlState::UNDEFINED_COLUMN, text)
                .with_detail(format!("It returns {}.", listed.join(", ")))
                .with_hint(hint))
        }
    }
}

/// How a query's type becomes a declared one.
#[derive(Debug, PartialEq)]
enum Mapping {
    Direct(Wire),
    /// `assignment`: the cast that PostgreSQL must know as one it makes by itself; `None` where it always
    /// does.
    Cast {
        to: String,
        assignment: Option<(Type, Type)>,
        wire: Wire,
    },
    Impossible,
}

async fn plan_column(
    session: &mut Session,
    column: &Column,
    declared: &SqlType,
) -> Result<PlannedColumn, ConnectError> {
    let planned = |cast, wire| PlannedColumn {
        name: column.name().to_owned(),
        source: column.type_().to_string(),
        cast,
        wire,
    };
    match mapping(column.type_(), declared) {
        Mapping::Direct(wire) => Ok(planned(None, wire)),
        Mapping::Cast { to, assignment: None, wire } => Ok(planned(Some(to), wire)),
        Mapping::Cast { to, assignment: Some((from, into)), wire } => {
            if assigns(session, &from, &into).await? {
                Ok(planned(Some(to), wire))
            } else {
                Err(mismatch(session, column, declared).await?)
            }
        }
        Mapping::Impossible => Err(mismatch(session, column, declared).await?),
    }
}

/// Whether PostgreSQL casts by itself when it assigns.
async fn assigns(session: &mut Session, from: &Type, into: &Type) -> Result<bool, ConnectError> {
    let sql = format!(
        "SELECT 1 FROM pg_catalog.pg_cast WHERE castsource = {} AND casttarget = {} \
         AND castcontext IN ('a', 'i')",
        from.oid(),
        into.oid(),
    );
    Ok(!session.texts(&sql, Asked::Query).await?.is_empty())
}

async fn mismatch(
    session: &mut Session,
    column: &Column,
    declared: &SqlType,
) -> Result<ConnectError, ConnectError> {
    let sql = format!(
        "SELECT pg_catalog.format_type({}, {})",
        column.type_().oid(),
        column.type_modifier()
    );
    let rows = session.texts(&sql, Asked::Query).await?;
    let found = rows.into_iter().flatten().flatten().next();
    let found = found.unwrap_or_else(|| column.type_().to_string());
    let name = column.name();
    let text = format!("column \"{name}\" is of type {declared} but the query returns {found}");
    let hint = match declared {
        SqlType::Struct(_) => format!("Declare \"{name}\" as text, or select its members apart."),
        _ => format!(
            "Cast it in the query: {0}::{declared} AS {0}. Or declare the column as text.",
            quoted(name)
        ),
    };
    let error = UserError::new(SqlState::DATATYPE_MISMATCH, text).with_hint(hint);
    Ok(ConnectError::Config(error))
}

fn mapping(source: &Type, declared: &SqlType) -> Mapping {
    let source = base(source);
    if let Some(wire) = direct(source, declared) {
        return Mapping::Direct(wire);
    }
    match (source.kind(), declared) {
        (_, SqlType::Text) => {
            Mapping::Cast { to: "text".to_owned(), assignment: None, wire: Wire::Text }
        }
        (Kind::Array(element), SqlType::Array(member)) => match mapping(element, member) {
            Mapping::Cast { to, assignment, wire } => Mapping::Cast {
                to: format!("{to}[]"),
                assignment,
                wire: Wire::Array(Box::new(wire)),
            },
            _ => Mapping::Impossible,
        },
        _ => match scalar(declared) {
            Some((into, to, wire)) => {
                Mapping::Cast { to: to.to_owned(), assignment: Some((source.clone(), into)), wire }
            }
            None => Mapping::Impossible,
        },
    }
}

fn base(mut source: &Type) -> &Type {
    while let Kind::Domain(inner) = source.kind() {
        source = inner;
    }
    source
}

/// What the decoder makes of a type as it is: the same type, or a wider one that holds every value.
fn direct(source: &Type, declared: &SqlType) -> Option<Wire> {
    let source = base(source);
    match (source.kind(), declared) {
        (Kind::Array(element), SqlType::Array(member)) => {
            return direct(element, member).map(|wire| Wire::Array(Box::new(wire)));
        }
        (Kind::Composite(fields), SqlType::Struct(members)) if fields.len() == members.len() => {
            let wires = fields.iter().zip(members).map(|(field, (name, member))| {
                (field.name() == name).then(|| direct(field.type_(), member)).flatten()
            });
            return wires.collect::<Option<_>>().map(Wire::Composite);
        }
        (Kind::Enum(_), SqlType::Text) => return Some(Wire::Text),
        _ if source.schema() != "pg_catalog" => return None,
        _ => {}
    }
    Some(match (source.name(), declared) {
        ("bool", SqlType::Boolean) => Wire::Bool,
        ("int2", SqlType::SmallInt | SqlType::Integer | SqlType::BigInt) => Wire::Int2,
        ("int4", SqlType::Integer | SqlType::BigInt) => Wire::Int4,
        ("int8", SqlType::BigInt) => Wire::Int8,
        ("oid", SqlType::BigInt) => Wire::Oid,
        ("float4", SqlType::Real | SqlType::Double) => Wire::Float4,
        ("float8", SqlType::Double) => Wire::Float8,
        ("numeric", SqlType::Numeric { .. }) => Wire::Numeric,
        ("text" | "varchar" | "bpchar" | "name" | "json", SqlType::Text) => Wire::Text,
        ("jsonb", SqlType::Text | SqlType::Jsonb) => Wire::Jsonb,
        ("uuid", SqlType::Text | SqlType::Uuid) => Wire::Uuid,
        ("bytea", SqlType::Bytea) => Wire::Bytea,
        ("date", SqlType::Date) => Wire::Date,
        ("time", SqlType::Time) => Wire::Time,
        ("timestamp", SqlType::Timestamp) => Wire::Timestamp,
        ("timestamptz", SqlType::Timestamptz) => Wire::Timestamptz,
        ("interval", SqlType::Interval) => Wire::Interval,
        _ => return None,
    })
}

/// A declared scalar type at the server: the type, how a cast to it is written, and what it sends. A
/// numeric is cast without precision: the decoder rounds, and names the column when a value does not fit.
fn scalar(declared: &SqlType) -> Option<(Type, &'static str, Wire)> {
    Some(match declared {
        SqlType::Boolean => (Type::BOOL, "boolean", Wire::Bool),
        SqlType::SmallInt => (Type::INT2, "smallint", Wire::Int2),
        SqlType::Integer => (Type::INT4, "integer", Wire::Int4),
        SqlType::BigInt => (Type::INT8, "bigint", Wire::Int8),
        SqlType::Real => (Type::FLOAT4, "real", Wire::Float4),
        SqlType::Double => (Type::FLOAT8, "double precision", Wire::Float8),
        SqlType::Numeric { .. } => (Type::NUMERIC, "numeric", Wire::Numeric),
        SqlType::Text => (Type::TEXT, "text", Wire::Text),
        SqlType::Bytea => (Type::BYTEA, "bytea", Wire::Bytea),
        SqlType::Date => (Type::DATE, "date", Wire::Date),
        SqlType::Time => (Type::TIME, "time", Wire::Time),
        SqlType::Timestamp => (Type::TIMESTAMP, "timestamp", Wire::Timestamp),
        SqlType::Timestamptz => (Type::TIMESTAMPTZ, "timestamptz", Wire::Timestamptz),
        SqlType::Interval => (Type::INTERVAL, "interval", Wire::Interval),
        SqlType::Uuid => (Type::UUID, "uuid", Wire::Uuid),
        SqlType::Jsonb => (Type::JSONB, "jsonb", Wire::Jsonb),
        SqlType::Array(_) | SqlType::Struct(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Mapping, Plan, PlannedColumn, Wire, mapping};
    use segue_types::SqlType;
    use tokio_postgres::types::Type;

    #[test]
    fn a_type_is_widened_as_it_comes_and_otherwise_cast_at_the_server() {
        let direct = [
            (Type::INT2, SqlType::BigInt, Wire::Int2),
            (Type::FLOAT4, SqlType::Double, Wire::Float4),
            (Type::JSONB, SqlType::Text, Wire::Jsonb),
            (
                Type::INT4_ARRAY,
                SqlType::Array(Box::new(SqlType::BigInt)),
                Wire::Array(Wire::Int4.into()),
            ),
        ];
        for (source, declared, wire) in direct {
            assert_eq!(mapping(&source, &declared), Mapping::Direct(wire), "{source}");
        }
        let texts = SqlType::Array(Box::new(SqlType::Text));
        let cast = Mapping::Cast {
            to: "text[]".to_owned(),
            assignment: None,
            wire: Wire::Array(Box::new(Wire::Text)),
        };
        assert_eq!(mapping(&Type::DATE_ARRAY, &texts), cast);
        let numeric = SqlType::Numeric { precision: 12, scale: 2 };
        let cast = Mapping::Cast {
            to: "numeric".to_owned(),
            assignment: Some((Type::INT8, Type::NUMERIC)),
            wire: Wire::Numeric,
        };
        assert_eq!(mapping(&Type::INT8, &numeric), cast);
        assert_eq!(mapping(&Type::INT4, &texts), Mapping::Impossible);
    }

    #[test]
    fn the_query_ends_before_our_parenthesis() {
        let column = |name: &str, cast: Option<&str>| PlannedColumn {
            name: name.to_owned(),
            source: "int4".to_owned(),
            cast: cast.map(str::to_owned),
            wire: Wire::Int4,
        };
        let plan = Plan { columns: vec![column("a", None), column("b\"c", Some("text"))] };
        assert_eq!(
            plan.select("SELECT 1; -- all"),
            "SELECT q.\"a\", (q.\"b\"\"c\")::text FROM (\nSELECT 1\n) AS q"
        );
    }
}
