//! State blobs: what one operator holds for one vnode group, or what changed in it since the last seal.
//!
//! A seal gathers columns, which is cheap, on the thread that steps; [`SealedBlob::encode`] makes bytes of them on
//! whichever thread writes them.
//!
//! Layout: magic `SGS2`, key codec version, kind, group, operator id, plan fingerprint, row count, xxh3 of
//! the body; then the
//! body: for each part its length and an Arrow IPC stream. Integers are little-endian. Reading asserts what
//! writing asserted.

use std::borrow::Cow;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take_arrays;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use segue_types::{BlobKind, OperatorId, StateBlob};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::RestoreError;
use crate::key::{GROUPS, KEY_CODEC_VERSION};

const MAGIC: [u8; 4] = *b"SGS2";
const HEADER_BYTES: usize = 4 + 1 + 1 + 1 + 1 + 8 + 8 + 8 + 8;
/// Deltas smaller than this never force a new base: its header would weigh more.
const DELTA_BYTES_FREE: usize = 4096;
/// In one of so many seals a group may get a base that it does not need yet.
const TURNS: usize = 4;

/// Who a blob belongs to, for writing and for checking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlobOwner {
    pub(crate) operator: OperatorId,
    /// Of everything that the layout of the state depends on.
    pub(crate) fingerprint: u64,
}

/// A blob as a seal leaves it: gathered, so that the operator may go on, and not encoded yet.
#[derive(Clone, Debug)]
pub struct SealedBlob {
    owner: BlobOwner,
    pub(crate) group: u8,
    pub(crate) kind: BlobKind,
    parts: Vec<Part>,
    /// About as many as it will have encoded.
    pub(crate) bytes: usize,
}

/// Rows of a blob, picked out of a batch that other blobs may share.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    rows: RecordBatch,
    /// `None`: all of them.
    picked: Option<UInt32Array>,
}

impl From<RecordBatch> for Part {
    fn from(rows: RecordBatch) -> Part {
        Part { rows, picked: None }
    }
}

impl Part {
    pub(crate) fn of(rows: &RecordBatch, picked: Vec<u32>) -> Part {
        Part { rows: rows.clone(), picked: Some(picked.into()) }
    }

    fn len(&self) -> usize {
        self.picked.as_ref().map_or(self.rows.num_rows(), |picked| picked.len())
    }

    fn bytes(&self) -> usize {
        let column = |column: &ArrayRef| {
            column.to_data().get_slice_memory_size().expect("a column knows its size")
        };
        let whole = self.rows.columns().iter().map(column).sum::<usize>();
        PART_OVERHEAD_BYTES + whole * self.len() / self.rows.num_rows().max(1)
    }

    fn batch(&self) -> Cow<'_, RecordBatch> {
        match &self.picked {
            None => Cow::Borrowed(&self.rows),
            Some(picked) => {
                // The parts of an aggregate without keys may have no columns.
                let options = RecordBatchOptions::new().with_row_count(Some(picked.len()));
                let columns = take_arrays(self.rows.columns(), picked, None);
                let columns = columns.expect("rows are picked from the batch");
                let rows = RecordBatch::try_new_with_options(self.rows.schema(), columns, &options);
                Cow::Owned(rows.expect("each column is as long as what is picked"))
            }
        }
    }
}

impl SealedBlob {
    /// The blob as it is stored.
    pub fn encode(&self) -> StateBlob {
        let SealedBlob { owner, group, kind, .. } = self;
        let mut bytes = Vec::with_capacity(self.bytes + self.bytes / 8);
        bytes.resize(HEADER_BYTES, 0);
        for part in &self.parts {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 8]);
            write_part(&part.batch(), &mut bytes).expect("writing into memory cannot fail");
            let length = (bytes.len() - start - 8) as u64;
            bytes[start..start + 8].copy_from_slice(&length.to_le_bytes());
        }
        let rows = self.parts.iter().map(|part| part.len() as u64).sum();
        let checksum = xxh3_64(&bytes[HEADER_BYTES..]);
        let header = owner.header(*group, *kind, rows, checksum);
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        StateBlob { operator: owner.operator, group: *group, kind: *kind, bytes }
    }
}

impl BlobOwner {
    /// A blob of `parts`, each a batch of its own schema.
    pub(crate) fn seal(
        &self,
        group: u8,
        kind: BlobKind,
        parts: impl IntoIterator<Item = impl Into<Part>>,
    ) -> SealedBlob {
        assert!(usize::from(group) < GROUPS, "there are {GROUPS} groups");
        let parts = parts.into_iter().map(Into::into).collect::<Vec<Part>>();
        let bytes = HEADER_BYTES + parts.iter().map(Part::bytes).sum::<usize>();
        SealedBlob { owner: *self, group, kind, parts, bytes }
    }

    fn header(&self, group: u8, kind: BlobKind, rows: u64, checksum: u64) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&MAGIC);
        header[4] = KEY_CODEC_VERSION;
        header[5] = u8::from(kind == BlobKind::Delta);
        header[6] = group;
        for (place, value) in [self.operator.0, self.fingerprint, rows, checksum].iter().enumerate()
        {
            let at = 8 + place * 8;
            header[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        header
    }

    /// The parts of a blob of this owner.
    pub(crate) fn read(&self, blob: &StateBlob) -> Result<Vec<RecordBatch>, RestoreError> {
        let damaged = |reason: String| RestoreError::Blob {
            operator: blob.operator.0,
            group: blob.group,
            reason,
        };
        let Some((header, mut body)) = blob.bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(damaged("it is shorter than its header".to_owned()));
        };
        let rows = u64::from_le_bytes(header[24..32].try_into().expect("eight bytes"));
        let expected = self.header(blob.group, blob.kind, rows, xxh3_64(body));
        if let Some(reason) = first_difference(header, &expected) {
            return Err(damaged(reason));
        }
        let mut parts = Vec::new();
        while !body.is_empty() {
            parts.push(read_part(&mut body).map_err(|error| damaged(error.to_string()))?);
        }
        let held = parts.iter().map(|part| part.num_rows() as u64).sum::<u64>();
        if held != rows {
            return Err(damaged(format!("it holds {held} rows, its header says {rows}")));
        }
        Ok(parts)
    }
}

fn first_difference(found: &[u8; HEADER_BYTES], expected: &[u8; HEADER_BYTES]) -> Option<String> {
    let fields = [
        ("magic", 0..4),
        ("codec version", 4..5),
        ("kind", 5..6),
        ("group", 6..7),
        ("operator", 8..16),
        ("plan fingerprint", 16..24),
        ("checksum", 32..40),
    ];
    let differs = |range: &std::ops::Range<usize>| found[range.clone()] != expected[range.clone()];
    let (name, range) = fields.into_iter().find(|(_, range)| differs(range))?;
    Some(format!(
        "its {name} is {:02x?}, expected {:02x?}",
        &found[range.clone()],
        &expected[range]
    ))
}

/// What Arrow's stream adds to a part's columns: messages that begin and end it, and describe each column.
const PART_OVERHEAD_BYTES: usize = 512;

fn write_part(part: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let mut writer = StreamWriter::try_new(out, part.schema_ref())?;
    writer.write(part)?;
    writer.finish()
}

fn read_part(body: &mut &[u8]) -> Result<RecordBatch, ArrowError> {
    let short = || ArrowError::IpcError("a part is cut short".to_owned());
    let (length, rest) = body.split_first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    let (part, rest) = rest.split_at_checked(length).ok_or_else(short)?;
    *body = rest;
    let mut reader = StreamReader::try_new(part, None)?;
    let batch = reader.next().ok_or_else(short)??;
    match reader.next() {
        None => Ok(batch),
        Some(_) => Err(ArrowError::IpcError("a part holds two batches".to_owned())),
    }
}

/// Fingerprint of a state layout, from a text that names all it depends on.
pub(crate) fn fingerprint(kind: &str, schema: &SchemaRef, layout: &str) -> u64 {
    let types =
        schema.fields().iter().map(|field| field.data_type().to_string()).collect::<Vec<_>>();
    xxh3_64(format!("{kind} ({}) {layout}", types.join(", ")).as_bytes())
}

/// What is stored of one operator, per group, to decide between a delta and a new base.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredSizes {
    groups: [StoredSize; GROUPS],
    seals: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct StoredSize {
    base_bytes: usize,
    delta_bytes: usize,
}

impl StoredSizes {
    /// Which of the sealed `deltas` should give way to a new base of their groups: where the deltas would
    /// weigh more than
    /// half of the base, heaviest first. Groups grow evenly, so all would be due in one seal; what bases cost
    /// is therefore
    /// spread over the next ones, twice the bytes of the deltas in each, unless the deltas outweigh the base.
    /// The groups take turns, for the shards of an operator do not know of each other's.
    pub(crate) fn rebased(&mut self, deltas: &[SealedBlob]) -> [bool; GROUPS] {
        self.seals += 1;
        let mut rebased = [false; GROUPS];
        let mut due = Vec::new();
        for delta in deltas {
            let group = usize::from(delta.group);
            let StoredSize { base_bytes, delta_bytes } = self.groups[group];
            let held = delta_bytes + delta.bytes;
            if base_bytes == 0 || held > base_bytes.max(DELTA_BYTES_FREE) {
                rebased[group] = true;
            } else if held > (base_bytes / 2).max(DELTA_BYTES_FREE) && self.has_turn(group) {
                due.push((held as f64 / base_bytes as f64, group));
            }
        }
        due.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut budget = 2 * deltas.iter().map(|delta| delta.bytes).sum::<usize>();
        for (_, group) in due {
            if budget == 0 {
                break;
            }
            rebased[group] = true;
            budget = budget.saturating_sub(self.groups[group].base_bytes);
        }
        rebased
    }

    fn has_turn(&self, group: usize) -> bool {
        (self.seals + group).is_multiple_of(TURNS)
    }

    /// Takes note of a blob that will be stored.
    pub(crate) fn sealed(&mut self, blob: &SealedBlob) {
        self.note(blob.group, blob.kind, blob.bytes);
    }

    /// Takes note of a blob that is stored.
    pub(crate) fn loaded(&mut self, blob: &StateBlob) {
        self.note(blob.group, blob.kind, blob.bytes.len());
    }

    fn note(&mut self, group: u8, kind: BlobKind, bytes: usize) {
        let stored = &mut self.groups[usize::from(group)];
        match kind {
            BlobKind::Base => *stored = StoredSize { base_bytes: bytes, delta_bytes: 0 },
            BlobKind::Delta => stored.delta_bytes += bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use segue_types::OperatorId;

    use arrow::array::RecordBatch;

    use super::{BlobKind, BlobOwner, GROUPS, SealedBlob, StoredSizes};

    fn blob(group: usize, kind: BlobKind, bytes: usize) -> SealedBlob {
        let owner = BlobOwner { operator: OperatorId(1), fingerprint: 2 };
        SealedBlob { bytes, ..owner.seal(group as u8, kind, Vec::<RecordBatch>::new()) }
    }

    #[test]
    fn groups_that_grow_evenly_get_their_bases_in_turn_and_none_waits_for_ever() {
        let mut sizes = StoredSizes::default();
        let (base, delta) = (1_000_000, 100_000);
        for group in 0..GROUPS {
            sizes.sealed(&blob(group, BlobKind::Base, base));
        }
        let mut rewritten = 0;
        for _ in 0..100 {
            let deltas = (0..GROUPS).map(|group| blob(group, BlobKind::Delta, delta));
            let deltas = deltas.collect::<Vec<_>>();
            let rebased = sizes.rebased(&deltas);
            let bases = rebased.iter().filter(|is_rebased| **is_rebased).count();
            assert!(bases <= 5, "{bases} bases in one seal");
            rewritten += bases;
            for (group, delta) in deltas.iter().enumerate() {
                match rebased[group] {
                    true => sizes.sealed(&blob(group, BlobKind::Base, base)),
                    false => sizes.sealed(delta),
                }
                assert!(sizes.groups[group].delta_bytes <= base, "a reader would read it twice");
            }
        }
        assert!((150..=400).contains(&rewritten), "{rewritten} bases in 100 seals");
    }

    #[test]
    fn shards_of_one_group_each_take_turns() {
        let (base, delta) = (1_000_000, 100_000);
        let mut shards = vec![StoredSizes::default(); GROUPS];
        for (group, sizes) in shards.iter_mut().enumerate() {
            sizes.sealed(&blob(group, BlobKind::Base, base));
        }
        for _ in 0..100 {
            let mut bases = 0;
            for (group, sizes) in shards.iter_mut().enumerate() {
                let sealed = blob(group, BlobKind::Delta, delta);
                match sizes.rebased(std::slice::from_ref(&sealed))[group] {
                    true => {
                        sizes.sealed(&blob(group, BlobKind::Base, base));
                        bases += 1;
                    }
                    false => sizes.sealed(&sealed),
                }
            }
            assert!(bases <= GROUPS / 4, "{bases} bases in one seal");
        }
    }

    #[test]
    fn what_has_no_base_gets_one() {
        let deltas = [blob(3, BlobKind::Delta, 10)];
        let rebased = StoredSizes::default().rebased(&deltas);
        assert!(rebased[3] && !rebased[4]);
    }
}
