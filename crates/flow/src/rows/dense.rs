//! A relation whose rows have fixed places: the rows of an aggregate, each at the slot of its group.
//!
//! Nothing is done here in a step. When a version is taken, the rows of the places that changed are computed from the
//! groups, once, however many steps changed them. A chunk is a *base* and small *patches* of rows that are newer; once
//! these are many, the chunk is computed anew. The index is that of the groups, so only births and deaths touch it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::bits::Bits;
use super::chunk::{CHUNK_ROWS, ChunkData, Mask, Patch, RowId};
use super::index::{IndexState, SharedIndex};
use super::version::{SeenChunk, Versions};
use super::{RelationVersion, nullable};

/// More patches than this are made into one, or readers would search in too many.
const PATCHES_MAX: usize = 8;

/// The rows of a relation by their places.
#[derive(Debug)]
pub(crate) struct DenseRows {
    schema: SchemaRef,
    key: Vec<usize>,
    chunks: Vec<DenseChunk>,
    index: Arc<SharedIndex>,
    versions: Versions,
}

#[derive(Debug)]
struct DenseChunk {
    base: Arc<ChunkData>,
    patches: Vec<Arc<Patch>>,
    /// Which places the newest version sees.
    mask: Arc<Mask>,
}

/// What the rows are computed from.
pub(crate) trait RowSource {
    /// How many places there are.
    fn places(&self) -> usize;

    /// Whether there is a row at this place now.
    fn is_live(&self, place: u32) -> bool;

    /// The rows at these places, those without one included: theirs may be anything. Adds the values that could not be
    /// computed and are NULL to `errors`.
    fn rows_at(&self, places: &[u32], errors: &mut u64) -> Vec<arrow::array::ArrayRef>;
}

impl DenseRows {
    pub(crate) fn new(schema: &SchemaRef, key: Vec<usize>, index: Arc<SharedIndex>) -> DenseRows {
        let versions = Versions::default();
        DenseRows { schema: nullable(schema), key, chunks: Vec::new(), index, versions }
    }

    /// To be called when the row at `place` goes and its key is no longer indexed: versions that see it go on
    /// finding it.
    pub(crate) fn bury(&self, index: &mut IndexState, hash: u64, place: u32) {
        let id = RowId(place);
        let is_seen = self.chunks.get(id.chunk()).is_some_and(|chunk| chunk.mask.sees(id.row()));
        if is_seen {
            index.bury(hash, place, self.versions.next_number());
        }
    }

    /// What the relation holds now, the rows at `changed` and nowhere else being others than in the version before.
    pub(crate) fn version(
        &mut self,
        source: &impl RowSource,
        changed: &Bits,
        errors: &mut u64,
    ) -> RelationVersion {
        let changed = by_chunk(changed);
        if changed.is_empty()
            && let Some(newest) = self.versions.newest().cloned()
        {
            // Former versions may have gone since the newest was made.
            let oldest = self.versions.oldest();
            self.index.write().exhume(oldest);
            return newest;
        }
        let rebuilt = self.rebuilds(&changed);
        for ((number, places), rebuild) in changed.iter().zip(rebuilt) {
            self.renew(*number, places, rebuild, source, errors);
        }
        let oldest = self.versions.advance();
        self.index.write().exhume(oldest);
        let chunks = self.chunks.iter().map(|chunk| {
            Some(SeenChunk {
                data: Arc::clone(&chunk.base),
                patches: chunk.patches.clone(),
                mask: Arc::clone(&chunk.mask),
            })
        });
        let (schema, index) = (Arc::clone(&self.schema), Arc::clone(&self.index));
        self.versions.publish(schema, self.key.clone(), chunks.collect(), index)
    }

    /// Which of the chunks to compute anew: those where half would be patches, and as many of those where an eighth
    /// would be as cost little beside the changes themselves. So chunks that change evenly take turns.
    fn rebuilds(&mut self, changed: &[(usize, Vec<u32>)]) -> Vec<bool> {
        while self.chunks.len() <= changed.last().map_or(0, |(number, _)| *number) {
            self.chunks.push(DenseChunk::empty(&self.schema, &self.key));
        }
        let weight = |(number, places): &(usize, Vec<u32>)| {
            let chunk = &self.chunks[*number];
            let patched = chunk.patches.iter().map(|patch| patch.places.len()).sum::<usize>();
            (patched + places.len(), chunk.base.batch.num_rows())
        };
        let weights = changed.iter().map(weight).collect::<Vec<_>>();
        let mut rebuilt =
            weights.iter().map(|(patched, base)| patched * 2 > *base).collect::<Vec<_>>();
        let mut budget = 2 * changed.iter().map(|(_, places)| places.len()).sum::<usize>();
        let mut heavy = (0..changed.len()).collect::<Vec<_>>();
        heavy.retain(|at| !rebuilt[*at] && weights[*at].0 * 8 > weights[*at].1);
        heavy.sort_by_key(|at| std::cmp::Reverse(weights[*at].0));
        for at in heavy {
            if budget == 0 {
                break;
            }
            rebuilt[at] = true;
            budget = budget.saturating_sub(CHUNK_ROWS);
        }
        rebuilt
    }

    fn renew(
        &mut self,
        number: usize,
        places: &[u32],
        rebuild: bool,
        source: &impl RowSource,
        errors: &mut u64,
    ) {
        let (schema, key) = (&self.schema, &self.key);
        let first = (number * CHUNK_ROWS) as u32;
        let end = source.places().min((number + 1) * CHUNK_ROWS) as u32;
        let chunk = &mut self.chunks[number];
        let rows = |places: &[u32], errors: &mut u64| {
            let batch = RecordBatch::try_new(Arc::clone(schema), source.rows_at(places, errors))
                .expect("the planner gave the relation the types of its output");
            ChunkData::new(batch, key)
        };
        if rebuild {
            let mut failed = 0;
            chunk.base = Arc::new(rows(&(first..end).collect::<Vec<_>>(), &mut failed));
            chunk.patches.clear();
            if failed > 0 {
                // Those that failed before were counted then.
                source.rows_at(places, errors);
            }
        } else {
            let data = rows(places, errors);
            chunk.add_patch(first, places, data, |places| rows(places, &mut 0));
        }
        let mut alive = Bits::default();
        alive.extend((end - first) as usize, false);
        (first..end)
            .filter(|place| source.is_live(*place))
            .for_each(|place| alive.set((place - first) as usize, true));
        chunk.mask = Arc::new(Mask { alive: alive.snapshot(), copies: None });
    }

    /// About how much memory it takes, beside the index.
    pub(crate) fn bytes(&self) -> usize {
        let patch =
            |patch: &Arc<Patch>| patch.data.batch.get_array_memory_size() + patch.places.len() * 2;
        let chunk = |chunk: &DenseChunk| {
            let patches = chunk.patches.iter().map(patch).sum::<usize>();
            chunk.base.batch.get_array_memory_size() + patches + chunk.mask.alive.len() / 8
        };
        self.chunks.iter().map(chunk).sum()
    }
}

impl DenseChunk {
    fn empty(schema: &SchemaRef, key: &[usize]) -> DenseChunk {
        let base = ChunkData::new(RecordBatch::new_empty(Arc::clone(schema)), key);
        let mask = Mask { alive: Bits::default().snapshot(), copies: None };
        DenseChunk { base: Arc::new(base), patches: Vec::new(), mask: Arc::new(mask) }
    }

    fn add_patch(
        &mut self,
        first: u32,
        places: &[u32],
        data: ChunkData,
        rows: impl Fn(&[u32]) -> ChunkData,
    ) {
        let local = |place: &u32| (place - first) as u16;
        let mut patch = Patch { places: places.iter().map(local).collect(), data };
        if self.patches.len() == PATCHES_MAX {
            let earlier = self.patches.drain(..).flat_map(|patch| patch.places.clone());
            let mut all = earlier.chain(patch.places).collect::<Vec<u16>>();
            all.sort_unstable();
            all.dedup();
            let places = all.iter().map(|place| first + u32::from(*place)).collect::<Vec<_>>();
            patch = Patch { data: rows(&places), places: all };
        }
        self.patches.push(Arc::new(patch));
    }
}

/// The places that are set, dealt out to their chunks, all in order.
fn by_chunk(places: &Bits) -> Vec<(usize, Vec<u32>)> {
    let mut chunks: Vec<(usize, Vec<u32>)> = Vec::new();
    for place in places.ones() {
        let number = place / CHUNK_ROWS;
        match chunks.last_mut() {
            Some((last, places)) if *last == number => places.push(place as u32),
            _ => chunks.push((number, vec![place as u32])),
        }
    }
    chunks
}
