//! The rules between a stage and the one before it. The rules themselves are in [`crate::tables`]; here they are
//! applied, and a refusal names both stages, the rule and the remedy.

use arrow::datatypes::DataType;
use segue_connect::{HandoffKind, Replayable, Start};
use segue_sql::{Rows, Stage};
use segue_types::{Boundedness, Continuity, RowSemantics, SqlState, UserError};

use super::{OnExpiry, PlannedHandoff, PlannedStage, columns::Bound, read::missing_key};
use crate::tables::{HandoffRule, StartKind, Verdict, handoff_rule, pairing};

/// Sets each stage's handoff. Returns what the user should know of them.
pub(super) fn connect(
    parts: &[Stage],
    stages: &mut [PlannedStage],
    bound: &Bound,
) -> Result<Vec<String>, UserError> {
    let mut notices = Vec::new();
    if let (Some(part), Some(stage)) = (parts.first(), stages.first())
        && part.read.allow.is_some()
        && !skips(stage)
    {
        let name = part.name.as_str();
        let why = match stage.on_expiry {
            OnExpiry::Stop => "it is the first",
            OnExpiry::Skip => "it is the first, and nothing of it expires",
        };
        notices.push(format!("ALLOW of stage \"{name}\" has no effect: {why}"));
    }
    // From the last to the first: what the last stage overwrites makes snapshots of all that come before it.
    for index in (1..stages.len()).rev() {
        let (before, after) = stages.split_at_mut(index);
        let joint = Joint { predecessor: &parts[index - 1], successor: &parts[index] };
        notices.extend(joint.take_as_state(&mut before[index - 1], &after[0], bound));
    }
    notices.reverse();
    for index in 1..stages.len() {
        let (before, after) = stages.split_at_mut(index);
        let (predecessor, successor) = (&before[index - 1], &mut after[0]);
        let joint = Joint { predecessor: &parts[index - 1], successor: &parts[index] };
        joint.check_bounded(predecessor, successor)?;
        let verdict = joint.check_semantics(predecessor, successor, bound)?;
        let rule = joint.rule(predecessor, successor)?;
        joint.check_exact(predecessor, successor, verdict, rule)?;
        joint.check_columns(successor, rule, bound)?;
        joint.check_weak(predecessor, successor, rule)?;
        notices.push(joint.notice(successor, rule));
        successor.handoff = Some(PlannedHandoff { kind: rule.kind, continuity: rule.continuity });
    }
    Ok(notices)
}

/// Two stages, one after the other.
struct Joint<'a> {
    predecessor: &'a Stage,
    successor: &'a Stage,
}

impl Joint<'_> {
    fn names(&self) -> (&str, &str) {
        (self.predecessor.name.as_str(), self.successor.name.as_str())
    }

    fn refuse(&self, why: impl std::fmt::Display) -> UserError {
        let (predecessor, successor) = self.names();
        let message = format!("stage \"{successor}\" cannot follow stage \"{predecessor}\": {why}");
        UserError::new(SqlState::INVALID_OBJECT_DEFINITION, message).at(self.successor.offset.0)
    }

    fn check_bounded(
        &self,
        predecessor: &PlannedStage,
        successor: &PlannedStage,
    ) -> Result<(), UserError> {
        if predecessor.capabilities.boundedness == Boundedness::Bounded {
            return Ok(());
        }
        let (first, second) = self.names();
        // What takes no start from another stage is no log, and stops by what its options say.
        let by =
            if predecessor.capabilities.accepts.is_empty() { "its options" } else { "STOP AT" };
        let hint = match successor.capabilities.boundedness {
            Boundedness::Bounded => format!(
                "Put stage \"{second}\" before stage \"{first}\", or bound stage \"{first}\" with {by}."
            ),
            Boundedness::Continuous => format!("Bound stage \"{first}\" with {by}."),
        };
        Err(self
            .refuse(format!("stage \"{first}\" never ends"))
            .with_detail("Every stage but the last must be bounded.")
            .with_hint(hint))
    }

    /// Events that a PRIMARY KEY declares unique count as a snapshot where something overwrites them.
    fn take_as_state(
        &self,
        predecessor: &mut PlannedStage,
        successor: &PlannedStage,
        bound: &Bound,
    ) -> Option<String> {
        let (from, to) = (predecessor.capabilities.semantics, successor.capabilities.semantics);
        let declared = self.predecessor.read.rows == Rows::AsDeclared && !bound.key.is_empty();
        if pairing(from, to).verdict != Verdict::IfDeclaredKeyed || !declared {
            return None;
        }
        predecessor.capabilities.semantics = RowSemantics::State;
        Some(format!(
            "stage \"{}\" is taken as a snapshot: PRIMARY KEY ({}) declares its rows unique",
            predecessor.name,
            bound.key_names()
        ))
    }

    fn check_semantics(
        &self,
        predecessor: &PlannedStage,
        successor: &PlannedStage,
        bound: &Bound,
    ) -> Result<Verdict, UserError> {
        let (from, to) = (predecessor.capabilities.semantics, successor.capabilities.semantics);
        let pair = pairing(from, to);
        match pair.verdict {
            Verdict::SameKey if bound.key.is_empty() => {
                Err(missing_key(self.successor, to).with_detail(pair.rule))
            }
            Verdict::Yes | Verdict::SameKey | Verdict::ExactOnly => Ok(pair.verdict),
            Verdict::IfDeclaredKeyed | Verdict::UnlessAsEvents | Verdict::No => Err(self
                .refuse(format!("{to} rows cannot follow {from} rows"))
                .with_detail(pair.rule)
                .with_hint(pair.remedy)),
        }
    }

    fn check_exact(
        &self,
        predecessor: &PlannedStage,
        successor: &PlannedStage,
        verdict: Verdict,
        rule: &HandoffRule,
    ) -> Result<(), UserError> {
        if verdict != Verdict::ExactOnly || rule.continuity == Continuity::Exact {
            return Ok(());
        }
        let (from, to) = (predecessor.capabilities.semantics, successor.capabilities.semantics);
        let pair = pairing(from, to);
        Err(self
            .refuse(format!("{to} rows after {from} rows need an exact handoff"))
            .with_detail(pair.rule)
            .with_hint(pair.remedy)
            .at(self.successor.read.start_offset.0))
    }

    /// The handoff rule of the given start, with what it needs of both stages.
    fn rule(
        &self,
        predecessor: &PlannedStage,
        successor: &PlannedStage,
    ) -> Result<&'static HandoffRule, UserError> {
        let start = start_kind(&successor.config.start, self.successor);
        let rule = handoff_rule(start, predecessor.capabilities.semantics)
            .expect("the table has every start");
        let Some(kind) = rule.kind else { return Ok(rule) };
        let produced = predecessor.capabilities.produces.contains(&kind);
        let accepted = successor.capabilities.accepts.contains(&kind);
        // Ends in one connector's log mean nothing to another connector.
        let same_log = kind != HandoffKind::LogEnds || predecessor.connector == successor.connector;
        if produced && accepted && same_log {
            return Ok(rule);
        }
        let (first, second) = self.names();
        let clause = start.as_sql();
        let why = if !produced {
            format!("START AT {clause} needs {kind}, which stage \"{first}\" does not produce")
        } else if !accepted {
            format!("START AT {clause} needs {kind}, which stage \"{second}\" does not accept")
        } else {
            "START AT HANDOFF needs two reads of the same log".to_owned()
        };
        let (has, takes) =
            (kinds(&predecessor.capabilities.produces), kinds(&successor.capabilities.accepts));
        Err(self
            .refuse(why)
            .with_detail(format!(
                "Stage \"{first}\" (connector \"{}\") produces {has}; stage \"{second}\" (connector \"{}\") \
                 accepts {takes}.",
                predecessor.connector, successor.connector,
            ))
            .with_hint(remedy(predecessor, successor))
            .at(self.successor.read.start_offset.0))
    }

    fn check_columns(
        &self,
        successor: &PlannedStage,
        rule: &HandoffRule,
        bound: &Bound,
    ) -> Result<(), UserError> {
        if rule.continuity == Continuity::Covering && bound.key.is_empty() {
            return Err(missing_key(self.successor, successor.capabilities.semantics)
                .with_detail("A covering handoff repeats rows, which are told apart by key."));
        }
        let Start::Columns { split, position } = &successor.config.start else { return Ok(()) };
        for name in [split, position] {
            let at = self.successor.read.start_offset.0;
            let Ok(field) = bound.schema.field_with_name(name) else {
                let message = format!("column \"{name}\" named in START AT COLUMNS does not exist");
                return Err(UserError::new(SqlState::UNDEFINED_COLUMN, message).at(at));
            };
            let fits = matches!(
                field.data_type(),
                DataType::Utf8 | DataType::Int16 | DataType::Int32 | DataType::Int64
            );
            if !fits {
                let message =
                    format!("column \"{name}\" named in START AT COLUMNS is no integer or text");
                return Err(UserError::new(SqlState::DATATYPE_MISMATCH, message).at(at));
            }
        }
        Ok(())
    }

    /// Refuses a weak handoff that nobody asked for.
    fn check_weak(
        &self,
        predecessor: &PlannedStage,
        successor: &PlannedStage,
        rule: &HandoffRule,
    ) -> Result<(), UserError> {
        let accepted = |allow| rule.accepted_by.contains(&allow);
        if rule.continuity != Continuity::Weak || self.successor.read.allow.is_some_and(accepted) {
            return Ok(());
        }
        let clauses: Vec<&str> = rule.accepted_by.iter().map(|weak| weak.as_sql()).collect();
        Err(self
            .refuse(format!("START AT {} is a weak handoff", rule.start.as_sql()))
            .with_detail(rule.danger)
            .with_hint(format!(
                "Say {}, or accept this with {}.",
                strong_starts(predecessor, successor).join(" or "),
                clauses.join(" or ")
            ))
            .at(self.successor.read.start_offset.0))
    }

    fn notice(&self, successor: &PlannedStage, rule: &HandoffRule) -> String {
        let (first, second) = self.names();
        let unneeded = match self.successor.read.allow {
            Some(weak) if rule.continuity != Continuity::Weak && !skips(successor) => {
                format!(" ({} is not needed)", weak.as_sql())
            }
            _ => String::new(),
        };
        format!(
            "handoff from stage \"{first}\" to stage \"{second}\" is {}{unneeded}: {}",
            rule.continuity, rule.promise
        )
    }
}

/// Whether ALLOW GAP has a meaning for the stage whatever its handoff is.
fn skips(stage: &PlannedStage) -> bool {
    stage.on_expiry == OnExpiry::Skip && stage.capabilities.replayable == Replayable::UntilRetention
}

fn start_kind(start: &Start, stage: &Stage) -> StartKind {
    match start {
        Start::Handoff => StartKind::Handoff,
        Start::Earliest if is_whole(stage) => StartKind::Whole,
        Start::Earliest => StartKind::Earliest,
        Start::Latest => StartKind::Latest,
        Start::Timestamp { .. } => StartKind::Timestamp,
        Start::Offsets(_) => StartKind::Offsets,
        Start::Query(_) => StartKind::Query,
        Start::Columns { .. } => StartKind::Columns,
    }
}

/// A later stage that was given no start at all has EARLIEST only because it has no positions to choose from.
fn is_whole(stage: &Stage) -> bool {
    let spelled = |name: &str| name.starts_with("scan.startup.");
    stage.read.start.is_none() && !stage.read.options.iter().any(|option| spelled(&option.name))
}

fn kinds(kinds: &[HandoffKind]) -> String {
    if kinds.is_empty() {
        return "nothing".to_owned();
    }
    kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What would work for these two stages.
fn remedy(predecessor: &PlannedStage, successor: &PlannedStage) -> String {
    if successor.capabilities.accepts.is_empty() {
        return "Leave out START AT: this stage is read whole.".to_owned();
    }
    let ways = strong_starts(predecessor, successor).join(" or ");
    format!("Give stage \"{}\" {ways}, or START AT LATEST ALLOW GAP.", successor.name)
}

/// The starts of the successor that are not weak.
fn strong_starts(predecessor: &PlannedStage, successor: &PlannedStage) -> Vec<&'static str> {
    let common = |kind: HandoffKind| {
        predecessor.capabilities.produces.contains(&kind)
            && successor.capabilities.accepts.contains(&kind)
    };
    let mut ways = Vec::new();
    if common(HandoffKind::LogEnds) && predecessor.connector == successor.connector {
        ways.push("START AT HANDOFF");
    }
    if common(HandoffKind::Query) {
        ways.push("START AT QUERY '<sql>'");
    }
    if common(HandoffKind::Columns) {
        ways.push("START AT COLUMNS (<split>, <position>)");
    }
    ways.push("START AT OFFSETS '<json>'");
    ways
}
