//! Plain rows for the relations of schema `segue` and for SHOW: what the step thread knows at one moment.

mod jobs;
pub(crate) mod latest;
mod progress;
mod samples;

use std::sync::Arc;
use std::time::Duration;

use segue_coordinate::{Mode, Role, SplitPhase, mode, split_status, stage_status};
use segue_flow::Mark;
use segue_types::{Boundedness, ConsumerId, Continuity, Epoch, ObjectId, OperatorId};

use crate::consumer::Consumer;
use crate::distance::Measured;
use crate::meeting::is_shareable;
use crate::relation::Relation;
use crate::world::World;
pub use jobs::JobStatus;
use latest::Probe;
pub(crate) use progress::JobProgress;

/// Everything, taken between two steps.
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub stages: Vec<StageStatus>,
    pub splits: Vec<SplitStatus>,
    pub jobs: Vec<JobStatus>,
    pub operators: Vec<OperatorStatus>,
    pub checkpoints: Vec<CheckpointStatus>,
    pub watermarks: Vec<WatermarkStatus>,
}

/// How far the watermark of one reading of a source has come.
#[derive(Clone, Copy, Debug)]
pub struct WatermarkStatus {
    pub source: ObjectId,
    /// `None` while nothing is known.
    pub reached: Option<WatermarkReached>,
}

/// What a watermark has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatermarkReached {
    /// Microseconds since 1970.
    Time(i64),
    /// No row comes any more.
    End,
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
    /// Of late.
    pub rows_per_second: f64,
    /// Rows that have been read and that no step has taken yet, in bytes; of the whole reading.
    pub queued_bytes: u64,
    /// How many rows its systems have that were not read yet, where positions tell.
    pub lag_rows: Option<u64>,
    /// For how long it has been known to be behind; of the split that is furthest behind.
    pub lag: Option<Duration>,
    /// Why a split does not move although there is data, while that is so.
    pub stalled: Option<String>,
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
    pub index: u16,
    pub position: Option<String>,
    pub bound: Option<String>,
    /// The end now, where the system tells.
    pub latest: Option<String>,
    /// How many rows lie before the latest position, or before the bound.
    pub lag_rows: Option<u64>,
    /// For how long its position has been known to lie before the latest one; zero when it has caught up.
    pub lag: Option<Duration>,
    /// What its connector remarked on where it ends, or what was passed over last.
    pub reason: Option<String>,
    /// How often something had expired and was passed over.
    pub gaps: u32,
    /// How many records that were, where positions tell.
    pub skipped: Option<u64>,
    /// How long it has stood still; `None` when it has not moved since the server started.
    pub idle: Option<Duration>,
    /// Whether there is something to read.
    pub(crate) is_behind: bool,
}

/// An operator of a view or table.
#[derive(Clone, Debug)]
pub struct OperatorStatus {
    pub object: ObjectId,
    pub operator: OperatorId,
    pub name: String,
    pub rows_in: u64,
    pub rows_out: u64,
    /// How long its steps took since the server started.
    pub busy: Duration,
    /// How many threads may share a step.
    pub workers: usize,
    pub state_rows: u64,
    pub state_bytes: u64,
    /// How much more it would take if nothing had left memory.
    pub resting_bytes: u64,
    /// Expressions that failed for a row and gave NULL.
    pub expression_errors: u64,
    /// Rows that came when their window was closed, and were dropped.
    pub late_rows: u64,
}

impl OperatorStatus {
    /// Its number in the plan of its object; `None` for the relation itself.
    pub fn place(&self) -> Option<usize> {
        segue_flow::place_of(self.operator)
    }
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
            watermarks: self.consumers.values().filter_map(watermark).collect(),
        }
    }

    /// The same, and whom to ask how far the systems have come.
    pub(crate) fn status_and_probes(&mut self) -> (Status, Vec<Probe>) {
        let probes = self.consumers.values().flat_map(probes).collect();
        (self.status(), probes)
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
                busy: stats.busy,
                workers: stats.workers,
                state_rows: stats.state_rows,
                state_bytes: stats.state_bytes,
                resting_bytes: stats.resting_bytes,
                expression_errors: stats.expression_errors,
                late_rows: stats.late_rows,
            };
            relation.dataflow.operators().into_iter().map(status)
        };
        self.relations.iter_mut().flat_map(of).collect()
    }
}

fn watermark(consumer: &Consumer) -> Option<WatermarkStatus> {
    consumer.source.watermark?;
    let reached = match consumer.mark() {
        Mark::Unknown => None,
        Mark::At(time) => Some(WatermarkReached::Time(time)),
        Mark::Ended => Some(WatermarkReached::End),
    };
    Some(WatermarkStatus { source: consumer.source.object, reached })
}

const MEMORY_IS_SHORT: &str = "memory is above the soft limit";

/// Why nothing moves: the consumer's failure, or what a task will try again.
fn error_of(consumer: &Consumer, stage: usize) -> Option<String> {
    match mode(consumer.state()) {
        Mode::Failed(failure) if failure.stage.as_usize() == stage => Some(failure.to_string()),
        Mode::Running if consumer.is_starved() => Some(MEMORY_IS_SHORT.to_owned()),
        _ => consumer.meters[stage].away.as_ref().map(|away| away.error.to_string()),
    }
}

fn stages(consumer: &Consumer) -> Vec<StageStatus> {
    let state = consumer.state();
    let current = state.current_stage().as_usize();
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
            rows_per_second: meter.rows_per_second(),
            queued_bytes: if index == current { consumer.queued_bytes() } else { 0 },
            lag_rows: None,
            lag: None,
            stalled: None,
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
    let row = |status: segue_coordinate::SplitStatus| {
        let stage = consumer.source.stage(status.stage);
        let measured = Measured::of(&consumer.meters[status.stage.as_usize()]);
        let between = |(from, to)| stage.rows_between(measured, from, to);
        SplitStatus {
            source: consumer.source.object,
            consumer: consumer.id,
            stage: stage.name.clone(),
            index: status.stage.0,
            lag_rows: status.position.as_ref().zip(status.bound.as_ref()).and_then(between),
            is_behind: status.phase == SplitPhase::Reading && status.bound.is_some(),
            idle: consumer.meters[status.stage.as_usize()].idle(&status.split),
            split: status.split.to_string(),
            phase: status.phase.to_string(),
            position: status.position.map(|position| position.to_string()),
            bound: status.bound.map(|bound| bound.to_string()),
            latest: None,
            lag: None,
            reason: status.gaps.last.as_ref().map(|gap| gap.to_string()),
            skipped: if status.gaps.count == 0 { Some(0) } else { status.gaps.records },
            gaps: status.gaps.count,
        }
    };
    split_status(consumer.state()).into_iter().map(row).collect()
}

/// The splits of a reading that have no bound, as far as their reader is open.
fn probes(consumer: &Consumer) -> Vec<Probe> {
    let stage = consumer.state().current_stage();
    let runtime = consumer.source.stage(stage);
    let Some(reader) = consumer.opened(stage) else { return Vec::new() };
    let open = split_status(consumer.state()).into_iter().filter(|split| {
        split.stage == stage && split.bound.is_none() && split.phase == SplitPhase::Reading
    });
    let measured = Measured::of(&consumer.meters[stage.as_usize()]);
    open.map(|split| Probe {
        place: (consumer.id, stage, split.split),
        position: split.position,
        reader: Arc::clone(&reader),
        stage: Arc::clone(runtime),
        measured,
    })
    .collect()
}
