//! START AT and STOP AT: their literals parsed, RisingWave's spellings of them folded in.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use segue_connect::{OptionSpec, Options, Start, Stop};
use segue_sql::{Stage, StartAt, StopAt};
use segue_types::{SplitId, SqlState, UserError, nearest};

use super::{in_stage, read::Place};

/// RisingWave's options for a start.
const MODE: &str = "scan.startup.mode";
const MILLIS: &str = "scan.startup.timestamp.millis";

/// Where the stage starts. The default is HANDOFF, and for a first stage, which has nothing to take over, EARLIEST.
pub(super) fn start(
    stage: &Stage,
    place: Place,
    specs: &[OptionSpec],
    options: &mut Options,
) -> Result<Start, UserError> {
    let spelled = spelled_start(stage, specs, options)?;
    let start = match (&stage.read.start, spelled, place) {
        (Some(_), Some(_), _) => {
            let message = "START AT and scan.startup options exclude each other";
            return Err(in_stage(stage, SqlState::SYNTAX_ERROR, message)
                .with_hint("Keep START AT.")
                .at(stage.read.start_offset.0));
        }
        (None, Some(start), _) => return Ok(start),
        (None, None, Place::First) => return Ok(Start::Earliest),
        (None, None, Place::Later) => return Ok(Start::Handoff),
        (Some(start), None, _) => start,
    };
    if place == Place::First {
        refuse_first(stage, start)?;
    }
    let at = |error: UserError| error.at(stage.read.start_offset.0);
    Ok(match start {
        StartAt::Handoff => Start::Handoff,
        StartAt::Earliest => Start::Earliest,
        StartAt::Latest => Start::Latest,
        StartAt::Timestamp(text) => Start::Timestamp { unix_ms: unix_ms(stage, text).map_err(at)? },
        StartAt::Offsets(json) => {
            Start::Offsets(offsets(stage, "START AT OFFSETS", json).map_err(at)?)
        }
        StartAt::Query(query) if query.trim().is_empty() => {
            let message = "START AT QUERY is empty";
            return Err(at(in_stage(stage, SqlState::INVALID_PARAMETER_VALUE, message)));
        }
        StartAt::Query(query) => Start::Query(query.clone()),
        StartAt::Columns { split, position } => Start::Columns {
            split: split.as_str().to_owned(),
            position: position.as_str().to_owned(),
        },
    })
}

/// Where the stage stops.
pub(super) fn stop(stage: &Stage) -> Result<Option<Stop>, UserError> {
    let at = |error: UserError| error.at(stage.read.stop_offset.0);
    Ok(match &stage.read.stop {
        None => None,
        Some(StopAt::Latest) => Some(Stop::Latest),
        Some(StopAt::Timestamp(text)) => {
            Some(Stop::Timestamp { unix_ms: unix_ms(stage, text).map_err(at)? })
        }
        Some(StopAt::Offsets(json)) => {
            Some(Stop::Offsets(offsets(stage, "STOP AT OFFSETS", json).map_err(at)?))
        }
    })
}

fn refuse_first(stage: &Stage, start: &StartAt) -> Result<(), UserError> {
    let clause = match start {
        StartAt::Handoff => "HANDOFF",
        StartAt::Query(_) => "QUERY",
        StartAt::Columns { .. } => "COLUMNS",
        _ => return Ok(()),
    };
    let message = format!("the first stage cannot START AT {clause}");
    Err(in_stage(stage, SqlState::INVALID_OBJECT_DEFINITION, message)
        .with_detail(format!(
            "{clause} derives the start from the stage before, and there is none."
        ))
        .with_hint("Use EARLIEST (the default), LATEST, TIMESTAMP or OFFSETS.")
        .at(stage.read.start_offset.0))
}

/// The start that RisingWave's options name, if the connector has them; they are taken out of `options`.
fn spelled_start(
    stage: &Stage,
    specs: &[OptionSpec],
    options: &mut Options,
) -> Result<Option<Start>, UserError> {
    let mut take = |name: &str| {
        let declared = specs.iter().any(|spec| spec.name == name);
        if declared { options.0.remove(name) } else { None }
    };
    let (mode, millis) = (take(MODE), take(MILLIS));
    if let Some(millis) = millis {
        let unix_ms = millis.parse().map_err(|_| {
            invalid_option(stage, MILLIS, &millis).with_hint("Give milliseconds since 1970 UTC.")
        })?;
        return Ok(Some(Start::Timestamp { unix_ms }));
    }
    let Some(mode) = mode else { return Ok(None) };
    match mode.as_str() {
        "earliest" => Ok(Some(Start::Earliest)),
        "latest" => Ok(Some(Start::Latest)),
        "timestamp" => Err(invalid_option(stage, MODE, &mode)
            .with_hint("Give scan.startup.timestamp.millis, or say START AT TIMESTAMP '…'.")),
        "offsets" => Err(invalid_option(stage, MODE, &mode)
            .with_hint("Say START AT OFFSETS '{\"split\": position, …}'.")),
        other => Err(invalid_option(stage, MODE, other).with_hint(
            match nearest(other, ["earliest", "latest", "timestamp", "offsets"]) {
                Some(near) => format!("Perhaps you meant '{near}'."),
                None => "Give 'earliest' or 'latest', or say START AT.".to_owned(),
            },
        )),
    }
}

fn invalid_option(stage: &Stage, name: &str, value: &str) -> UserError {
    let message = format!("invalid value for option \"{name}\": \"{value}\"");
    let error = in_stage(stage, SqlState::INVALID_PARAMETER_VALUE, message);
    match stage.read.options.iter().find(|option| option.name == name) {
        Some(option) => error.at(option.offset.0),
        None => error,
    }
}

/// `{"split": position, …}`; a position is a string or a number.
fn offsets(
    stage: &Stage,
    clause: &str,
    json: &str,
) -> Result<BTreeMap<SplitId, String>, UserError> {
    let invalid = |why: &str| {
        let message = format!("invalid {clause}: {why}");
        in_stage(stage, SqlState::INVALID_PARAMETER_VALUE, message).with_hint(
            "Give a JSON object of splits and positions, as in '{\"0\": 100, \"1\": 57}'.",
        )
    };
    let parsed: serde_json::Value =
        serde_json::from_str(json).map_err(|error| invalid(&format!("not JSON: {error}")))?;
    let serde_json::Value::Object(members) = parsed else {
        return Err(invalid("not a JSON object"));
    };
    if members.is_empty() {
        return Err(invalid("no split is named"));
    }
    let position = |(split, position): (String, serde_json::Value)| match position {
        serde_json::Value::String(text) => Ok((SplitId::new(split), text)),
        serde_json::Value::Number(number) => Ok((SplitId::new(split), number.to_string())),
        _ => Err(invalid(&format!("the position of split \"{split}\" is no string or number"))),
    };
    members.into_iter().map(position).collect()
}

/// A time as PostgreSQL or ISO 8601 writes it; UTC where no zone is given, as a server's zone is nobody's business.
fn unix_ms(stage: &Stage, text: &str) -> Result<i64, UserError> {
    let spaced = text.trim().replacen(['T', 't'], " ", 1);
    let zoned = ["%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M%#z"]
        .iter()
        .find_map(|format| DateTime::parse_from_str(&spaced, format).ok())
        .map(|time| time.timestamp_millis());
    let local = || {
        ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"]
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(&spaced, format).ok())
            .map(|time| time.and_utc().timestamp_millis())
    };
    let day = || {
        let day = NaiveDate::parse_from_str(&spaced, "%Y-%m-%d").ok()?;
        Some(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis())
    };
    zoned.or_else(local).or_else(day).ok_or_else(|| {
        let message = format!("invalid timestamp: \"{text}\"");
        in_stage(stage, SqlState::INVALID_TEXT_REPRESENTATION, message)
            .with_hint("Write it as '2026-01-31 12:00:00+00'; without a zone it is UTC.")
    })
}
