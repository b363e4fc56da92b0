//! The statements of Segue's own: DDL of streaming objects, and the verbs that look after them.
//!
//! Invariant: none of these holds what SQL cannot say, so each can be printed and parsed again.

use std::num::NonZeroU32;

use sqlparser::ast;

use crate::{Columns, FormatClause, Include, Input, Name, Offset, WithOption};

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    CreateSource(CreateSource),
    CreateTable(CreateTable),
    CreateView(CreateView),
    CreateMaterializedView(CreateView),
    CreateSink(CreateSink),
    CreateIndex(CreateIndex),
    Drop(Drop),
    DropIndex(DropIndex),
    Alter(Alter),
    AlterJob(AlterJob),
    Rename(Rename),
    Show(Show),
    Describe(Describe),
    Explain(Explain),
    Flush,
    Wait(Wait),
    CancelJob(CancelJob),
    /// Whatever is not ours, as sqlparser read it.
    Sql(Box<ast::Statement>),
}

/// A piece of PostgreSQL's grammar inside one of our statements: the tree, and the text it was read from.
/// The text is what is stored and shown, because printing the tree would not always give it back.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign<T> {
    pub tree: Box<T>,
    pub text: String,
}

/// The kinds of object that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Source,
    Table,
    View,
    MaterializedView,
    Sink,
}

/// What CREATE does when the name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExisting {
    Refuse,
    /// `IF NOT EXISTS`
    Skip,
    /// `OR REPLACE`
    Replace,
}

/// What DROP does when the name is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    Refuse,
    /// `IF EXISTS`
    Skip,
}

/// `CREATE SOURCE`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSource {
    pub name: Name,
    pub on_existing: OnExisting,
    pub columns: Columns,
    pub includes: Vec<Include>,
    pub input: Input,
    /// Of the name.
    pub offset: Offset,
}

/// `CREATE TABLE`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub name: Name,
    pub on_existing: OnExisting,
    pub columns: Columns,
    pub mutability: Mutability,
    pub on_conflict: Option<ConflictAction>,
    /// `WITH VERSION COLUMN (…)`
    pub versions: Vec<Name>,
    pub includes: Vec<Include>,
    /// `None`: fed by DML alone.
    pub input: Option<Input>,
    /// Of the name.
    pub offset: Offset,
}

/// Whether rows of a table can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    Mutable,
    /// `APPEND ONLY`
    AppendOnly,
}

/// `ON CONFLICT …` of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictAction {
    DoNothing,
    /// `OVERWRITE` or `DO UPDATE FULL`
    Overwrite,
    DoUpdateIfNotNull,
}

/// `CREATE [MATERIALIZED] VIEW`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub name: Name,
    pub on_existing: OnExisting,
    /// Empty: the query's own names.
    pub columns: Vec<Name>,
    pub query: Foreign<ast::Query>,
    pub emission: Emission,
    /// Of the name.
    pub offset: Offset,
}

/// `CREATE SINK`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSink {
    pub name: Name,
    pub on_existing: OnExisting,
    /// `INTO table`; without it the options name a connector.
    pub into: Option<SinkTable>,
    /// `FROM r` is `AS SELECT * FROM r`.
    pub query: Foreign<ast::Query>,
    pub emission: Emission,
    pub options: Vec<WithOption>,
    pub format: Option<FormatClause>,
    /// Of the name.
    pub offset: Offset,
}

/// The table that a sink feeds.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkTable {
    pub name: Name,
    /// Empty: the table's columns in their order.
    pub columns: Vec<Name>,
    /// Of the name.
    pub offset: Offset,
}

/// When a materialized view shows its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emission {
    OnChange,
    /// `EMIT ON WINDOW CLOSE`
    OnWindowClose,
}

/// `CREATE INDEX`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub name: Option<Name>,
    pub on_existing: OnExisting,
    pub table: Name,
    pub columns: Vec<Foreign<ast::OrderByExpr>>,
    /// `INCLUDE (…)`
    pub included: Vec<Foreign<ast::Expr>>,
    /// `DISTRIBUTED BY (…)`
    pub distributed: Vec<Foreign<ast::Expr>>,
    /// Of the table.
    pub offset: Offset,
}

/// `DROP INDEX`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIndex {
    pub on_missing: OnMissing,
    pub names: Vec<Name>,
}

/// `DROP …`
#[derive(Clone, Debug, PartialEq)]
pub struct Drop {
    pub kind: ObjectKind,
    pub on_missing: OnMissing,
    pub names: Vec<Name>,
    pub behavior: DropBehavior,
}

/// What DROP does when something depends on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropBehavior {
    Restrict,
    Cascade,
}

/// `ALTER … PAUSE` and its like. `PAUSE SOURCE s` is another spelling of `ALTER SOURCE s PAUSE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Alter {
    pub kind: ObjectKind,
    pub name: Name,
    pub action: Action,
}

/// What ALTER does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Pause,
    Resume,
    /// Looks for new splits at once.
    Refresh,
    /// `SET source_rate_limit`: of each live reading.
    SetSourceRateLimit(RateLimit),
    /// `SET backfill_rate_limit`: of readings of what was there before.
    SetBackfillRateLimit(RateLimit),
    SetParallelism(Parallelism),
}

/// `ALTER … RENAME TO name`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    pub kind: ObjectKind,
    pub name: Name,
    pub to: Name,
    /// Of the new name.
    pub offset: Offset,
}

/// How fast a reading may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// `DEFAULT`
    Unlimited,
    /// Zero stops the reading, as PAUSE does.
    RowsPerSecond(u64),
}

/// How many readers share the splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// `ADAPTIVE` or `DEFAULT`: the server decides.
    Adaptive,
    Fixed(NonZeroU32),
}

/// `PAUSE JOB n, …` and `RESUME JOB n, …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterJob {
    pub jobs: Vec<u64>,
    pub action: JobAction,
}

/// What can be done to a job that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobAction {
    Pause,
    Resume,
}

/// `SHOW …` of our own; `SHOW` of a setting stays sqlparser's.
#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    pub what: Shown,
    /// `FROM name`: a schema, or the source whose stages are asked for.
    pub from: Option<Name>,
    pub like: Option<String>,
}

/// What SHOW lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    Sources,
    Stages,
    Tables,
    Views,
    MaterializedViews,
    Sinks,
    Jobs,
    Create(ObjectKind, Name),
}

/// `DESCRIBE [schema.]name`
#[derive(Clone, Debug, PartialEq)]
pub struct Describe {
    pub schema: Option<Name>,
    pub name: Name,
    /// Of the name.
    pub offset: Offset,
}

/// `EXPLAIN` of what is ours; of a query it stays sqlparser's.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    pub mode: ExplainMode,
    pub subject: Explained,
}

/// What EXPLAIN is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Explained {
    /// What a CREATE would make.
    Create(Box<Statement>),
    /// What is there.
    Object(ObjectKind, Name),
}

/// What EXPLAIN does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainMode {
    Plan,
    Analyze,
}

/// `WAIT …`
#[derive(Clone, Debug, PartialEq)]
pub enum Wait {
    /// For every job.
    All,
    For(ObjectKind, Name),
}

/// `CANCEL JOB n, …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelJob {
    pub jobs: Vec<u64>,
}
