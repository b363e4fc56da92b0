//! How far a job is, in a line for people.

use std::time::Duration;

use segue_types::UserError;

use crate::consumer::Consumer;
use crate::distance::Measured;
use crate::job::Target;
use crate::meter::Away;
use crate::patience::Patience;

/// How far one thing is that a job waits for.
pub(crate) struct JobProgress {
    pub(super) what: String,
    pub(super) stage: Option<String>,
    pub(super) rows: Option<u64>,
    /// About how many rows there will be, where that is known.
    pub(super) whole: Option<u64>,
    /// Of late.
    pub(super) rows_per_second: Option<f64>,
    pub(super) remark: Option<String>,
    /// The stage whose system is away, while one is.
    pub(super) away: Option<(String, Away)>,
}

impl JobProgress {
    pub(super) fn of(what: &str) -> JobProgress {
        JobProgress {
            what: what.to_owned(),
            stage: None,
            rows: None,
            whole: None,
            rows_per_second: None,
            remark: None,
            away: None,
        }
    }

    /// Several as one: what is not known of one is not known of all.
    pub(super) fn sum(parts: Vec<JobProgress>) -> JobProgress {
        let add = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        let join = |a: Option<String>, b: Option<String>, between: &str| match (a, b) {
            (Some(a), Some(b)) if a != b => Some(format!("{a}{between}{b}")),
            (a, b) => a.or(b),
        };
        let both = |a: JobProgress, b: JobProgress| JobProgress {
            what: a.what,
            stage: join(a.stage, b.stage, ", "),
            rows: add(a.rows, b.rows),
            whole: add(a.whole, b.whole),
            rows_per_second: a.rows_per_second.zip(b.rows_per_second).map(|(a, b)| a + b),
            remark: join(a.remark, b.remark, "; "),
            away: a.away.or(b.away),
        };
        parts.into_iter().reduce(both).unwrap_or_else(|| JobProgress::of(""))
    }

    /// An estimate may be too low; nobody believes 130 %.
    pub(super) fn percent(&self) -> Option<u64> {
        Some((self.rows? * 100 / self.whole?).min(99))
    }

    /// At the rate of late.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let left = self.whole?.checked_sub(self.rows?)?;
        let rate = self.rows_per_second.filter(|rate| *rate >= 0.5)?;
        Duration::try_from_secs_f64(left as f64 / rate).ok()
    }

    /// What the user is told when a system has been away for longer than `patience`.
    pub(crate) fn given_up(&self, patience: Patience) -> Option<UserError> {
        let (stage, away) = self.away.as_ref()?;
        let is_over = patience.is_over(away.since.elapsed());
        is_over.then(|| patience.exhausted(away.error.to_user_error(stage)))
    }

    /// As one line.
    pub(crate) fn show(&self) -> String {
        let mut line = self.what.clone();
        if let Some(rows) = self.rows {
            line += &format!(" {rows} rows");
        }
        if let Some((whole, percent)) = self.whole.zip(self.percent()) {
            line += &format!(" of about {whole} ({percent}%)");
        }
        if let Some(rate) = self.rows_per_second.filter(|rate| *rate >= 0.5) {
            line += &format!(", {rate:.0} rows/s");
        }
        if let Some(left) = self.time_left() {
            line += &format!(", {:.0} s left", left.as_secs_f64());
        }
        if let Some(remark) = &self.remark {
            line += &format!(", {remark}");
        }
        line
    }
}

/// How far a reading is on its way to `target`.
pub(super) fn of_consumer(consumer: &Consumer, target: &Target) -> JobProgress {
    let index = consumer.state().current_stage();
    let stage = consumer.source.stage(index);
    let meter = &consumer.meters[index.as_usize()];
    let (number, count) = (index.0 + 1, consumer.source.stages.len());
    let captured = stage.capture.as_ref().map(|capture| capture.rows);
    JobProgress {
        what: format!("stage {number}/{count} \"{}\": read", stage.name),
        stage: Some(stage.name.clone()),
        rows_per_second: Some(meter.rows_per_second()),
        rows: Some(meter.rows),
        whole: captured.or_else(|| whole(consumer, target)).filter(|rows| *rows > 0),
        remark: meter.away.as_ref().map(|away| away.error.to_string()),
        away: meter.away.clone().map(|away| (stage.name.clone(), away)),
    }
}

/// How many rows the current stage has up to its bounds or to the target, where its positions tell.
fn whole(consumer: &Consumer, target: &Target) -> Option<u64> {
    let index = consumer.state().current_stage();
    let stage = consumer.source.stage(index);
    let measured = Measured::of(&consumer.meters[index.as_usize()]);
    let splits = segue_coordinate::split_status(consumer.state());
    let left = splits.into_iter().filter(|split| split.stage == index).map(|split| {
        let of_target = target.positions.iter().find(|(id, _)| *id == split.split);
        let of_target = of_target.filter(|_| target.stage == index).map(|(_, at)| at);
        let end = split.bound.as_ref().or(of_target)?;
        stage.rows_between(measured, split.position.as_ref()?, end)
    });
    let left: Vec<u64> = left.collect::<Option<_>>()?;
    (!left.is_empty()).then(|| measured.rows + left.iter().sum::<u64>())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::JobProgress;

    fn history() -> JobProgress {
        JobProgress {
            stage: Some("history".to_owned()),
            rows: Some(250),
            whole: Some(1000),
            rows_per_second: Some(50.0),
            ..JobProgress::of("stage 1/2 \"history\": read")
        }
    }

    #[test]
    fn progress_tells_rows_percent_rate_and_time_left_as_far_as_each_is_known() {
        let mut progress = history();
        assert_eq!(
            progress.show(),
            "stage 1/2 \"history\": read 250 rows of about 1000 (25%), 50 rows/s, 15 s left"
        );
        progress.rows = Some(1300);
        progress.rows_per_second = Some(0.0);
        progress.remark = Some("attempt 2".to_owned());
        assert_eq!(
            progress.show(),
            "stage 1/2 \"history\": read 1300 rows of about 1000 (99%), attempt 2"
        );
        assert_eq!(JobProgress::of("waiting").show(), "waiting");
    }

    #[test]
    fn several_are_summed_up_and_what_one_does_not_know_nobody_does() {
        let live = JobProgress {
            stage: Some("live".to_owned()),
            rows: Some(750),
            whole: Some(3000),
            ..history()
        };
        let sum = JobProgress::sum(vec![history(), live]);
        assert_eq!(sum.stage.as_deref(), Some("history, live"));
        assert_eq!((sum.rows, sum.percent()), (Some(1000), Some(25)));
        assert_eq!(sum.time_left(), Some(Duration::from_secs(30)));
        let unknown = JobProgress { whole: None, remark: Some("away".to_owned()), ..history() };
        let sum = JobProgress::sum(vec![history(), unknown]);
        assert_eq!((sum.rows, sum.percent(), sum.time_left()), (Some(500), None, None));
        assert_eq!((sum.stage.as_deref(), sum.remark.as_deref()), (Some("history"), Some("away")));
        assert_eq!(JobProgress::sum(Vec::new()).rows, None);
    }
}
