//! What a configured read can do: data for the planner, printed as `segue.connectors` and the support matrix.

use std::fmt;

use segue_types::{Boundedness, Position, RowSemantics};

/// What one configured read can do. A property of the configuration, not of the connector alone: the same
/// Kafka topic is bounded with `STOP AT` and continuous without, append with `FORMAT PLAIN` and upsert
/// with `FORMAT UPSERT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub boundedness: Boundedness,
    pub semantics: RowSemantics,
    pub resume: Resume,
    /// What this read can tell its successor when it is complete.
    pub produces: Vec<HandoffKind>,
    /// What this read can derive its start from.
    pub accepts: Vec<HandoffKind>,
    /// Whether `latest` answers.
    pub latest: bool,
    pub has_data: KnowsData,
    pub replayable: Replayable,
    pub ordering: Ordering,
}

/// How a split goes on after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// From any position that was delivered.
    Position,
    /// Only as a whole: the engine captures the result first and serves it from there.
    Capture,
}

/// What one stage carries to the next.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum HandoffKind {
    /// The exclusive ends of the splits of a log; the successor must read the same log.
    LogEnds,
    /// The answer of `START AT QUERY`, taken in the predecessor's own snapshot.
    Query,
    /// The greatest position per split found in the predecessor's rows (`START AT COLUMNS`).
    Columns,
}

/// Whether `has_data` answers, and how surely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnowsData {
    Yes,
    No,
    /// It answers, but "yes" may mean only markers or compacted records.
    Maybe,
}

/// The answer of [`crate::StageReader::has_data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HasData {
    Yes,
    No,
    Unknown,
}

/// The answer of [`crate::StageReader::latest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    pub position: Position,
    /// Why the split ends there although there is more behind it, in words for the user. Told to whoever waits for
    /// the position, and shown in `segue.splits`.
    pub remark: Option<String>,
}

impl From<Position> for Latest {
    fn from(position: Position) -> Latest {
        Latest { position, remark: None }
    }
}

/// For how long a later consumer can read the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayable {
    ForEver,
    UntilRetention,
    WhileCaptured,
}

/// How positions of one split compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    TotalPerSplit,
    Partial,
}

macro_rules! words {
    ($($ty:ident { $($variant:ident => $word:literal),* $(,)? })*) => {
        $(impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($ty::$variant => $word),* })
            }
        })*
    };
}

words! {
    Resume { Position => "position", Capture => "capture" }
    HandoffKind { LogEnds => "log ends", Query => "query", Columns => "columns" }
    KnowsData { Yes => "yes", No => "no", Maybe => "maybe" }
    Replayable { ForEver => "for ever", UntilRetention => "until retention", WhileCaptured => "while captured" }
    Ordering { TotalPerSplit => "total per split", Partial => "partial" }
}
