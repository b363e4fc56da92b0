//! Schema `segue`: sources, stages, splits, gaps, jobs, checkpoints, connectors, compatibility, dead letters,
//! operators.

use std::time::Duration;

use segue_catalog::RelationKind;
use segue_types::{ObjectId, StageIndex};

use super::View;
use super::cells::{Cell, Kind, Relation, Row, Source, row};
use crate::backend::{
    DeadLetter, StageStatus, Status, WatermarkReached, compatibility_rows, connector_rows,
    shown_definition,
};

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "sources",
        columns: &[
            ("name", Kind::Text),
            ("kind", Kind::Text),
            ("stages", Kind::Integer),
            ("state", Kind::Text),
            ("stage", Kind::Text),
            ("continuity", Kind::Text),
            ("rows", Kind::BigInt),
            ("bytes", Kind::BigInt),
            ("rows_per_second", Kind::BigInt),
            ("lag_rows", Kind::BigInt),
            ("lag_ms", Kind::BigInt),
            ("watermark", Kind::Text),
            ("rejected", Kind::BigInt),
            ("completed_epoch", Kind::BigInt),
            ("stalled", Kind::Text),
            ("error", Kind::Text),
            ("created_at", Kind::Timestamptz),
            ("definition", Kind::Text),
        ],
        source: Source::Latest(sources),
    },
    Relation {
        name: "stages",
        columns: &[
            ("source", Kind::Text),
            ("stage", Kind::Text),
            ("position", Kind::Integer),
            ("connector", Kind::Text),
            ("boundedness", Kind::Text),
            ("semantics", Kind::Text),
            ("continuity", Kind::Text),
            ("reader", Kind::Text),
            ("consumer", Kind::BigInt),
            ("phase", Kind::Text),
            ("rows", Kind::BigInt),
            ("bytes", Kind::BigInt),
            ("rejected", Kind::BigInt),
            ("rows_per_second", Kind::BigInt),
            ("lag_rows", Kind::BigInt),
            ("lag_ms", Kind::BigInt),
            ("queued_bytes", Kind::BigInt),
            ("completed_epoch", Kind::BigInt),
            ("stalled", Kind::Text),
            ("error", Kind::Text),
        ],
        source: Source::Latest(stages),
    },
    Relation {
        name: "splits",
        columns: &[
            ("source", Kind::Text),
            ("stage", Kind::Text),
            ("consumer", Kind::BigInt),
            ("split", Kind::Text),
            ("phase", Kind::Text),
            ("position", Kind::Text),
            ("bound", Kind::Text),
            ("latest", Kind::Text),
            ("lag_rows", Kind::BigInt),
            ("lag_ms", Kind::BigInt),
            ("idle_ms", Kind::BigInt),
            ("gaps", Kind::BigInt),
            ("skipped", Kind::BigInt),
            ("reason", Kind::Text),
        ],
        source: Source::Latest(splits),
    },
    Relation {
        name: "gaps",
        columns: &[
            ("object", Kind::Text),
            ("source", Kind::Text),
            ("stage", Kind::Text),
            ("split", Kind::Text),
            ("gaps", Kind::BigInt),
            ("records", Kind::BigInt),
            ("first_from", Kind::Text),
            ("last_to", Kind::Text),
        ],
        source: Source::Catalog(gaps),
    },
    Relation {
        name: "jobs",
        columns: &[
            ("id", Kind::BigInt),
            ("object", Kind::Text),
            ("state", Kind::Text),
            ("stage", Kind::Text),
            ("rows", Kind::BigInt),
            ("percent", Kind::Integer),
            ("rows_per_second", Kind::BigInt),
            ("time_left_ms", Kind::BigInt),
            ("started_at", Kind::Timestamptz),
            ("progress", Kind::Text),
            ("reason", Kind::Text),
            ("error", Kind::Text),
        ],
        source: Source::Status(jobs),
    },
    Relation {
        name: "checkpoints",
        columns: &[
            ("epoch", Kind::BigInt),
            ("committed_at", Kind::Timestamptz),
            ("rows", Kind::BigInt),
            ("bytes", Kind::BigInt),
            ("pause_us", Kind::BigInt),
            ("commit_us", Kind::BigInt),
        ],
        source: Source::Status(checkpoints),
    },
    Relation {
        name: "operators",
        columns: &[
            ("object", Kind::Text),
            ("operator", Kind::BigInt),
            ("name", Kind::Text),
            ("rows_in", Kind::BigInt),
            ("rows_out", Kind::BigInt),
            ("busy_us", Kind::BigInt),
            ("workers", Kind::BigInt),
            ("state_rows", Kind::BigInt),
            ("state_bytes", Kind::BigInt),
            ("resting_bytes", Kind::BigInt),
            ("expression_errors", Kind::BigInt),
            ("late_rows", Kind::BigInt),
        ],
        source: Source::Status(operators),
    },
    Relation {
        name: "connectors",
        columns: &[
            ("connector", Kind::Text),
            ("configuration", Kind::Text),
            ("boundedness", Kind::Text),
            ("semantics", Kind::Text),
            ("resume", Kind::Text),
            ("produces", Kind::Text),
            ("accepts", Kind::Text),
            ("latest", Kind::Boolean),
            ("has_data", Kind::Text),
            ("replayable", Kind::Text),
            ("ordering", Kind::Text),
        ],
        source: Source::Catalog(connectors),
    },
    Relation {
        name: "compatibility",
        columns: &[
            ("predecessor", Kind::Text),
            ("successor", Kind::Text),
            ("verdict", Kind::Text),
            ("rule", Kind::Text),
            ("remedy", Kind::Text),
        ],
        source: Source::Catalog(compatibility),
    },
    Relation {
        name: "dead_letters",
        columns: &[
            ("source", Kind::Text),
            ("stage", Kind::Text),
            ("split", Kind::Text),
            ("position", Kind::Text),
            ("reason", Kind::Text),
            ("payload", Kind::Text),
            ("rejected_at", Kind::Timestamptz),
        ],
        source: Source::DeadLetters(dead_letters),
    },
];

/// An object's name; its number when it has been dropped meanwhile.
fn name(view: &View<'_>, id: ObjectId) -> String {
    let object = view.reading.published.catalog.get(id);
    object.map_or_else(|| format!("#{id}"), |object| object.name.clone())
}

fn sources(view: &View<'_>, status: &Status) -> Vec<Row> {
    let objects = view.reading.published.catalog.iter();
    objects
        .filter(|object| {
            object.relation_kind() == RelationKind::Source || !object.stages().is_empty()
        })
        .map(|object| {
            let definition = shown_definition(object, view.cell.engine().registry());
            let readings = || status.stages.iter().filter(|stage| stage.source == object.id);
            row![
                object.name.as_str(),
                object.relation_kind().to_string(),
                object.stages().len(),
                object.state.to_string(),
                current_stages(&readings().collect::<Vec<_>>()),
                // The weakest of its handoffs is what the whole has.
                object.stages().iter().filter_map(|stage| stage.continuity).max().map(shown),
                readings().map(|stage| stage.rows).sum::<u64>(),
                readings().map(|stage| stage.bytes).sum::<u64>(),
                whole(readings().map(|stage| stage.rows_per_second).sum()),
                // The reading that is furthest behind.
                readings().filter_map(|stage| stage.lag_rows).max(),
                readings().filter_map(|stage| stage.lag).max().map(millis),
                watermark(status, object.id),
                readings().map(|stage| stage.rejected).sum::<u64>(),
                completed_epoch(object.stages().len(), &readings().collect::<Vec<_>>()),
                readings().find_map(|stage| stage.stalled.clone()),
                readings().find_map(|stage| stage.error.clone()),
                object.created_unix_ms.map(timestamp),
                definition,
            ]
        })
        .collect()
}

/// The stages that are being read, each once, in their order.
fn current_stages(readings: &[&StageStatus]) -> Option<String> {
    let is_current = |stage: &&&StageStatus| !matches!(&*stage.phase, "planned" | "activated");
    let mut current: Vec<_> =
        readings.iter().filter(is_current).map(|stage| (stage.index, &*stage.stage)).collect();
    current.sort_unstable();
    current.dedup();
    let names: Vec<&str> = current.into_iter().map(|(_, name)| name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The epoch in which the last of its readings had come to the end of the last stage.
fn completed_epoch(stages: usize, readings: &[&StageStatus]) -> Option<u64> {
    let last = readings.iter().filter(|stage| usize::from(stage.index) + 1 == stages);
    let epochs: Option<Vec<u64>> =
        last.map(|stage| stage.completed_epoch.map(|epoch| epoch.0)).collect();
    epochs?.into_iter().max()
}

fn shown(value: impl std::fmt::Display) -> String {
    value.to_string()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn timestamp(unix_ms: i64) -> i64 {
    unix_ms.saturating_mul(1_000)
}

/// How far the reading has come that is furthest behind.
fn watermark(status: &Status, source: ObjectId) -> Option<String> {
    let of_source = status.watermarks.iter().filter(|watermark| watermark.source == source);
    Some(match of_source.map(|watermark| watermark.reached).min()?? {
        WatermarkReached::Time(time) => {
            let time = chrono::DateTime::from_timestamp_micros(time)?;
            time.format("%F %T%.f").to_string()
        }
        WatermarkReached::End => "infinity".to_owned(),
    })
}

/// A rate as a whole number.
#[expect(clippy::cast_possible_truncation, reason = "rates are far below an i64's range")]
fn whole(rate: f64) -> i64 {
    rate.round() as i64
}

/// Every stage of the catalog, once for each reading of it; a stage that nobody reads is there once too.
fn stages(view: &View<'_>, status: &Status) -> Vec<Row> {
    let mut rows = Vec::new();
    for object in view.reading.published.catalog.iter() {
        for (index, stage) in object.stages().iter().enumerate() {
            let place = row![
                object.name.as_str(),
                stage.name.as_str(),
                index + 1,
                stage.connector.as_str(),
                stage.boundedness.to_string(),
                stage.semantics.to_string(),
                stage.continuity.map(|continuity| continuity.to_string()),
            ];
            let before = rows.len();
            let readings = status.stages.iter().filter(|reading| {
                reading.source == object.id && usize::from(reading.index) == index
            });
            for reading in readings {
                let mut row = place.clone();
                row.extend(row![
                    name(view, reading.reader),
                    reading.consumer.0,
                    reading.phase.to_string(),
                    reading.rows,
                    reading.bytes,
                    reading.rejected,
                    whole(reading.rows_per_second),
                    reading.lag_rows,
                    reading.lag.map(millis),
                    reading.queued_bytes,
                    reading.completed_epoch.map(|epoch| epoch.0),
                    reading.stalled.clone(),
                    reading.error.clone(),
                ]);
                rows.push(row);
            }
            if rows.len() == before {
                let mut row = place;
                row.extend([Cell::Null, Cell::Null, Cell::from("planned")]);
                row.extend(std::iter::repeat_n(Cell::Null, 10));
                rows.push(row);
            }
        }
    }
    rows
}

fn splits(view: &View<'_>, status: &Status) -> Vec<Row> {
    let split = |split: &crate::backend::SplitStatus| {
        row![
            name(view, split.source),
            split.stage.as_str(),
            split.consumer.0,
            split.split.as_str(),
            split.phase.to_string(),
            split.position.clone(),
            split.bound.clone(),
            split.latest.clone(),
            split.lag_rows,
            split.lag.map(millis),
            split.idle.map(millis),
            u64::from(split.gaps),
            split.skipped,
            split.reason.clone(),
        ]
    };
    status.splits.iter().map(split).collect()
}

/// What each object misses because it had expired when it was read.
fn gaps(view: &View<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for object in view.reading.published.catalog.iter() {
        for gap in &object.gaps {
            rows.push(row![
                object.name.as_str(),
                name(view, gap.source),
                stage_name(view, gap.source, gap.stage),
                gap.split.as_str(),
                u64::from(gap.count),
                gap.records,
                gap.from.as_str(),
                gap.to.as_str(),
            ]);
        }
    }
    rows
}

/// A stage's name; its number when its source has been dropped meanwhile.
fn stage_name(view: &View<'_>, source: ObjectId, stage: StageIndex) -> String {
    let object = view.reading.published.catalog.get(source);
    let found = object.and_then(|object| object.stages().get(stage.as_usize()));
    found.map_or_else(|| stage.to_string(), |stage| stage.name.clone())
}

fn jobs(_view: &View<'_>, status: &Status) -> Vec<Row> {
    let job = |job: &crate::backend::JobStatus| {
        row![
            job.id.0,
            job.name.as_str(),
            job.state.to_string(),
            job.stage.clone(),
            job.rows,
            job.percent,
            job.rows_per_second.map(whole),
            job.time_left.map(millis),
            job.started_unix_ms.map(timestamp),
            job.progress.as_str(),
            job.reason.clone(),
            job.error.clone(),
        ]
    };
    status.jobs.iter().map(job).collect()
}

fn checkpoints(_view: &View<'_>, status: &Status) -> Vec<Row> {
    let checkpoint = |checkpoint: &crate::backend::CheckpointStatus| {
        row![
            checkpoint.epoch.0,
            timestamp(checkpoint.committed_at_unix_ms),
            checkpoint.rows,
            checkpoint.bytes,
            checkpoint.pause_us,
            checkpoint.commit_us,
        ]
    };
    status.checkpoints.iter().map(checkpoint).collect()
}

fn operators(view: &View<'_>, status: &Status) -> Vec<Row> {
    let operator = |operator: &crate::backend::OperatorStatus| {
        row![
            name(view, operator.object),
            // The upper bits are the object's id, which has its own column.
            operator.operator.0 & 0xffff,
            operator.name.as_str(),
            operator.rows_in,
            operator.rows_out,
            micros(operator.busy),
            operator.workers as u64,
            operator.state_rows,
            operator.state_bytes,
            operator.resting_bytes,
            operator.expression_errors,
            operator.late_rows,
        ]
    };
    status.operators.iter().map(operator).collect()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn connectors(view: &View<'_>) -> Vec<Row> {
    connector_rows(view.cell.engine().registry())
        .into_iter()
        .map(|c| {
            row![
                c.connector,
                c.configuration,
                c.boundedness,
                c.semantics,
                c.resume,
                c.produces,
                c.accepts,
                c.latest,
                c.has_data,
                c.replayable,
                c.ordering,
            ]
        })
        .collect()
}

fn compatibility(_view: &View<'_>) -> Vec<Row> {
    compatibility_rows()
        .into_iter()
        .map(|c| row![c.predecessor, c.successor, c.verdict, c.rule, c.remedy])
        .collect()
}

fn dead_letters(view: &View<'_>, letters: &[DeadLetter]) -> Vec<Row> {
    let letter = |letter: &DeadLetter| {
        row![
            name(view, letter.object),
            stage_name(view, letter.object, letter.stage),
            letter.split.to_string(),
            letter.position.to_string(),
            letter.reason.as_str(),
            String::from_utf8_lossy(&letter.payload).into_owned(),
            timestamp(letter.unix_ms),
        ]
    };
    letters.iter().map(letter).collect()
}
