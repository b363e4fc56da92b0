//! SHOW SOURCES, STAGES, TABLES, VIEWS, MATERIALIZED VIEWS, SINKS, JOBS, CREATE ….

use std::time::Duration;

use segue_catalog::{Object, RelationKind, StageObject};
use segue_sql::{ObjectKind, Show, Shown};
use segue_types::{SqlState, UserError};

use super::show::table;
use crate::backend::{StageStatus, shown_definition};
use crate::outcome::Outcome;
use crate::session::Session;

/// Runs SHOW.
pub(super) async fn show(session: &Session, show: &Show) -> Result<Outcome, UserError> {
    if show.what != Shown::Stages {
        check_schema(show)?;
    }
    match &show.what {
        Shown::Sources => Ok(names(session, show, RelationKind::Source)),
        Shown::Tables => Ok(names(session, show, RelationKind::Table)),
        Shown::Views => Ok(names(session, show, RelationKind::View)),
        Shown::MaterializedViews => Ok(names(session, show, RelationKind::MaterializedView)),
        Shown::Sinks => Ok(names(session, show, RelationKind::Sink)),
        Shown::Stages => stages(session, show).await,
        Shown::Jobs => jobs(session).await,
        Shown::Create(kind, name) => create(session, *kind, name.as_str()),
    }
}

/// `FROM schema`: all that is listed lies in one.
fn check_schema(show: &Show) -> Result<(), UserError> {
    match show.from.as_ref().map(|name| name.as_str()) {
        None | Some(segue_catalog::USER_SCHEMA) => Ok(()),
        Some(other) => {
            let message = format!("schema \"{other}\" does not exist");
            Err(UserError::new(SqlState::UNDEFINED_SCHEMA, message)
                .with_hint(format!("Objects live in schema \"{}\".", segue_catalog::USER_SCHEMA)))
        }
    }
}

/// Whether a name matches LIKE.
fn is_wanted(show: &Show, name: &str) -> bool {
    show.like.as_deref().is_none_or(|pattern| like(pattern.as_bytes(), name.as_bytes()))
}

/// SQL's LIKE: `%` any run, `_` any one, `\` takes the next as it is.
fn like(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'%', rest @ ..], _) => (0..=text.len()).any(|skipped| like(rest, &text[skipped..])),
        ([b'\\', wanted, rest @ ..], [found, left @ ..]) => wanted == found && like(rest, left),
        ([b'_', rest @ ..], [_, left @ ..]) => like(rest, left),
        ([wanted, rest @ ..], [found, left @ ..]) => wanted == found && like(rest, left),
        (_, []) => false,
    }
}

fn names(session: &Session, show: &Show, kind: RelationKind) -> Outcome {
    let reading = session.planner.reading();
    let objects = reading.published.catalog.iter();
    let mut names: Vec<String> = objects
        .filter(|object| object.relation_kind() == kind && is_wanted(show, &object.name))
        .map(|object| object.name.clone())
        .collect();
    names.sort();
    table("SHOW", &[("Name", names)])
}

/// The columns of SHOW STAGES.
const STAGE_COLUMNS: [&str; 10] = [
    "Source",
    "Stage",
    "Connector",
    "Boundedness",
    "Rows",
    "Continuity",
    "State",
    "Read",
    "Lag",
    "Behind",
];

async fn stages(session: &Session, show: &Show) -> Result<Outcome, UserError> {
    let status = session.engine.status_with_latest().await?;
    let reading = session.planner.reading();
    let catalog = &reading.published.catalog;
    let mut objects: Vec<_> = match &show.from {
        Some(name) => {
            let object = catalog.by_name(name.as_str()).ok_or_else(|| unknown(name.as_str()))?;
            vec![object]
        }
        None => catalog.iter().collect(),
    };
    objects.sort_by(|a, b| a.name.cmp(&b.name));
    let mut columns = STAGE_COLUMNS.map(|name| (name, Vec::new()));
    for object in objects {
        let stages = object.stages().iter().enumerate();
        for (index, stage) in stages.filter(|(_, stage)| is_wanted(show, &stage.name)) {
            let of_stage = |reading: &&StageStatus| {
                reading.source == object.id && usize::from(reading.index) == index
            };
            let readings: Vec<&StageStatus> = status.stages.iter().filter(of_stage).collect();
            let row = stage_row(&object.name, stage, &readings);
            columns.iter_mut().zip(row).for_each(|((_, column), cell)| column.push(cell));
        }
    }
    Ok(table("SHOW", &columns))
}

/// A stage with what all of its readings say.
fn stage_row(source: &str, stage: &StageObject, readings: &[&StageStatus]) -> [String; 10] {
    let state = |reading: &&StageStatus| match reading.stalled {
        Some(_) => "stalled".to_owned(),
        None => reading.phase.clone(),
    };
    let mut states: Vec<String> = readings.iter().map(state).collect();
    states.sort_unstable();
    states.dedup();
    if states.is_empty() {
        states.push("planned".to_owned());
    }
    let lag = readings.iter().filter_map(|reading| reading.lag_rows).max();
    let behind = readings.iter().filter_map(|reading| reading.lag).max();
    [
        source.to_owned(),
        stage.name.clone(),
        stage.connector.clone(),
        stage.boundedness.to_string(),
        stage.semantics.to_string(),
        stage.continuity.map_or_else(String::new, |continuity| continuity.to_string()),
        states.join(", "),
        readings.iter().map(|reading| reading.rows).max().unwrap_or(0).to_string(),
        lag.map_or_else(String::new, |lag| lag.to_string()),
        behind.map_or_else(String::new, seconds),
    ]
}

/// A time for people.
fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

async fn jobs(session: &Session) -> Result<Outcome, UserError> {
    let status = session.engine.status().await?;
    let mut columns: [Vec<String>; 4] = Default::default();
    for job in status.jobs {
        columns[0].push(job.id.to_string());
        columns[1].push(job.name);
        columns[2].push(job.state.to_string());
        columns[3].push(job.error.unwrap_or(job.progress));
    }
    let [ids, names, states, progress] = columns;
    Ok(table("SHOW", &[("Id", ids), ("Object", names), ("State", states), ("Progress", progress)]))
}

fn create(session: &Session, kind: ObjectKind, name: &str) -> Result<Outcome, UserError> {
    let wanted = match kind {
        ObjectKind::Source => RelationKind::Source,
        ObjectKind::Table => RelationKind::Table,
        ObjectKind::View => RelationKind::View,
        ObjectKind::MaterializedView => RelationKind::MaterializedView,
        ObjectKind::Sink => RelationKind::Sink,
    };
    let reading = session.planner.reading();
    let object = reading.published.catalog.by_name(name).ok_or_else(|| unknown(name))?;
    if object.relation_kind() != wanted {
        return Err(UserError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{name}\" is not a {wanted}"),
        )
        .with_hint(format!("It is a {}.", object.relation_kind())));
    }
    let definition = definition(session, object);
    Ok(table("SHOW", &[("Name", vec![name.to_owned()]), ("Create Sql", vec![definition])]))
}

fn definition(session: &Session, object: &Object) -> String {
    shown_definition(object, session.engine.registry())
}

fn unknown(name: &str) -> UserError {
    UserError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn like_matches_runs_single_characters_and_escapes() {
        for (pattern, text, expected) in [
            ("o%", "orders", true),
            ("%s", "orders", true),
            ("o_ders", "orders", true),
            ("o\\_ders", "orders", false),
            ("order", "orders", false),
            ("%", "", true),
        ] {
            assert_eq!(like(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
