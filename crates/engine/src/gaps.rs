//! Stages that may go on where something is gone (`ALLOW GAP`): which errors are no errors for them, and what is
//! recorded of what they pass over.
//!
//! Word used here: *gap*, as [`segue_coordinate::Gap`] has it.
//! Invariant: whoever misses rows because of a gap has a record of it, written in the epoch in which it was decided.

use std::collections::BTreeMap;

use segue_catalog::{Object, ObjectGap};
use segue_connect::{ConnectError, Handoff};
use segue_coordinate::{Event, Gap, Report, Verdict, verdict};
use segue_plan::stages::OnExpiry;
use segue_store::crash_point;
use segue_types::{ConsumerId, ObjectId, Position, PositionOrder, SplitId, StageIndex};

use crate::reader::Range;
use crate::source::StageRuntime;
use crate::world::World;

impl StageRuntime {
    /// What a reader of `range` passes over after this error; `None` where it is an error.
    pub(crate) fn gap(&self, range: &Range, error: &ConnectError) -> Option<Gap> {
        let ConnectError::Expired { split, position, available, .. } = error else { return None };
        if self.on_expiry == OnExpiry::Stop || *split != range.split {
            return None;
        }
        let is_before = |a, b| self.connector.compare(a, b) == PositionOrder::Less;
        let to = match &range.until {
            Some(until) if !is_before(available, until) => until,
            _ => available,
        };
        let records = self.records_between(position, to);
        is_before(position, to).then(|| Gap { from: position.clone(), to: to.clone(), records })
    }

    /// Whether pinned starts still hold. What expired of them is found by whoever reads there.
    pub(crate) async fn check(&self, starts: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        if self.is_captured() {
            return Ok(());
        }
        match self.connector.check(&self.config, &self.definition, starts).await {
            Err(ConnectError::Expired { .. }) if self.on_expiry == OnExpiry::Skip => Ok(()),
            checked => checked,
        }
    }

    /// Where the stage starts after what the handoff says was covered. Whether that is still there is asked of the
    /// connector; an end that expired stays the start, so that the gap is found, and recorded, where it is read.
    pub(crate) async fn derive_starts(
        &self,
        mut handoff: Handoff,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        // What each end was before what is left took its place.
        let mut gone: BTreeMap<SplitId, Position> = BTreeMap::new();
        loop {
            let derived = self.connector.derive_starts(&self.config, &self.definition, &handoff);
            let error = match derived.await {
                Ok(starts) => {
                    let told = |(split, start): (SplitId, Position)| {
                        let start = gone.get(&split).cloned().unwrap_or(start);
                        (split, start)
                    };
                    return Ok(starts.into_iter().map(told).collect());
                }
                Err(error) => error,
            };
            let ConnectError::Expired { split, available, .. } = &error else { return Err(error) };
            let end = handoff.ends.iter_mut().find(|(id, end)| id == split && end != available);
            match end {
                Some((id, end)) if self.on_expiry == OnExpiry::Skip => {
                    let was = std::mem::replace(end, available.clone());
                    gone.entry(id.clone()).or_insert(was);
                }
                _ => return Err(error),
            }
        }
    }
}

/// For whoever waits for the stage.
pub(crate) fn describe(stage: &str, split: &SplitId, gap: &Gap) -> String {
    format!("stage \"{stage}\": split {split}: {gap}")
}

impl World {
    /// A reader found that what it was to read next is gone. Everybody who would have taken its rows misses them.
    pub(crate) fn skip(
        &mut self,
        id: ConsumerId,
        report: Report,
        (stage, split): (StageIndex, SplitId),
        gap: &Gap,
    ) {
        let consumer = &self.consumers[&id];
        let told = Event::Skipped { report, stage, split: split.clone(), gap: gap.clone() };
        match verdict(consumer.state(), &told) {
            Verdict::Apply => {}
            Verdict::Early => unreachable!("a task's messages arrive in its own order"),
            Verdict::Duplicate | Verdict::Stale => return self.tell(id, told),
        }
        let source = consumer.source.object;
        let remark = describe(&consumer.source.stage(stage).name, &split, gap);
        tracing::warn!(source = %source, consumer = %id, "{remark}");
        let mut takers: Vec<ObjectId> =
            self.takers(consumer, stage, &split).iter().map(|taker| taker.object).collect();
        takers.sort_unstable();
        takers.dedup();
        for taker in takers {
            let Some(object) = self.catalog.get(taker) else { continue };
            let mut object = (**object).clone();
            record(&mut object, source, stage, &split, gap);
            self.put_object(object).expect("it is there already under this name");
            self.jobs.remark(taker, &remark);
        }
        self.tell(id, told);
        crash_point!("after-gap");
    }
}

fn record(object: &mut Object, source: ObjectId, stage: StageIndex, split: &SplitId, gap: &Gap) {
    let Gap { from, to, records } = gap.clone();
    let is_it = |g: &&mut ObjectGap| g.source == source && g.stage == stage && g.split == *split;
    match object.gaps.iter_mut().find(is_it) {
        Some(known) => {
            known.count = known.count.saturating_add(1);
            known.records =
                known.records.zip(records).map(|(before, more)| before.saturating_add(more));
            known.to = to;
        }
        None => {
            let split = split.clone();
            object.gaps.push(ObjectGap { source, stage, split, count: 1, records, from, to });
        }
    }
}
