//! The jobs as `segue.jobs` and NOTICEs show them: each a sum over what it waits for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use segue_types::{JobId, ObjectId, UserError};

use super::progress::{self, JobProgress};
use crate::capture::Progress;
use crate::job::{Job, Phase};
use crate::limits::Passage;
use crate::world::World;

/// A CREATE that is under way or has failed.
#[derive(Clone, Debug)]
pub struct JobStatus {
    pub id: JobId,
    pub object: ObjectId,
    pub name: String,
    pub state: &'static str,
    /// The stages that are being read or captured.
    pub stage: Option<String>,
    /// Rows of those stages so far.
    pub rows: Option<u64>,
    pub percent: Option<u64>,
    pub rows_per_second: Option<f64>,
    pub time_left: Option<Duration>,
    /// When its CREATE began.
    pub started_unix_ms: Option<i64>,
    /// All of this in a line for people.
    pub progress: String,
    /// Why nothing moves, while that is so.
    pub reason: Option<String>,
    /// Why it has failed.
    pub error: Option<String>,
}

impl World {
    /// How far the job of `object` is: one for each thing that is under way.
    pub(crate) fn progress(&self, object: ObjectId) -> Vec<JobProgress> {
        let Some(job) = self.jobs.get(object) else { return Vec::new() };
        match &job.phase {
            Phase::Capturing(progress) => vec![self.capture_progress(object, progress)],
            Phase::Asking => vec![JobProgress::of("asking how far the sources have come")],
            Phase::Filling => self.fill_progress(object).into_iter().collect(),
            Phase::CatchingUp(targets) => {
                let consumers = targets
                    .iter()
                    .filter_map(|(id, target)| Some((self.consumers.get(id)?, target)));
                consumers
                    .map(|(consumer, target)| progress::of_consumer(consumer, target))
                    .collect()
            }
            Phase::Finishing => vec![JobProgress::of("waiting for the last epoch")],
        }
    }

    fn fill_progress(&self, object: ObjectId) -> Option<JobProgress> {
        let (rows, whole) = self.relations.get(&object)?.filling.as_ref()?.progress();
        let whole = Some(whole).filter(|rows| *rows > 0);
        Some(JobProgress { rows: Some(rows), whole, ..JobProgress::of("filling: taken") })
    }

    fn capture_progress(&self, object: ObjectId, progress: &Progress) -> JobProgress {
        let stage = usize::try_from(progress.stage.load(Ordering::Relaxed)).unwrap_or(0);
        let stages = self.sources.get(&object).map_or(&[][..], |source| &source.stages);
        let name = stages.get(stage).map_or("", |stage| stage.name.as_str());
        let estimated = progress.rows_estimated.load(Ordering::Relaxed);
        let attempt = progress.attempts.load(Ordering::Relaxed);
        let away = progress.away.lock().clone();
        JobProgress {
            what: format!("stage {}/{} \"{name}\": captured", stage + 1, stages.len()),
            stage: Some(name.to_owned()),
            rows: Some(progress.rows.load(Ordering::Relaxed)),
            whole: Some(estimated).filter(|rows| *rows > 0),
            rows_per_second: progress.rows_per_second(),
            remark: match &away {
                Some(away) => Some(away.error.to_string()),
                None => (attempt > 1).then(|| format!("attempt {attempt}")),
            },
            away: away.map(|away| (name.to_owned(), away)),
        }
    }

    /// Whether PAUSE holds all that the job waits for.
    fn is_held(&self, phase: &Phase) -> bool {
        match phase {
            Phase::Capturing(progress) => progress.gate.passage() == Passage::Closed,
            Phase::CatchingUp(targets) => {
                !targets.is_empty() && targets.keys().all(|consumer| self.is_paused(*consumer))
            }
            Phase::Asking | Phase::Filling | Phase::Finishing => false,
        }
    }

    pub(super) fn job(&self, object: ObjectId, job: &Job) -> JobStatus {
        let state = match (&job.failed, &job.phase) {
            (Some(_), _) => "failed",
            (None, phase) if self.is_held(phase) => "paused",
            (None, Phase::Capturing(_)) => "capturing",
            (None, Phase::Asking) => "asking",
            (None, Phase::Filling) => "filling",
            (None, Phase::CatchingUp(_)) => "catching up",
            (None, Phase::Finishing) => "finishing",
        };
        let record = self.catalog.get(object);
        let parts = self.progress(object);
        let shown: Vec<String> = parts.iter().map(JobProgress::show).collect();
        let sum = JobProgress::sum(parts);
        JobStatus {
            id: JobId(u64::from(object.0)),
            object,
            name: record.map_or_else(String::new, |object| object.name.clone()),
            state,
            percent: sum.percent(),
            time_left: sum.time_left(),
            stage: sum.stage,
            rows: sum.rows,
            rows_per_second: sum.rows_per_second,
            started_unix_ms: record.and_then(|object| object.created_unix_ms),
            progress: shown.join("; "),
            reason: sum.remark,
            error: job.failed.as_ref().map(shown_error),
        }
    }
}

/// With its details: the statement that would have shown them may be long gone.
fn shown_error(error: &UserError) -> String {
    let parts = [Some(&error.message), error.detail.as_ref(), error.hint.as_ref()];
    parts.into_iter().flatten().cloned().collect::<Vec<_>>().join("; ")
}
