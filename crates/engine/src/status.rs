//! Plain rows for the relations of schema `segue` and for SHOW: what the step thread knows at one moment.

use std::sync::atomic::Ordering;
use std::time::Duration;

use segue_coordinate::{Mode, Role, mode, split_status, stage_status};
use segue_types::{
    Boundedness, ConsumerId, Continuity, Epoch, JobId, ObjectId, OperatorId, UserError,
};

use crate::capture::Progress;
use crate::consumer::Consumer;
use crate::job::{Job, Phase};
use crate::meeting::is_shareable;
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
    /// The view or table that reads; the source itself for its live reading, which all of its views share.
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

    /// How far the job of `object` is: one for each thing that is under way.
    pub(crate) fn progress(&self, object: ObjectId) -> Vec<JobProgress> {
        let Some(job) = self.jobs.get(object) else { return Vec::new() };
        match &job.phase {
            Phase::Capturing(progress) => vec![self.capture_progress(object, progress)],
            Phase::Asking => vec![JobProgress::of("asking how far the sources have come")],
            Phase::CatchingUp(targets) => {
                let consumers = targets.keys().filter_map(|id| self.consumers.get(id));
                consumers.map(consumer_progress).collect()
            }
            Phase::Finishing => vec![JobProgress::of("waiting for the last epoch")],
        }
    }

    fn capture_progress(&self, object: ObjectId, progress: &Progress) -> JobProgress {
        let stage = usize::try_from(progress.stage.load(Ordering::Relaxed)).unwrap_or(0);
        let stages = self.sources.get(&object).map_or(&[][..], |source| &source.stages);
        let name = stages.get(stage).map_or("", |stage| stage.name.as_str());
        let estimated = progress.rows_estimated.load(Ordering::Relaxed);
        let attempt = progress.attempts.load(Ordering::Relaxed);
        JobProgress {
            what: format!("stage {}/{} \"{name}\": captured", stage + 1, stages.len()),
            rows: Some(progress.rows.load(Ordering::Relaxed)),
            whole: Some(estimated).filter(|rows| *rows > 0),
            remark: (attempt > 1).then(|| format!("attempt {attempt}")),
        }
    }

    fn job(&self, object: ObjectId, job: &Job) -> JobStatus {
        let state = match (&job.failed, &job.phase) {
            (Some(_), _) => "failed",
            (None, Phase::Capturing(_)) => "capturing",
            (None, Phase::Asking) => "asking",
            (None, Phase::CatchingUp(_)) => "catching up",
            (None, Phase::Finishing) => "finishing",
        };
        let shown: Vec<String> = self.progress(object).iter().map(|p| p.show(None)).collect();
        JobStatus {
            id: JobId(u64::from(object.0)),
            object,
            name: self.catalog.get(object).map_or_else(String::new, |object| object.name.clone()),
            state,
            progress: shown.join("; "),
            error: job.failed.as_ref().map(shown_error),
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

/// With its details: the statement that would have shown them may be long gone.
fn shown_error(error: &UserError) -> String {
    let parts = [Some(&error.message), error.detail.as_ref(), error.hint.as_ref()];
    parts.into_iter().flatten().cloned().collect::<Vec<_>>().join("; ")
}

/// How far one thing is that a job waits for.
pub(crate) struct JobProgress {
    what: String,
    rows: Option<u64>,
    /// About how many rows there will be, where that is known.
    whole: Option<u64>,
    remark: Option<String>,
}

impl JobProgress {
    fn of(what: &str) -> JobProgress {
        JobProgress { what: what.to_owned(), rows: None, whole: None, remark: None }
    }

    /// As one line; with the rate and the time left when it is told how long the job has been running.
    pub(crate) fn show(&self, elapsed: Option<Duration>) -> String {
        let mut line = self.what.clone();
        if let Some(rows) = self.rows {
            line += &format!(" {rows} rows");
            if let Some(whole) = self.whole {
                // An estimate may be too low; nobody believes 130 %.
                line += &format!(" of about {whole} ({}%)", (rows * 100 / whole).min(99));
            }
            let seconds = elapsed.map_or(0.0, |elapsed| elapsed.as_secs_f64());
            if seconds > 0.0 && rows > 0 {
                let rate = rows as f64 / seconds;
                line += &format!(", {rate:.0} rows/s");
                if let Some(left) = self.whole.and_then(|whole| whole.checked_sub(rows)) {
                    line += &format!(", {:.0} s left", left as f64 / rate);
                }
            }
        }
        if let Some(remark) = &self.remark {
            line += &format!(", {remark}");
        }
        line
    }
}

fn consumer_progress(consumer: &Consumer) -> JobProgress {
    let index = consumer.state().current_stage();
    let stage = consumer.source.stage(index);
    let meter = &consumer.meters[index.as_usize()];
    let (number, count) = (index.0 + 1, consumer.source.stages.len());
    JobProgress {
        what: format!("stage {number}/{count} \"{}\": read", stage.name),
        rows: Some(meter.rows),
        whole: stage.capture.as_ref().map(|capture| capture.rows).filter(|rows| *rows > 0),
        remark: meter.retrying.clone(),
    }
}

const MEMORY_IS_SHORT: &str = "memory is above the soft limit";

/// Why nothing moves: the consumer's failure, or what a task will try again.
fn error_of(consumer: &Consumer, stage: usize) -> Option<String> {
    match mode(consumer.state()) {
        Mode::Failed(failure) if failure.stage.as_usize() == stage => Some(failure.to_string()),
        Mode::Running if consumer.is_starved() => Some(MEMORY_IS_SHORT.to_owned()),
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
            reader: reader(consumer),
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

/// For whom it reads: the live reading of a source for whoever meets it.
fn reader(consumer: &Consumer) -> ObjectId {
    match &consumer.subscribers[..] {
        [only] if !is_shareable(&consumer.source) || consumer.state().role() == Role::Follows => {
            only.object
        }
        _ => consumer.source.object,
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::JobProgress;

    #[test]
    fn progress_tells_rows_percent_rate_and_time_left_as_far_as_each_is_known() {
        let mut progress = JobProgress {
            what: "stage 1/2 \"history\": read".to_owned(),
            rows: Some(250),
            whole: Some(1000),
            remark: None,
        };
        assert_eq!(
            progress.show(Some(Duration::from_secs(5))),
            "stage 1/2 \"history\": read 250 rows of about 1000 (25%), 50 rows/s, 15 s left"
        );
        progress.rows = Some(1300);
        progress.remark = Some("attempt 2".to_owned());
        assert_eq!(
            progress.show(None),
            "stage 1/2 \"history\": read 1300 rows of about 1000 (99%), attempt 2"
        );
        assert_eq!(JobProgress::of("waiting").show(Some(Duration::from_secs(1))), "waiting");
    }
}
