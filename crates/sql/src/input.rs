//! What a source or table is made of: columns, included columns, and the stages that feed it.

use segue_types::SqlType;
use sqlparser::ast;

use crate::{Foreign, Name, Offset};

/// The parenthesised list of CREATE SOURCE and CREATE TABLE.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    pub columns: Vec<Column>,
    /// `PRIMARY KEY`, inline or as a constraint; empty without one.
    pub key: Vec<Name>,
    pub key_offset: Offset,
    pub watermark: Option<Watermark>,
}

/// One declared column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: Name,
    pub ty: SqlType,
    pub nullability: Nullability,
    pub default: Option<Foreign<ast::Expr>>,
    /// `AS expression`, or `GENERATED ALWAYS AS (expression) STORED`
    pub generated: Option<Foreign<ast::Expr>>,
    pub offset: Offset,
}

/// Whether NULL was ruled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nullability {
    Nullable,
    NotNull,
}

/// `WATERMARK FOR column AS expression [WITH (…)]`
#[derive(Clone, Debug, PartialEq)]
pub struct Watermark {
    pub column: Name,
    pub expression: Foreign<ast::Expr>,
    pub options: Vec<WithOption>,
    pub offset: Offset,
}

/// `INCLUDE kind ['inner'] [AS column]`
#[derive(Clone, Debug, PartialEq)]
pub struct Include {
    /// Lower case: `key`, `partition`, …
    pub kind: String,
    /// The one header asked for.
    pub inner: Option<String>,
    pub column: Option<Name>,
    pub offset: Offset,
}

/// What feeds the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// `WITH (…) …`: one stage without a name.
    Read(Read),
    /// `WITH STAGES (…)`
    Stages(Vec<Stage>),
}

/// A named stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub name: Name,
    pub read: Read,
    pub offset: Offset,
}

/// `WITH (…) [FORMAT …] [START AT …] [STOP AT …] [ALLOW …] [AS EVENTS]`
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    pub options: Vec<WithOption>,
    pub format: Option<FormatClause>,
    pub start: Option<StartAt>,
    pub stop: Option<StopAt>,
    pub allow: Option<WeakHandoff>,
    pub rows: Rows,
    /// Of the WITH.
    pub offset: Offset,
    /// Of the START AT, or else of the WITH.
    pub start_offset: Offset,
    /// Of the STOP AT, or else of the WITH.
    pub stop_offset: Offset,
}

/// How the rows of a stage are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// As the connector and the format say.
    #[default]
    AsDeclared,
    /// `AS EVENTS`: a snapshot's rows, or changes, count as events.
    AsEvents,
}

/// `ALLOW …`: which weakness of a handoff the user accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeakHandoff {
    Gap,
    Overlap,
}

/// One option. Numbers and booleans are kept as their text: only the connector knows an option's type.
#[derive(Clone, Debug, PartialEq)]
pub struct WithOption {
    /// Lower case unless it was quoted, dots included.
    pub name: String,
    pub value: String,
    /// Of the name.
    pub offset: Offset,
}

/// `FORMAT f ENCODE e [(…)]`, both in lower case.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatClause {
    pub format: String,
    pub encode: String,
    pub options: Vec<WithOption>,
    pub offset: Offset,
}

/// `START AT …`; what the literals hold is the planner's to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAt {
    Handoff,
    Earliest,
    Latest,
    Timestamp(String),
    Offsets(String),
    Query(String),
    Columns { split: Name, position: Name },
}

/// `STOP AT …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopAt {
    Latest,
    Timestamp(String),
    Offsets(String),
}
