//! DESCRIBE: the columns of a relation.

use segue_sql::Describe;
use segue_types::{SqlState, UserError, sql_type_of};

use super::show::table;
use crate::catalog::system_relation_schema;
use crate::outcome::Outcome;
use crate::session::Session;

/// Runs DESCRIBE.
#[expect(clippy::unused_async, reason = "every kind of statement has the same shape")]
pub(super) async fn describe(session: &Session, describe: &Describe) -> Result<Outcome, UserError> {
    let reading = session.planner.reading();
    let name = describe.name.as_str();
    let schema = describe.schema.as_ref().map(|schema| schema.as_str());
    let (fields, key) = match schema {
        None | Some("public") => match reading.published.catalog.by_name(name) {
            Some(object) => (object.schema.fields().clone(), object.key.clone()),
            None => return Err(unknown(describe)),
        },
        Some(schema) => match system_relation_schema(schema, name) {
            Some(schema) => (schema.fields().clone(), Vec::new()),
            None => return Err(unknown(describe)),
        },
    };
    let mut rows: [Vec<String>; 4] = Default::default();
    for (index, field) in fields.iter().enumerate() {
        let ty =
            sql_type_of(field).map_or_else(|| field.data_type().to_string(), |t| t.to_string());
        rows[0].push(field.name().clone());
        rows[1].push(ty);
        rows[2].push(if field.is_nullable() { "yes" } else { "no" }.to_owned());
        rows[3].push(if key.contains(&index) { "primary key" } else { "" }.to_owned());
    }
    let [names, types, nullable, keys] = rows;
    Ok(table(
        "DESCRIBE",
        &[("Name", names), ("Type", types), ("Nullable", nullable), ("Key", keys)],
    ))
}

fn unknown(describe: &Describe) -> UserError {
    UserError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{}\" does not exist", describe.name.as_str()),
    )
    .at(describe.offset.0)
}
