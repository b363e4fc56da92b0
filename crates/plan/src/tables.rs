//! What fits what, as data: which start gives which continuity, and which row semantics may follow which.
//!
//! The planner decides by these tables, and `segue.compatibility`, `segue.connectors` and the support matrix are
//! printed from them, so what is documented cannot differ from what is done.
//!
//! Words defined here: *start kind*, *handoff rule*, *pair*, *verdict*.
//! Invariant: no connector is named here; a connector is known by its [`segue_connect::Capabilities`] alone.

mod matrix;

pub use matrix::{
    CompatibilityRow, ConnectorRow, compatibility_rows, connector_rows, support_matrix,
};

use segue_connect::{HandoffKind, Registry};
use segue_sql::WeakHandoff;
use segue_types::{Continuity, RowSemantics};

/// How the start of a stage that follows another was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartKind {
    Handoff,
    /// Not given, and the stage has no position to start from: it is read whole.
    Whole,
    Query,
    Columns,
    Offsets,
    Earliest,
    Latest,
    Timestamp,
}

impl StartKind {
    /// The word after START AT.
    pub fn as_sql(self) -> &'static str {
        match self {
            StartKind::Handoff | StartKind::Whole => "HANDOFF",
            StartKind::Query => "QUERY",
            StartKind::Columns => "COLUMNS",
            StartKind::Offsets => "OFFSETS",
            StartKind::Earliest => "EARLIEST",
            StartKind::Latest => "LATEST",
            StartKind::Timestamp => "TIMESTAMP",
        }
    }
}

/// Which predecessors a handoff rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predecessors {
    All,
    /// Those whose rows are events.
    Events,
    /// Those whose rows stand for keys.
    Keyed,
}

/// What one way of starting after another stage promises.
#[derive(Clone, Copy, Debug)]
pub struct HandoffRule {
    pub start: StartKind,
    pub predecessors: Predecessors,
    /// What the predecessor must produce and the successor accept.
    pub kind: Option<HandoffKind>,
    pub continuity: Continuity,
    /// For a weak handoff, the clauses that accept it.
    pub accepted_by: &'static [WeakHandoff],
    /// What is promised, for the NOTICE.
    pub promise: &'static str,
    /// What may go wrong, for the refusal of a weak handoff.
    pub danger: &'static str,
}

/// A handoff rule that is not weak.
const fn promise(
    start: StartKind,
    predecessors: Predecessors,
    kind: Option<HandoffKind>,
    continuity: Continuity,
    promise: &'static str,
) -> HandoffRule {
    HandoffRule { start, predecessors, kind, continuity, accepted_by: &[], promise, danger: "" }
}

/// A weak handoff rule.
const fn weak(
    start: StartKind,
    accepted_by: &'static [WeakHandoff],
    promise: &'static str,
    danger: &'static str,
) -> HandoffRule {
    HandoffRule {
        start,
        predecessors: Predecessors::All,
        kind: None,
        continuity: Continuity::Weak,
        accepted_by,
        promise,
        danger,
    }
}

/// Every way of starting after another stage; the first that fits decides.
pub const HANDOFF_RULES: &[HandoffRule] = &[
    promise(
        StartKind::Handoff,
        Predecessors::All,
        Some(HandoffKind::LogEnds),
        Continuity::Exact,
        "it starts where its predecessor ended in the same log; nothing is lost or repeated",
    ),
    promise(
        StartKind::Whole,
        Predecessors::All,
        None,
        Continuity::Declared,
        "it is read whole; that its rows continue its predecessor's is stated by the definition",
    ),
    promise(
        StartKind::Query,
        Predecessors::All,
        Some(HandoffKind::Query),
        Continuity::Declared,
        "the query of START AT QUERY is answered in its predecessor's snapshot; existence, identity and \
         retention of the positions are checked",
    ),
    promise(
        StartKind::Columns,
        Predecessors::Events,
        Some(HandoffKind::Columns),
        Continuity::Declared,
        "it starts after the greatest position that its predecessor's rows carry; that they reach it without \
         a hole is stated by the definition",
    ),
    promise(
        StartKind::Columns,
        Predecessors::Keyed,
        Some(HandoffKind::Columns),
        Continuity::Covering,
        "it starts at or before the boundary, after the greatest position that its predecessor's rows carry; \
         what comes twice is reconciled by key",
    ),
    promise(
        StartKind::Offsets,
        Predecessors::All,
        None,
        Continuity::Declared,
        "it starts at the given offsets; their existence, identity and retention are checked",
    ),
    weak(
        StartKind::Earliest,
        &[WeakHandoff::Overlap],
        "it starts at the earliest record that is retained; rows of its predecessor may come again",
        "Records that its predecessor has covered would be read again, and older values would replace newer \
         ones until the read has caught up.",
    ),
    weak(
        StartKind::Latest,
        &[WeakHandoff::Gap, WeakHandoff::Overlap],
        "it starts at the end of the log at CREATE; rows between its predecessor's end and there are lost, \
         and rows that both have come twice",
        "Records that were written before this statement and that its predecessor does not cover would be lost.",
    ),
    weak(
        StartKind::Timestamp,
        &[WeakHandoff::Gap, WeakHandoff::Overlap],
        "it starts at a time; rows between its predecessor's end and there are lost, and rows that both have \
         come twice",
        "A time is not a position: records that its predecessor does not cover and that are older would be \
         lost, and younger ones that it does cover would be read again.",
    ),
];

/// The rule for a start after a predecessor of these semantics. `None`: nothing is promised at all.
pub fn handoff_rule(start: StartKind, predecessor: RowSemantics) -> Option<&'static HandoffRule> {
    let keyed = predecessor != RowSemantics::Append;
    HANDOFF_RULES.iter().find(|rule| {
        rule.start == start
            && match rule.predecessors {
                Predecessors::All => true,
                Predecessors::Events => !keyed,
                Predecessors::Keyed => keyed,
            }
    })
}

/// Whether rows of one semantics may follow rows of another.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub predecessor: RowSemantics,
    pub successor: RowSemantics,
    pub verdict: Verdict,
    /// Why, in a full sentence.
    pub rule: &'static str,
    /// What a user whose stages are refused can do, in full sentences; empty where nothing is refused.
    pub remedy: &'static str,
}

/// The verdict on a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    /// With one PRIMARY KEY for both, which is the object's.
    SameKey,
    /// Only if the handoff is exact.
    ExactOnly,
    /// If a PRIMARY KEY declares the predecessor's rows keyed and unique; they are then taken as state.
    IfDeclaredKeyed,
    /// No, but with AS EVENTS the predecessor's rows are append.
    UnlessAsEvents,
    No,
}

impl Verdict {
    /// The words of docs and `segue.compatibility`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Yes => "yes",
            Verdict::SameKey => "yes, same key",
            Verdict::ExactOnly => "yes, exact only",
            Verdict::IfDeclaredKeyed => "if declared keyed",
            Verdict::UnlessAsEvents => "no, unless AS EVENTS",
            Verdict::No => "no",
        }
    }
}

const fn pair(
    predecessor: RowSemantics,
    successor: RowSemantics,
    verdict: Verdict,
    rule: &'static str,
    remedy: &'static str,
) -> Pair {
    Pair { predecessor, successor, verdict, rule, remedy }
}

const MIXED: &str =
    "An event after a row that stands for its key would count the same thing twice.";
const REVIVED: &str =
    "A snapshot after changes would bring rows back that the changes have removed.";
const PUT_FIRST: &str = "Put the snapshot before the changes.";
const APPLY_CHANGES: &str = "Make the second stage FORMAT UPSERT with a PRIMARY KEY, or feed two tables \
     and join them in a view.";
const NEEDS_IMAGE: &str =
    "A change names the row that it takes back, and events do not say which row that is.";

/// Every pair of row semantics, predecessor by predecessor.
pub const PAIRS: &[Pair] = &[
    pair(RowSemantics::Append, RowSemantics::Append, Verdict::Yes, "Events follow events.", ""),
    pair(
        RowSemantics::Append,
        RowSemantics::State,
        Verdict::IfDeclaredKeyed,
        "Rows that are keyed and unique count as a snapshot, and a later snapshot overwrites them by key.",
        "Declare the PRIMARY KEY that makes the rows of the first stage unique.",
    ),
    pair(
        RowSemantics::Append,
        RowSemantics::Upsert,
        Verdict::IfDeclaredKeyed,
        "Rows that are keyed and unique count as a snapshot, and upserts overwrite them by key.",
        "Declare the PRIMARY KEY that makes the rows of the first stage unique, and leave out AS EVENTS.",
    ),
    pair(
        RowSemantics::Append,
        RowSemantics::Changelog,
        Verdict::No,
        NEEDS_IMAGE,
        "Begin with a snapshot of the table whose changes follow.",
    ),
    pair(
        RowSemantics::State,
        RowSemantics::Append,
        Verdict::UnlessAsEvents,
        MIXED,
        "Say AS EVENTS on the first stage if each of its rows is an event, or make the second stage FORMAT UPSERT.",
    ),
    pair(
        RowSemantics::State,
        RowSemantics::State,
        Verdict::SameKey,
        "A later snapshot overwrites by key.",
        "",
    ),
    pair(
        RowSemantics::State,
        RowSemantics::Upsert,
        Verdict::SameKey,
        "Upserts overwrite the snapshot by key.",
        "",
    ),
    pair(
        RowSemantics::State,
        RowSemantics::Changelog,
        Verdict::SameKey,
        "Changes are normalised by key at the source, so an overlap does no harm.",
        "",
    ),
    pair(RowSemantics::Upsert, RowSemantics::Append, Verdict::No, MIXED, APPLY_CHANGES),
    pair(RowSemantics::Upsert, RowSemantics::State, Verdict::No, REVIVED, PUT_FIRST),
    pair(
        RowSemantics::Upsert,
        RowSemantics::Upsert,
        Verdict::SameKey,
        "Upserts follow upserts.",
        "",
    ),
    pair(
        RowSemantics::Upsert,
        RowSemantics::Changelog,
        Verdict::SameKey,
        "Changes are normalised by key at the source.",
        "",
    ),
    pair(RowSemantics::Changelog, RowSemantics::Append, Verdict::No, MIXED, APPLY_CHANGES),
    pair(RowSemantics::Changelog, RowSemantics::State, Verdict::No, REVIVED, PUT_FIRST),
    pair(
        RowSemantics::Changelog,
        RowSemantics::Upsert,
        Verdict::SameKey,
        "Upserts overwrite by key what the changes have left.",
        "",
    ),
    pair(
        RowSemantics::Changelog,
        RowSemantics::Changelog,
        Verdict::ExactOnly,
        "A change that is missing or comes twice makes every later one wrong.",
        "Let the second stage START AT HANDOFF in the log that the first one reads.",
    ),
];

/// The verdict on rows of `successor` after rows of `predecessor`.
pub fn pairing(predecessor: RowSemantics, successor: RowSemantics) -> &'static Pair {
    PAIRS
        .iter()
        .find(|pair| (pair.predecessor, pair.successor) == (predecessor, successor))
        .expect("the table has every pair")
}

/// Whether rows of these semantics cannot be read without a PRIMARY KEY.
pub fn needs_key(semantics: RowSemantics) -> bool {
    match semantics {
        RowSemantics::Append | RowSemantics::Changelog => false,
        RowSemantics::State | RowSemantics::Upsert => true,
    }
}

/// Whether an option's value must not be shown, as its connector says.
pub fn is_secret(registry: &Registry, connector: &str, option: &str) -> bool {
    registry.get(connector).is_some_and(|connector| {
        connector.options().iter().any(|spec| spec.secret && spec.name == option)
    })
}

#[cfg(test)]
mod tests {
    use segue_types::{Continuity, RowSemantics};

    use super::{HANDOFF_RULES, PAIRS, Verdict, pairing};

    #[test]
    fn every_pair_of_semantics_has_one_verdict_and_every_refusal_a_remedy() {
        for predecessor in RowSemantics::ALL {
            for successor in RowSemantics::ALL {
                let pair = pairing(predecessor, successor);
                let accepted = matches!(pair.verdict, Verdict::Yes | Verdict::SameKey);
                assert_eq!(pair.remedy.is_empty(), accepted, "{predecessor} → {successor}");
            }
        }
        assert_eq!(PAIRS.len(), 16);
    }

    #[test]
    fn just_the_weak_handoffs_have_a_danger_and_a_clause_that_accepts_it() {
        for rule in HANDOFF_RULES {
            let weak = rule.continuity == Continuity::Weak;
            assert_eq!(weak, !rule.danger.is_empty(), "{:?}", rule.start);
            assert_eq!(weak, !rule.accepted_by.is_empty(), "{:?}", rule.start);
        }
    }
}
