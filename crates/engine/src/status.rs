//! Plain rows for the relations of schema `segue` and for SHOW: what the step thread knows at one moment.

use std::sync::atomic::Ordering;

use segue_coordinate::{Mode, mode, split_status, stage_status};
use segue_types::{Boundedness, ConsumerId, Continuity, Epoch, JobId, ObjectId, OperatorId};

use crate::capture::Progress;
use crate::consumer::Consumer;
use crate::job::{Job, Phase};
use crate::relation::Relation;
use crate::world::World;

/// Everything, taken between two steps.
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub stages: Vec<StageStatus>,
    pub splits: Vec<SplitStatus>,
    pub jobs: Vec<JobStatus>,
    pub operators: Vec<OperatorStatus>,
    pub checkpoints: Vec<CheckpointStatus>,
}

/// A stage as one consumer reads it.
#[derive(Clone, Debug)]
pub struct StageStatus {
    pub source: ObjectId,
    pub consumer: ConsumerId,
    /// The view or table that reads.
    pub reader: ObjectId,
    pub stage: String,
    pub index: u16,
    pub connector: &'static str,
    pub boundedness: Boundedness,
    pub phase: String,
    /// How this stage took over from its predecessor; `None` for the first.
    pub continuity: Option<Continuity>,
    pub rows: u64,
    pub bytes: u64,
    pub rejected: u64,
    /// The epoch in which the stage was durably complete.
    pub completed_epoch: Option<Epoch>,
    /// Why nothing moves, while that is so.
    pub error: Option<String>,
}

/// A split as one consumer reads it.
#[derive(Clone, Debug)]
pub struct SplitStatus {
    pub source: ObjectId,
    pub consumer: ConsumerId,
    pub stage: String,
    pub split: String,
    pub phase: String,
    pub position: Option<String>,
    pub bound: Option<String>,
}

/// A CREATE that is under way or has failed.
#[derive(Clone, Debug)]
pub struct JobStatus {
    pub id: JobId,
    pub object: ObjectId,
    pub name: String,
    pub state: &'static str,
    pub progress: String,
    pub error: Option<String>,
}

/// An operator of a view or table.
#[derive(Clone, Debug)]
pub struct OperatorStatus {
    pub object: ObjectId,
    pub operator: OperatorId,
    pub name: String,
    pub rows_in: u64,
    pub rows_out: u64,
    pub state_rows: u64,
    pub state_bytes: u64,
    /// Expressions that failed for a row and gave NULL.
    pub expression_errors: u64,
}

/// A durable epoch.
#[derive(Clone, Debug)]
pub struct CheckpointStatus {
    pub epoch: Epoch,
    pub committed_at_unix_ms: i64,
    pub rows: u64,
    pub bytes: u64,
    /// How long the step thread was held up.
    pub pause_us: u64,
    pub commit_us: u64,
}

impl World {
    /// What is known between two steps.
    pub(crate) fn status(&mut self) -> Status {
        Status {
            stages: self.consumers.values().flat_map(stages).collect(),
            splits: self.consumers.values().flat_map(splits).collect(),
            jobs: self.jobs.iter().map(|(object, job)| self.job(object, job)).collect(),
            operators: self.operators(),
            checkpoints: self.checkpoints.iter().cloned().collect(),
        }
    }

    /// How far the job of `object` is, a line for each thing that is under way.
    pub(crate) fn progress(&self, object: ObjectId) -> Vec<String> {
        let Some(job) = self.jobs.get(object) else { return Vec::new() };
        match &job.phase {
            Phase::Capturing(progress) => vec![self.capture_progress(object, progress)],
            Phase::Asking => vec!["asking how far the sources have come".to_owned()],
            Phase::CatchingUp(targets) => {
                let consumers = targets.keys().filter_map(|id| self.consumers.get(id));
                consumers.map(consumer_progress).collect()
            }
            Phase::Finishing => vec!["waiting for the last epoch".to_owned()],
        }
    }

    fn capture_progress(&self, object: ObjectId, progress: &Progress) -> String {
        let stage = progress.stage.load(Ordering::Relaxed);
        let stages = self.sources.get(&object).map_or(&[][..], |source| &source.stages);
        let name = stages.get(usize::try_from(stage).unwrap_or(0)).map_or("", |s| s.name.as_str());
        let rows = progress.rows.load(Ordering::Relaxed);
        let percent = match progress.rows_estimated.load(Ordering::Relaxed) {
            0 => String::new(),
            // The system's estimate may be too low; nobody believes 130 %.
            estimated => format!(" of about {estimated} ({}%)", (rows * 100 / estimated).min(99)),
        };
        let attempt = match progress.attempts.load(Ordering::Relaxed) {
            0 | 1 => String::new(),
            n => format!(", attempt {n}"),
        };
        let (number, count) = (stage + 1, stages.len());
        format!("stage {number}/{count} \"{name}\": captured {rows} rows{percent}{attempt}")
    }

    fn job(&self, object: ObjectId, job: &Job) -> JobStatus {
        let state = match (&job.failed, &job.phase) {
            (Some(_), _) => "failed",
            (None, Phase::Capturing(_)) => "capturing",
            (None, Phase::Asking) => "asking",
            (None, Phase::CatchingUp(_)) => "catching up",
            (None, Phase::Finishing) => "finishing",
        };
        JobStatus {
            id: JobId(u64::from(object.0)),
            object,
            name: self.catalog.get(object).map_or_else(String::new, |object| object.name.clone()),
            state,
            progress: self.progress(object).join("; "),
            error: job.failed.clone(),
        }
    }

    fn operators(&mut self) -> Vec<OperatorStatus> {
        let of = |(object, relation): (&ObjectId, &mut Relation)| {
            let object = *object;
            let status = move |stats: segue_flow::OperatorStats| OperatorStatus {
                object,
                operator: stats.operator,
                name: stats.name.to_owned(),
                rows_in: stats.rows_in,
                rows_out: stats.rows_out,
                state_rows: stats.state_rows,
                state_bytes: stats.state_bytes,
                expression_errors: stats.expression_errors,
            };
            relation.dataflow.operators().into_iter().map(status)
        };
        self.relations.iter_mut().flat_map(of).collect()
    }
}

fn consumer_progress(consumer: &Consumer) -> String {
    let state = consumer.state();
    let index = state.current_stage();
    let stage = consumer.source.stage(index);
    let meter = &consumer.meters[index.as_usize()];
    let whole = stage.capture.as_ref().map(|capture| capture.rows).filter(|rows| *rows > 0);
    let percent = whole.map_or_else(String::new, |rows| {
        format!(" of {rows} ({}%)", (meter.rows * 100 / rows).min(100))
    });
    let waiting = meter.retrying.as_ref().map_or_else(String::new, |why| format!(", {why}"));
    let (number, count) = (index.0 + 1, consumer.source.stages.len());
    format!("stage {number}/{count} \"{}\": read {} rows{percent}{waiting}", stage.name, meter.rows)
}

/// Why nothing moves: the consumer's failure, or what a task will try again.
fn error_of(consumer: &Consumer, stage: usize) -> Option<String> {
    match mode(consumer.state()) {
        Mode::Failed(failure) if failure.stage.as_usize() == stage => Some(failure.to_string()),
        _ => consumer.meters[stage].retrying.clone(),
    }
}

fn stages(consumer: &Consumer) -> Vec<StageStatus> {
    let state = consumer.state();
    let row = |status: segue_coordinate::StageStatus| {
        let index = status.stage.as_usize();
        let (runtime, meter) = (consumer.source.stage(status.stage), &consumer.meters[index]);
        StageStatus {
            source: consumer.source.object,
            consumer: consumer.id,
            reader: consumer.object,
            stage: runtime.name.clone(),
            index: status.stage.0,
            connector: runtime.connector.name(),
            boundedness: status.boundedness,
            phase: phase(consumer, &status),
            continuity: runtime.handoff.as_ref().map(|handoff| handoff.continuity),
            rows: meter.rows,
            bytes: meter.bytes,
            rejected: meter.rejected,
            completed_epoch: status.completed_in,
            error: error_of(consumer, index),
        }
    };
    stage_status(state).into_iter().map(row).collect()
}

/// The stage's own phase, unless the whole consumer stands still there.
fn phase(consumer: &Consumer, status: &segue_coordinate::StageStatus) -> String {
    let is_current = status.stage == consumer.state().current_stage();
    match mode(consumer.state()) {
        Mode::Failed(failure) if failure.stage == status.stage => "failed".to_owned(),
        Mode::Paused if is_current => "paused".to_owned(),
        _ => status.phase.to_string(),
    }
}

fn splits(consumer: &Consumer) -> Vec<SplitStatus> {
    let row = |status: segue_coordinate::SplitStatus| SplitStatus {
        source: consumer.source.object,
        consumer: consumer.id,
        stage: consumer.source.stage(status.stage).name.clone(),
        split: status.split.to_string(),
        phase: status.phase.to_string(),
        position: status.position.map(|position| position.to_string()),
        bound: status.bound.map(|bound| bound.to_string()),
    };
    split_status(consumer.state()).into_iter().map(row).collect()
}
