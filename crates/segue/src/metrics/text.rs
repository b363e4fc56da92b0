//! The text of /metrics. Names end in their unit; what counts from the start of the process ends in `_total`.

use std::fmt::{Display, Write};

use segue_engine::{CheckpointStatus, Status};
use segue_types::ObjectId;

use super::Measured;

/// Everything, or `None` when the server is on its way down.
pub(super) async fn render(measured: &Measured) -> Option<String> {
    let status = measured.engine.status_with_latest().await.ok()?;
    let catalog = measured.engine.catalog();
    let name = |id: ObjectId| {
        catalog.get(id).map_or_else(|| format!("#{id}"), |object| object.name.clone())
    };
    let mut page = Page::default();
    stages(&mut page, &status, &name);
    splits(&mut page, &status, &name);
    operators(&mut page, &status, &name);
    epochs(&mut page, &status.checkpoints);
    jobs(&mut page, &status);
    let kinds = catalog.iter().map(|object| object.relation_kind().to_string());
    let mut kinds: Vec<String> = kinds.collect();
    kinds.sort();
    page.family("segue_objects", "gauge", "Objects by kind.");
    for of_kind in kinds.chunk_by(|a, b| a == b) {
        page.sample("segue_objects", &[("kind", &of_kind[0])], of_kind.len());
    }
    process(&mut page, measured);
    Some(page.0)
}

/// The page so far.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Begins a family of samples.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string takes all");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let open = if place == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.0, "{open}{label}=\"{text}\"").expect("a string takes all");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        writeln!(self.0, "{close} {value}").expect("a string takes all");
    }

    /// A family of one sample.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

type Stage = segue_engine::StageStatus;
type Split = segue_engine::SplitStatus;

/// A number of each stage of each reading: name, kind, help, value.
type OfStage = (&'static str, &'static str, &'static str, fn(&Stage) -> Option<f64>);

#[expect(clippy::cast_precision_loss, reason = "Prometheus has doubles only")]
fn double(number: u64) -> f64 {
    number as f64
}

const OF_STAGE: &[OfStage] = &[
    ("segue_stage_rows_total", "counter", "Rows read.", |s| Some(double(s.rows))),
    ("segue_stage_bytes_total", "counter", "Bytes read.", |s| Some(double(s.bytes))),
    (
        "segue_stage_rejected_total",
        "counter",
        "Malformed records, set aside as dead letters.",
        |s| Some(double(s.rejected)),
    ),
    ("segue_stage_rows_per_second", "gauge", "Rows read per second of late.", |s| {
        Some(s.rows_per_second)
    }),
    ("segue_stage_queued_bytes", "gauge", "Bytes read that no step has taken yet.", |s| {
        Some(double(s.queued_bytes))
    }),
    ("segue_stage_lag_rows", "gauge", "Rows that are there and were not read yet.", |s| {
        s.lag_rows.map(double)
    }),
    ("segue_stage_lag_seconds", "gauge", "For how long it has been known to be behind.", |s| {
        s.lag.map(|lag| lag.as_secs_f64())
    }),
    ("segue_stage_error", "gauge", "1 while the stage has an error.", |s| {
        Some(f64::from(u8::from(s.error.is_some())))
    }),
    ("segue_stage_stalled", "gauge", "1 while a split does not move though there is data.", |s| {
        Some(f64::from(u8::from(s.stalled.is_some())))
    }),
    ("segue_stage_complete", "gauge", "1 when the stage is complete, durably.", |s| {
        Some(f64::from(u8::from(s.completed_epoch.is_some())))
    }),
];

fn stages(page: &mut Page, status: &Status, name: &impl Fn(ObjectId) -> String) {
    for (family, kind, help, value) in OF_STAGE {
        page.family(family, kind, help);
        for stage in &status.stages {
            let Some(value) = value(stage) else { continue };
            let (source, reader) = (name(stage.source), name(stage.reader));
            let consumer = stage.consumer.to_string();
            page.sample(
                family,
                &[
                    ("source", &source),
                    ("stage", &stage.stage),
                    ("reader", &reader),
                    ("consumer", &consumer),
                    ("connector", stage.connector),
                ],
                value,
            );
        }
    }
    page.family("segue_stage_phase", "gauge", "1 for the phase that the stage is in.");
    for stage in &status.stages {
        let (source, consumer) = (name(stage.source), stage.consumer.to_string());
        let labels = [
            ("source", source.as_str()),
            ("stage", &stage.stage),
            ("consumer", &consumer),
            ("phase", &stage.phase),
        ];
        page.sample("segue_stage_phase", &labels, 1);
    }
}

fn splits(page: &mut Page, status: &Status, name: &impl Fn(ObjectId) -> String) {
    let mut family = |family: &str, help: &str, value: &dyn Fn(&Split) -> Option<f64>| {
        page.family(family, "gauge", help);
        for split in &status.splits {
            let Some(value) = value(split) else { continue };
            let (source, consumer) = (name(split.source), split.consumer.to_string());
            let labels = [
                ("source", source.as_str()),
                ("stage", &split.stage),
                ("consumer", &consumer),
                ("split", &split.split),
            ];
            page.sample(family, &labels, value);
        }
    };
    family("segue_split_lag_rows", "Rows of the split that were not read yet.", &|split| {
        split.lag_rows.map(double)
    });
    family("segue_split_lag_seconds", "For how long the split has been behind.", &|split| {
        split.lag.map(|lag| lag.as_secs_f64())
    });
    let help = "How often something had expired and was passed over.";
    family("segue_split_gaps", help, &|split| Some(f64::from(split.gaps)));
    family("segue_split_skipped_records", "How many records that were at most.", &|split| {
        split.skipped.map(double)
    });
    family("segue_split_idle_seconds", "Since the split moved last.", &|split| {
        split.idle.map(|idle| idle.as_secs_f64())
    });
}

fn operators(page: &mut Page, status: &Status, name: &impl Fn(ObjectId) -> String) {
    let mut of_object = std::collections::BTreeMap::new();
    for operator in &status.operators {
        let sums: &mut [u64; 6] = of_object.entry(name(operator.object)).or_default();
        let values = [
            operator.state_rows,
            operator.state_bytes,
            operator.resting_bytes,
            operator.expression_errors,
            operator.rows_out,
            operator.late_rows,
        ];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    let families = [
        ("segue_state_rows", "gauge", "Rows of operator state."),
        ("segue_state_bytes", "gauge", "Bytes of operator state."),
        ("segue_resting_bytes", "gauge", "Bytes of operator state that are only on disk."),
        ("segue_expression_errors_total", "counter", "Expressions that failed and gave NULL."),
        ("segue_operator_rows_total", "counter", "Rows that operators put out."),
        ("segue_late_rows_total", "counter", "Rows that came when their window was closed."),
    ];
    for (place, (family, kind, help)) in families.into_iter().enumerate() {
        page.family(family, kind, help);
        for (object, sums) in &of_object {
            page.sample(family, &[("object", object)], sums[place]);
        }
    }
}

/// Over the newest epochs of this process.
fn epochs(page: &mut Page, checkpoints: &[CheckpointStatus]) {
    let newest = checkpoints.last();
    let number = newest.map_or(0, |checkpoint| checkpoint.epoch.0);
    page.one("segue_epoch", "gauge", "The newest durable epoch.", number);
    let committed = newest.map_or(0, |checkpoint| checkpoint.committed_at_unix_ms);
    let help = "When it became durable.";
    page.one("segue_epoch_committed_timestamp_seconds", "gauge", help, seconds(committed));
    quantiles(
        page,
        "segue_epoch_pause_seconds",
        "How long a seal held up the step thread.",
        checkpoints,
        |c| double(c.pause_us) / 1e6,
    );
    quantiles(page, "segue_epoch_commit_seconds", "How long a commit took.", checkpoints, |c| {
        double(c.commit_us) / 1e6
    });
    quantiles(page, "segue_epoch_bytes", "Bytes that a commit wrote.", checkpoints, |c| {
        double(c.bytes)
    });
    quantiles(page, "segue_epoch_rows", "Rows that an epoch took in.", checkpoints, |c| {
        double(c.rows)
    });
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has doubles only")]
fn seconds(unix_ms: i64) -> f64 {
    unix_ms as f64 / 1e3
}

fn quantiles(
    page: &mut Page,
    family: &str,
    help: &str,
    checkpoints: &[CheckpointStatus],
    value: impl Fn(&CheckpointStatus) -> f64,
) {
    page.family(family, "summary", help);
    let mut values: Vec<f64> = checkpoints.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    for (quantile, percent) in [("0.5", 50), ("0.99", 99), ("1", 100)] {
        let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
        if let Some(value) = values.get(place) {
            page.sample(family, &[("quantile", quantile)], value);
        }
    }
    page.sample(&format!("{family}_sum"), &[], values.iter().sum::<f64>());
    page.sample(&format!("{family}_count"), &[], values.len());
}

fn jobs(page: &mut Page, status: &Status) {
    page.family("segue_job", "gauge", "1 for each CREATE that is under way or has failed.");
    for job in &status.jobs {
        let id = job.id.to_string();
        page.sample("segue_job", &[("id", &id), ("object", &job.name), ("state", job.state)], 1);
    }
}

fn process(page: &mut Page, measured: &Measured) {
    let activity = measured.activity.read();
    page.one("segue_sessions", "gauge", "Clients that are connected.", activity.sessions);
    let help = "Statements that clients have run.";
    page.one("segue_statements_total", "counter", help, activity.statements);
    let help = "Errors that clients were told.";
    page.one("segue_statement_errors_total", "counter", help, activity.errors);
    let help = "How long statements took together.";
    page.one("segue_statement_seconds_total", "counter", help, activity.busy.as_secs_f64());
    if let Some(bytes) = resident_bytes() {
        let help = "Memory of the process.";
        page.one("process_resident_memory_bytes", "gauge", help, bytes);
    }
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    page.family("segue_build_info", "gauge", "The version that runs.");
    page.sample("segue_build_info", &version, 1);
}

/// As the kernel tells; `None` on other systems.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use segue_engine::CheckpointStatus;
    use segue_types::Epoch;

    use super::{Page, epochs};

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        page.sample("x", &[("a", "q\"b\\c\nd"), ("b", "é")], 1.5);
        assert_eq!(page.0, "x{a=\"q\\\"b\\\\c\\nd\",b=\"é\"} 1.5\n");
    }

    #[test]
    fn quantiles_are_of_the_epochs_that_are_there() {
        let of = |epoch: u64| CheckpointStatus {
            epoch: Epoch(epoch),
            committed_at_unix_ms: 1_500,
            rows: 1,
            bytes: epoch,
            pause_us: 0,
            commit_us: 0,
        };
        let checkpoints: Vec<CheckpointStatus> = (1..=100).map(of).collect();
        let mut page = Page::default();
        epochs(&mut page, &checkpoints);
        for line in [
            "segue_epoch 100",
            "segue_epoch_committed_timestamp_seconds 1.5",
            "segue_epoch_bytes{quantile=\"0.5\"} 50",
            "segue_epoch_bytes{quantile=\"0.99\"} 99",
            "segue_epoch_bytes_sum 5050",
        ] {
            assert!(page.0.lines().any(|found| found == line), "{line} in\n{}", page.0);
        }
        let mut page = Page::default();
        epochs(&mut page, &[]);
        assert!(page.0.contains("segue_epoch_bytes_count 0"));
    }
}
