//! An *object* is what has a name: source, table, view, materialized view or sink, and all that is durable
//! about it.
//!
//! Invariant: `Debug` output holds no option value and no definition text, since both may hold passwords.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;

use arrow_schema::SchemaRef;
use segue_types::{
    Boundedness, ConsumerId, Continuity, ObjectId, Position, RowSemantics, SplitId, StageIndex,
};
use serde::{Deserialize, Serialize};

use crate::OID_FIRST;

/// A named relation.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    pub id: ObjectId,
    /// As PostgreSQL folds it: lower case unless it was quoted.
    pub name: String,
    pub schema: SchemaRef,
    /// Indexes into `schema` of the key; empty without one.
    pub key: Vec<usize>,
    /// The normalised statement, passwords included; whoever shows it redacts it.
    pub definition: String,
    pub kind: ObjectKind,
    /// What this object reads, directly, and the table that a sink feeds.
    pub depends_on: BTreeSet<ObjectId>,
    pub state: ObjectState,
    /// The readings of sources that feed this object, by input.
    pub consumers: Vec<ConsumerRef>,
    #[serde(default)]
    pub settings: Settings,
    /// When its CREATE began; unknown of what an older version created.
    #[serde(default)]
    pub created_unix_ms: Option<i64>,
    /// Why it is [`ObjectState::Failed`].
    #[serde(default)]
    pub failure: Option<String>,
    /// What its readings had to pass over.
    #[serde(default)]
    pub gaps: Vec<ObjectGap>,
}

/// What a reading on behalf of an object passed over in one split because it was gone. Several gaps of a split are one
/// record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectGap {
    pub source: ObjectId,
    pub stage: StageIndex,
    pub split: SplitId,
    pub count: u32,
    /// How many records at most, where positions tell.
    pub records: Option<u64>,
    /// Where the first gap began.
    pub from: Position,
    /// Where the last one ended, exclusive.
    pub to: Position,
}

/// What `ALTER … SET`, PAUSE and RESUME have set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Of a live reading; `None` is without limit, zero lets nothing pass.
    pub source_rows_per_second: Option<u64>,
    /// Of readings that have an end.
    pub backfill_rows_per_second: Option<u64>,
    /// How many readers share the splits of a stage; `None` leaves it to the server.
    pub parallelism: Option<NonZeroU32>,
    /// Of bounded queries that are still to be captured; readings keep for themselves whether they are paused.
    #[serde(default)]
    pub capture: CaptureSwitch,
}

/// Whether bounded queries are captured now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureSwitch {
    #[default]
    Running,
    /// No query runs, and no snapshot is held: RESUME takes a new one.
    Paused,
}

/// What an object is, and what only that kind has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    Source(SourceObject),
    Table(TableObject),
    View,
    MaterializedView,
    Sink(SinkObject),
}

/// A sink: a query whose changes go on to a table, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkObject {
    pub into: Option<ObjectId>,
    pub removals: Removals,
}

/// What becomes of rows that the query of a sink takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removals {
    PassedOn,
    /// `force_append_only`: they stay where they went.
    LeftOut,
}

/// A source: stages and nothing stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceObject {
    pub stages: Vec<StageObject>,
    /// The live reading, which views that are created later meet. `None` while nobody reads, and where readings
    /// cannot be shared.
    #[serde(default)]
    pub live: Option<ConsumerId>,
}

/// A table, fed by DML or by stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableObject {
    /// Empty for a table that only DML feeds.
    pub stages: Vec<StageObject>,
    pub on_conflict: OnConflict,
    #[serde(default)]
    pub mutability: Mutability,
    /// Columns that say which of two rows of a key is newer; empty where the later one is.
    #[serde(default)]
    pub versions: Vec<usize>,
}

/// Whether rows of a table can change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mutability {
    #[default]
    Mutable,
    /// Rows come and stay as they are.
    AppendOnly,
}

/// What happens to a row whose key is already there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    #[default]
    Overwrite,
    Ignore,
    /// As Overwrite, but NULL keeps what is there.
    UpdateIfNotNull,
}

/// One stage, as it was planned and pinned.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct StageObject {
    pub name: String,
    pub connector: String,
    /// The `WITH (…)` options, secrets included.
    pub options: BTreeMap<String, String>,
    pub boundedness: Boundedness,
    pub semantics: RowSemantics,
    /// The frozen read in the connector's own terms. `None` until it is pinned.
    pub definition: Option<serde_json::Value>,
    /// What is promised across the handoff from the stage before. `None` for the first stage.
    pub continuity: Option<Continuity>,
}

/// One reading of a source on behalf of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerRef {
    pub id: ConsumerId,
    /// The source that is read; for a table with stages the table itself.
    pub source: ObjectId,
    /// Which input of the object's dataflow it feeds.
    pub input: usize,
}

/// Where an object is in its life. What is dropped is no longer in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectState {
    /// Its CREATE has not returned yet. The name is taken, but nobody may read it.
    Creating,
    Ready,
    /// A step over it failed, so its contents are no longer maintained. It can only be dropped.
    Failed,
}

/// The kind of an object without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RelationKind {
    Source,
    Table,
    View,
    MaterializedView,
    Sink,
}

impl Object {
    /// The kind of this object.
    pub fn relation_kind(&self) -> RelationKind {
        match self.kind {
            ObjectKind::Source(_) => RelationKind::Source,
            ObjectKind::Table(_) => RelationKind::Table,
            ObjectKind::View => RelationKind::View,
            ObjectKind::MaterializedView => RelationKind::MaterializedView,
            ObjectKind::Sink(_) => RelationKind::Sink,
        }
    }

    /// The stages of a source or table, in order; empty for everything else.
    pub fn stages(&self) -> &[StageObject] {
        match &self.kind {
            ObjectKind::Source(source) => &source.stages,
            ObjectKind::Table(table) => &table.stages,
            ObjectKind::View | ObjectKind::MaterializedView | ObjectKind::Sink(_) => &[],
        }
    }

    /// Whether the object holds rows of its own.
    pub fn is_stored(&self) -> bool {
        matches!(self.relation_kind(), RelationKind::Table | RelationKind::MaterializedView)
    }

    /// The OID that `pg_catalog` shows; stable over restarts because the id is.
    pub fn oid(&self) -> u32 {
        OID_FIRST + self.id.0
    }
}

impl RelationKind {
    /// The words of SQL, upper case, as after `DROP`.
    pub fn keyword(self) -> &'static str {
        match self {
            RelationKind::Source => "SOURCE",
            RelationKind::Table => "TABLE",
            RelationKind::View => "VIEW",
            RelationKind::MaterializedView => "MATERIALIZED VIEW",
            RelationKind::Sink => "SINK",
        }
    }
}

impl fmt::Display for RelationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RelationKind::Source => "source",
            RelationKind::Table => "table",
            RelationKind::View => "view",
            RelationKind::MaterializedView => "materialized view",
            RelationKind::Sink => "sink",
        })
    }
}

impl fmt::Display for ObjectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectState::Creating => "creating",
            ObjectState::Ready => "ready",
            ObjectState::Failed => "failed",
        })
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("kind", &self.relation_kind())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StageObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageObject")
            .field("name", &self.name)
            .field("connector", &self.connector)
            .field("options", &self.options.keys())
            .finish_non_exhaustive()
    }
}
