//! A source at run time: each stage's connector, typed configuration, frozen definition and, where its result is
//! captured, the published chunks.
//!
//! Invariant: a [`SourceRuntime`] never changes; what a restart rebuilds from the catalog equals it.

use std::sync::Arc;

use parking_lot::Mutex;
use segue_connect::{
    Capabilities, ConnectError, Connector, Handoff, HandoffKind, ReadConfig, ReadDefinition,
    Resume, SplitDefinition, SplitStart, StageReader,
};
use segue_coordinate::{SplitPlan, StagePlan, StageStart};
use segue_plan::generated::Generated;
use segue_plan::stages::{OnExpiry, PlannedHandoff};
use segue_plan::watermark::WatermarkPlan;
use segue_store::Store;
use segue_store::capture::Manifest;
use segue_types::{ObjectId, Position, SplitId, StageIndex};

use crate::captured::{self, CapturedStage};
use crate::generated::{generating, read_columns};
use crate::greatest::Greatest;

/// A source, or a table fed by stages, as its consumers read it.
#[derive(Clone)]
pub(crate) struct SourceRuntime {
    pub(crate) object: ObjectId,
    pub(crate) stages: Vec<Arc<StageRuntime>>,
    pub(crate) watermark: Option<WatermarkPlan>,
}

/// One stage.
#[derive(Clone)]
pub(crate) struct StageRuntime {
    pub(crate) name: String,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) config: ReadConfig,
    pub(crate) capabilities: Capabilities,
    /// How this stage takes over from its predecessor; `None` for the first.
    pub(crate) handoff: Option<PlannedHandoff>,
    pub(crate) on_expiry: OnExpiry,
    pub(crate) definition: ReadDefinition,
    /// The published result of a stage that resumes by capture.
    pub(crate) capture: Option<Arc<Manifest>>,
    pub(crate) generated: Option<Arc<Generated>>,
    pub(crate) store: Arc<Store>,
}

impl StageRuntime {
    fn with_capture(&self, manifest: Arc<Manifest>) -> StageRuntime {
        StageRuntime { capture: Some(manifest), ..self.clone() }
    }

    /// Whether the stage is served from chunks on this disk.
    pub(crate) fn is_captured(&self) -> bool {
        self.capabilities.resume == Resume::Capture
    }

    /// Opens the read for one consumer.
    pub(crate) async fn open(
        self: &Arc<Self>,
        projection: &[usize],
    ) -> Result<Box<dyn StageReader>, ConnectError> {
        let read = read_columns(self.generated.as_ref(), projection);
        let reader: Box<dyn StageReader> = match &self.capture {
            Some(manifest) => {
                let (manifest, store) = (Arc::clone(manifest), Arc::clone(&self.store));
                Box::new(CapturedStage::new(Arc::clone(self), manifest, store, &read))
            }
            None => self.connector.open(&self.config, &self.definition, &read).await?,
        };
        Ok(generating(reader, self.generated.as_ref(), projection))
    }

    /// The stage as the coordinator of a new consumer sees it. `starts` overrides the pinned starts: an
    /// EARLIEST of a first stage is what is retained when the consumer is created.
    pub(crate) fn plan(&self, starts: &[(SplitId, Position)]) -> StagePlan {
        let splits = match &self.capture {
            Some(manifest) => vec![split_plan(captured::split(Some(manifest)))],
            None => self.definition.splits.iter().cloned().map(split_plan).collect(),
        };
        let with_fresh_start = |mut split: SplitPlan| {
            if let Some((_, at)) = starts.iter().find(|(id, _)| *id == split.id) {
                split.start = segue_coordinate::SplitStart::At(at.clone());
            }
            split
        };
        let derived = self.handoff.as_ref().is_some_and(|handoff| handoff.kind.is_some());
        StagePlan {
            boundedness: self.definition.boundedness,
            start: if derived { StageStart::Handoff } else { StageStart::Pinned },
            splits: splits.into_iter().map(with_fresh_start).collect(),
            sealed: self.capture.is_some() || self.definition.sealed,
        }
    }

    /// The starts that were resolved at CREATE.
    pub(crate) fn pinned_starts(&self) -> Vec<(SplitId, Position)> {
        pinned_starts(&self.definition)
    }

    /// What the capture found for the next stage: the answer of its query, or the greatest positions.
    pub(crate) fn captured_handoff(&self) -> Vec<(SplitId, Position)> {
        let manifest = self.capture.as_ref().expect("a handoff by query follows a capture");
        captured::handoff(manifest)
    }
}

impl SourceRuntime {
    /// Whether a bounded query has not been captured yet.
    pub(crate) fn needs_capture(&self) -> bool {
        self.stages.iter().any(|stage| stage.is_captured() && stage.capture.is_none())
    }

    /// The same source with these captures published.
    pub(crate) fn with_captures(&self, manifests: &[Manifest]) -> SourceRuntime {
        let with_capture = |(index, stage): (usize, &Arc<StageRuntime>)| {
            let manifest = manifests.iter().find(|manifest| manifest.stage.as_usize() == index);
            match manifest {
                Some(manifest) => Arc::new(stage.with_capture(Arc::new(manifest.clone()))),
                None => Arc::clone(stage),
            }
        };
        let stages = self.stages.iter().enumerate().map(with_capture).collect();
        SourceRuntime { object: self.object, stages, watermark: self.watermark }
    }

    /// Where `to` starts after `from`, which is complete and has ended at `ends`.
    ///
    /// # Panics
    /// If the planner chose no kind of handoff for `to`.
    pub(crate) async fn derive_starts(
        &self,
        from: StageIndex,
        to: StageIndex,
        ends: Vec<(SplitId, Position)>,
    ) -> Result<Vec<(SplitId, Position)>, ConnectError> {
        let handoff = self.handoff(from, to, ends).await?;
        self.stage(to).derive_starts(handoff).await
    }

    /// What `from` covered, in the terms that `to` asked for.
    async fn handoff(
        &self,
        from: StageIndex,
        to: StageIndex,
        ends: Vec<(SplitId, Position)>,
    ) -> Result<Handoff, ConnectError> {
        let predecessor = self.stage(from);
        let planned = self.stage(to).handoff.as_ref();
        let kind = planned.and_then(|handoff| handoff.kind).expect("the planner chose a kind");
        let identity = predecessor.definition.identity.clone();
        let ends = match (kind, Greatest::wanted(self, from)) {
            (HandoffKind::LogEnds, _) => ends,
            (HandoffKind::Columns, Some(mut greatest)) if !predecessor.is_captured() => {
                greatest.take_again(predecessor).await?;
                greatest.next()
            }
            // Both were found while the predecessor was captured.
            (HandoffKind::Query | HandoffKind::Columns, _) => predecessor.captured_handoff(),
        };
        Ok(Handoff { kind, identity, ends })
    }

    /// A stage by its place.
    pub(crate) fn stage(&self, stage: StageIndex) -> &Arc<StageRuntime> {
        &self.stages[stage.as_usize()]
    }
}

/// The starts that a definition has resolved.
pub(crate) fn pinned_starts(definition: &ReadDefinition) -> Vec<(SplitId, Position)> {
    let pinned = |split: &SplitDefinition| match &split.start {
        SplitStart::At(at) => Some((split.id.clone(), at.clone())),
        SplitStart::FromHandoff => None,
    };
    definition.splits.iter().filter_map(pinned).collect()
}

/// A connector's split as the coordinator takes it.
pub(crate) fn split_plan(split: SplitDefinition) -> SplitPlan {
    let start = match split.start {
        SplitStart::At(at) => segue_coordinate::SplitStart::At(at),
        SplitStart::FromHandoff => segue_coordinate::SplitStart::FromHandoff,
    };
    SplitPlan { id: split.id, start, bound: split.bound, after: split.after }
}

/// The open reader of one stage of one consumer, shared by its splits and opened when first asked for.
pub(crate) struct SharedReader {
    stage: Arc<StageRuntime>,
    projection: Arc<[usize]>,
    current: Mutex<Option<Arc<dyn StageReader>>>,
    opening: tokio::sync::Mutex<()>,
}

impl SharedReader {
    pub(crate) fn new(stage: Arc<StageRuntime>, projection: Arc<[usize]>) -> SharedReader {
        SharedReader {
            stage,
            projection,
            current: Mutex::new(None),
            opening: tokio::sync::Mutex::new(()),
        }
    }

    /// The stage that this reads.
    pub(crate) fn stage(&self) -> &Arc<StageRuntime> {
        &self.stage
    }

    /// The reader, opened if nobody has yet.
    pub(crate) async fn get(&self) -> Result<Arc<dyn StageReader>, ConnectError> {
        let _one_opens = self.opening.lock().await;
        if let Some(reader) = &*self.current.lock() {
            return Ok(Arc::clone(reader));
        }
        let reader: Arc<dyn StageReader> = Arc::from(self.stage.open(&self.projection).await?);
        *self.current.lock() = Some(Arc::clone(&reader));
        Ok(reader)
    }

    /// The reader, if it is open.
    pub(crate) fn opened(&self) -> Option<Arc<dyn StageReader>> {
        self.current.lock().as_ref().map(Arc::clone)
    }

    /// Forgets `broken`, so that the next caller opens anew. Splits that failed together close it once.
    pub(crate) fn discard(&self, broken: &Arc<dyn StageReader>) {
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|reader| Arc::ptr_eq(reader, broken)) {
            *current = None;
        }
    }
}
