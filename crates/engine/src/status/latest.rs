//! How far the systems have come that are read: asked when somebody looks, at most once a second, and waited for only
//! a moment. A system that does not answer leaves what it said last.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use segue_connect::{Latest as End, StageReader};
use segue_types::{ConsumerId, Position, PositionOrder, SplitId, StageIndex};

use super::samples::Samples;
use super::{SplitStatus, Status};
use crate::distance::Measured;
use crate::source::StageRuntime;

/// How old an answer may be.
const FRESH: Duration = Duration::from_secs(1);
/// How long whoever looks waits for new answers.
const WAIT: Duration = Duration::from_millis(250);
/// How long a system may take to answer at all.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// A split that has data and has not moved for so long is stalled.
const STALLED_AFTER: Duration = Duration::from_secs(10);

/// One split of one reading.
pub(crate) type Place = (ConsumerId, StageIndex, SplitId);

/// Whom to ask about a split.
pub(crate) struct Probe {
    pub(crate) place: Place,
    pub(crate) position: Option<Position>,
    pub(crate) reader: Arc<dyn StageReader>,
    pub(crate) stage: Arc<StageRuntime>,
    pub(crate) measured: Measured,
}

/// What was answered.
#[derive(Default)]
struct Known {
    asked: Option<Instant>,
    is_asked: bool,
    latest: Option<End>,
    samples: Samples,
}

/// The answers of late.
#[derive(Clone, Default)]
pub(crate) struct Latest(Arc<Mutex<HashMap<Place, Known>>>);

impl Latest {
    /// Asks about every split whose answer is old, and waits a moment.
    pub(crate) async fn ask(&self, probes: &[Probe]) {
        let due: Vec<&Probe> = {
            let mut known = self.0.lock();
            known.retain(|place, _| probes.iter().any(|probe| probe.place == *place));
            let is_due = |probe: &&Probe| {
                let known = known.entry(probe.place.clone()).or_default();
                let is_old = known.asked.is_none_or(|asked| asked.elapsed() >= FRESH);
                let due = is_old && !known.is_asked;
                known.is_asked |= due;
                due
            };
            probes.iter().filter(is_due).collect()
        };
        let asked: Vec<_> = due.into_iter().map(|probe| self.spawn(probe)).collect();
        // Answers that come later are there for the next look.
        drop(tokio::time::timeout(WAIT, futures::future::join_all(asked)).await);
    }

    fn spawn(&self, probe: &Probe) -> tokio::task::JoinHandle<()> {
        let (latest, place, reader) =
            (self.clone(), probe.place.clone(), Arc::clone(&probe.reader));
        tokio::spawn(async move {
            let answer = tokio::time::timeout(ANSWER_DEADLINE, reader.latest(&place.2)).await;
            drop(reader);
            let mut known = latest.0.lock();
            let known = known.entry(place).or_default();
            known.is_asked = false;
            known.asked = Some(Instant::now());
            if let Ok(Ok(answer)) = answer {
                if let Some(latest) = &answer {
                    known.samples.take(Instant::now(), &latest.position);
                }
                known.latest = answer;
            }
        })
    }

    /// Writes what is known into the splits' rows, and what follows from it into the stages'.
    pub(crate) fn tell(&self, probes: &[Probe], status: &mut Status) {
        let mut known = self.0.lock();
        for probe in probes {
            let Some(Known { latest: Some(latest), samples, .. }) = known.get_mut(&probe.place)
            else {
                continue;
            };
            let (consumer, stage, split) = &probe.place;
            let is_it = |row: &&mut SplitStatus| {
                row.consumer == *consumer && row.index == stage.0 && row.split == split.as_str()
            };
            let Some(row) = status.splits.iter_mut().find(is_it) else { continue };
            if let Some(position) = &probe.position {
                let compare = |a: &Position, b: &Position| probe.stage.connector.compare(a, b);
                row.lag_rows = probe.stage.rows_between(probe.measured, position, &latest.position);
                row.lag = samples.lag(Instant::now(), position, compare);
                row.is_behind = compare(position, &latest.position) == PositionOrder::Less;
            }
            row.latest = Some(latest.position.to_string());
            row.reason = latest.remark.clone().or(row.reason.take());
        }
        drop(known);
        for stage in &mut status.stages {
            let splits: Vec<&SplitStatus> = status
                .splits
                .iter()
                .filter(|split| split.consumer == stage.consumer && split.index == stage.index)
                .collect();
            let lags: Option<Vec<u64>> = splits.iter().map(|split| split.lag_rows).collect();
            stage.lag_rows = lags.filter(|lags| !lags.is_empty()).map(|lags| lags.iter().sum());
            stage.lag = splits.iter().filter_map(|split| split.lag).max();
            let is_read = matches!(stage.phase.as_str(), "reading" | "sealed");
            stage.stalled = splits
                .iter()
                .filter(|_| is_read)
                .find_map(|split| reason(split, stage.error.as_deref()));
        }
    }
}

/// Why a split is stalled, if it is.
fn reason(split: &SplitStatus, error: Option<&str>) -> Option<String> {
    let stands = split.idle.is_none_or(|idle| idle >= STALLED_AFTER);
    if !split.is_behind || !stands {
        return None;
    }
    let since = match split.idle {
        Some(idle) => format!("has not moved for {} s", idle.as_secs()),
        None => "has not moved since the server started".to_owned(),
    };
    let error = error.map_or_else(String::new, |error| format!(": {error}"));
    Some(format!("split {} {since}, though there is data{error}", split.split))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use segue_types::{ConsumerId, ObjectId};

    use super::{STALLED_AFTER, SplitStatus, reason};

    fn split(idle: Option<Duration>, is_behind: bool) -> SplitStatus {
        SplitStatus {
            source: ObjectId(1),
            consumer: ConsumerId(1),
            stage: "live".to_owned(),
            index: 0,
            split: "3".to_owned(),
            phase: "reading".to_owned(),
            position: Some("5".to_owned()),
            bound: None,
            latest: Some("9".to_owned()),
            lag_rows: Some(4),
            lag: None,
            reason: None,
            gaps: 0,
            skipped: Some(0),
            idle,
            is_behind,
        }
    }

    #[test]
    fn a_split_is_stalled_when_it_has_data_and_has_not_moved_for_long() {
        let long = Some(STALLED_AFTER + Duration::from_secs(2));
        let shown = reason(&split(long, true), Some("could not reach Kafka"));
        let expected =
            "split 3 has not moved for 12 s, though there is data: could not reach Kafka";
        assert_eq!(shown.as_deref(), Some(expected));
        assert!(reason(&split(None, true), None).is_some(), "never moved at all");
        assert_eq!(reason(&split(Some(Duration::from_secs(1)), true), None), None);
        assert_eq!(reason(&split(long, false), None), None, "there is nothing to read");
    }
}
