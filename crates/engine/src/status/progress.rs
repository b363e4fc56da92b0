//! How far a job is, in a line for people.

use std::time::Duration;

use segue_types::UserError;

use crate::consumer::Consumer;
use crate::job::Target;
use crate::meter::Away;
use crate::patience::Patience;

/// How far one thing is that a job waits for.
pub(crate) struct JobProgress {
    pub(super) what: String,
    pub(super) rows: Option<u64>,
    /// About how many rows there will be, where that is known.
    pub(super) whole: Option<u64>,
    pub(super) remark: Option<String>,
    /// The stage whose system is away, while one is.
    pub(super) away: Option<(String, Away)>,
}

impl JobProgress {
    pub(super) fn of(what: &str) -> JobProgress {
        JobProgress { what: what.to_owned(), rows: None, whole: None, remark: None, away: None }
    }

    /// What the user is told when a system has been away for longer than `patience`.
    pub(crate) fn given_up(&self, patience: Patience) -> Option<UserError> {
        let (stage, away) = self.away.as_ref()?;
        let is_over = patience.is_over(away.since.elapsed());
        is_over.then(|| patience.exhausted(away.error.to_user_error(stage)))
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

/// How far a reading is on its way to `target`.
pub(super) fn of_consumer(consumer: &Consumer, target: &Target) -> JobProgress {
    let index = consumer.state().current_stage();
    let stage = consumer.source.stage(index);
    let meter = &consumer.meters[index.as_usize()];
    let (number, count) = (index.0 + 1, consumer.source.stages.len());
    let captured = stage.capture.as_ref().map(|capture| capture.rows);
    JobProgress {
        what: format!("stage {number}/{count} \"{}\": read", stage.name),
        rows: Some(meter.rows),
        whole: captured.or_else(|| whole(consumer, target)).filter(|rows| *rows > 0),
        remark: meter.away.as_ref().map(|away| away.error.to_string()),
        away: meter.away.clone().map(|away| (stage.name.clone(), away)),
    }
}

/// How many rows the current stage has up to its bounds or to the target, where its positions tell.
fn whole(consumer: &Consumer, target: &Target) -> Option<u64> {
    let index = consumer.state().current_stage();
    let connector = &consumer.source.stage(index).connector;
    let splits = segue_coordinate::split_status(consumer.state());
    let left = splits.into_iter().filter(|split| split.stage == index).map(|split| {
        let of_target = target.positions.iter().find(|(id, _)| *id == split.split);
        let of_target = of_target.filter(|_| target.stage == index).map(|(_, at)| at);
        let end = split.bound.as_ref().or(of_target)?;
        connector.rows_between(split.position.as_ref()?, end)
    });
    let left: Vec<u64> = left.collect::<Option<_>>()?;
    let read = consumer.meters[index.as_usize()].rows;
    (!left.is_empty()).then(|| read + left.iter().sum::<u64>())
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
            away: None,
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
